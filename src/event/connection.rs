//! An outgoing TCP connection in nginx's event loop.

use core::cell::Cell;
use core::mem::{self, MaybeUninit};
use core::ptr;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

use bytes::Bytes;
use kafka::ConnId;
use nginx_sys::{
    NGX_AGAIN, NGX_DECLINED, NGX_OK, ngx_close_connection, ngx_connection_t,
    ngx_event_connect_peer, ngx_event_get_peer, ngx_event_t, ngx_handle_read_event,
    ngx_handle_write_event, ngx_int_t, ngx_log_t, ngx_peer_connection_t, ngx_post_event,
    ngx_posted_events, ngx_str_t,
};

use super::sockaddr::SockAddr;
use crate::guard;

/// Segments per `writev`.
const SEGMENTS: usize = 64;

/// What the owner of a connection is told, always straight from nginx's event loop.
pub trait Owner {
    fn established(&self, conn: ConnId);
    fn readable(&self, conn: ConnId);
    fn writable(&self, conn: ConnId);
    /// The connection could not be made.
    fn failed(&self, conn: ConnId, reason: String);
    /// nginx closes all connections: `worker_shutdown_timeout` is over.
    fn shut_down(&self);
}

/// Closed when dropped.
pub struct Connection {
    id: ConnId,
    c: Cell<*mut ngx_connection_t>,
    established: Cell<bool>,
    owner: Weak<dyn Owner>,
}

pub enum Read {
    Bytes(usize),
    Again,
    Closed(String),
}

impl Connection {
    /// Starts connecting. The outcome comes to the owner, unless it is known at once: then see
    /// [`Connection::is_established`], or the error. `log` lives as long as the connection.
    pub fn open(
        id: ConnId,
        addr: &SocketAddr,
        owner: Weak<dyn Owner>,
        log: *mut ngx_log_t,
    ) -> Result<Rc<Self>, String> {
        let sockaddr = SockAddr::new(addr);
        let text = addr.to_string();
        let mut name = ngx_str_t { len: text.len(), data: text.as_ptr().cast_mut() };
        // SAFETY: a plain C structure, zeroed by nginx's own callers too.
        let mut peer = unsafe { mem::zeroed::<ngx_peer_connection_t>() };
        peer.sockaddr = sockaddr.as_ptr().cast_mut().cast();
        peer.socklen = sockaddr.len() as _;
        peer.name = &raw mut name;
        peer.get = Some(ngx_event_get_peer);
        peer.log = log;
        // The owner reports what happens, with a limit; nginx would log every single failure.
        peer.set_log_error(nginx_sys::ngx_connection_log_error_e_NGX_ERROR_INFO as _);
        // A broker that vanished without a word is noticed on an idle connection too.
        peer.set_so_keepalive(1);
        // SAFETY: nginx uses address and name during the call only, the log as the caller promises.
        let rc = unsafe { ngx_event_connect_peer(&raw mut peer) };
        match rc {
            rc if rc == NGX_OK as ngx_int_t || rc == NGX_AGAIN as ngx_int_t => {}
            rc if rc == NGX_DECLINED as ngx_int_t => {
                return Err(os_reason(io::Error::last_os_error()));
            }
            _ => return Err("no free socket or connection, see worker_connections".into()),
        }
        let c = peer.connection;
        let this = Rc::new(Self { id, c: Cell::new(c), established: Cell::new(false), owner });
        // SAFETY: nginx returned a connection, which is ours until we close it. `data` is valid
        // for as long: dropping the `Rc`'s content closes the connection.
        unsafe {
            (*c).data = Rc::as_ptr(&this).cast_mut().cast();
            (*(*c).read).handler = Some(on_read);
            (*(*c).write).handler = Some(on_write);
        }
        set_nodelay(this.fd());
        if rc == NGX_OK as ngx_int_t {
            this.established.set(true);
        }
        Ok(this)
    }

    pub fn id(&self) -> ConnId {
        self.id
    }

    pub fn is_established(&self) -> bool {
        self.established.get()
    }

    /// Reads into `buffer`, until it says anything but [`Read::Bytes`].
    pub fn read(&self, buffer: &mut [u8]) -> Read {
        let c = self.c.get();
        // SAFETY: the connection is open as long as `self`; nginx set its `recv` when it connected;
        // the buffer is valid for writing.
        let n = unsafe {
            match (*c).recv {
                Some(recv) => recv(c, buffer.as_mut_ptr(), buffer.len()),
                None => return Read::Closed("connection has no recv".into()),
            }
        };
        match n {
            0 => Read::Closed("connection closed by the broker".into()),
            n if n > 0 => Read::Bytes(n as usize),
            n if n == NGX_AGAIN as isize => Read::Again,
            _ => Read::Closed(os_reason(io::Error::last_os_error())),
        }
    }

    /// Tells nginx to call again when there is more to read.
    pub fn await_readable(&self) -> Result<(), String> {
        // SAFETY: the connection is open as long as `self`.
        let rc = unsafe { ngx_handle_read_event((*self.c.get()).read, 0) };
        if rc == NGX_OK as ngx_int_t { Ok(()) } else { Err("nginx cannot watch the socket".into()) }
    }

    /// Calls `readable` again later in this turn of the event loop.
    pub fn post_read(&self) {
        // SAFETY: the connection is open as long as `self`; closing it removes posted events.
        unsafe { ngx_post_event((*self.c.get()).read, &raw mut ngx_posted_events) };
    }

    /// Calls `writable` later in this turn of the event loop, once however often this is called.
    pub fn post_write(&self) {
        // SAFETY: as above.
        unsafe { ngx_post_event((*self.c.get()).write, &raw mut ngx_posted_events) };
    }

    pub fn is_writable(&self) -> bool {
        // SAFETY: the connection is open as long as `self`.
        unsafe { (*(*self.c.get()).write).ready() != 0 }
    }

    /// Writes what the system takes of the first segments, in one call.
    pub fn write<'a>(&self, segments: impl Iterator<Item = &'a Bytes>) -> Result<usize, String> {
        let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; SEGMENTS];
        let (mut count, mut total) = (0, 0);
        for (vector, segment) in vectors.iter_mut().zip(segments) {
            vector.write(libc::iovec {
                iov_base: segment.as_ptr().cast_mut().cast(),
                iov_len: segment.len(),
            });
            count += 1;
            total += segment.len();
        }
        if total == 0 {
            return Ok(0);
        }
        let written = loop {
            // SAFETY: the first `count` vectors are initialised and point to live segments.
            let n = unsafe { libc::writev(self.fd(), vectors.as_ptr().cast(), count) };
            if n >= 0 {
                break n as usize;
            }
            match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error if error.kind() == io::ErrorKind::WouldBlock => break 0,
                error => return Err(os_reason(error)),
            }
        };
        if written < total {
            // SAFETY: the connection is open as long as `self`.
            unsafe { (*(*self.c.get()).write).set_ready(0) };
        }
        Ok(written)
    }

    /// Tells nginx to call when the socket takes more.
    pub fn await_writable(&self) -> Result<(), String> {
        // SAFETY: the connection is open as long as `self`.
        let rc = unsafe { ngx_handle_write_event((*self.c.get()).write, 0) };
        if rc == NGX_OK as ngx_int_t { Ok(()) } else { Err("nginx cannot watch the socket".into()) }
    }

    fn fd(&self) -> libc::c_int {
        // SAFETY: the connection is open as long as `self`.
        unsafe { (*self.c.get()).fd }
    }

    /// The socket's first event tells how connecting ended; `false`: badly, and the owner knows.
    fn finish_connecting(&self, owner: &dyn Owner) -> bool {
        if self.established.get() {
            return true;
        }
        match socket_error(self.fd()) {
            Ok(()) => {
                self.established.set(true);
                owner.established(self.id);
                true
            }
            Err(error) => {
                owner.failed(self.id, os_reason(error));
                false
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let c = self.c.replace(ptr::null_mut());
        if !c.is_null() {
            // SAFETY: open until here. This removes the connection's events and timers as well.
            unsafe { ngx_close_connection(c) };
        }
    }
}

unsafe extern "C" fn on_read(event: *mut ngx_event_t) {
    guard("a connection's read event", || {
        // SAFETY: an event of one of our connections.
        let (connection, closing) = unsafe { (connection(event), is_closing(event)) };
        let Some(owner) = connection.owner.upgrade() else { return };
        if closing {
            owner.shut_down();
        } else if connection.finish_connecting(&*owner) {
            owner.readable(connection.id);
        }
    });
}

unsafe extern "C" fn on_write(event: *mut ngx_event_t) {
    guard("a connection's write event", || {
        // SAFETY: an event of one of our connections.
        let connection = unsafe { connection(event) };
        let Some(owner) = connection.owner.upgrade() else { return };
        if connection.finish_connecting(&*owner) {
            owner.writable(connection.id);
        }
    });
}

/// Holds the connection, so that its owner may let go of it meanwhile.
///
/// # Safety
/// `event` is the read or write event of an open [`Connection`].
unsafe fn connection(event: *mut ngx_event_t) -> Rc<Connection> {
    // SAFETY: `data` of a connection's event is the connection, whose `data` came from
    // `Rc::as_ptr` and is valid while it is open.
    unsafe {
        let c: *const ngx_connection_t = (*event).data.cast();
        let this: *const Connection = (*c).data.cast();
        Rc::increment_strong_count(this);
        Rc::from_raw(this)
    }
}

/// # Safety
/// `event` is an event of an open connection.
unsafe fn is_closing(event: *mut ngx_event_t) -> bool {
    // SAFETY: as the caller promises.
    unsafe { (*(*event).data.cast::<ngx_connection_t>()).close() != 0 }
}

/// Requests are small and waited for: no Nagle.
fn set_nodelay(fd: libc::c_int) {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is read during the call. A failure costs latency only.
    unsafe {
        libc::setsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}

fn socket_error(fd: libc::c_int) -> io::Result<()> {
    let mut error: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: both places are valid for writing, `len` says how much.
    let rc = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut error).cast(),
            &raw mut len,
        )
    };
    match (rc, error) {
        (0, 0) => Ok(()),
        (0, error) => Err(io::Error::from_raw_os_error(error)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// "Connection refused" rather than "Connection refused (os error 111)".
fn os_reason(error: io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_those_of_the_system() {
        assert_eq!(
            os_reason(io::Error::from_raw_os_error(libc::ECONNREFUSED)),
            "Connection refused"
        );
    }
}
