//! Topics in use: what is known of them, and the records that wait until something is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::broker::BrokerKey;
use super::partition::Partition;
use crate::error_code::ErrorCode;
use crate::{Micros, Record};

type OwnedHeader = (Box<[u8]>, Option<Box<[u8]>>);

/// A record whose partition cannot be chosen yet.
#[derive(Debug)]
pub(super) struct PendingRecord {
    pub partition: Option<i32>,
    pub key: Option<Box<[u8]>>,
    pub value: Option<Box<[u8]>>,
    pub headers: Vec<OwnedHeader>,
    pub timestamp_ms: i64,
    pub token: u64,
    pub created: Micros,
    /// Bytes held.
    pub memory: usize,
}

impl PendingRecord {
    pub fn new(now: Micros, record: &Record<'_>, memory: usize) -> Self {
        Self {
            partition: record.partition,
            key: record.key.map(Into::into),
            value: record.value.map(Into::into),
            headers: record.headers.iter().map(|(k, v)| ((*k).into(), v.map(Into::into))).collect(),
            timestamp_ms: record.timestamp_ms,
            token: record.token,
            created: now,
            memory,
        }
    }

    pub fn with_record<R>(&self, topic: &str, f: impl FnOnce(&Record<'_>) -> R) -> R {
        let headers: Vec<_> = self.headers.iter().map(|(k, v)| (&**k, v.as_deref())).collect();
        f(&Record {
            topic,
            partition: self.partition,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: &headers,
            timestamp_ms: self.timestamp_ms,
            token: self.token,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// Nobody was asked yet, or not enough.
    Unknown,
    /// The partitions are known.
    Known,
    /// Brokers agreed that it does not exist.
    Missing { since: Micros },
    /// The cluster will not talk about it.
    Refused { code: ErrorCode, since: Micros },
}

/// The latest answer was "unknown topic": since when, and who said so first.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnknownAnswer {
    pub first_at: Micros,
    pub broker: BrokerKey,
}

#[derive(Debug)]
pub(super) struct Topic {
    pub name: Arc<str>,
    pub id: [u8; 16],
    pub knowledge: Knowledge,
    /// The partitions of this topic were known once: "unknown" answers are then not final.
    pub was_known: bool,
    pub unknown: Option<UnknownAnswer>,
    pub pending: VecDeque<PendingRecord>,
    /// Never shrinks: the sequence numbers of a partition outlive its absence from metadata.
    pub partitions: Vec<Partition>,
    /// How many partitions there are at present.
    pub partition_count: usize,
    /// Look-ups in a row without a useful answer.
    pub lookups: u32,
    /// Until when to leave the cluster alone about this topic.
    pub ask_not_before: Micros,
    /// When to ask again, as entered in [`Topics::due`].
    due: Option<Micros>,
    /// The latest answer that named this topic.
    pub answered_at: Micros,
    pub last_used: Micros,
    /// Batches of this topic are cut at this size, learned from MESSAGE_TOO_LARGE.
    pub batch_limit: usize,
    /// Its log cannot hold sequence numbers (message format before 0.11, brokers up to 3.x).
    pub old_format: bool,
    /// Where records without a key go, and how many bytes have gone there.
    pub sticky: Option<(usize, usize)>,
}

impl Topic {
    fn new(name: Arc<str>, now: Micros) -> Self {
        Self {
            name,
            id: [0; 16],
            knowledge: Knowledge::Unknown,
            was_known: false,
            unknown: None,
            pending: VecDeque::new(),
            partitions: Vec::new(),
            partition_count: 0,
            lookups: 0,
            ask_not_before: 0,
            batch_limit: usize::MAX,
            old_format: false,
            due: None,
            answered_at: 0,
            last_used: now,
            sticky: None,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.partitions.iter().all(Partition::is_idle)
    }
}

#[derive(Debug, Default)]
pub(super) struct Topics {
    by_name: BTreeMap<Arc<str>, usize>,
    slots: Vec<Option<Topic>>,
    free: Vec<usize>,
    /// Topics to ask for, by the time when.
    due: BTreeSet<(Micros, usize)>,
}

impl Topics {
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub fn get(&self, index: usize) -> Option<&Topic> {
        self.slots.get(index)?.as_ref()
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut Topic> {
        self.slots.get_mut(index)?.as_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Topic)> {
        self.by_name.values().filter_map(|index| Some((*index, self.get(*index)?)))
    }

    pub fn add(&mut self, name: &str, now: Micros) -> usize {
        let name: Arc<str> = name.into();
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[index] = Some(Topic::new(name.clone(), now));
        self.by_name.insert(name, index);
        index
    }

    pub fn remove(&mut self, index: usize) -> Option<Topic> {
        self.unschedule(index);
        let topic = self.slots.get_mut(index)?.take()?;
        self.by_name.remove(&topic.name);
        self.free.push(index);
        Some(topic)
    }

    /// Ask for the topic at `at`, or earlier if that is what was planned.
    pub fn schedule(&mut self, index: usize, at: Micros) {
        let Some(topic) = self.slots.get_mut(index).and_then(Option::as_mut) else { return };
        let at = at.max(topic.ask_not_before);
        if topic.due.is_some_and(|due| due <= at) {
            return;
        }
        if let Some(due) = topic.due.replace(at) {
            self.due.remove(&(due, index));
        }
        self.due.insert((at, index));
    }

    pub fn unschedule(&mut self, index: usize) {
        let Some(topic) = self.slots.get_mut(index).and_then(Option::as_mut) else { return };
        if let Some(due) = topic.due.take() {
            self.due.remove(&(due, index));
        }
    }

    /// The topics that are to be asked for now.
    pub fn due(&self, now: Micros) -> impl Iterator<Item = usize> {
        self.due.range(..=(now, usize::MAX)).map(|(_, index)| *index)
    }

    pub fn next_due(&self) -> Option<Micros> {
        self.due.first().map(|(at, _)| *at)
    }
}
