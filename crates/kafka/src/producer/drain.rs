//! Filling Produce requests: for each broker, one batch of each partition that may send.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use super::broker::BrokerKey;
use super::connection::{ConnectionRequest, RequestKind, SentPartition};
use super::identity::Usable;
use super::{PartitionRef, Producer, Timer};
use crate::wire::{ApiKey, produce};
use crate::{Acks, ConnId, Failure, FailureKind, Micros};

/// Produce requests under way on a connection. A broker reads one request at a time from a
/// connection; a few more hide the way there and back, further ones only wait.
const MAX_REQUESTS: usize = 5;
/// What a partition adds to a request beside its batch: index, length, tags.
const PARTITION_OVERHEAD: usize = 24;
/// What a request and a topic add.
const REQUEST_OVERHEAD: usize = 64;
/// Brokers up to 0.11 remember one batch per producer (KAFKA-5494): one in flight. Their highest
/// Produce version is 3.
const REMEMBERS_ONE_BATCH: i16 = 4;

/// What has been gathered for a request.
#[derive(Debug, Default)]
struct Draft {
    topics: Vec<produce::TopicData>,
    partitions: Vec<SentPartition>,
    bytes: usize,
}

impl Producer {
    pub(super) fn drain(&mut self, now: Micros, timer: &mut Timer) {
        let mut by_node: BTreeMap<i32, Vec<PartitionRef>> = BTreeMap::new();
        let start = self.rotation;
        let rotated = self
            .active
            .range((Bound::Excluded(start), Bound::Unbounded))
            .chain(self.active.range(..=start));
        let mut homeless = Vec::new();
        for &at in rotated {
            let Some(partition) = self.partition(at) else { continue };
            if partition.queue.is_empty() {
                continue;
            }
            let node = partition.leader.filter(|node| self.brokers.is_listed(*node));
            match node {
                Some(node) => by_node.entry(node).or_default().push(at),
                None => homeless.push(at.0),
            }
        }
        for topic in homeless {
            // Unless a metadata request has this topic in its hands already.
            if !self.lookup.asks_for(topic) {
                self.topics.schedule(topic, now);
            }
        }
        for (node, partitions) in by_node {
            self.drain_to(now, BrokerKey::Node(node), &partitions, timer);
        }
    }

    fn drain_to(
        &mut self,
        now: Micros,
        key: BrokerKey,
        partitions: &[PartitionRef],
        timer: &mut Timer,
    ) {
        let Some(conn) = self.brokers.get(key).and_then(|broker| broker.conn) else {
            return self.connect(now, key, timer);
        };
        let Some(connection) = self.connections.get(&conn) else { return };
        if now < connection.throttled_until {
            timer.wake_at(connection.throttled_until);
        }
        if !connection.takes_requests(now) {
            return;
        }
        while self.connections.get(&conn).is_some_and(|c| c.produce_in_flight() < MAX_REQUESTS) {
            if !self.send_produce(now, conn, partitions, timer) {
                break;
            }
        }
    }

    /// Sends one request, if anything is ready to go.
    fn send_produce(
        &mut self,
        now: Micros,
        conn: ConnId,
        partitions: &[PartitionRef],
        timer: &mut Timer,
    ) -> bool {
        let Some(connection) = self.connections.get(&conn) else { return false };
        let Some(negotiated) = connection.negotiated() else { return false };
        let idle = connection.produce_in_flight() == 0;
        let remembers_one =
            negotiated.broker_range(ApiKey::Produce).is_some_and(|r| r.max <= REMEMBERS_ONE_BATCH);
        let version = negotiated.produce();
        let correlation_id = connection.next_correlation_id();
        let id = ConnectionRequest { conn, correlation_id };

        let mut sendable = Vec::new();
        let mut ready = false;
        for &at in partitions {
            if !self.may_send(now, at, conn, remembers_one, timer) {
                continue;
            }
            ready |= idle || self.is_ready(now, at, timer);
            sendable.push(at);
        }
        if !ready {
            return false;
        }
        let mut draft = Draft { bytes: REQUEST_OVERHEAD, ..Draft::default() };
        let mut skipped = None;
        for at in sendable {
            let len = self.next_len(at) + PARTITION_OVERHEAD;
            // The first batch always goes; one that does not fit is the first of the next request.
            if !draft.partitions.is_empty() && draft.bytes + len > self.config.max_request_size {
                skipped.get_or_insert(at);
                continue;
            }
            if self.draft(at, id, &mut draft) && skipped.is_none() {
                self.rotation = at;
            }
        }
        if draft.partitions.is_empty() {
            return false;
        }
        // Topic ids only where all topics have one: clusters half-way through an upgrade, or with
        // an old inter-broker protocol, give zero ids (librdkafka#4806, franz-go#1312).
        let all_have_ids = draft.topics.iter().all(|topic| topic.topic_id != [0; 16]);
        let version = if all_have_ids { version } else { version.without_topic_ids() };
        if !version.uses_topic_ids() {
            draft.partitions.iter_mut().for_each(|sent| sent.topic_id = [0; 16]);
        }
        let mut frame: Vec<Bytes> = Vec::new();
        produce::encode_request(
            version,
            correlation_id,
            &self.config.client_id,
            self.config.acks.wire(),
            self.broker_timeout_ms(),
            &draft.topics,
            &mut frame,
        );
        let deadline = now.saturating_add(self.config.request_timeout);
        let answered = self.config.acks != Acks::None;
        let kind = RequestKind::Produce { version, partitions: draft.partitions };
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.send(now, deadline, kind, answered, frame);
        }
        timer.wake_at(deadline);
        true
    }

    /// How long the broker may wait for its replicas: less than we wait for the broker, so that its
    /// answer comes first.
    fn broker_timeout_ms(&self) -> i32 {
        i32::try_from(self.config.request_timeout / 1000 * 9 / 10).unwrap_or(i32::MAX).max(1)
    }

    fn may_send(
        &mut self,
        now: Micros,
        at: PartitionRef,
        conn: ConnId,
        remembers_one: bool,
        timer: &mut Timer,
    ) -> bool {
        let old_format = self.topics.get(at.0).is_some_and(|topic| topic.old_format);
        let usable = if old_format { Usable::Plain } else { self.identity.usable() };
        let (idempotent, window) = match usable {
            Usable::NotYet => return false,
            Usable::Never(reason) => {
                let failure = Failure::new(FailureKind::Unsupported, reason);
                self.fail_queue(at, &failure);
                return false;
            }
            Usable::Idempotent(_) if remembers_one => (true, 1),
            Usable::Idempotent(_) => (true, self.config.max_in_flight),
            // Without sequence numbers only one at a time keeps the order: a broker that refuses
            // the first of two may accept the second. With acks=0 it cannot tell us anyway.
            Usable::Plain if self.config.acks == Acks::None => (false, self.config.max_in_flight),
            Usable::Plain => (false, 1),
        };
        let Some(partition) = self.partition(at) else { return false };
        if now < partition.retry_at {
            timer.wake_at(partition.retry_at);
        }
        partition.may_send(now, conn, window, idempotent)
    }

    /// Whether a busy connection should send the batch now rather than let it grow.
    fn is_ready(&self, now: Micros, at: PartitionRef, timer: &mut Timer) -> bool {
        let Some(partition) = self.partition(at) else { return false };
        let Some(batch) = partition.queue.front() else { return false };
        let linger_ends = batch.created.saturating_add(self.config.linger);
        let ready = !batch.is_open()
            || partition.queue.len() > 1
            || now >= linger_ends
            || self.closing.is_some()
            || self.memory > self.config.buffer_size / 2;
        if !ready {
            timer.wake_at(linger_ends);
        }
        ready
    }

    fn next_len(&self, at: PartitionRef) -> usize {
        self.partition(at).and_then(|p| p.queue.front()).map_or(0, |batch| batch.len())
    }

    /// Moves the next batch of a partition into the request. False when all its records have been
    /// withdrawn.
    fn draft(&mut self, at: PartitionRef, id: ConnectionRequest, draft: &mut Draft) -> bool {
        let Some(topic) = self.topics.get_mut(at.0) else { return false };
        let Some(partition) = topic.partitions.get_mut(at.1) else { return false };
        let Some(mut batch) = partition.queue.pop_front() else { return false };
        let held = batch.memory();
        let any_left = batch.seal();
        if !any_left {
            self.memory -= held;
            self.rest(at);
            return false;
        }
        self.memory = self.memory - held + batch.memory();
        if let (Usable::Idempotent(producer_id), false) = (self.identity.usable(), topic.old_format)
        {
            partition.sequence(&mut batch, producer_id);
        }
        let (header, records) = batch.wire();
        draft.bytes += header.len() + records.len() + PARTITION_OVERHEAD;
        batch.request = Some(id);
        batch.attempts += 1;
        partition.in_flight.push_back(batch);

        let index = at.1 as i32;
        draft.partitions.push(SentPartition { topic: at.0, topic_id: topic.id, index });
        let data = produce::PartitionData { index, header, records };
        match draft.topics.iter_mut().find(|other| other.name == topic.name) {
            Some(other) => other.partitions.push(data),
            None => {
                draft.bytes += REQUEST_OVERHEAD + topic.name.len();
                draft.topics.push(produce::TopicData {
                    name: topic.name.clone(),
                    topic_id: topic.id,
                    partitions: vec![data],
                });
            }
        }
        true
    }

    /// Fails everything of a partition that is not on its way.
    pub(super) fn fail_queue(&mut self, at: PartitionRef, failure: &Failure) {
        let Some(partition) = self.partition_mut(at) else { return };
        for batch in std::mem::take(&mut partition.queue) {
            self.fail(at, batch, false, failure.clone());
        }
        self.rest(at);
    }

    /// Notes that a partition may have nothing left to do.
    pub(super) fn rest(&mut self, at: PartitionRef) {
        let Some(partition) = self.partition_mut(at) else { return };
        if partition.in_flight.is_empty() {
            partition.draining = false;
        }
        if partition.is_idle() {
            self.active.remove(&at);
        }
    }
}
