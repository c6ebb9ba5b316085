//! What becomes of records, and who is told.

use std::sync::Arc;

use kafka::{Completion, Delivery, FailureKind, Micros, Severity};

use super::Driver;
use super::tokens::{DETACHED, Tokens};
use crate::http::Failure;

/// Records that an exiting worker has not delivered.
#[derive(Debug, Default)]
pub struct Lost {
    pub records: u64,
    /// Those of them that a broker may have.
    pub possibly_written: u64,
    /// Of the latest of them.
    pub reason: Option<Arc<str>>,
}

impl Lost {
    pub fn report(self, cluster: &str) {
        if self.records == 0 {
            return;
        }
        let Self { records, possibly_written, reason } = self;
        let (colon, reason) = reason.as_deref().map_or(("", ""), |reason| (": ", reason));
        crate::log::write(
            Severity::Error,
            format_args!(
                "kafka cluster \"{cluster}\": worker exits, {records} records not delivered \
                 ({possibly_written} possibly written){colon}{reason}"
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
        if self.deliver_until.get().is_some()
            && !matches!(completion.delivery, Delivery::Rejected(_))
            && !failure.is_own()
        {
            // Counted in one line at the end.
            let mut lost = self.lost.borrow_mut();
            lost.records += count;
            lost.possibly_written += if ambiguous { count } else { 0 };
            if reason.kind != FailureKind::Closed || lost.reason.is_none() {
                lost.reason = Some(reason.message.clone());
            }
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
            let mut lost = self.lost.borrow_mut();
            lost.records += records;
            lost.possibly_written += records;
        }
    }
}
