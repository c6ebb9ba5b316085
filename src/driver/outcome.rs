//! What becomes of records, and who is told.

use kafka::{Completion, Delivery, FailureKind, Micros, Severity};

use super::Driver;
use super::tokens::{DETACHED, Tokens};
use crate::http::Failure;

/// Records that an exiting worker has not delivered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lost {
    pub records: u64,
    /// Those of them that a broker may have.
    pub possibly_written: u64,
}

impl Lost {
    pub fn report(self, cluster: &str) {
        if self.records == 0 {
            return;
        }
        let Self { records, possibly_written } = self;
        crate::log::write(
            Severity::Error,
            format_args!(
                "kafka cluster \"{cluster}\": worker exits, {records} records not delivered \
                 ({possibly_written} possibly written)"
            ),
        );
    }
}

impl Driver {
    /// Notes the end of records; requests that have no other left are answered later.
    pub(super) fn completed(&self, now: Micros, tokens: &mut Tokens, completion: &Completion) {
        let mut detached = 0;
        for (position, token) in completion.tokens.iter().enumerate() {
            if *token == DETACHED {
                detached += 1;
            } else if let Some((waiter, record)) = tokens.take(*token)
                && waiter.complete(record, now, completion, position)
            {
                self.finished.borrow_mut().push(waiter);
            }
        }
        if let Some(failure) = Failure::of(&completion.delivery) {
            self.failed(now, completion, &failure, detached);
        }
    }

    fn failed(&self, now: Micros, completion: &Completion, failure: &Failure, detached: usize) {
        let count = completion.tokens.len() as u64;
        let (what, reason) = match &completion.delivery {
            Delivery::Written { .. } => return,
            Delivery::NotWritten(reason) => ("not written", reason),
            Delivery::Ambiguous(reason) => ("possibly not written", reason),
            Delivery::Rejected(reason) => ("refused", reason),
        };
        if reason.kind == FailureKind::Cancelled {
            return;
        }
        let ambiguous = matches!(completion.delivery, Delivery::Ambiguous(_));
        if self.deliver_until.get().is_some() {
            let mut lost = self.lost.get();
            lost.records += count;
            lost.possibly_written += if ambiguous { count } else { 0 };
            self.lost.set(lost);
        }
        if reason.kind == FailureKind::Closed {
            // Part of the line at the end.
            return;
        }
        // What a client did wrong it has read itself, if it waited.
        let severity = match (failure.is_own(), detached) {
            (true, 0) => Severity::Info,
            (true, _) => Severity::Warning,
            _ => Severity::Error,
        };
        let plural = if count == 1 { "" } else { "s" };
        self.log.report(
            now,
            if ambiguous { "possibly_not_written" } else { failure.name },
            severity,
            count,
            format_args!(
                "{count} record{plural} for topic \"{}\" {what}: {}",
                completion.topic, reason.message
            ),
        );
    }

    pub(super) fn lose(&self, records: u64) {
        if self.deliver_until.get().is_some() {
            let mut lost = self.lost.get();
            lost.records += records;
            lost.possibly_written += records;
            self.lost.set(lost);
        }
    }
}
