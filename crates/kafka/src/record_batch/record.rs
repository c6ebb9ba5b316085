//! A single record inside a batch: lengths are zig-zag varints, offset and timestamp are deltas.

use bytes::BufMut;

use crate::wire::writer::{put_varint, put_varlong, varint_len, varlong_len};
use crate::wire::{DecodeError, Reader};

/// The longest zig-zag encodings of an offset delta and of a timestamp delta.
const MAX_VARINT: usize = 5;
const MAX_VARLONG: usize = 10;

/// What a record consists of, but for its place and its time.
#[derive(Debug, Clone, Copy)]
pub struct RecordFields<'a> {
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: &'a [(&'a [u8], Option<&'a [u8]>)],
}

/// Bytes that the record takes in a batch at this place, its own length included. The timestamp delta
/// is in milliseconds.
pub fn encoded_record_len(
    record: &RecordFields<'_>,
    offset_delta: i32,
    timestamp_delta: i64,
) -> usize {
    with_prefix(body_len(record, varint_len(offset_delta), varlong_len(timestamp_delta)))
}

/// Bytes that the record takes at most, wherever it stands.
pub fn max_record_len(record: &RecordFields<'_>) -> usize {
    with_prefix(body_len(record, MAX_VARINT, MAX_VARLONG))
}

pub(super) fn encode(
    out: &mut Vec<u8>,
    record: &RecordFields<'_>,
    offset_delta: i32,
    timestamp_delta: i64,
) {
    let body_len = body_len(record, varint_len(offset_delta), varlong_len(timestamp_delta));
    out.reserve(with_prefix(body_len));
    put_varint(out, len_i32(body_len));
    out.put_u8(0); // attributes: none are defined
    put_varlong(out, timestamp_delta);
    put_varint(out, offset_delta);
    put_bytes(out, record.key);
    put_bytes(out, record.value);
    put_varint(out, len_i32(record.headers.len()));
    for (key, value) in record.headers {
        put_bytes(out, Some(key));
        put_bytes(out, *value);
    }
}

fn with_prefix(body_len: usize) -> usize {
    varint_len(len_i32(body_len)) + body_len
}

fn body_len(record: &RecordFields<'_>, offset_len: usize, timestamp_len: usize) -> usize {
    let headers: usize =
        record.headers.iter().map(|(key, value)| bytes_len(Some(key)) + bytes_len(*value)).sum();
    1 + timestamp_len
        + offset_len
        + bytes_len(record.key)
        + bytes_len(record.value)
        + varint_len(len_i32(record.headers.len()))
        + headers
}

fn bytes_len(bytes: Option<&[u8]>) -> usize {
    match bytes {
        Some(bytes) => varint_len(len_i32(bytes.len())) + bytes.len(),
        None => 1,
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            put_varint(out, len_i32(bytes.len()));
            out.put_slice(bytes);
        }
        None => put_varint(out, -1),
    }
}

/// `max_message_size` keeps records far below 2 GiB.
fn len_i32(len: usize) -> i32 {
    i32::try_from(len).unwrap_or(i32::MAX)
}

/// A decoded record, borrowing from its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordView<'a> {
    pub timestamp_ms: i64,
    pub offset_delta: i32,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Vec<(&'a [u8], Option<&'a [u8]>)>,
}

/// Decodes the records of a batch; ends after the first error.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    reader: Reader<'a>,
    base_timestamp: i64,
    /// Records still to come according to the header.
    expected: i32,
}

impl<'a> Records<'a> {
    /// `records` is what follows the header, not compressed; `count` is the header's.
    pub fn new(records: &'a [u8], base_timestamp: i64, count: i32) -> Self {
        Self { reader: Reader::new(records), base_timestamp, expected: count }
    }

    /// Bytes not yet decoded.
    pub(super) fn remaining(&self) -> usize {
        self.reader.remaining()
    }

    fn decode(&mut self) -> Result<RecordView<'a>, DecodeError> {
        let len = non_negative(self.reader.varint()?)?;
        let mut body = Reader::new(self.reader.take(len)?);
        body.i8()?; // attributes
        let timestamp_delta = body.varlong()?;
        let offset_delta = body.varint()?;
        let key = bytes(&mut body)?;
        let value = bytes(&mut body)?;
        let count = non_negative(body.varint()?)?;
        body.check_count(count, 2)?;
        let mut headers = Vec::with_capacity(count);
        for _ in 0..count {
            let key = bytes(&mut body)?.ok_or(DecodeError::UnexpectedNull)?;
            headers.push((key, bytes(&mut body)?));
        }
        body.finish()?;
        let timestamp_ms = self.base_timestamp.wrapping_add(timestamp_delta);
        Ok(RecordView { timestamp_ms, offset_delta, key, value, headers })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = if self.expected > 0 {
            self.expected -= 1;
            self.decode()
        } else {
            // Bytes behind the last record are an error, but only once.
            self.reader.finish().err().map(Err)?
        };
        if result.is_err() {
            self.expected = 0;
            self.reader = Reader::new(&[]);
        }
        Some(result)
    }
}

fn non_negative(len: i32) -> Result<usize, DecodeError> {
    usize::try_from(len).map_err(|_| DecodeError::NegativeLength(len.into()))
}

fn bytes<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, DecodeError> {
    match reader.varint()? {
        -1 => Ok(None),
        len => reader.take(non_negative(len)?).map(Some),
    }
}
