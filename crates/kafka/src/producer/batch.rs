//! One batch of records of one partition, from its first record to its last answer.

use bytes::Bytes;

use super::ConnectionRequest;
use crate::record_batch::{BatchBuilder, RecordBatch};
use crate::{Micros, Record};

/// The producer id, epoch and first sequence number that a batch was given. From then on its bytes
/// are frozen: the broker recognises a copy by exactly these numbers and the record count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequence {
    pub producer_id: i64,
    pub epoch: i16,
    pub first: i32,
}

#[derive(Debug)]
enum Contents {
    Open(BatchBuilder),
    Sealed(RecordBatch),
}

#[derive(Debug)]
pub(super) struct Batch {
    contents: Contents,
    /// One per record; empty once the records have been completed early.
    pub tokens: Vec<u64>,
    /// Indexes into `tokens` of records that were withdrawn before the batch was sealed.
    cancelled: Vec<usize>,
    /// When the first record came.
    pub created: Micros,
    /// The place among the batches of the partition: a running number, and behind it the place of
    /// the first record in the batch that had this number before it was cut.
    pub order: (u64, i32),
    pub sequence: Option<Sequence>,
    /// Some attempt may have reached the log. Sticky: a later refusal says nothing about it.
    pub maybe_persisted: bool,
    /// Attempts that were answered or cut off.
    pub attempts: u32,
    /// Attempts answered with a code whose retries are counted.
    pub limited_attempts: u32,
    /// The request that carries the current attempt.
    pub request: Option<ConnectionRequest>,
}

impl Batch {
    pub fn new(now: Micros, order: (u64, i32)) -> Self {
        Self::with_contents(Contents::Open(BatchBuilder::new()), Vec::new(), now, order)
    }

    fn with_contents(
        contents: Contents,
        tokens: Vec<u64>,
        created: Micros,
        order: (u64, i32),
    ) -> Self {
        Self {
            order,
            contents,
            tokens,
            cancelled: Vec::new(),
            created,
            sequence: None,
            maybe_persisted: false,
            attempts: 0,
            limited_attempts: 0,
            request: None,
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.contents, Contents::Open(_))
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let bytes = match &self.contents {
            Contents::Open(builder) => builder.capacity(),
            Contents::Sealed(batch) => batch.records.len(),
        };
        bytes + Self::OVERHEAD
    }

    /// What a batch costs beside its bytes; counted so that many tiny batches are bounded too.
    pub const OVERHEAD: usize = 256;

    /// Size on the wire, header included.
    pub fn len(&self) -> usize {
        match &self.contents {
            Contents::Open(builder) => builder.len(),
            Contents::Sealed(batch) => batch.len(),
        }
    }

    /// `len` bounds the size of the record, `spare` the memory that the batch may take beyond it.
    pub fn push(&mut self, record: &Record<'_>, len: usize, spare: usize) {
        let Contents::Open(builder) = &mut self.contents else {
            unreachable!("records are only pushed to open batches")
        };
        builder.make_room(len, spare);
        builder.push(record.timestamp_ms, record.key, record.value, record.headers);
        self.tokens.push(record.token);
    }

    /// Withdraws a record. Only before the batch is sealed.
    pub fn cancel(&mut self, token: u64) -> bool {
        if !self.is_open() {
            return false;
        }
        let found = (0..self.tokens.len())
            .find(|i| self.tokens[*i] == token && !self.cancelled.contains(i));
        if let Some(index) = found {
            self.cancelled.push(index);
        }
        found.is_some()
    }

    /// Ends the batch and leaves withdrawn records out. False when no record is left.
    pub fn seal(&mut self) -> bool {
        if let Contents::Open(builder) = &mut self.contents {
            let mut sealed = std::mem::take(builder).finish();
            if !self.cancelled.is_empty() {
                sealed = sealed.retain(|i| !self.cancelled.contains(&i));
                let mut index = 0;
                self.tokens.retain(|_| {
                    index += 1;
                    !self.cancelled.contains(&(index - 1))
                });
                self.cancelled.clear();
            }
            self.contents = Contents::Sealed(sealed);
        }
        !self.tokens.is_empty()
    }

    pub fn live_tokens(&self) -> Vec<u64> {
        let live = |(i, token): (usize, &u64)| (!self.cancelled.contains(&i)).then_some(*token);
        self.tokens.iter().enumerate().filter_map(live).collect()
    }

    fn sealed(&self) -> &RecordBatch {
        match &self.contents {
            Contents::Sealed(batch) => batch,
            Contents::Open(_) => unreachable!("an open batch has no final bytes"),
        }
    }

    pub fn record_count(&self) -> i32 {
        match &self.contents {
            Contents::Open(builder) => builder.record_count() as i32,
            Contents::Sealed(batch) => batch.count,
        }
    }

    /// Header and records as they go to the broker.
    pub fn wire(&self) -> ([u8; 61], Bytes) {
        let batch = self.sealed();
        let header = match self.sequence {
            Some(s) => batch.header(s.producer_id, s.epoch, s.first),
            None => batch.header(-1, -1, -1),
        };
        (header, batch.records.clone())
    }

    /// Cuts the batch in two near half of its bytes; `None` for a single record. Both halves
    /// together keep the sequence numbers of the whole: every record has the number it had.
    pub fn split(&self) -> Option<(Batch, Batch)> {
        let (left, right) = self.sealed().split()?;
        let cut = left.count as usize;
        let part = |batch: RecordBatch, tokens: &[u64], offset: i32| Batch {
            sequence: self.sequence.map(|s| Sequence { first: add_sequence(s.first, offset), ..s }),
            attempts: self.attempts,
            order: (self.order.0, self.order.1 + offset),
            ..Self::with_contents(
                Contents::Sealed(batch),
                tokens.to_vec(),
                self.created,
                self.order,
            )
        };
        let offset = left.count;
        let (first, second) =
            if self.tokens.is_empty() { (&[][..], &[][..]) } else { self.tokens.split_at(cut) };
        Some((part(left, first, 0), part(right, second, offset)))
    }

    /// The batch without the records at `bad`, not sequenced; `None` when none is left.
    pub fn without(&self, bad: &[usize]) -> Option<Batch> {
        let kept = |i: &usize| !bad.contains(i);
        let tokens: Vec<u64> =
            (0..self.tokens.len()).filter(kept).map(|i| self.tokens[i]).collect();
        if tokens.is_empty() {
            return None;
        }
        let rest = self.sealed().retain(|i| kept(&i));
        Some(Self::with_contents(Contents::Sealed(rest), tokens, self.created, self.order))
    }
}

/// Sequence numbers go from 2147483647 to 0.
pub(super) fn add_sequence(first: i32, count: i32) -> i32 {
    (((i64::from(first) + i64::from(count)) & 0x7fff_ffff) as u32) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(add_sequence(5, 3), 8);
        assert_eq!(add_sequence(i32::MAX, 1), 0);
        assert_eq!(add_sequence(i32::MAX - 1, 5), 3);
    }

    fn record(token: u64) -> Record<'static> {
        Record {
            topic: "t",
            partition: None,
            key: None,
            value: Some(b"value"),
            headers: &[],
            timestamp_ms: 1,
            token,
        }
    }

    #[test]
    fn withdrawn_records_are_not_sealed() {
        let mut batch = Batch::new(0, (0, 0));
        for token in 0..3 {
            batch.push(&record(token), 50, 0);
        }
        assert!(batch.cancel(1));
        assert!(!batch.cancel(1), "a record is withdrawn once");
        assert!(batch.seal());
        assert_eq!(batch.tokens, [0, 2]);
        assert_eq!(batch.record_count(), 2);
        assert!(!batch.cancel(0), "a sealed batch is frozen");
    }

    #[test]
    fn a_batch_of_withdrawn_records_is_empty() {
        let mut batch = Batch::new(0, (0, 0));
        batch.push(&record(7), 50, 0);
        assert!(batch.cancel(7));
        assert!(!batch.seal());
    }

    #[test]
    fn halves_keep_the_sequence_numbers_of_the_whole() {
        let mut batch = Batch::new(0, (0, 0));
        for token in 0..4 {
            batch.push(&record(token), 50, 0);
        }
        batch.seal();
        batch.sequence = Some(Sequence { producer_id: 1, epoch: 0, first: i32::MAX - 1 });
        let (left, right) = batch.split().unwrap();
        assert_eq!((left.tokens.len(), right.tokens.len()), (2, 2));
        assert_eq!((left.order, right.order), ((0, 0), (0, 2)));
        assert_eq!(left.sequence.unwrap().first, i32::MAX - 1);
        assert_eq!(right.sequence.unwrap().first, 0);
    }
}
