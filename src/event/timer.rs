//! A timer in nginx's timer tree.

use core::cell::Cell;
use core::ffi::c_void;

use kafka::{MILLISECOND, Micros};
use nginx_sys::{
    ngx_add_timer, ngx_current_msec, ngx_del_timer, ngx_msec_t, ngx_post_event, ngx_posted_events,
};

use super::monotonic;
use super::source::{Handler, Source};

pub struct Timer {
    source: Box<Source>,
    /// The millisecond for which it is set.
    at: Cell<u64>,
}

impl Timer {
    /// `owner` comes back from [`super::owner`] in `handler`.
    pub fn new(handler: Handler, owner: *const c_void) -> Self {
        Self { source: Source::new(handler, owner), at: Cell::new(0) }
    }

    /// Calls the handler at `deadline` or earlier: one that is already set for an earlier time
    /// stays, since moving it for every request would cost more than the odd call too many.
    ///
    /// Only a timer that is not `cancelable` keeps a worker alive that is to exit.
    pub fn set(&self, deadline: Option<Micros>, cancelable: bool) {
        let event = self.source.event();
        // SAFETY: the event is ours and alive; nginx runs on one thread. nginx looks at
        // `cancelable` only when it decides about exiting.
        let armed = unsafe {
            (*event).set_cancelable(cancelable.into());
            (*event).timer_set() != 0
        };
        let Some(deadline) = deadline else { return self.clear(armed) };
        if deadline <= monotonic() {
            self.clear(armed);
            // SAFETY: as above.
            return unsafe { ngx_post_event(event, &raw mut ngx_posted_events) };
        }
        // Rounded up: nginx's clock, of the same origin, must have passed the deadline.
        let at = deadline.div_ceil(MILLISECOND);
        if armed && self.at.get() <= at {
            return;
        }
        // Removed first: nginx would take a change of less than 300 ms for none.
        self.clear(armed);
        self.at.set(at);
        // SAFETY: as above.
        unsafe { ngx_add_timer(event, at.saturating_sub(ngx_current_msec as u64) as ngx_msec_t) };
    }

    fn clear(&self, armed: bool) {
        if armed {
            // SAFETY: the event is in the timer tree.
            unsafe { ngx_del_timer(self.source.event()) };
        }
    }
}
