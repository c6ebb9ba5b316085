//! What an answer, or the lack of one, means for the batches of a Produce request.

use super::batch::Batch;
use super::connection::{ConnectionRequest, SentPartition};
use super::topic::Knowledge;
use super::{PartitionRef, Producer};
use crate::error_code::{ErrorCode, ProduceAction};
use crate::negotiation::ProduceVersion;
use crate::wire::{DecodeError, Reader, produce};
use crate::{Delivery, Failure, FailureKind, Idempotence, Micros, Severity};

impl Producer {
    /// Returns why the connection must end, if it must.
    pub(super) fn on_produced(
        &mut self,
        now: Micros,
        id: ConnectionRequest,
        version: ProduceVersion,
        partitions: &[SentPartition],
        reader: &mut Reader<'_>,
    ) -> Result<Option<String>, DecodeError> {
        let response = produce::decode_response(reader, version)?;
        // Before version 6 the answer itself came late (KIP-219).
        if version.get() >= 6 {
            self.throttled(now, id.conn, response.throttle_time_ms);
        }
        // KIP-951: new leaders come with their addresses. Only ever adds brokers.
        for broker in &response.node_endpoints {
            self.learn_broker(broker);
        }
        let mut ending = None;
        for sent in partitions {
            let answer = response
                .topics
                .iter()
                .filter(|topic| self.is_about(topic, sent))
                .flat_map(|topic| &topic.partitions)
                .find(|partition| partition.index == sent.index);
            match answer {
                Some(answer) => {
                    let reason = self.settle(now, id, sent, answer);
                    ending = ending.or(reason);
                }
                None => {
                    self.cut_off(id, std::slice::from_ref(sent), true);
                    ending.get_or_insert("an answer to Produce leaves a partition out".into());
                }
            }
        }
        Ok(ending)
    }

    fn is_about(&self, answer: &produce::TopicResponse, sent: &SentPartition) -> bool {
        match &answer.name {
            Some(name) => self.topics.get(sent.topic).is_some_and(|t| *t.name == **name),
            None => answer.topic_id == sent.topic_id,
        }
    }

    fn settle(
        &mut self,
        now: Micros,
        id: ConnectionRequest,
        sent: &SentPartition,
        answer: &produce::PartitionResponse,
    ) -> Option<String> {
        let at = (sent.topic, sent.index as usize);
        let partition = self.partition_mut(at)?;
        let mut batch = partition.take_in_flight(id)?;
        let code = answer.error_code;
        let class = code.produce_class();
        let moved = answer.current_leader.is_some_and(|hint| {
            hint.leader_id >= 0
                && hint.leader_epoch > partition.leader_epoch()
                && partition.set_leader(Some(hint.leader_id), hint.leader_epoch, false)
        });
        if class.refresh_metadata {
            self.topics.schedule(at.0, now);
        }
        let mut ending = None;
        match class.action {
            ProduceAction::Done | ProduceAction::DoneWithoutOffset => {
                let offset = answer.base_offset;
                let known = class.action == ProduceAction::Done && offset >= 0;
                let time = answer.log_append_time_ms;
                if let Some(partition) = self.partition_mut(at) {
                    partition.succeeded(now, &batch, id.conn);
                }
                let delivery = Delivery::Written {
                    base_offset: known.then_some(offset),
                    log_append_time_ms: (time >= 0).then_some(time),
                };
                self.complete(at, batch, delivery);
                self.rest(at);
                return None;
            }
            // A leader that lost its office while it waited for its replicas says so with the offset
            // at which it had appended.
            _ => batch.maybe_persisted |= class.maybe_persisted || answer.base_offset >= 0,
        }
        let failure = broker_failure(code, answer.error_message.as_deref());
        match class.action {
            ProduceAction::Done | ProduceAction::DoneWithoutOffset => {}
            ProduceAction::Retry => self.retry(now, at, batch, failure),
            ProduceAction::RetryLimited(limit) => {
                batch.limited_attempts += 1;
                match batch.limited_attempts > limit {
                    true => self.give_up_on(at, batch, true, failure),
                    false => self.retry(now, at, batch, failure),
                }
            }
            ProduceAction::OutOfOrderSequence
            | ProduceAction::InvalidProducerEpoch
            | ProduceAction::UnknownProducerId => self.out_of_sequence(now, at, batch, failure),
            ProduceAction::Split => self.split(at, batch, failure),
            ProduceAction::RejectRecords => self.reject_records(at, batch, answer, failure),
            ProduceAction::Reject | ProduceAction::Recompress | ProduceAction::Unknown => {
                self.remember_refusal(now, at.0, code);
                self.give_up_on(at, batch, true, failure);
            }
            ProduceAction::DisableIdempotence => {
                self.without_idempotence(&format!("the cluster refuses it: {code}"));
                match self.config.idempotence {
                    Idempotence::On => self.give_up_on(at, batch, true, failure),
                    _ => self.resend_plain(at, batch),
                }
            }
            ProduceAction::NoIdempotenceForTopic => match self.config.idempotence {
                Idempotence::On => self.give_up_on(at, batch, true, failure),
                _ => {
                    self.note_old_format(at.0);
                    self.resend_plain(at, batch);
                }
            },
            ProduceAction::Reconnect => {
                self.retry(now, at, batch, failure);
                ending = Some("the broker no longer speaks the negotiated version".to_string());
            }
        }
        if moved && let Some(partition) = self.partition_mut(at) {
            // The new leader is known: no pause (KAFKA-15415).
            partition.retry_at = 0;
        }
        self.rest(at);
        ending
    }

    /// The batch goes back to its place and out again, after a pause, once nothing that was sent
    /// after it is still on its way.
    fn retry(&mut self, now: Micros, at: PartitionRef, batch: Batch, failure: Failure) {
        if !may_resend(&batch) {
            return self.give_up_on(at, batch, false, failure);
        }
        let random = &mut self.random;
        let Some(partition) =
            self.topics.get_mut(at.0).and_then(|topic| topic.partitions.get_mut(at.1))
        else {
            return;
        };
        partition.forget_proof();
        partition.failures += 1;
        partition.retry_at = now + self.config.retry_backoff.pause(partition.failures, random);
        self.put_back(at, batch);
    }

    fn put_back(&mut self, at: PartitionRef, batch: Batch) {
        let abandoned = batch.tokens.is_empty();
        if abandoned {
            // Its records have expired while it was on its way.
            return self.give_up_on(
                at,
                batch,
                false,
                Failure::new(FailureKind::DeliveryTimeout, "expired"),
            );
        }
        let Some(partition) = self.partition_mut(at) else { return };
        partition.requeue(batch);
        partition.draining = !partition.in_flight.is_empty();
    }

    /// The batch ends here. Where it certainly was not written, its sequence numbers will be
    /// missing: the partition begins a new epoch.
    fn give_up_on(&mut self, at: PartitionRef, batch: Batch, rejected: bool, failure: Failure) {
        self.leaves_a_gap(at, &batch);
        self.fail(at, batch, rejected, failure);
    }

    pub(super) fn leaves_a_gap(&mut self, at: PartitionRef, batch: &Batch) {
        if batch.sequence.is_some()
            && !batch.maybe_persisted
            && let Some(partition) = self.partition_mut(at)
        {
            partition.needs_new_epoch = true;
        }
    }

    /// Errors 45, 47 and 59: the broker expected something else.
    fn out_of_sequence(&mut self, now: Micros, at: PartitionRef, batch: Batch, failure: Failure) {
        let Some(partition) = self.partition_mut(at) else { return };
        if !partition.is_oldest(&batch) {
            // An earlier one was refused; this one will fit once that one is written.
            partition.forget_proof();
            return self.put_back(at, batch);
        }
        let expected = std::mem::replace(&mut partition.needs_new_epoch, true);
        if batch.maybe_persisted {
            // Either it was written and the log has forgotten, or it was not. Sending it under
            // another epoch could write it twice.
            return self.fail(at, batch, false, failure);
        }
        if !expected {
            let topic = self.topics.get(at.0).map(|topic| topic.name.clone()).unwrap_or_default();
            let message = format!(
                "topic \"{topic}\" partition {}: {}; the log has lost track of this producer, \
                 numbering starts again",
                at.1, failure.message
            );
            self.event(Severity::Warning, "sequence", message);
        }
        self.retry(now, at, batch, failure);
    }

    /// MESSAGE_TOO_LARGE: the halves may fit.
    fn split(&mut self, at: PartitionRef, batch: Batch, failure: Failure) {
        if batch.maybe_persisted || batch.tokens.is_empty() {
            return self.give_up_on(at, batch, true, failure);
        }
        let Some((left, right)) = batch.split() else {
            return self.give_up_on(at, batch, true, failure);
        };
        self.memory = self.memory - batch.memory() + left.memory() + right.memory();
        if let Some(topic) = self.topics.get_mut(at.0) {
            topic.batch_limit = topic.batch_limit.min(batch.len() / 2);
        }
        if let Some(partition) = self.partition_mut(at) {
            partition.forget_proof();
        }
        self.put_back(at, right);
        self.put_back(at, left);
    }

    /// INVALID_RECORD and INVALID_TIMESTAMP: some records are at fault, the others go again.
    fn reject_records(
        &mut self,
        at: PartitionRef,
        batch: Batch,
        answer: &produce::PartitionResponse,
        failure: Failure,
    ) {
        let bad: Vec<usize> = answer
            .record_errors
            .iter()
            .filter_map(|error| usize::try_from(error.batch_index).ok())
            .filter(|index| *index < batch.tokens.len())
            .collect();
        if batch.maybe_persisted || bad.is_empty() {
            return self.give_up_on(at, batch, true, failure);
        }
        self.leaves_a_gap(at, &batch);
        let Some(mut rest) = batch.without(&bad) else {
            return self.fail(at, batch, true, failure);
        };
        rest.order = batch.order;
        self.memory = self.memory - batch.memory() + rest.memory();
        for index in bad {
            let own = answer.record_errors.iter().find(|e| e.batch_index as usize == index);
            let message = own.and_then(|error| error.message.as_deref());
            let failure = match message {
                Some(message) => broker_failure(answer.error_code, Some(message)),
                None => failure.clone(),
            };
            let delivery = Delivery::Rejected(failure);
            self.complete_tokens(at, vec![batch.tokens[index]], delivery);
        }
        self.put_back(at, rest);
    }

    /// The batch goes again without sequence numbers.
    fn resend_plain(&mut self, at: PartitionRef, batch: Batch) {
        if let Some(partition) = self.partition_mut(at) {
            partition.needs_new_epoch = true;
        }
        self.put_back(at, batch);
    }

    fn note_old_format(&mut self, index: usize) {
        let Some(topic) = self.topics.get_mut(index) else { return };
        if std::mem::replace(&mut topic.old_format, true) {
            return;
        }
        let message = format!(
            "topic \"{}\" has a message format without producer ids; producing to it without \
             idempotence (raise log.message.format.version)",
            topic.name
        );
        self.event(Severity::Warning, "idempotence", message);
    }

    /// Refusals that concern the topic are not asked for again with every request.
    fn remember_refusal(&mut self, now: Micros, index: usize, code: ErrorCode) {
        let concerns_topic = matches!(
            code,
            ErrorCode::TOPIC_AUTHORIZATION_FAILED | ErrorCode::INVALID_TOPIC_EXCEPTION
        );
        if let Some(topic) = self.topics.get_mut(index).filter(|_| concerns_topic) {
            topic.knowledge = Knowledge::Refused { code, since: now };
        }
    }

    /// With `acks=0` a record is done when it has left.
    pub(super) fn sent_without_acks(
        &mut self,
        now: Micros,
        id: ConnectionRequest,
        partitions: &[SentPartition],
    ) {
        for sent in partitions {
            let at = (sent.topic, sent.index as usize);
            let Some(partition) = self.partition_mut(at) else { continue };
            let Some(batch) = partition.take_in_flight(id) else { continue };
            partition.succeeded(now, &batch, id.conn);
            let delivery = Delivery::Written { base_offset: None, log_append_time_ms: None };
            self.complete(at, batch, delivery);
            self.rest(at);
        }
    }

    /// A request ended without an answer. `left`: all of it had been written to the connection, so
    /// the broker may have acted on it.
    pub(super) fn cut_off(
        &mut self,
        id: ConnectionRequest,
        partitions: &[SentPartition],
        left: bool,
    ) {
        for sent in partitions {
            let at = (sent.topic, sent.index as usize);
            let Some(partition) = self.partition_mut(at) else { continue };
            let Some(mut batch) = partition.take_in_flight(id) else { continue };
            partition.forget_proof();
            batch.maybe_persisted |= left;
            if may_resend(&batch) {
                self.put_back(at, batch);
            } else {
                let message = "the connection ended after the record had been sent";
                let failure =
                    Failure::new(FailureKind::Broker(ErrorCode::NETWORK_EXCEPTION), message);
                self.give_up_on(at, batch, false, failure);
            }
            self.rest(at);
        }
    }
}

/// A copy of what may have been written is recognised by its sequence numbers only.
fn may_resend(batch: &Batch) -> bool {
    !batch.maybe_persisted || batch.sequence.is_some()
}

fn broker_failure(code: ErrorCode, message: Option<&str>) -> Failure {
    let text = match message {
        Some(message) => format!("{code}: {message}"),
        None => code.to_string(),
    };
    Failure::new(FailureKind::Broker(code), text)
}
