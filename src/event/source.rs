//! An event of our own, at a fixed address, that knows its owner.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::{mem, ptr};

use nginx_sys::{ngx_connection_t, ngx_event_t};

/// What nginx calls.
pub type Handler = unsafe extern "C" fn(*mut ngx_event_t);

/// Memory that nginx holds pointers into.
pub struct Source {
    event: UnsafeCell<ngx_event_t>,
    /// `ngx_event_t.data` of this event. nginx's debug log reads a descriptor through it, as if it
    /// were a connection: so it is one, as nginx itself does for such events.
    ident: ngx_connection_t,
}

impl Source {
    pub fn new(handler: Handler, owner: *const c_void) -> Box<Self> {
        // SAFETY: plain C structures, for which nginx uses all-zero values too.
        let (mut event, mut ident) =
            unsafe { (mem::zeroed::<ngx_event_t>(), mem::zeroed::<ngx_connection_t>()) };
        ident.fd = -1;
        ident.data = owner.cast_mut();
        event.handler = Some(handler);
        event.log = crate::log::cycle_log();
        let mut source = Box::new(Self { event: UnsafeCell::new(event), ident });
        let ident = &raw mut source.ident;
        source.event.get_mut().data = ident.cast();
        source
    }

    pub fn event(&self) -> *mut ngx_event_t {
        self.event.get()
    }

    /// The owner that an event was made with.
    ///
    /// # Safety
    /// `event` belongs to a live [`Source`].
    pub unsafe fn owner(event: *mut ngx_event_t) -> *const c_void {
        // SAFETY: `data` of such an event points to the source's `ident`.
        unsafe { (*(*event).data.cast::<ngx_connection_t>()).data }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let event = self.event();
        // SAFETY: the event is ours; after this nginx holds no pointer to it any more.
        unsafe {
            if (*event).timer_set() != 0 {
                nginx_sys::ngx_del_timer(event);
            }
            if (*event).posted() != 0 {
                nginx_sys::ngx_delete_posted_event(event);
            }
            (*event).data = ptr::null_mut();
        }
    }
}
