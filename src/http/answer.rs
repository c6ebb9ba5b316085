//! Sending an answer.

use core::ptr;

use nginx_sys::{
    NGX_ERROR, NGX_HTTP_INTERNAL_SERVER_ERROR, ngx_chain_t, ngx_create_temp_buf,
    ngx_http_output_filter, ngx_http_request_t, ngx_http_send_header, ngx_int_t, ngx_list_push,
    ngx_str_t, ngx_table_elt_t,
};

const NO_CONTENT: u16 = 204;
const CONTENT_TYPE: &str = "application/json";

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// JSON.
    pub body: Vec<u8>,
    pub header: Option<Header>,
}

#[derive(Debug)]
pub enum Header {
    Allow(String),
    /// Whole seconds.
    RetryAfter(u64),
}

impl Answer {
    /// The result is for `ngx_http_finalize_request`, or for a content handler to return.
    ///
    /// # Safety
    /// `r` is a live request that has not been answered.
    pub unsafe fn send(self, r: *mut ngx_http_request_t) -> ngx_int_t {
        // SAFETY: as the caller promises. All memory that nginx keeps a pointer to is static or in
        // the request's pool.
        unsafe {
            if !self.set_headers(r) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR as ngx_int_t;
            }
            let rc = ngx_http_send_header(r);
            // nginx's header filter has decided by now that HEAD and 204 have no body.
            if rc == NGX_ERROR as ngx_int_t || rc > 0 || (*r).header_only() != 0 {
                return rc;
            }
            let buf = ngx_create_temp_buf((*r).pool, self.body.len().max(1));
            if buf.is_null() {
                return NGX_ERROR as ngx_int_t;
            }
            ptr::copy_nonoverlapping(self.body.as_ptr(), (*buf).last, self.body.len());
            (*buf).last = (*buf).last.add(self.body.len());
            (*buf).set_last_buf((ptr::eq(r, (*r).main)).into());
            (*buf).set_last_in_chain(1);
            let mut chain = ngx_chain_t { buf, next: ptr::null_mut() };
            ngx_http_output_filter(r, &raw mut chain)
        }
    }

    /// # Safety
    /// As [`Self::send`].
    unsafe fn set_headers(&self, r: *mut ngx_http_request_t) -> bool {
        // SAFETY: as the caller promises.
        unsafe {
            // `If-Match` and the like are about documents; nginx's filter would turn the answer for
            // a written record into 304 or 412.
            (*r).set_disable_not_modified(1);
            let out = &raw mut (*r).headers_out;
            (*out).status = self.status.into();
            if self.status != NO_CONTENT {
                (*out).content_length_n = self.body.len() as _;
                (*out).content_type = static_str(CONTENT_TYPE);
                (*out).content_type_len = CONTENT_TYPE.len();
                (*out).content_type_lowcase = ptr::null_mut();
            }
            match &self.header {
                None => true,
                Some(Header::Allow(methods)) => push_header(r, "Allow", methods),
                Some(Header::RetryAfter(seconds)) => {
                    push_header(r, "Retry-After", &seconds.to_string())
                }
            }
        }
    }
}

/// # Safety
/// `r` is a live request whose headers have not been sent.
unsafe fn push_header(r: *mut ngx_http_request_t, name: &'static str, value: &str) -> bool {
    // SAFETY: as the caller promises; nginx clears new list elements only in part, so every field
    // is set.
    unsafe {
        let mut text = ngx_str_t { len: value.len(), data: value.as_ptr().cast_mut() };
        let data = nginx_sys::ngx_pstrdup((*r).pool, &raw mut text);
        if data.is_null() {
            return false;
        }
        let header: *mut ngx_table_elt_t = ngx_list_push(&raw mut (*r).headers_out.headers).cast();
        if header.is_null() {
            return false;
        }
        // All-zero first: `next` exists since nginx 1.23 only.
        ptr::write_bytes(header, 0, 1);
        (*header).hash = 1;
        (*header).key = static_str(name);
        (*header).value = ngx_str_t { len: value.len(), data };
        true
    }
}

/// nginx does not write to header names and types.
fn static_str(text: &'static str) -> ngx_str_t {
    ngx_str_t { len: text.len(), data: text.as_ptr().cast_mut() }
}
