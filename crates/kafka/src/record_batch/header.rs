//! The 61 bytes before the records.

use super::RecordBatch;
use crate::wire::{DecodeError, Reader};

/// Bytes of a batch's header.
pub const HEADER_LEN: usize = 61;

/// Where the batch length starts to count: behind itself.
const AFTER_LENGTH: usize = 12;

/// Where the CRC starts to count: behind itself. The leader epoch stands before it, so that a broker
/// can fill it in without a new CRC.
const AFTER_CRC: usize = 21;

const MAGIC: u8 = 2;

pub(super) fn encode(
    batch: &RecordBatch,
    producer_id: i64,
    epoch: i16,
    base_sequence: i32,
) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        header[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    let length = batch.len() - AFTER_LENGTH;
    put(&0i64.to_be_bytes()); // base offset: the broker assigns it
    put(&i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes());
    put(&(-1i32).to_be_bytes()); // leader epoch: the broker's too
    put(&[MAGIC]);
    put(&[0; 4]); // CRC, below
    put(&batch.attributes.to_be_bytes());
    put(&batch.count.saturating_sub(1).to_be_bytes()); // last offset delta
    put(&batch.base_timestamp.to_be_bytes());
    put(&batch.max_timestamp.to_be_bytes());
    put(&producer_id.to_be_bytes());
    put(&epoch.to_be_bytes());
    put(&base_sequence.to_be_bytes());
    put(&batch.count.to_be_bytes());

    let crc = crc32c::crc32c_append(crc32c::crc32c(&header[AFTER_CRC..]), &batch.records);
    header[AFTER_CRC - 4..AFTER_CRC].copy_from_slice(&crc.to_be_bytes());
    header
}

/// A batch's header, decoded: what a broker looks at. Producers only write headers; simulated brokers
/// and tests read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    pub partition_leader_epoch: i32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    /// -1 without idempotence, as the next two.
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub count: i32,
}

impl BatchHeader {
    /// Reads one batch that fills `bytes` and checks magic, length, CRC and the counts. Returns the
    /// header and the (perhaps compressed) records behind it.
    pub fn decode(bytes: &[u8]) -> Result<(BatchHeader, &[u8]), DecodeError> {
        let mut reader = Reader::new(bytes);
        let base_offset = reader.i64()?;
        let length = reader.i32()?;
        let partition_leader_epoch = reader.i32()?;
        match reader.i8()? {
            2 => {}
            magic => return Err(DecodeError::Magic(magic)),
        }
        let stored = reader.u32()?;
        let covered = reader.clone().take(reader.remaining())?;
        let header = BatchHeader {
            base_offset,
            partition_leader_epoch,
            attributes: reader.i16()?,
            last_offset_delta: reader.i32()?,
            base_timestamp: reader.i64()?,
            max_timestamp: reader.i64()?,
            producer_id: reader.i64()?,
            producer_epoch: reader.i16()?,
            base_sequence: reader.i32()?,
            count: reader.i32()?,
        };
        consistent(length.into(), (bytes.len() - AFTER_LENGTH) as i64)?;
        consistent(i64::from(header.last_offset_delta) + 1, header.count.into())?;
        let computed = crc32c::crc32c(covered);
        if stored != computed {
            return Err(DecodeError::Crc { stored, computed });
        }
        Ok((header, reader.take(reader.remaining())?))
    }
}

fn consistent(stated: i64, actual: i64) -> Result<(), DecodeError> {
    match stated == actual {
        true => Ok(()),
        false => Err(DecodeError::Inconsistent { stated, actual }),
    }
}
