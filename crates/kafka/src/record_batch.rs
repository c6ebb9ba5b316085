//! Record batches, magic 2 (0.11 on, KIP-98): 61 bytes of header, then the records.
//!
//! Records are encoded once, when they are added; only the header is made anew for each attempt,
//! because producer id, epoch and sequence may change between attempts.
//!
//! Source: <https://kafka.apache.org/documentation/#recordbatch>

mod builder;
mod header;
mod record;

use bytes::Bytes;

pub use builder::BatchBuilder;
pub use header::{BatchHeader, HEADER_LEN};
pub use record::{RecordFields, RecordView, Records, encoded_record_len, max_record_len};

/// A closed batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBatch {
    /// The records as they are sent, behind the header.
    pub records: Bytes,
    /// Milliseconds since the Unix epoch: the first record's.
    pub base_timestamp: i64,
    /// Milliseconds since the Unix epoch.
    pub max_timestamp: i64,
    pub count: i32,
    /// Bits 0 to 2: the codec; bit 3: timestamps are those of appending; bit 4: transactional.
    pub attributes: i16,
}

impl RecordBatch {
    /// Bytes on the wire, header included.
    #[allow(clippy::len_without_is_empty)] // the header is always there
    pub fn len(&self) -> usize {
        HEADER_LEN + self.records.len()
    }

    /// The header for one attempt. Without idempotence all three arguments are -1.
    ///
    /// Costs a pass over the records for the CRC.
    pub fn header(&self, producer_id: i64, epoch: i16, base_sequence: i32) -> [u8; HEADER_LEN] {
        header::encode(self, producer_id, epoch, base_sequence)
    }

    /// The records, decoded. Without a codec only.
    pub fn iter(&self) -> Records<'_> {
        Records::new(&self.records, self.base_timestamp, self.count)
    }

    /// The batch of those records, by their place from 0, that `keep` wants.
    pub fn retain(&self, mut keep: impl FnMut(usize) -> bool) -> RecordBatch {
        let mut builder = BatchBuilder::new();
        for (index, record) in self.iter().map_while(Result::ok).enumerate() {
            if keep(index) {
                builder.push(record.timestamp_ms, record.key, record.value, &record.headers);
            }
        }
        RecordBatch { attributes: self.attributes, ..builder.finish() }
    }

    /// Two batches of about half the bytes each; `None` for a single record, which cannot be split.
    pub fn split(&self) -> Option<(RecordBatch, RecordBatch)> {
        let count = usize::try_from(self.count).ok().filter(|count| *count >= 2)?;
        let half = self.records.len() / 2;
        let mut records = self.iter();
        let mut first = 0;
        while self.records.len() - records.remaining() < half && records.next()?.is_ok() {
            first += 1;
        }
        let first = first.clamp(1, count - 1);
        Some((self.retain(|index| index < first), self.retain(|index| index >= first)))
    }
}
