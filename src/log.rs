//! What operators read in nginx's error log, and how often.

use core::cell::RefCell;
use core::fmt;

use kafka::{Micros, SECOND, Severity};
use nginx_sys::{NGX_LOG_ERR, NGX_LOG_INFO, NGX_LOG_NOTICE, NGX_LOG_WARN, ngx_log_t, ngx_uint_t};

/// The log of the running configuration.
pub fn cycle_log() -> *mut ngx_log_t {
    ngx::log::ngx_cycle_log().as_ptr()
}

/// Writes one line to the log of the running configuration. Brokers have a say in what it reads:
/// not in where it ends.
pub fn write(severity: Severity, message: fmt::Arguments<'_>) {
    let level = match severity {
        Severity::Error => NGX_LOG_ERR,
        Severity::Warning => NGX_LOG_WARN,
        Severity::Notice => NGX_LOG_NOTICE,
        Severity::Info => NGX_LOG_INFO,
    };
    let level = level as ngx_uint_t;
    let message = message.to_string().replace(char::is_control, " ");
    ngx::ngx_log_error!(level, cycle_log(), "{message}");
}

/// One line per kind and this time; what comes in between is counted.
const INTERVAL: Micros = 10 * SECOND;

/// The log of one cluster. A broken cluster fails every request: without a limit the log would grow
/// as fast as clients ask.
pub struct LimitedLog {
    cluster: &'static str,
    kinds: RefCell<Vec<Kind>>,
}

struct Kind {
    name: &'static str,
    /// When the last line was written.
    at: Micros,
    /// Since then: how many, how bad, and the latest of them.
    held_back: u64,
    severity: Severity,
    message: String,
}

impl LimitedLog {
    pub fn new(cluster: &'static str) -> Self {
        Self { cluster, kinds: RefCell::new(Vec::new()) }
    }

    /// `weight` is how many things the message stands for, such as records.
    pub fn report(
        &self,
        now: Micros,
        kind: &'static str,
        severity: Severity,
        weight: u64,
        message: fmt::Arguments<'_>,
    ) {
        let mut kinds = self.kinds.borrow_mut();
        if let Some(known) = kinds.iter_mut().find(|known| known.name == kind) {
            if now < known.at + INTERVAL {
                known.held_back += weight;
                known.severity = severity;
                known.message.clear();
                let _ = fmt::write(&mut known.message, message);
                return;
            }
            known.at = now;
        } else {
            kinds.push(Kind {
                name: kind,
                at: now,
                held_back: 0,
                severity,
                message: String::new(),
            });
        }
        write(severity, format_args!("kafka cluster \"{}\": {message}", self.cluster));
    }

    /// Writes what was held back for long enough.
    pub fn flush(&self, now: Micros) {
        for kind in self.kinds.borrow_mut().iter_mut() {
            if kind.held_back > 0 && now >= kind.at + INTERVAL {
                self.release(kind, now);
            }
        }
    }

    /// Writes all that was held back.
    pub fn flush_all(&self, now: Micros) {
        for kind in self.kinds.borrow_mut().iter_mut().filter(|kind| kind.held_back > 0) {
            self.release(kind, now);
        }
    }

    /// When [`Self::flush`] has something to do.
    pub fn next_flush(&self) -> Option<Micros> {
        let kinds = self.kinds.borrow();
        kinds.iter().filter(|kind| kind.held_back > 0).map(|kind| kind.at + INTERVAL).min()
    }

    fn release(&self, kind: &mut Kind, now: Micros) {
        let seconds = now.saturating_sub(kind.at).div_ceil(SECOND);
        write(
            kind.severity,
            format_args!(
                "kafka cluster \"{}\": {} ({} such in the last {seconds} s)",
                self.cluster, kind.message, kind.held_back
            ),
        );
        kind.at = now;
        kind.held_back = 0;
        kind.message.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_kind_and_interval_and_a_count_of_the_rest() {
        let log = LimitedLog::new("c");
        // No cycle in unit tests: only the bookkeeping of what would be written is looked at.
        log.kinds.borrow_mut().push(Kind {
            name: "connect",
            at: SECOND,
            held_back: 0,
            severity: Severity::Error,
            message: String::new(),
        });
        assert_eq!(log.next_flush(), None);
        log.report(2 * SECOND, "connect", Severity::Error, 1, format_args!("refused"));
        log.report(3 * SECOND, "connect", Severity::Warning, 4, format_args!("reset"));
        assert_eq!(log.next_flush(), Some(11 * SECOND));
        let kinds = log.kinds.borrow();
        assert_eq!((kinds[0].held_back, kinds[0].message.as_str()), (5, "reset"));
        drop(kinds);
        log.flush(10 * SECOND);
        assert_eq!(log.kinds.borrow()[0].held_back, 5);
    }
}
