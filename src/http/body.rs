//! The request body, wherever nginx has put it.

use core::slice;
use std::io;

use nginx_sys::{ngx_buf_t, ngx_chain_t, ngx_http_request_t, ngx_read_file};

/// A body that has been read completely.
pub struct Body {
    /// nginx's buffers: memory, the temporary file, or (HTTP/2) both.
    bufs: *mut ngx_chain_t,
    len: usize,
}

/// Its bytes.
pub enum Bytes<'a> {
    /// All in one of nginx's buffers.
    Borrowed(&'a [u8]),
    Gathered(Vec<u8>),
}

impl Bytes<'_> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Gathered(bytes) => bytes,
        }
    }
}

impl Body {
    /// # Safety
    /// `r` is a live request whose body has been read completely. The value must not be used after
    /// the request.
    pub unsafe fn of(r: *mut ngx_http_request_t) -> Self {
        // SAFETY: as the caller promises; an empty body has no structure or no buffers.
        unsafe {
            let body = (*r).request_body;
            let bufs = if body.is_null() { core::ptr::null_mut() } else { (*body).bufs };
            let mut this = Self { bufs, len: 0 };
            this.len = this.bufs().map(|buf| len(buf)).sum();
            this
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// # Safety
    /// The request is live, and the answer must not outlive it.
    pub unsafe fn bytes<'a>(&self) -> io::Result<Bytes<'a>> {
        // SAFETY: as the caller promises; the buffers are no longer written to.
        unsafe {
            let mut filled = self.bufs().filter(|buf| len(*buf) > 0);
            let Some(first) = filled.next() else { return Ok(Bytes::Borrowed(&[])) };
            if !in_file(first) && filled.next().is_none() {
                return Ok(Bytes::Borrowed(memory(first)));
            }
            self.gather().map(Bytes::Gathered)
        }
    }

    /// # Safety
    /// The request is alive.
    unsafe fn gather(&self) -> io::Result<Vec<u8>> {
        let mut all = Vec::with_capacity(self.len);
        // SAFETY: as the caller promises.
        unsafe {
            for buf in self.bufs() {
                if in_file(buf) {
                    append_file(buf, &mut all)?;
                } else {
                    all.extend_from_slice(memory(buf));
                }
            }
        }
        Ok(all)
    }

    /// # Safety
    /// The request is alive.
    unsafe fn bufs(&self) -> impl Iterator<Item = *const ngx_buf_t> + use<> {
        let mut link: *const ngx_chain_t = self.bufs;
        core::iter::from_fn(move || {
            // SAFETY: the caller's promise holds while the iterator is used.
            unsafe {
                let buf = link.as_ref()?.buf;
                link = (*link).next;
                Some(buf.cast_const())
            }
        })
    }
}

/// # Safety
/// `buf` is alive.
unsafe fn in_file(buf: *const ngx_buf_t) -> bool {
    // SAFETY: as the caller promises. A buffer may be in memory and in a file: memory is nearer.
    unsafe { (*buf).in_file() != 0 && (*buf).temporary() == 0 && (*buf).memory() == 0 }
}

/// # Safety
/// `buf` is alive.
unsafe fn len(buf: *const ngx_buf_t) -> usize {
    // SAFETY: as the caller promises; nginx keeps `pos <= last` and `file_pos <= file_last`.
    unsafe {
        if in_file(buf) {
            ((*buf).file_last - (*buf).file_pos) as usize
        } else {
            (*buf).last.offset_from((*buf).pos) as usize
        }
    }
}

/// # Safety
/// `buf` is alive and in memory; the answer must not outlive it.
unsafe fn memory<'a>(buf: *const ngx_buf_t) -> &'a [u8] {
    // SAFETY: as the caller promises; an empty buffer may have null pointers.
    unsafe {
        match len(buf) {
            0 => &[],
            len => slice::from_raw_parts((*buf).pos, len),
        }
    }
}

/// # Safety
/// `buf` is alive and in a file.
unsafe fn append_file(buf: *const ngx_buf_t, out: &mut Vec<u8>) -> io::Result<()> {
    // SAFETY: as the caller promises; `ngx_read_file` writes at most as much as it is asked for,
    // into capacity that is there.
    unsafe {
        let mut offset = (*buf).file_pos;
        while offset < (*buf).file_last {
            let want = ((*buf).file_last - offset) as usize;
            out.reserve(want);
            let n = ngx_read_file(
                (*buf).file,
                out.spare_capacity_mut().as_mut_ptr().cast(),
                want,
                offset,
            );
            match n {
                n if n > 0 => {
                    out.set_len(out.len() + n as usize);
                    offset += n as nginx_sys::off_t;
                }
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => return Err(io::Error::last_os_error()),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use core::{mem, ptr};

    use nginx_sys::{
        ngx_alloc_chain_link, ngx_create_pool, ngx_create_temp_buf, ngx_destroy_pool,
        ngx_http_request_body_t, ngx_log_t, ngx_pool_t,
    };

    use super::*;

    /// # Safety
    /// `pool` is alive.
    unsafe fn chain(pool: *mut ngx_pool_t, parts: &[&[u8]]) -> *mut ngx_chain_t {
        let mut next: *mut ngx_chain_t = ptr::null_mut();
        for part in parts.iter().rev() {
            // SAFETY: nginx's own functions on a live pool.
            unsafe {
                let buf = ngx_create_temp_buf(pool, 16);
                ptr::copy_nonoverlapping(part.as_ptr(), (*buf).last, part.len());
                (*buf).last = (*buf).last.add(part.len());
                let link = ngx_alloc_chain_link(pool);
                *link = ngx_chain_t { buf, next };
                next = link;
            }
        }
        next
    }

    #[test]
    fn one_buffer_is_borrowed_and_several_are_joined() {
        // SAFETY: all-zero structures as nginx makes them, and a real pool.
        unsafe {
            let mut log: ngx_log_t = mem::zeroed();
            let pool = ngx_create_pool(4096, &raw mut log);
            assert!(!pool.is_null());
            let mut r: ngx_http_request_t = mem::zeroed();
            assert_eq!(Body::of(&raw mut r).len(), 0);
            assert!(Body::of(&raw mut r).bytes().unwrap().as_slice().is_empty());

            let mut request_body: ngx_http_request_body_t = mem::zeroed();
            r.request_body = &raw mut request_body;
            (*r.request_body).bufs = chain(pool, &[b"", b"alone"]);
            let body = Body::of(&raw mut r);
            assert!(matches!(body.bytes().unwrap(), Bytes::Borrowed(b"alone")));

            (*r.request_body).bufs = chain(pool, &[b"hello ", b"", b"world"]);
            let body = Body::of(&raw mut r);
            assert_eq!(body.len(), 11);
            assert_eq!(body.bytes().unwrap().as_slice(), b"hello world");
            ngx_destroy_pool(pool);
        }
    }
}
