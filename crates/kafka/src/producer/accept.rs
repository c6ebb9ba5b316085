//! Taking records in: limits, topics, partitions.

use super::Producer;
use super::batch::Batch;
use super::topic::{Knowledge, PendingRecord};
use crate::record_batch::{HEADER_LEN, RecordFields, max_record_len};
use crate::{AppendError, Micros, Record, SECOND};

/// How long "this topic does not exist" is believed without asking again: long enough that a storm
/// of requests costs two look-ups a second, short enough that a topic just created is found.
pub(super) const MISSING_LIFETIME: Micros = SECOND;
/// How long a refusal (authorization) is believed.
const REFUSED_LIFETIME: Micros = 10 * SECOND;
/// Metadata older than this is asked for again before an explicit partition is refused.
const PARTITION_COUNT_LIFETIME: Micros = SECOND;
/// While requests come for a cluster that counts as unreachable, it is probed this often even if
/// `reconnect_backoff` has grown beyond.
const DEMAND_PROBE: Micros = 2 * SECOND;
/// Memory that a batch may hold unused.
const MAX_SPARE: usize = 64 * 1024;
/// Metadata of topics without traffic for this time is not refreshed.
pub(super) const TOPIC_IDLE: Micros = 300 * SECOND;

impl Producer {
    pub(super) fn accept(
        &mut self,
        now: Micros,
        records: &[Record<'_>],
    ) -> Result<(), AppendError> {
        if self.closing.is_some() {
            return Err(AppendError::Closing);
        }
        if self.is_down(now) {
            for broker in self.brokers.table.values_mut() {
                broker.retry_at = broker.retry_at.min(now + DEMAND_PROBE);
            }
            let reason = self.failing.as_ref().map(|(_, reason)| reason.clone());
            return Err(AppendError::Unreachable(reason.unwrap_or_default()));
        }
        let mut needed = 0;
        for (index, record) in records.iter().enumerate() {
            let encoded = record_len(record);
            if encoded + HEADER_LEN > self.config.max_message_size {
                let limit = self.config.max_message_size;
                return Err(AppendError::TooLarge { index, encoded: encoded + HEADER_LEN, limit });
            }
            needed += cost(encoded);
        }
        if self.memory.saturating_add(needed) > self.config.buffer_size {
            let wait = self.throttle(now);
            return Err(if wait > 0 {
                AppendError::Throttled { for_micros: wait }
            } else {
                AppendError::Full
            });
        }
        // Nothing is taken before every record has been looked at.
        let mut topics = Vec::with_capacity(records.len());
        for (index, record) in records.iter().enumerate() {
            let topic = self.find_or_add_topic(now, record.topic, &topics)?;
            topics.push(topic);
            self.check_topic(now, topic, index, record)?;
        }
        for (record, topic) in records.iter().zip(topics) {
            self.place(now, topic, record);
        }
        self.outstanding += records.len();
        Ok(())
    }

    /// Whether the latest word of the cluster is that this topic does not exist. Asks again in the
    /// background when that word is old.
    pub fn topic_is_missing(&mut self, now: Micros, name: &str) -> bool {
        let Some(index) = self.topics.find(name) else { return false };
        let Some(Knowledge::Missing { since }) = self.topics.get(index).map(|t| t.knowledge) else {
            return false;
        };
        if now >= since + MISSING_LIFETIME {
            self.topics.schedule(index, now);
            self.dirty = true;
        }
        true
    }

    fn find_or_add_topic(
        &mut self,
        now: Micros,
        name: &str,
        needed: &[usize],
    ) -> Result<usize, AppendError> {
        if let Some(index) = self.topics.find(name) {
            return Ok(index);
        }
        if self.topics.len() >= self.config.max_topics && !self.forget_a_topic(needed) {
            return Err(AppendError::TooManyTopics);
        }
        let index = self.topics.add(name, now);
        self.topics.schedule(index, now);
        Ok(index)
    }

    /// Makes room for a new topic: first those that do not exist, then the one idle for longest, but
    /// none that is `needed`.
    fn forget_a_topic(&mut self, needed: &[usize]) -> bool {
        let candidate = self
            .topics
            .iter()
            .filter(|(index, topic)| topic.is_idle() && !needed.contains(index))
            .min_by_key(|(_, topic)| (topic.was_known, topic.last_used))
            .map(|(index, _)| index);
        let Some(topic) = candidate.and_then(|index| self.topics.remove(index)) else {
            return false;
        };
        // Its sequence numbers go with it: should it come back, it starts under an epoch that no
        // log has seen from us.
        if let Some(epoch) = topic.partitions.iter().map(|p| p.epoch).max() {
            self.identity.raise_first_epoch(epoch);
        }
        true
    }

    fn check_topic(
        &mut self,
        now: Micros,
        topic: usize,
        index: usize,
        record: &Record<'_>,
    ) -> Result<(), AppendError> {
        let Some(known) = self.topics.get_mut(topic) else { return Ok(()) };
        known.last_used = now;
        match known.knowledge {
            Knowledge::Missing { since } if now < since + MISSING_LIFETIME => {
                return Err(AppendError::UnknownTopic { index });
            }
            Knowledge::Refused { code, since } if now < since + REFUSED_LIFETIME => {
                return Err(AppendError::TopicRefused { index, code });
            }
            Knowledge::Known | Knowledge::Unknown => {}
            Knowledge::Missing { .. } | Knowledge::Refused { .. } => {
                known.knowledge = Knowledge::Unknown;
                known.unknown = None;
                known.lookups = 0;
                known.ask_not_before = 0;
                self.topics.schedule(topic, now);
                return Ok(());
            }
        }
        if let (Knowledge::Known, Some(partition)) = (known.knowledge, record.partition) {
            let fresh = now < known.answered_at + PARTITION_COUNT_LIFETIME;
            if partition as usize >= known.partition_count && fresh {
                let count = known.partition_count as i32;
                return Err(AppendError::UnknownPartition { index, partition, count });
            }
        }
        Ok(())
    }

    fn place(&mut self, now: Micros, index: usize, record: &Record<'_>) {
        let Some(topic) = self.topics.get(index) else { return };
        let known = topic.knowledge == Knowledge::Known && topic.pending.is_empty();
        let in_range = record.partition.is_none_or(|p| (p as usize) < topic.partition_count);
        if known && in_range {
            return self.put(now, index, record);
        }
        let memory = cost(record_len(record));
        self.memory += memory;
        if let Some(topic) = self.topics.get_mut(index) {
            topic.pending.push_back(PendingRecord::new(now, record, memory));
            self.waiting.insert(index);
        }
        self.topics.schedule(index, now);
    }

    /// Puts a record into a batch of the partition it belongs to. `created` is when it came.
    pub(super) fn put(&mut self, created: Micros, index: usize, record: &Record<'_>) {
        let len = record_len(record);
        let partition = match record.partition {
            Some(partition) => partition as usize,
            None => self.choose_partition(index, record.key, len),
        };
        let limit = self.config.batch_size.min(self.config.max_request_size);
        let limit = self.topics.get(index).map_or(limit, |topic| limit.min(topic.batch_limit));
        // A batch may take more than it needs at once, so that it need not be moved for each record,
        // but only of what is free: `buffer_size` holds.
        let free = self.config.buffer_size.saturating_sub(self.memory);
        let spare = (free / 8).min(MAX_SPARE);
        let Some(target) = self.partition_mut((index, partition)) else { return };
        let grown = target.push(created, record, len, limit, spare);
        self.memory += grown;
        self.active.insert((index, partition));
    }

    fn choose_partition(&mut self, index: usize, key: Option<&[u8]>, len: usize) -> usize {
        let batch_size = self.config.batch_size;
        let Some(topic) = self.topics.get_mut(index) else { return 0 };
        let count = topic.partition_count;
        // An empty key is a key.
        if let Some(p) = key.and_then(|key| self.config.partitioner.partition(key, count)) {
            return p;
        }
        // Uniform sticky (KIP-794): stay for a batch's worth of bytes, then move on.
        let has_leader = |p: usize| topic.partitions[p].leader.is_some();
        if let Some((partition, bytes)) = &mut topic.sticky
            && *bytes < batch_size
            && *partition < count
            && has_leader(*partition)
        {
            *bytes += len;
            return *partition;
        }
        // Partitions with much in their queue get less (KAFKA-10888 describes what happens
        // otherwise); those without a leader nothing, unless none has one.
        let any_leader = (0..count).any(has_leader);
        let eligible = |p: &usize| !any_leader || has_leader(*p);
        let queued =
            |p: usize| topic.partitions[p].queue.len() + topic.partitions[p].in_flight.len();
        let longest = (0..count).filter(eligible).map(queued).max().unwrap_or(0);
        let weight = |p: usize| longest + 1 - queued(p);
        let total: usize = (0..count).filter(eligible).map(weight).sum();
        let mut ticket = self.random.below(total);
        let chosen = (0..count).filter(eligible).find(|p| {
            let wins = ticket < weight(*p);
            ticket = ticket.saturating_sub(weight(*p));
            wins
        });
        let chosen = chosen.unwrap_or(0);
        topic.sticky = Some((chosen, len));
        chosen
    }

    /// Withdraws a record that has not been sent.
    pub(super) fn withdraw(&mut self, token: u64) {
        let pending = self.topics.iter().find_map(|(index, topic)| {
            topic.pending.iter().position(|r| r.token == token).map(|at| (index, at))
        });
        if let Some((index, at)) = pending {
            if let Some(record) = self.topics.get_mut(index).and_then(|t| t.pending.remove(at)) {
                self.complete_cancelled(index, None, &record.token);
                self.memory -= record.memory;
            }
            return;
        }
        let found = self.active.iter().copied().find(|(topic, partition)| {
            self.topics
                .get_mut(*topic)
                .and_then(|t| t.partitions.get_mut(*partition))
                .is_some_and(|p| p.queue.iter_mut().any(|batch| batch.cancel(token)))
        });
        if let Some((topic, partition)) = found {
            self.complete_cancelled(topic, Some(partition as i32), &token);
        }
    }
}

/// What a record may cost in memory: itself, and a batch of its own.
fn cost(encoded: usize) -> usize {
    encoded + HEADER_LEN + Batch::OVERHEAD
}

/// Upper bound of the encoded size of a record in a batch.
fn record_len(record: &Record<'_>) -> usize {
    let Record { key, value, headers, .. } = *record;
    max_record_len(&RecordFields { key, value, headers })
}
