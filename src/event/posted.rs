//! Work put off to the end of this turn of the event loop, once however often it is asked for.

use core::ffi::c_void;

use nginx_sys::{ngx_post_event, ngx_posted_events};

use super::source::{Handler, Source};

pub struct Posted(Box<Source>);

impl Posted {
    /// `owner` comes back from [`super::owner`] in `handler`.
    pub fn new(handler: Handler, owner: *const c_void) -> Self {
        Self(Source::new(handler, owner))
    }

    pub fn post(&self) {
        // SAFETY: the event is alive, and taken off the queue when this is dropped. nginx runs on
        // one thread, so nobody else touches the queue.
        unsafe { ngx_post_event(self.0.event(), &raw mut ngx_posted_events) };
    }
}
