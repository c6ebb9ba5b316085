//! Socket addresses between Rust and C.

use core::mem;
use core::ptr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A C `sockaddr` of either family.
#[derive(Clone, Copy)]
pub struct SockAddr {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl SockAddr {
    pub fn new(addr: &SocketAddr) -> Self {
        // SAFETY: a plain C structure, valid when zeroed.
        let mut storage = unsafe { mem::zeroed::<libc::sockaddr_storage>() };
        let place = &raw mut storage;
        let len = match addr {
            SocketAddr::V4(v4) => {
                // SAFETY: `sockaddr_storage` has room and alignment for every address family.
                let sin = unsafe { &mut *place.cast::<libc::sockaddr_in>() };
                sin.sin_family = libc::AF_INET as _;
                sin.sin_port = v4.port().to_be();
                sin.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                // SAFETY: as above.
                let sin6 = unsafe { &mut *place.cast::<libc::sockaddr_in6>() };
                sin6.sin6_family = libc::AF_INET6 as _;
                sin6.sin6_port = v6.port().to_be();
                sin6.sin6_flowinfo = v6.flowinfo();
                sin6.sin6_addr.s6_addr = v6.ip().octets();
                sin6.sin6_scope_id = v6.scope_id();
                size_of::<libc::sockaddr_in6>()
            }
        };
        Self { storage, len: len as libc::socklen_t }
    }

    pub fn as_ptr(&self) -> *const libc::sockaddr_storage {
        &raw const self.storage
    }

    pub fn len(&self) -> libc::socklen_t {
        self.len
    }
}

/// The address in a C `sockaddr`; `None` for other families than IP.
///
/// # Safety
/// `addr` points to `len` readable bytes.
pub unsafe fn ip(addr: *const libc::sockaddr, len: usize) -> Option<IpAddr> {
    if addr.is_null() || len < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: the length is checked for each read; nginx's addresses are aligned, but reading
    // unaligned costs nothing.
    unsafe {
        match i32::from(ptr::read_unaligned(addr).sa_family) {
            libc::AF_INET if len >= size_of::<libc::sockaddr_in>() => {
                let sin = ptr::read_unaligned(addr.cast::<libc::sockaddr_in>());
                Some(Ipv4Addr::from(sin.sin_addr.s_addr.to_ne_bytes()).into())
            }
            libc::AF_INET6 if len >= size_of::<libc::sockaddr_in6>() => {
                let sin6 = ptr::read_unaligned(addr.cast::<libc::sockaddr_in6>());
                Some(Ipv6Addr::from(sin6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["127.0.0.1:9092", "[2001:db8::7]:19092"] {
            let addr: SocketAddr = text.parse().unwrap();
            let c = SockAddr::new(&addr);
            // SAFETY: the pointer and its length come from one structure.
            let back = unsafe { ip(c.as_ptr().cast(), c.len() as usize) };
            assert_eq!(back, Some(addr.ip()));
        }
    }
}
