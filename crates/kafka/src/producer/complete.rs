//! Telling the caller how records ended.

use std::sync::Arc;

use super::batch::Batch;
use super::topic::PendingRecord;
use super::{PartitionRef, Producer};
use crate::{Completion, Delivery, Failure, FailureKind};

impl Failure {
    pub(super) fn new(kind: FailureKind, message: impl Into<Arc<str>>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl Producer {
    fn topic_name(&self, index: usize) -> Arc<str> {
        self.topics.get(index).map(|topic| topic.name.clone()).unwrap_or_default()
    }

    /// Ends a batch that has left all queues.
    pub(super) fn complete(&mut self, at: PartitionRef, batch: Batch, delivery: Delivery) {
        self.memory -= batch.memory();
        self.complete_tokens(at, batch.live_tokens(), delivery);
    }

    /// Ends a batch as failed: what it may have left in a log decides between "not written" and
    /// "possibly written", whatever the last answer said.
    pub(super) fn fail(
        &mut self,
        at: PartitionRef,
        batch: Batch,
        rejected: bool,
        failure: Failure,
    ) {
        let delivery = match (batch.maybe_persisted, rejected) {
            (true, _) => Delivery::Ambiguous(failure),
            (false, true) => Delivery::Rejected(failure),
            (false, false) => Delivery::NotWritten(failure),
        };
        self.complete(at, batch, delivery);
    }

    pub(super) fn complete_tokens(
        &mut self,
        at: PartitionRef,
        tokens: Vec<u64>,
        delivery: Delivery,
    ) {
        if tokens.is_empty() {
            return;
        }
        let topic = self.topic_name(at.0);
        self.push_completion(Completion { tokens, topic, partition: Some(at.1 as i32), delivery });
    }

    /// Ends all records of a topic that still wait for a partition.
    pub(super) fn fail_pending(&mut self, index: usize, rejected: bool, failure: &Failure) {
        self.waiting.remove(&index);
        let Some(topic) = self.topics.get_mut(index) else { return };
        let pending = Vec::from(std::mem::take(&mut topic.pending));
        self.fail_records(index, &pending, rejected, failure);
    }

    /// Ends records that have been taken out of a topic's waiting ones.
    pub(super) fn fail_records(
        &mut self,
        index: usize,
        records: &[PendingRecord],
        rejected: bool,
        failure: &Failure,
    ) {
        if records.is_empty() {
            return;
        }
        self.memory -= records.iter().map(|record| record.memory).sum::<usize>();
        let delivery = if rejected {
            Delivery::Rejected(failure.clone())
        } else {
            Delivery::NotWritten(failure.clone())
        };
        let tokens = records.iter().map(|record| record.token).collect();
        let topic = self.topic_name(index);
        self.push_completion(Completion { tokens, topic, partition: None, delivery });
    }

    pub(super) fn complete_cancelled(&mut self, topic: usize, partition: Option<i32>, token: &u64) {
        let failure = Failure::new(FailureKind::Cancelled, "withdrawn before it was sent");
        let topic = self.topic_name(topic);
        let delivery = Delivery::NotWritten(failure);
        self.push_completion(Completion { tokens: vec![*token], topic, partition, delivery });
    }
}
