//! Metadata: which brokers there are, and who leads the partitions of the topics in use.

use std::sync::Arc;

use super::accept::TOPIC_IDLE;
use super::broker::BrokerKey;
use super::connection::RequestKind;
use super::partition::Partition;
use super::topic::{Knowledge, UnknownAnswer};
use super::{Producer, Timer};
use crate::error_code::{ErrorCode, MetadataTopicClass};
use crate::negotiation::MetadataVersion;
use crate::wire::{Broker, DecodeError, Reader, metadata};
use crate::{
    ConnId, Delivery, Failure, FailureKind, HostPort, MILLISECOND, Micros, SECOND, Severity,
};

/// How long to look for another broker before the same one may give the second "unknown topic".
const SECOND_OPINION: Micros = 700 * MILLISECOND;
/// A connection attempt that takes longer than this no longer keeps others from being tried.
const ATTEMPT_PATIENCE: Micros = SECOND;

/// When to ask, and what has been asked.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    asked: Option<Vec<usize>>,
    lost: Vec<usize>,
    /// When everything in use is to be refreshed.
    refresh_at: Option<Micros>,
    asked_at: Micros,
}

impl Schedule {
    /// The connection with the question was lost.
    pub fn cut_off(&mut self) {
        self.lost.extend(self.asked.take().into_iter().flatten());
    }

    /// A question about this topic is under way.
    pub fn asks_for(&self, topic: usize) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.contains(&topic))
    }
}

impl Producer {
    pub(super) fn ask_for_metadata(&mut self, now: Micros, timer: &mut Timer) {
        for index in std::mem::take(&mut self.lookup.lost) {
            // Asked once, wanted until answered: with acks=0 no record waits that would ask again.
            self.pause_lookups(now, index);
            self.topics.schedule(index, now);
        }
        if self.lookup.asked.is_some() {
            return;
        }
        let in_use = |t: &super::topic::Topic| now < t.last_used + TOPIC_IDLE || !t.is_idle();
        let refresh = self.lookup.refresh_at.is_some_and(|at| now >= at);
        let refresh = refresh && self.topics.iter().any(|(_, topic)| in_use(topic));
        let mut wanted: Vec<usize> = self.topics.due(now).collect();
        if refresh {
            wanted = self
                .topics
                .iter()
                .filter(|(index, topic)| in_use(topic) || wanted.contains(index))
                .map(|(index, _)| index)
                .collect();
        }
        // A cluster that fails is probed until it works again.
        if wanted.is_empty() && !refresh && self.failing.is_none() {
            if let Some(at) = self.topics.next_due() {
                timer.wake_at(at);
            }
            if let Some(at) = self.lookup.refresh_at.filter(|at| *at > now) {
                timer.wake_at(at);
            }
            return;
        }
        // However many topics have no leader, the cluster is asked for them together.
        let repeats = |index: &usize| self.topics.get(*index).is_some_and(|t| t.lookups > 0);
        let spacing = self.lookup.asked_at + self.config.retry_backoff.min;
        if !refresh && wanted.iter().all(repeats) && now < spacing {
            return timer.wake_at(spacing);
        }
        let avoid = wanted.iter().find_map(|index| self.topics.get(*index)?.unknown);
        let avoid = avoid.filter(|unknown| {
            let patience = unknown.first_at + SECOND_OPINION;
            if now < patience {
                timer.wake_at(patience);
            }
            now < patience
        });
        let Some(conn) = self.metadata_connection(now, avoid.map(|unknown| unknown.broker), timer)
        else {
            return;
        };
        let names: Vec<Arc<str>> =
            wanted.iter().filter_map(|i| Some(self.topics.get(*i)?.name.clone())).collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let Some(version) = connection.negotiated().map(|n| n.metadata()) else { return };
        let frame = metadata::encode_request(
            version,
            connection.next_correlation_id(),
            &self.config.client_id,
            Some(&names),
            self.config.auto_create_topics,
        );
        let deadline = now.saturating_add(self.config.request_timeout);
        let kind = RequestKind::Metadata { version, full: refresh };
        connection.send(now, deadline, kind, true, [frame]);
        timer.wake_at(deadline);
        for index in &wanted {
            self.topics.unschedule(*index);
        }
        self.lookup.asked = Some(wanted);
        self.lookup.asked_at = now;
    }

    /// The connection to ask on: the least busy one that is ready. Without any, one is opened.
    fn metadata_connection(
        &mut self,
        now: Micros,
        avoid: Option<BrokerKey>,
        timer: &mut Timer,
    ) -> Option<ConnId> {
        let listed = |key: &BrokerKey, broker: &super::broker::Broker| {
            matches!(key, BrokerKey::Node(_)) && broker.listed
        };
        // Only where there is another broker to ask.
        let avoided = avoid.and_then(|key| self.brokers.get(key)).map(|b| b.endpoint.clone());
        let avoided = avoided.filter(|endpoint| {
            let mut nodes = self.brokers.table.iter().filter(|(key, b)| listed(key, b));
            nodes.any(|(_, broker)| broker.endpoint != *endpoint)
        });
        let is_avoided = |brokers: &super::Brokers, key: BrokerKey| {
            avoided.is_some() && brokers.get(key).map(|b| &b.endpoint) == avoided.as_ref()
        };
        let ready = self
            .connections
            .values()
            .filter(|c| c.takes_requests(now))
            .filter(|c| !is_avoided(&self.brokers, c.broker))
            .min_by_key(|c| (c.in_flight.len(), c.broker));
        if let Some(connection) = ready {
            return Some(connection.id);
        }
        let nodes = || self.brokers.table.iter().filter(|(key, b)| listed(key, b));
        // Bootstrap servers are asked while no node is known, or when all known ones fail.
        let bootstrap = nodes().all(|(_, broker)| broker.failures > 0);
        let candidates: Vec<BrokerKey> = self
            .brokers
            .table
            .iter()
            .filter(|(key, b)| {
                listed(key, b) || bootstrap && matches!(key, BrokerKey::Bootstrap(_))
            })
            .filter(|(key, _)| !is_avoided(&self.brokers, **key))
            .map(|(key, _)| *key)
            .collect();
        let of = |key: &BrokerKey| self.brokers.get(*key);
        let under_way = candidates
            .iter()
            .filter_map(of)
            .filter(|b| b.is_engaged())
            .map(|b| b.last_attempt)
            .max();
        if let Some(started) = under_way
            && now < started + ATTEMPT_PATIENCE
        {
            timer.wake_at(started + ATTEMPT_PATIENCE);
            return None;
        }
        let free = |key: &&BrokerKey| of(key).is_some_and(|b| !b.is_engaged());
        let eligible = |key: &&BrokerKey| of(key).is_some_and(|b| b.retry_at <= now);
        let oldest = candidates
            .iter()
            .filter(free)
            .filter(eligible)
            .filter_map(of)
            .map(|b| b.last_attempt)
            .min();
        let Some(oldest) = oldest else {
            let next = candidates.iter().filter(free).filter_map(of).map(|b| b.retry_at).min();
            if let Some(at) = next {
                timer.wake_at(at);
            }
            return None;
        };
        let longest_ago: Vec<BrokerKey> = candidates
            .iter()
            .filter(free)
            .filter(eligible)
            .filter(|key| of(key).is_some_and(|b| b.last_attempt == oldest))
            .copied()
            .collect();
        let chosen = longest_ago[self.random.below(longest_ago.len())];
        self.connect(now, chosen, timer);
        // Should it take long, another is tried beside it.
        timer.wake_at(now + ATTEMPT_PATIENCE);
        None
    }

    pub(super) fn on_metadata(
        &mut self,
        now: Micros,
        conn: ConnId,
        version: MetadataVersion,
        full: bool,
        reader: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        let response = metadata::decode_response(reader, version);
        let asked = self.lookup.asked.take().unwrap_or_default();
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                self.lookup.lost.extend(asked);
                return Err(error);
            }
        };
        // Before version 6 the answer itself came late (KIP-219).
        if version.get() >= 6 {
            self.throttled(now, conn, response.throttle_time_ms);
        }
        let Some(from) = self.connections.get(&conn).map(|c| c.broker) else { return Ok(()) };
        if response.error_code == ErrorCode::REBOOTSTRAP_REQUIRED {
            self.lookup.lost.extend(asked);
            self.rebootstrap();
            return Ok(());
        }
        if full || self.lookup.refresh_at.is_none() {
            let age = self.config.metadata_max_age;
            // Workers must not all ask at the same moment.
            let early = self.random.below((age / 10) as usize) as Micros;
            self.lookup.refresh_at = Some(now + age - early);
        }
        self.apply_brokers(&response.brokers);
        for topic in &response.topics {
            let index = topic.name.as_deref().and_then(|name| self.topics.find(name));
            if let Some(index) = index {
                self.apply_topic(now, index, topic, from);
            }
        }
        for index in asked {
            let answered = self.topics.get(index).is_none_or(|topic| {
                response.topics.iter().any(|t| t.name.as_deref() == Some(&*topic.name))
            });
            if !answered {
                self.ask_again(now, index);
            }
        }
        Ok(())
    }

    /// KIP-1102: the cluster behind these addresses is another one.
    fn rebootstrap(&mut self) {
        for (key, broker) in &mut self.brokers.table {
            broker.listed = matches!(key, BrokerKey::Bootstrap(_));
        }
        for connection in self.connections.values_mut() {
            connection.retiring = true;
        }
        let message = "the broker says that it belongs to another cluster; starting again from \
                       bootstrap_servers";
        self.event(Severity::Warning, "rebootstrap", message.into());
    }

    fn apply_brokers(&mut self, brokers: &[Broker]) {
        // An answer without brokers comes from one that has just started.
        if brokers.is_empty() {
            return;
        }
        for (key, broker) in &mut self.brokers.table {
            if matches!(key, BrokerKey::Node(_)) {
                broker.listed = false;
            }
        }
        for broker in brokers {
            self.learn_broker(broker);
        }
        let connections = &self.connections;
        self.brokers.table.retain(|key, broker| {
            let used = connections.values().any(|connection| connection.broker == *key);
            broker.listed || used || matches!(key, BrokerKey::Bootstrap(_))
        });
    }

    pub(super) fn learn_broker(&mut self, broker: &Broker) {
        let Ok(port) = u16::try_from(broker.port) else { return };
        let host = broker.host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let endpoint = HostPort { host: host.unwrap_or(&broker.host).into(), port };
        if let Some(conn) = self.brokers.learn(broker.node_id, endpoint)
            && let Some(connection) = self.connections.get_mut(&conn)
        {
            connection.retiring = true;
        }
    }

    fn apply_topic(
        &mut self,
        now: Micros,
        index: usize,
        answer: &metadata::Topic,
        from: BrokerKey,
    ) {
        match answer.error_code.metadata_topic_class() {
            MetadataTopicClass::Ok if !answer.partitions.is_empty() => {
                self.apply_partitions(now, index, answer);
            }
            MetadataTopicClass::Ok | MetadataTopicClass::Retry => self.ask_again(now, index),
            MetadataTopicClass::Unknown => self.topic_unknown(now, index, from),
            MetadataTopicClass::Refused => {
                let code = answer.error_code;
                if let Some(topic) = self.topics.get_mut(index) {
                    topic.knowledge = Knowledge::Refused { code, since: now };
                }
                let message = format!("the cluster refuses the topic: {code}");
                self.event(
                    Severity::Error,
                    "topic",
                    format!("topic \"{}\": {message}", answer.name.as_deref().unwrap_or("")),
                );
                let failure = Failure::new(FailureKind::Broker(code), message);
                self.fail_pending(index, true, &failure);
            }
        }
    }

    /// No useful answer: ask again after a while, as long as anyone wants to know.
    fn ask_again(&mut self, now: Micros, index: usize) {
        self.pause_lookups(now, index);
        if self.topics.get(index).is_some_and(|topic| !topic.is_idle()) {
            self.topics.schedule(index, now);
        }
    }

    fn pause_lookups(&mut self, now: Micros, index: usize) {
        let Some(topic) = self.topics.get_mut(index) else { return };
        topic.lookups = topic.lookups.saturating_add(1);
        topic.ask_not_before =
            now + self.config.retry_backoff.pause(topic.lookups, &mut self.random);
    }

    /// One "unknown" proves nothing: the topic may be new, the broker may lag. So two answers, from
    /// different brokers where there are several; and a topic that was known once, or is being
    /// created, is asked for as long as records wait.
    fn topic_unknown(&mut self, now: Micros, index: usize, from: BrokerKey) {
        let auto_create = self.config.auto_create_topics;
        let retry_backoff = self.config.retry_backoff.min;
        let Some(topic) = self.topics.get_mut(index) else { return };
        if topic.was_known || auto_create {
            topic.unknown.get_or_insert(UnknownAnswer { first_at: now, broker: from });
            return self.ask_again(now, index);
        }
        if let Knowledge::Missing { since } = &mut topic.knowledge {
            *since = now;
            return;
        }
        let Some(first) = topic.unknown else {
            topic.unknown = Some(UnknownAnswer { first_at: now, broker: from });
            return self.topics.schedule(index, now + retry_backoff);
        };
        let endpoint =
            |key| self.brokers.get(key).map(|broker: &super::broker::Broker| &broker.endpoint);
        let same = endpoint(first.broker) == endpoint(from);
        let others = self.brokers.table.iter().any(|(key, broker)| {
            matches!(key, BrokerKey::Node(_))
                && broker.listed
                && Some(&broker.endpoint) != endpoint(first.broker)
        });
        let patient = now < first.first_at + SECOND_OPINION;
        if now < first.first_at + retry_backoff || (same && others && patient) {
            return self.topics.schedule(index, now + retry_backoff / 2);
        }
        topic.knowledge = Knowledge::Missing { since: now };
        topic.unknown = None;
        let failure = Failure::new(FailureKind::UnknownTopic, "topic does not exist");
        self.fail_pending(index, false, &failure);
    }

    fn apply_partitions(&mut self, now: Micros, index: usize, answer: &metadata::Topic) {
        let first_epoch = self.identity.first_epoch();
        let brokers = &self.brokers;
        let Some(topic) = self.topics.get_mut(index) else { return };
        // The same name under another id is another log (deleted and created again).
        let known_id = topic.id != [0; 16] && answer.topic_id != [0; 16];
        let recreated = known_id && topic.id != answer.topic_id;
        topic.id = answer.topic_id;
        topic.knowledge = Knowledge::Known;
        topic.was_known = true;
        topic.unknown = None;
        topic.answered_at = now;
        let count = answer.partitions.len();
        topic.partition_count = count;
        while topic.partitions.len() < count {
            topic.partitions.push(Partition::new(first_epoch));
        }
        let mut leaderless = false;
        let mut changed = recreated;
        for told in &answer.partitions {
            let at = usize::try_from(told.index).ok();
            let Some(partition) = at.and_then(|at| topic.partitions.get_mut(at)) else { continue };
            let leader = (told.leader_id >= 0).then_some(told.leader_id);
            // A leader without an address is as good as none.
            let reachable = leader.is_some_and(|node| brokers.is_listed(node));
            leaderless |= !reachable && !partition.is_idle();
            changed |= partition.set_leader(leader, told.leader_epoch, recreated);
            partition.needs_new_epoch |= recreated;
        }
        if leaderless {
            self.ask_again(now, index);
        } else if changed {
            topic.lookups = 0;
            topic.ask_not_before = 0;
        } else {
            // Brokers that disagree about a leader must not be asked in a loop (librdkafka#4577).
            self.pause_lookups(now, index);
        }
        self.place_pending(index);
    }

    /// The partitions are known: records that waited for them move on.
    fn place_pending(&mut self, index: usize) {
        self.waiting.remove(&index);
        let Some(topic) = self.topics.get_mut(index) else { return };
        let (name, count) = (topic.name.clone(), topic.partition_count);
        for record in std::mem::take(&mut topic.pending) {
            self.memory -= record.memory;
            if let Some(partition) = record.partition.filter(|p| *p as usize >= count) {
                let message =
                    format!("partition {partition} does not exist, the topic has {count}");
                let failure = Failure::new(FailureKind::UnknownPartition, message);
                self.push_completion(crate::Completion {
                    tokens: vec![record.token],
                    topic: name.clone(),
                    partition: Some(partition),
                    delivery: Delivery::Rejected(failure),
                });
                continue;
            }
            record.with_record(&name, |borrowed| self.put(record.created, index, borrowed));
        }
    }

    /// The broker has failed: its partitions may be led by another. `idle`: those of no waiting
    /// records too.
    pub(super) fn refresh_topics_led_by(&mut self, now: Micros, node: i32, idle: bool) {
        let concerned = |topic: &super::topic::Topic| {
            topic.partitions.iter().any(|p| p.leader == Some(node) && (idle || !p.is_idle()))
        };
        let topics = self.topics.iter().filter(|(_, topic)| concerned(topic));
        let indexes: Vec<usize> = topics.map(|(index, _)| index).collect();
        for index in indexes {
            self.topics.schedule(index, now);
        }
    }
}
