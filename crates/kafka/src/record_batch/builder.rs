//! A batch that still takes records.

use bytes::Bytes;

use super::record::{self, RecordFields};
use super::{HEADER_LEN, RecordBatch};

/// An open batch: each record is encoded where it will be sent from.
#[derive(Debug, Default)]
pub struct BatchBuilder {
    records: Vec<u8>,
    base_timestamp: i64,
    max_timestamp: i64,
    count: i32,
}

impl BatchBuilder {
    /// Holds no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record. Its timestamp, in milliseconds since the Unix epoch, may lie before that of
    /// earlier records.
    pub fn push(
        &mut self,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        if self.count == 0 {
            self.base_timestamp = timestamp_ms;
            self.max_timestamp = timestamp_ms;
        }
        self.max_timestamp = self.max_timestamp.max(timestamp_ms);
        let timestamp_delta = timestamp_ms.wrapping_sub(self.base_timestamp);
        let record = RecordFields { key, value, headers };
        record::encode(&mut self.records, &record, self.count, timestamp_delta);
        self.count = self.count.saturating_add(1);
    }

    /// Makes room for a record of at most `needed` bytes, and for more of them as far as `spare` allows:
    /// memory is counted as held, and a vector left to itself doubles.
    pub fn make_room(&mut self, needed: usize, spare: usize) {
        let (len, capacity) = (self.records.len(), self.records.capacity());
        if capacity - len < needed {
            self.records.reserve_exact(needed.max((len / 2).min(spare)));
        }
    }

    /// Bytes on the wire, header included.
    #[allow(clippy::len_without_is_empty)] // the header is always there
    pub fn len(&self) -> usize {
        HEADER_LEN + self.records.len()
    }

    pub fn record_count(&self) -> usize {
        self.count as usize
    }

    /// Milliseconds since the Unix epoch: the first record's, which the others' deltas refer to.
    /// `None` while empty.
    pub fn base_timestamp(&self) -> Option<i64> {
        (self.count > 0).then_some(self.base_timestamp)
    }

    /// Bytes of memory held.
    pub fn capacity(&self) -> usize {
        self.records.capacity()
    }

    /// Closes the batch, which from then on holds just the memory that it needs. Not compressed.
    pub fn finish(mut self) -> RecordBatch {
        self.records.shrink_to_fit();
        RecordBatch {
            records: Bytes::from(self.records),
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            count: self.count,
            attributes: 0,
        }
    }
}
