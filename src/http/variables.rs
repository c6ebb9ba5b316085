//! What the `$kafka_*` variables hold.

use core::fmt::Write;

use kafka::{MILLISECOND, SECOND};
use nginx_sys::{
    NGX_ERROR, NGX_OK, ngx_http_request_t, ngx_http_variable_value_t, ngx_int_t, ngx_pnalloc,
};

use super::request::Seen;
use super::{Failure, Outcome, Waiter};
use crate::guard;

/// Between the records of one request, as in `$upstream_*`.
const SEPARATOR: &str = ", ";
/// For one of several records that has no value.
const NOTHING: &str = "-";

/// # Safety
/// nginx calls it, with a live request and a place for the value; `data` is the position in
/// `conf::variables`.
pub unsafe extern "C" fn get(
    r: *mut ngx_http_request_t,
    v: *mut ngx_http_variable_value_t,
    data: usize,
) -> ngx_int_t {
    guard("a variable", || {
        // SAFETY: as nginx promises.
        let text = unsafe { text(r, data) };
        // SAFETY: as nginx promises; the value's bytes go to the request's pool.
        unsafe {
            let v = &mut *v;
            v.set_valid(1);
            v.set_no_cacheable(1);
            v.set_not_found(text.is_none().into());
            let Some(text) = text else { return NGX_OK as ngx_int_t };
            let place: *mut u8 = ngx_pnalloc((*r).pool, text.len().max(1)).cast();
            if place.is_null() {
                return NGX_ERROR as ngx_int_t;
            }
            core::ptr::copy_nonoverlapping(text.as_ptr(), place, text.len());
            v.set_len(text.len() as _);
            v.data = place;
        }
        NGX_OK as ngx_int_t
    })
    .unwrap_or(NGX_ERROR as ngx_int_t)
}

/// `None`: there is nothing to tell.
///
/// # Safety
/// `r` is a live request.
unsafe fn text(r: *mut ngx_http_request_t, variable: usize) -> Option<String> {
    // SAFETY: as the caller promises; its pool lives longer than this call.
    let waiter = unsafe { Waiter::find(r)? };
    let mut all = String::new();
    let (mut any, mut count) = (false, 0);
    // SAFETY: as above.
    unsafe {
        waiter.visit(|record| {
            if count > 0 {
                all.push_str(SEPARATOR);
            }
            count += 1;
            if append(&mut all, variable, record).is_some() {
                any = true;
            } else {
                all.push_str(NOTHING);
            }
        });
    }
    any.then_some(all)
}

fn append(out: &mut String, variable: usize, record: &Seen<'_>) -> Option<()> {
    let failure = record.failure.or(match record.outcome {
        Outcome::Failed(failure) => Some(failure),
        _ => None,
    });
    match variable {
        0 => out.push_str(record.topic?),
        1 => write!(out, "{}", record.partition?).ok()?,
        2 => match record.outcome {
            Outcome::Written { offset } => write!(out, "{}", (*offset)?).ok()?,
            _ => return None,
        },
        3 => out.push_str(match (failure, record.outcome) {
            (Some(failure), _) => failure.name,
            (None, Outcome::Written { .. }) => "ok",
            (None, Outcome::Queued) => "queued",
            _ => return None,
        }),
        4 => out.push_str(failure.map(Failure::detail)?),
        5 => {
            let latency = record.latency?;
            let (seconds, rest) = (latency / SECOND, latency % SECOND);
            write!(out, "{seconds}.{:03}", rest / MILLISECOND).ok()?;
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(record: &Seen<'_>) -> Vec<Option<String>> {
        (0..6)
            .map(|variable| {
                let mut out = String::new();
                append(&mut out, variable, record).map(|()| out)
            })
            .collect()
    }

    #[test]
    fn a_written_record() {
        let outcome = &Outcome::Written { offset: Some(12) };
        let latency = Some(1_012_345);
        let seen = Seen { topic: Some("t"), partition: Some(3), latency, outcome, failure: None };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(all(&seen), [some("t"), some("3"), some("12"), some("ok"), None, some("1.012")]);
    }

    #[test]
    fn a_request_that_failed_before_any_record() {
        let failure = Failure::own(400, "invalid_topic", "no topic is given");
        let outcome = &Outcome::None;
        let seen =
            Seen { topic: None, partition: None, latency: None, outcome, failure: Some(&failure) };
        assert_eq!(all(&seen)[3].as_deref(), Some("invalid_topic"));
        assert_eq!(all(&seen)[4].as_deref(), Some("no topic is given"));
        assert_eq!(all(&seen)[5], None);
    }
}
