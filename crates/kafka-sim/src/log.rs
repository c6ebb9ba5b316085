//! One partition's log with its producer state: the conformance table of kafka-core.md §3.1.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::batch::{Batch, add_sequence};
use crate::era::{Era, UnknownProducer};

#[derive(Debug)]
pub struct Entry {
    pub base_offset: i64,
    pub batch: Rc<Batch>,
}

#[derive(Debug, Clone)]
struct Remembered {
    first: i32,
    last: i32,
    base_offset: i64,
}

#[derive(Debug, Default)]
struct ProducerState {
    epoch: i16,
    /// The latest at the back; up to five, of which old brokers use fewer.
    recent: VecDeque<Remembered>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    Written {
        base_offset: i64,
    },
    /// Recognised as a copy of what is at this offset.
    Duplicate {
        base_offset: i64,
    },
    Refused(i16),
}

#[derive(Debug, Default)]
pub struct Log {
    pub entries: Vec<Entry>,
    pub end: i64,
    /// Everything below is on all in-sync replicas and survives every clean election.
    pub high_watermark: i64,
    producers: BTreeMap<i64, ProducerState>,
    /// Times that records above the high watermark were cut off.
    pub truncations: u32,
}

impl Log {
    pub fn append(&mut self, era: &Era, batch: &Rc<Batch>) -> Append {
        if batch.is_idempotent() {
            match self.check(era, batch) {
                Ok(None) => {}
                Ok(Some(base_offset)) => return Append::Duplicate { base_offset },
                Err(code) => return Append::Refused(code),
            }
        }
        let base_offset = self.end;
        self.remember(base_offset, batch);
        self.end += i64::from(batch.count());
        self.entries.push(Entry { base_offset, batch: batch.clone() });
        Append::Written { base_offset }
    }

    fn check(&self, era: &Era, batch: &Batch) -> Result<Option<i64>, i16> {
        let first = batch.first_sequence;
        let Some(state) = self.producers.get(&batch.producer_id) else {
            return match era.unknown_producer {
                _ if first == 0 => Ok(None),
                UnknownProducer::Accepted => Ok(None),
                UnknownProducer::OutOfOrder => Err(45),
                UnknownProducer::Refused => Err(59),
            };
        };
        if batch.epoch < state.epoch {
            return Err(47);
        }
        if batch.epoch > state.epoch {
            return if first == 0 { Ok(None) } else { Err(45) };
        }
        let last = batch.last_sequence();
        let copy = |r: &&Remembered| r.first == first && r.last == last;
        if let Some(known) = state.recent.iter().rev().take(era.remembered).find(copy) {
            return Ok(Some(known.base_offset));
        }
        match state.recent.back() {
            Some(latest) if add_sequence(latest.last, 1) != first => Err(45),
            _ => Ok(None),
        }
    }

    fn remember(&mut self, base_offset: i64, batch: &Batch) {
        if !batch.is_idempotent() {
            return;
        }
        let state = self.producers.entry(batch.producer_id).or_default();
        if batch.epoch != state.epoch {
            *state = ProducerState { epoch: batch.epoch, recent: VecDeque::new() };
        }
        if state.recent.len() == 5 {
            state.recent.pop_front();
        }
        let (first, last) = (batch.first_sequence, batch.last_sequence());
        state.recent.push_back(Remembered { first, last, base_offset });
    }

    /// A clean election: what is below the high watermark stays, the rest up to `end` does.
    pub fn truncate(&mut self, end: i64) {
        let end = end.max(self.high_watermark);
        let before = self.entries.len();
        while self.entries.last().is_some_and(|entry| entry.base_offset >= end) {
            self.entries.pop();
        }
        if self.entries.len() == before {
            return;
        }
        self.truncations += 1;
        self.end = self
            .entries
            .last()
            .map_or(0, |entry| entry.base_offset + i64::from(entry.batch.count()));
        self.rebuild();
    }

    fn rebuild(&mut self) {
        self.producers.clear();
        let entries = std::mem::take(&mut self.entries);
        for entry in &entries {
            self.remember(entry.base_offset, &entry.batch);
        }
        self.entries = entries;
    }

    /// `producer.id.expiration.ms` has passed, or retention took the last batch (before 2.5).
    pub fn forget_producers(&mut self) {
        self.producers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::RecordMark;
    use crate::era::ERAS;

    fn batch(epoch: i16, first_sequence: i32, count: usize) -> Rc<Batch> {
        let records = vec![RecordMark { token: 0, hash: 0 }; count];
        Rc::new(Batch { producer_id: 7, epoch, first_sequence, records, size: 100 })
    }

    fn codes(era: &Era, batches: &[(i16, i32, usize)]) -> Vec<i64> {
        let mut log = Log::default();
        let answer = |&(epoch, first, count): &(i16, i32, usize)| match log
            .append(era, &batch(epoch, first, count))
        {
            Append::Written { base_offset } => base_offset,
            Append::Duplicate { base_offset } => 1000 + base_offset,
            Append::Refused(code) => -i64::from(code),
        };
        batches.iter().map(answer).collect()
    }

    #[test]
    fn copies_gaps_and_epochs_as_the_brokers_treat_them() {
        for era in &ERAS {
            let plain = [(0, 0, 3), (0, 0, 3), (0, 9, 1), (0, 3, 3), (0, 3, 2)];
            assert_eq!(codes(era, &plain), [0, 1000, -45, 3, -45], "{}", era.name);
            let bump = [(0, 0, 1), (1, 5, 1), (1, 0, 1), (0, 1, 1)];
            assert_eq!(codes(era, &bump), [0, -45, 1, -47], "{}", era.name);
            let old: Vec<_> = (0..6).map(|n| (0, n, 1)).chain([(0, 1, 1), (0, 0, 1)]).collect();
            let fifth = if era.remembered == 5 { 1001 } else { -45 };
            assert_eq!(codes(era, &old)[6..], [fifth, -45], "{}", era.name);
        }
    }

    #[test]
    fn unknown_producers_as_the_brokers_treat_them() {
        let first: Vec<_> = ERAS.iter().map(|era| codes(era, &[(0, 7, 1)])[0]).collect();
        assert_eq!(first, [-45, -59, -59, -59, 0, 0, 0, 0, 0]);
        let wrap = [(0, i32::MAX - 1, 3), (0, 1, 1)];
        assert_eq!(codes(&ERAS[8], &wrap), [0, 3]);
    }

    #[test]
    fn a_truncated_batch_is_new_again() {
        let mut log = Log::default();
        log.append(&ERAS[8], &batch(0, 0, 2));
        log.high_watermark = 2;
        log.append(&ERAS[8], &batch(0, 2, 2));
        log.truncate(0);
        assert_eq!(log.end, 2);
        assert_eq!(log.append(&ERAS[8], &batch(0, 2, 2)), Append::Written { base_offset: 2 });
    }
}
