//! After a panic: a producer that broke its own rules is not trusted any more.

use kafka::{Delivery, FailureKind, Severity};

use super::{Core, Driver};
use crate::event::monotonic;
use crate::guard;
use crate::http::Failure;

impl Driver {
    /// Starts anew. What was held may have been written or not.
    pub(super) fn recover(&self) {
        guard("recovery", || {
            let mut old = self.core.replace(Core::new(self.conf));
            self.broken.set(false);
            self.connections.take();
            self.inbox.take();
            let now = monotonic();
            let held = old.producer.outstanding() as u64;
            let failure = Failure::of(&Delivery::Ambiguous(kafka::Failure {
                kind: FailureKind::Closed,
                message: "internal error".into(),
            }))
            .unwrap_or_else(Failure::internal);
            for (waiter, record) in old.tokens.take_all() {
                if waiter.give_up(record, now, failure.clone()) {
                    self.finished.borrow_mut().push(waiter);
                }
            }
            self.lose(held);
            self.log.report(
                now,
                "internal_error",
                Severity::Error,
                1,
                format_args!("starts anew after an internal error, {held} records may be lost"),
            );
            self.set_timer(now);
        });
    }
}
