//! The two clocks. nginx caches its own per turn of the event loop, in milliseconds: too coarse
//! for a producer that counts micros.

use std::time::{SystemTime, UNIX_EPOCH};

use kafka::Micros;

/// Counts from the same point as `ngx_current_msec`.
pub fn monotonic() -> Micros {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid for writing. The clock exists on every system that nginx
    // supports, so that the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut ts) };
    ts.tv_sec as u64 * 1_000_000 + ts.tv_nsec as u64 / 1_000
}

/// Milliseconds since the Unix epoch.
pub fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as i64
}
