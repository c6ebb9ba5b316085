//! No panic crosses into nginx.

use std::backtrace::Backtrace;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use nginx_sys::NGX_LOG_CRIT;
use ngx::ngx_log_error;

/// Runs the body of a callback; a panic becomes `None` instead of the end of the worker and of all
/// its requests. The caller decides what to give up: a request gets 500, a driver drops its state.
pub fn guard<R>(what: &str, body: impl FnOnce() -> R) -> Option<R> {
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => Some(value),
        Err(_) => {
            log(format_args!("kafka: recovered from a panic in {what}"));
            None
        }
    }
}

/// Sends the text of panics to nginx's error log, where it would otherwise be lost with stderr.
/// Panics of other Rust modules in the same nginx keep their own runtime and hook.
pub fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(Box::new(report)));
}

fn report(info: &PanicHookInfo<'_>) {
    // nginx ends a log line at a line break, and the message stands behind one.
    log(format_args!("kafka: {}", info.to_string().replace('\n', " ")));
    let backtrace = Backtrace::capture();
    if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
        for line in backtrace.to_string().lines() {
            log(format_args!("kafka: {line}"));
        }
    }
}

fn log(message: std::fmt::Arguments<'_>) {
    // SAFETY: nginx sets the pointer before it loads modules; only its one thread changes it.
    let log = unsafe { nginx_sys::ngx_cycle.as_ref().map(|cycle| cycle.log) };
    match log {
        Some(log) if !log.is_null() => {
            ngx_log_error!(NGX_LOG_CRIT, log, "{message}");
        }
        // Unit tests have no cycle.
        _ => eprintln!("{message}"),
    }
}
