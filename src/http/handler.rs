//! The content handler of `kafka_pass`.

use nginx_sys::{
    NGX_DONE, NGX_HTTP_INTERNAL_SERVER_ERROR, NGX_HTTP_SPECIAL_RESPONSE, NGX_OK,
    ngx_handle_read_event, ngx_http_discard_request_body, ngx_http_finalize_request,
    ngx_http_read_client_request_body, ngx_http_request_t, ngx_http_test_reading, ngx_int_t,
    ngx_post_event, ngx_posted_events,
};

use super::produce::{self, Step};
use super::{Failure, Waiter};
use crate::conf::{self, LocationConf};
use crate::event::monotonic;
use crate::guard;

const INTERNAL_ERROR: ngx_int_t = NGX_HTTP_INTERNAL_SERVER_ERROR as ngx_int_t;

/// # Safety
/// nginx calls it, with a live request.
pub unsafe extern "C" fn content_handler(r: *mut ngx_http_request_t) -> ngx_int_t {
    // SAFETY: nginx passes a live request.
    guard("the content handler", || unsafe { begin(r) }).unwrap_or(INTERNAL_ERROR)
}

/// # Safety
/// `r` is a live request in the content phase.
unsafe fn begin(r: *mut ngx_http_request_t) -> ngx_int_t {
    // SAFETY: as the caller promises.
    unsafe {
        let Some(conf) = conf::location(r) else { return INTERNAL_ERROR };
        if (*r).method & conf.methods.mask == 0 {
            return refuse_method(r, conf);
        }
        // A wish only: bodies may still come in several buffers.
        (*r).set_request_body_in_single_buf(1);
        let rc = ngx_http_read_client_request_body(r, Some(on_body));
        // The reference that this took is given back when the request is finalised.
        if rc >= NGX_HTTP_SPECIAL_RESPONSE as ngx_int_t { rc } else { NGX_DONE as ngx_int_t }
    }
}

/// # Safety
/// `r` is a live request whose body has not been read.
unsafe fn refuse_method(r: *mut ngx_http_request_t, conf: &'static LocationConf) -> ngx_int_t {
    // SAFETY: as the caller promises.
    unsafe {
        let rc = ngx_http_discard_request_body(r);
        if rc != NGX_OK as ngx_int_t {
            return rc;
        }
        let Some(waiter) = Waiter::attach(r, conf, monotonic()) else { return INTERNAL_ERROR };
        let reason = format!("the method is not one of: {}", conf.methods.names.join(", "));
        waiter.fail(Failure::own(405, "method_not_allowed", reason));
        waiter.answer_now(|| 1)
    }
}

/// nginx calls it when the body is complete: from within the content handler, or later.
unsafe extern "C" fn on_body(r: *mut ngx_http_request_t) {
    // SAFETY: nginx passes a live request, of which we own the reference that reading the body
    // took. It is given back here unless the request is to wait.
    unsafe {
        let step = guard("the body handler", || {
            let step = produce::produce(r);
            if step == Step::Wait && !watch_client(r) {
                return Step::Finish(INTERNAL_ERROR);
            }
            step
        });
        let rc = match step {
            Some(Step::Wait) => return,
            Some(Step::Finish(rc)) => rc,
            None => INTERNAL_ERROR,
        };
        if let Some(waiter) = Waiter::find(r) {
            waiter.disarm();
        }
        ngx_http_finalize_request(r, rc);
    }
}

/// With `kafka_ignore_client_abort off`, notices a client that leaves.
///
/// # Safety
/// `r` is a live request that waits.
unsafe fn watch_client(r: *mut ngx_http_request_t) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        // With `on`, nginx's own handler for this time stays: it looks away.
        if conf::location(r).is_none_or(|conf| conf.ignore_client_abort) {
            return true;
        }
        (*r).read_event_handler = Some(ngx_http_test_reading);
        let event = (*(*r).connection).read;
        // A client that closed together with its request raises no further event with epoll. As in
        // ngx_http_upstream_init_request(): look once, from the event loop.
        if (*event).ready() != 0 {
            ngx_post_event(event, &raw mut ngx_posted_events);
            return true;
        }
        ngx_handle_read_event(event, 0) == NGX_OK as ngx_int_t
    }
}
