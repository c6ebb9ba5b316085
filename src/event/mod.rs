//! nginx's events as owned values: timers, posted events, outgoing connections.

mod clock;
pub mod connection;
mod posted;
pub mod sockaddr;
mod source;
mod timer;

pub use clock::{monotonic, wall_ms};
pub use posted::Posted;
pub use timer::Timer;

use core::ffi::c_void;

use nginx_sys::ngx_event_t;

/// The owner that a [`Timer`] or [`Posted`] was made with.
///
/// # Safety
/// `event` is the argument of their handler.
pub unsafe fn owner(event: *mut ngx_event_t) -> *const c_void {
    // SAFETY: as the caller promises; only live sources are in nginx's hands.
    unsafe { source::Source::owner(event) }
}
