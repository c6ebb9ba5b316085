//! Record batches (magic 2) as the model brokers read them: strict, and written without a look at
//! `kafka::record_batch`.

use bytes::{Buf, Bytes};

use crate::record;

/// What one record is recognised by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordMark {
    pub token: u64,
    pub hash: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub producer_id: i64,
    pub epoch: i16,
    pub first_sequence: i32,
    pub records: Vec<RecordMark>,
    /// On the wire, header included.
    pub size: usize,
}

impl Batch {
    pub fn count(&self) -> i32 {
        self.records.len() as i32
    }

    pub fn is_idempotent(&self) -> bool {
        self.producer_id >= 0
    }

    pub fn last_sequence(&self) -> i32 {
        add_sequence(self.first_sequence, self.count() - 1)
    }
}

/// Sequence numbers go from 2147483647 to 0.
pub fn add_sequence(sequence: i32, count: i32) -> i32 {
    ((i64::from(sequence) + i64::from(count)) % (1 << 31)) as i32
}

fn ensure(condition: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(what()) }
}

/// Reads exactly one batch.
pub fn parse(bytes: &Bytes) -> Result<Batch, String> {
    let size = bytes.len();
    ensure(size >= 61, || format!("a batch of {size} bytes"))?;
    let mut buf = bytes.clone();
    let base_offset = buf.get_i64();
    ensure(base_offset == 0, || format!("base offset {base_offset}"))?;
    let length = buf.get_i32();
    ensure(length as usize + 12 == size, || format!("batch length {length} of {size} bytes"))?;
    let leader_epoch = buf.get_i32();
    ensure(leader_epoch == -1, || format!("leader epoch {leader_epoch}"))?;
    let magic = buf.get_i8();
    ensure(magic == 2, || format!("magic {magic}"))?;
    let crc = buf.get_u32();
    let actual = crc32c::crc32c(&buf);
    ensure(crc == actual, || format!("CRC {crc:08x}, should be {actual:08x}"))?;
    let attributes = buf.get_i16();
    ensure(attributes == 0, || format!("attributes {attributes:#x}"))?;
    let last_offset_delta = buf.get_i32();
    let base_timestamp = buf.get_i64();
    let max_timestamp = buf.get_i64();
    let producer_id = buf.get_i64();
    let epoch = buf.get_i16();
    let first_sequence = buf.get_i32();
    let count = buf.get_i32();
    ensure(count > 0, || format!("{count} records"))?;
    ensure(last_offset_delta == count - 1, || {
        format!("last offset delta {last_offset_delta} with {count} records")
    })?;
    let sequenced = producer_id >= 0 && epoch >= 0 && first_sequence >= 0;
    let plain = producer_id == -1 && epoch == -1 && first_sequence == -1;
    ensure(sequenced || plain, || {
        format!("producer id {producer_id}, epoch {epoch}, sequence {first_sequence}")
    })?;
    let mut records = Vec::new();
    let mut latest = i64::MIN;
    for index in 0..count {
        let (delta, mark) = record(&mut buf, index, base_timestamp)
            .map_err(|what| format!("record {index} of {count}: {what}"))?;
        ensure(index > 0 || delta == 0, || format!("first timestamp delta {delta}"))?;
        latest = latest.max(base_timestamp + delta);
        records.push(mark);
    }
    ensure(buf.is_empty(), || format!("{} bytes after the last record", buf.len()))?;
    ensure(latest == max_timestamp, || format!("max timestamp {max_timestamp}, is {latest}"))?;
    Ok(Batch { producer_id, epoch, first_sequence, records, size })
}

fn record(buf: &mut Bytes, index: i32, base: i64) -> Result<(i64, RecordMark), String> {
    let length = varint(buf)?;
    ensure(length >= 0 && length as usize <= buf.len(), || format!("length {length}"))?;
    let mut body = buf.split_to(length as usize);
    ensure(!body.is_empty(), || "empty".into())?;
    let attributes = body.get_i8();
    ensure(attributes == 0, || format!("attributes {attributes}"))?;
    let delta = varint(&mut body)?;
    let offset = varint(&mut body)?;
    ensure(offset == i64::from(index), || format!("offset delta {offset}"))?;
    let mut hash = record::Hash::new();
    hash.field(nullable(&mut body)?.as_deref());
    hash.field(nullable(&mut body)?.as_deref());
    let headers = varint(&mut body)?;
    ensure((0..=1000).contains(&headers), || format!("{headers} headers"))?;
    for _ in 0..headers {
        let key = nullable(&mut body)?;
        ensure(key.is_some(), || "header key is null".into())?;
        hash.field(key.as_deref());
        hash.field(nullable(&mut body)?.as_deref());
    }
    ensure(body.is_empty(), || format!("{} bytes left", body.len()))?;
    let token = record::token_of(base + delta);
    Ok((delta, RecordMark { token, hash: hash.finish() }))
}

fn nullable(buf: &mut Bytes) -> Result<Option<Bytes>, String> {
    match varint(buf)? {
        -1 => Ok(None),
        n if n >= 0 && n as usize <= buf.len() => Ok(Some(buf.split_to(n as usize))),
        n => Err(format!("field of {n} bytes")),
    }
}

fn varint(buf: &mut Bytes) -> Result<i64, String> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        if buf.is_empty() {
            return Err("cut off in a varint".into());
        }
        let byte = buf.get_u8();
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    Err("a varint without end".into())
}
