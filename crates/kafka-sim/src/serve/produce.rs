//! Produce: the checks in the broker's order, the append, the wait for the other replicas.

use std::rc::Rc;

use kafka::{ConnId, MILLISECOND};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    TopicProduceResponse,
};
use kafka_protocol::messages::{ProduceResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::cluster::{PORT, PartitionRef};
use crate::log::Append;
use crate::network::Answer;
use crate::plan::Outage;
use crate::wire::{self, Body, Request, SentBatch, TopicRef};
use crate::world::{Event, World};

/// The fate of one partition of a request.
#[derive(Debug)]
struct Outcome {
    at: Option<PartitionRef>,
    code: i16,
    base_offset: i64,
    /// Where the high watermark must be before `acks=all` is satisfied.
    required: Option<i64>,
    bad_records: Vec<i32>,
    hint: Option<(usize, i32)>,
}

impl Outcome {
    fn refused(at: Option<PartitionRef>, code: i16) -> Self {
        Self { at, code, base_offset: -1, required: None, bad_records: Vec::new(), hint: None }
    }
}

/// A request with `acks=all` whose records are in the leader's log but not yet everywhere.
#[derive(Debug)]
pub struct Waiting {
    pub conn: ConnId,
    request: Rc<Request>,
    outcomes: Vec<Outcome>,
}

impl World {
    pub fn serve_produce(&mut self, conn: ConnId, request: Rc<Request>) {
        let Body::Produce { request: body, batches } = &request.body else { return };
        let acks = body.acks;
        let timeout = body.timeout_ms.max(0) as u64 * MILLISECOND;
        let outcomes: Vec<_> =
            batches.iter().map(|sent| self.produce_one(conn, sent, acks)).collect();
        match acks {
            0 if outcomes.iter().any(|outcome| outcome.code != 0) => self.hang_up(conn),
            0 => self.queue.push(self.now, Event::Unmute { conn }),
            -1 if outcomes.iter().any(|outcome| outcome.required.is_some()) => {
                let id = self.next_waiting;
                self.next_waiting += 1;
                self.waiting.insert(id, Waiting { conn, request, outcomes });
                self.queue.push(self.now + timeout, Event::WaitedEnough { id });
                self.look_at_waiting(id);
            }
            _ => self.answer_produce(conn, &request, &outcomes),
        }
    }

    fn produce_one(&mut self, conn: ConnId, sent: &SentBatch, acks: i16) -> Outcome {
        let link = &self.links[&conn];
        let (broker, era) = (link.broker, link.era);
        let view = self.cluster.brokers[broker].view.clone();
        let topic = self.topic_by_reference(&sent.topic);
        let seen = topic.and_then(|t| view.topics.get(&self.cluster.topics[t].name));
        let index = sent.partition as usize;
        let seen = seen.and_then(|seen| seen.partitions.get(index));
        let (Some(topic), Some((leader, epoch))) = (topic, seen) else {
            let unknown =
                if matches!(sent.topic, TopicRef::Id(_)) && topic.is_none() { 100 } else { 3 };
            return Outcome::refused(topic.map(|t| (t, index)), unknown);
        };
        let at = (topic, index);
        let is_leader = self.cluster.partition(at).leader == Some(broker);
        if !is_leader || *leader != Some(broker) || self.outage == Some(Outage::NotLeader) {
            let known = leader.filter(|leader| *leader != broker).map(|leader| (leader, *epoch));
            return Outcome { hint: known, ..Outcome::refused(Some(at), 6) };
        }
        if self.net.chance(self.plan.faults.refuse_code) {
            let codes: &[i16] = match era.produce.1 {
                ..=8 => &[2, 3, 5, 6, 9, 19, 56, 74],
                _ => &[2, 3, 5, 6, 9, 19, 56, 74, 75],
            };
            return Outcome::refused(Some(at), *self.net.pick(codes));
        }
        let below_min_isr = self.cluster.partition(at).below_min_isr
            || self.outage == Some(Outage::NotEnoughReplicas);
        if acks == -1 && below_min_isr {
            return Outcome::refused(Some(at), 19);
        }
        if sent.batch.size > self.cluster.topics[topic].plan.max_message_bytes {
            return Outcome::refused(Some(at), 10);
        }
        let poisoned = |token| self.ledger.get(token).is_some_and(|entry| entry.poisoned);
        let bad = |(i, mark): (usize, &crate::batch::RecordMark)| {
            poisoned(mark.token).then_some(i as i32)
        };
        let bad_records: Vec<i32> = sent.batch.records.iter().enumerate().filter_map(bad).collect();
        if !bad_records.is_empty() {
            // INVALID_RECORD and the list came with Produce 8 (KIP-467).
            let code = if era.produce.1 >= 8 { 87 } else { 32 };
            return Outcome { bad_records, ..Outcome::refused(Some(at), code) };
        }
        self.append_to_log(at, sent, era, acks)
    }

    fn append_to_log(
        &mut self,
        at: PartitionRef,
        sent: &SentBatch,
        era: &'static crate::era::Era,
        acks: i16,
    ) -> Outcome {
        let partition = self.cluster.partition_mut(at);
        let appended = partition.log.append(era, &sent.batch);
        let base_offset = match appended {
            Append::Refused(code) => return Outcome::refused(Some(at), code),
            Append::Written { base_offset } | Append::Duplicate { base_offset } => base_offset,
        };
        let (end, epoch) = (partition.log.end, partition.leader_epoch);
        self.appended.extend(sent.batch.records.iter().map(|mark| mark.token));
        self.schedule_replication(at, end, epoch);
        let required = (acks == -1).then_some(base_offset + i64::from(sent.batch.count()));
        let mut outcome = Outcome { base_offset, required, ..Outcome::refused(Some(at), 0) };
        if self.net.chance(self.plan.faults.late_code) {
            // 7: the other replicas were too slow; 20: the ISR shrank meanwhile; 6: the leader was
            // replaced while the request waited (`DelayedProduce`, case B); 56: the disk broke.
            let codes: &[i16] = if acks == -1 { &[7, 20, 6, 56] } else { &[56] };
            outcome.code = *self.net.pick(codes);
            outcome.required = None;
        }
        outcome
    }

    pub fn schedule_replication(&mut self, at: PartitionRef, end: i64, epoch: i32) {
        let lag = match self.plan.faults.replication_lag {
            0 => self.net.between(20, 2 * self.plan.latency.max(20)),
            most => self.net.magnitude(20, most.max(20)),
        };
        let stalled = self.cluster.partition(at).replication_stalled_until;
        let due = (self.now + lag).max(stalled);
        self.queue.push(due, Event::Replicated { at, end, epoch });
    }

    /// The followers have everything up to `end`, unless there was an election since.
    pub fn replicated(&mut self, at: PartitionRef, end: i64, epoch: i32) {
        let now = self.now;
        let partition = self.cluster.partition_mut(at);
        if partition.leader_epoch != epoch {
            return;
        }
        if now < partition.replication_stalled_until {
            let until = partition.replication_stalled_until;
            return self.queue.push(until, Event::Replicated { at, end, epoch });
        }
        partition.log.high_watermark = partition.log.high_watermark.max(end);
        self.look_at_all_waiting();
    }

    pub fn look_at_all_waiting(&mut self) {
        let ids: Vec<u64> = self.waiting.keys().copied().collect();
        ids.into_iter().for_each(|id| self.look_at_waiting(id));
    }

    fn look_at_waiting(&mut self, id: u64) {
        let Some(waiting) = self.waiting.get_mut(&id) else { return };
        let link = &self.links[&waiting.conn];
        let broker = &self.cluster.brokers[link.broker];
        if broker.incarnation != link.incarnation {
            self.waiting.remove(&id);
            return;
        }
        if self.now < broker.frozen_until {
            return;
        }
        for outcome in &mut waiting.outcomes {
            let (Some(at), Some(required)) = (outcome.at, outcome.required) else { continue };
            let partition = self.cluster.partition(at);
            if partition.leader != Some(link.broker) {
                outcome.code = 6;
                outcome.required = None;
            } else if partition.log.high_watermark >= required {
                outcome.code = if partition.below_min_isr { 20 } else { 0 };
                outcome.required = None;
            }
        }
        if waiting.outcomes.iter().all(|outcome| outcome.required.is_none())
            && let Some(waiting) = self.waiting.remove(&id)
        {
            self.answer_produce(waiting.conn, &waiting.request, &waiting.outcomes);
        }
    }

    /// `timeout_ms` of the request has passed.
    pub fn waited_enough(&mut self, id: u64) {
        self.look_at_waiting(id);
        let Some(waiting) = self.waiting.get(&id) else { return };
        let frozen_until = self.cluster.brokers[self.links[&waiting.conn].broker].frozen_until;
        if self.now < frozen_until {
            return self.queue.push(frozen_until, Event::WaitedEnough { id });
        }
        let Some(mut waiting) = self.waiting.remove(&id) else { return };
        for outcome in waiting.outcomes.iter_mut().filter(|outcome| outcome.required.is_some()) {
            outcome.code = 7;
        }
        self.answer_produce(waiting.conn, &waiting.request, &waiting.outcomes);
    }

    fn answer_produce(&mut self, conn: ConnId, request: &Request, outcomes: &[Outcome]) {
        let Body::Produce { batches, .. } = &request.body else { return };
        let version = request.version;
        let mut response = ProduceResponse::default();
        let mut results = Vec::new();
        for (sent, outcome) in batches.iter().zip(outcomes) {
            let partition = self.partition_response(version, sent.partition, outcome);
            let place = |topic: &TopicProduceResponse| match &sent.topic {
                TopicRef::Name(name) => topic.name.0.as_str() == name,
                TopicRef::Id(id) => topic.topic_id == *id,
            };
            let index = response.responses.iter().position(place).unwrap_or_else(|| {
                let (name, id) = match &sent.topic {
                    TopicRef::Name(name) => (name.clone(), Uuid::nil()),
                    TopicRef::Id(id) => (String::new(), *id),
                };
                let topic = TopicProduceResponse::default()
                    .with_name(TopicName(StrBytes::from_string(name)))
                    .with_topic_id(id);
                response.responses.push(topic);
                response.responses.len() - 1
            });
            response.responses[index].partition_responses.push(partition);
            if let (Some((leader, _)), 10..) = (outcome.hint, version) {
                let endpoint = NodeEndpoint::default()
                    .with_node_id((leader as i32 + 1).into())
                    .with_host(StrBytes::from_string(self.cluster.host(leader)))
                    .with_port(i32::from(PORT));
                response.node_endpoints.push(endpoint);
            }
            results.extend(outcome.at.map(|at| (at, outcome.code)));
        }
        let throttle_ms = self.throttle_ms(version >= 6);
        response.throttle_time_ms = throttle_ms;
        let correlation_id = request.correlation_id;
        self.trace(|| {
            let codes: Vec<_> = outcomes.iter().map(|o| (o.at, o.code, o.base_offset)).collect();
            format!("{conn:?} ← #{correlation_id} produced {codes:?}")
        });
        let frame = wire::encode(correlation_id, version, &response);
        let answer = Answer { correlation_id, throttle_ms, negotiated: false, results };
        self.respond(conn, frame, answer);
    }

    fn partition_response(
        &self,
        version: i16,
        index: i32,
        outcome: &Outcome,
    ) -> PartitionProduceResponse {
        let mut response = PartitionProduceResponse::default()
            .with_index(index)
            .with_error_code(outcome.code)
            .with_base_offset(outcome.base_offset)
            .with_log_append_time_ms(-1)
            .with_log_start_offset(if outcome.code == 0 { 0 } else { -1 });
        if version >= 8 {
            let bad = outcome
                .bad_records
                .iter()
                .map(|index| BatchIndexAndErrorMessage::default().with_batch_index(*index));
            response.record_errors = bad.collect();
            if !outcome.bad_records.is_empty() {
                response.error_message = Some(StrBytes::from_static_str("One or more records bad"));
            }
        }
        if let (Some((leader, epoch)), 10..) = (outcome.hint, version) {
            response.current_leader = LeaderIdAndEpoch::default()
                .with_leader_id((leader as i32 + 1).into())
                .with_leader_epoch(epoch);
        }
        response
    }
}
