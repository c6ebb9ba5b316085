//! nginx's complex values: text with `$variables`, compiled once, evaluated per request.

use core::{mem, ptr, slice};

use nginx_sys::{
    NGX_OK, ngx_conf_t, ngx_http_compile_complex_value, ngx_http_compile_complex_value_t,
    ngx_http_complex_value, ngx_http_complex_value_t, ngx_http_request_t, ngx_int_t, ngx_str_t,
};

/// The compiled form of a directive's value. Lives as long as the configuration that it was
/// compiled in: what it points to is in that configuration's pool.
#[derive(Clone, Copy)]
pub struct ComplexValue(ngx_http_complex_value_t);

impl ComplexValue {
    /// `None`: nginx has logged what is wrong, such as an unknown variable.
    pub fn compile(cf: &mut ngx_conf_t, text: &ngx_str_t) -> Option<Self> {
        let mut text = *text;
        // SAFETY: both are plain C structures for which nginx itself uses all-zero values.
        let (mut compiled, mut ccv) = unsafe {
            (
                mem::zeroed::<ngx_http_complex_value_t>(),
                mem::zeroed::<ngx_http_compile_complex_value_t>(),
            )
        };
        ccv.cf = cf;
        ccv.value = &raw mut text;
        ccv.complex_value = &raw mut compiled;
        // SAFETY: `ccv` is filled as nginx's own `ngx_http_set_complex_value_slot` does; it is used
        // during the call only.
        let rc = unsafe { ngx_http_compile_complex_value(&raw mut ccv) };
        (rc == NGX_OK as ngx_int_t).then_some(Self(compiled))
    }

    /// The text itself where it holds no variable.
    pub fn constant(&self) -> Option<&[u8]> {
        self.0.lengths.is_null().then(|| self.0.value.as_bytes())
    }

    /// `None`: out of memory (nginx has logged it).
    ///
    /// # Safety
    /// `r` is a live request of the configuration that this was compiled in. The answer lies in the
    /// request's pool: it must not be used after the request.
    pub unsafe fn evaluate(&self, r: *mut ngx_http_request_t) -> Option<&[u8]> {
        let mut value = ngx_str_t { len: 0, data: ptr::null_mut() };
        let compiled = (&raw const self.0).cast_mut();
        // SAFETY: nginx reads the compiled value and does not write to it; `r` as the caller
        // promises.
        let rc = unsafe { ngx_http_complex_value(r, compiled, &raw mut value) };
        if rc != NGX_OK as ngx_int_t {
            return None;
        }
        if value.len == 0 {
            return Some(&[]);
        }
        // SAFETY: nginx returned NGX_OK, so `data` points to `len` bytes in the request's or the
        // configuration's pool.
        Some(unsafe { slice::from_raw_parts(value.data, value.len) })
    }
}
