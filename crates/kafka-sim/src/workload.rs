//! What callers do: appends of all shapes, bursts, second thoughts.

use kafka::{AppendError, Record};

use crate::finale::Phase;
use crate::ledger::Entry;
use crate::plan::Mode;
use crate::record::{self, Hash, MAX_TOKENS};
use crate::violation::Invariant;
use crate::world::{Event, World};

/// A record before the producer borrows it.
#[derive(Debug)]
pub struct Draft {
    pub topic: usize,
    pub partition: Option<i32>,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub poisoned: bool,
}

impl Draft {
    /// Eight bytes for one partition, or for any.
    pub fn probe(topic: usize, partition: Option<i32>) -> Self {
        let value = Some(b"probe...".to_vec());
        Self { topic, partition, key: None, value, headers: Vec::new(), poisoned: false }
    }

    fn borrowed_headers(&self) -> Vec<(&[u8], Option<&[u8]>)> {
        self.headers.iter().map(|(k, v)| (k.as_slice(), v.as_deref())).collect()
    }

    fn hash(&self) -> u64 {
        let mut hash = Hash::new();
        hash.field(self.key.as_deref());
        hash.field(self.value.as_deref());
        for (key, value) in &self.headers {
            hash.field(Some(key));
            hash.field(value.as_deref());
        }
        hash.finish()
    }

    /// The encoded size in a batch of its own: at least this, at most `SLACK` more.
    fn least_size(&self) -> usize {
        let field = |bytes: Option<usize>| bytes.map_or(1, |len| len + 1);
        let headers: usize = self
            .headers
            .iter()
            .map(|(key, value)| field(Some(key.len())) + field(value.as_ref().map(Vec::len)))
            .sum();
        let key = field(self.key.as_ref().map(Vec::len));
        let value = field(self.value.as_ref().map(Vec::len));
        61 + 5 + key + value + headers
    }
}

/// Length fields, timestamp and offset deltas may take this much beyond the least.
const SLACK: usize = 80;

impl World {
    pub fn operate(&mut self) {
        if self.phase != Phase::Chaos || self.operations_left == 0 {
            return;
        }
        if self.now < self.silent_until {
            return self.queue.push(self.silent_until, Event::Operation);
        }
        let count = match self.work.chance(0.2) {
            true => self.work.between(1, self.plan.burst),
            false => 1,
        };
        for _ in 0..count.min(self.operations_left) {
            self.operations_left -= 1;
            let several = if self.work.chance(0.1) { self.work.between(2, 5) } else { 1 };
            let drafts: Vec<_> = (0..several).map(|_| self.draft()).collect();
            let result = self.append(&drafts);
            self.check_refusal(&drafts, result);
            if self.work.chance(self.plan.cancel) {
                self.cancel_one();
            }
            // Several requests may come within one turn of the event loop.
            if self.work.chance(0.7) {
                self.pump();
            }
        }
        self.pump();
        let pause = self.work.interval(self.plan.operation_interval * count);
        self.queue.push(self.now + pause, Event::Operation);
    }

    fn draft(&mut self) -> Draft {
        let r = &mut self.work;
        let topic = r.index(self.plan.topics.len());
        let partitions = self.plan.topics[topic].partitions as u64;
        let partition = r.chance(0.15).then(|| match r.chance(0.1) {
            true => r.below(partitions + 3) as i32,
            false => r.below(partitions) as i32,
        });
        let key = match r.below(10) {
            0 => Some(Vec::new()),
            1..=3 => Some(format!("key-{}", r.below(20)).into_bytes()),
            4 => Some(vec![0xff; r.below(30) as usize]),
            _ => None,
        };
        let value = match r.below(20) {
            0 => None,
            1 => Some(Vec::new()),
            _ => {
                let size = r.magnitude(1, self.plan.largest_value as u64) as usize;
                let byte = r.below(256) as u8;
                Some(vec![byte; size])
            }
        };
        let headers = match r.chance(0.2) {
            true => (0..r.below(4))
                .map(|n| {
                    (format!("h{n}").into_bytes(), r.chance(0.8).then(|| vec![b'v'; n as usize]))
                })
                .collect(),
            false => Vec::new(),
        };
        let poisoned = r.chance(self.plan.faults.poisoned_record);
        Draft { topic, partition, key, value, headers, poisoned }
    }

    /// Hands records to the producer and notes them down if it takes them.
    pub fn append(&mut self, drafts: &[Draft]) -> Result<(), AppendError> {
        let first = self.ledger.next_token();
        if first as usize + drafts.len() > MAX_TOKENS {
            return Err(AppendError::Full);
        }
        let headers: Vec<_> = drafts.iter().map(Draft::borrowed_headers).collect();
        let records: Vec<Record<'_>> = drafts
            .iter()
            .zip(&headers)
            .zip(first..)
            .map(|((draft, headers), token)| Record {
                topic: &self.plan.topics[draft.topic].name,
                partition: draft.partition,
                key: draft.key.as_deref(),
                value: draft.value.as_deref(),
                headers,
                timestamp_ms: record::timestamp_of(token),
                token,
            })
            .collect();
        let result = self.producer.append(self.now, &records);
        if result.is_ok() {
            let entries = drafts.iter().map(|draft| Entry {
                topic: draft.topic,
                hash: draft.hash(),
                partition: draft.partition,
                appended_at: self.now,
                poisoned: draft.poisoned,
                done: None,
            });
            self.ledger.accept(entries.collect());
        }
        self.trace(|| {
            let to: Vec<_> =
                drafts.iter().map(|d| (d.topic, d.partition, d.least_size())).collect();
            format!("append from token {first} to {to:?}: {result:?}")
        });
        result
    }

    fn check_refusal(&mut self, drafts: &[Draft], result: Result<(), AppendError>) {
        let limit = self.plan.config.max_message_size;
        let calm = self.plan.mode == Mode::Calm;
        match result {
            Ok(()) => {
                if let Some(draft) = drafts.iter().find(|d| d.least_size() > limit + SLACK) {
                    let what = format!("{} bytes accepted, limit {limit}", draft.least_size());
                    self.violate(Invariant::I8, what);
                }
            }
            Err(AppendError::TooLarge { index, encoded, .. }) => {
                let size = drafts.get(index).map_or(0, Draft::least_size);
                if size + SLACK <= limit || !(size..=size + SLACK).contains(&encoded) {
                    let what = format!("{size} bytes refused as {encoded}, limit {limit}");
                    self.violate(Invariant::I8, what);
                }
            }
            Err(AppendError::Full) => {
                let needed: usize = drafts.iter().map(|d| d.least_size() + SLACK).sum();
                if self.producer.memory_used() + needed + 4096 < self.plan.config.buffer_size {
                    let used = self.producer.memory_used();
                    self.violate(Invariant::I10, format!("full with {used} bytes"));
                }
            }
            Err(AppendError::UnknownPartition { index, partition, .. }) => {
                let topic = drafts.get(index);
                let count = topic.map_or(0, |d| self.cluster.topics[d.topic].plan.partitions);
                if calm && (partition as usize) < count {
                    self.violate(
                        Invariant::I11,
                        format!("partition {partition} of {count} refused"),
                    );
                }
            }
            Err(error) => {
                if calm {
                    self.violate(Invariant::I11, format!("refused in a calm cluster: {error}"));
                }
            }
        }
    }

    fn cancel_one(&mut self) {
        let recent = self.ledger.next_token().saturating_sub(40);
        let open: Vec<u64> =
            (recent..self.ledger.next_token()).filter(|t| !self.ledger.is_done(*t)).collect();
        if open.is_empty() {
            return;
        }
        let token = *self.work.pick(&open);
        self.trace(|| format!("cancel {token}"));
        self.producer.cancel(self.now, token);
    }
}
