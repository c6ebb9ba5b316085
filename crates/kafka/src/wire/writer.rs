//! Writing the protocol's primitive types. Plain integers are [`BufMut`]'s own `put_i16` and so on.

use bytes::BufMut;

use super::Encoding;

/// Base 128, least significant group first.
pub fn put_unsigned_varint(out: &mut impl BufMut, value: u32) {
    put_base128(out, value.into());
}

/// Zig-zag.
pub fn put_varint(out: &mut impl BufMut, value: i32) {
    put_base128(out, zigzag32(value).into());
}

/// Zig-zag.
pub fn put_varlong(out: &mut impl BufMut, value: i64) {
    put_base128(out, zigzag64(value));
}

/// Bytes that [`put_unsigned_varint`] writes: 1 to 5.
pub fn unsigned_varint_len(value: u32) -> usize {
    base128_len(value.into())
}

/// Bytes that [`put_varint`] writes: 1 to 5.
pub fn varint_len(value: i32) -> usize {
    base128_len(zigzag32(value).into())
}

/// Bytes that [`put_varlong`] writes: 1 to 10.
pub fn varlong_len(value: i64) -> usize {
    base128_len(zigzag64(value))
}

/// A string. The classic encoding has room for 32,767 bytes: what is longer (no valid topic name,
/// no sane client id) is cut there at a character's boundary, so that the frame stays readable.
pub fn put_string(out: &mut impl BufMut, encoding: Encoding, value: &str) {
    match encoding {
        Encoding::Classic => {
            let value = cut(value, i16::MAX as usize);
            out.put_i16(value.len() as i16);
            out.put_slice(value.as_bytes());
        }
        Encoding::Flexible => {
            put_unsigned_varint(out, compact_len(value.len()));
            out.put_slice(value.as_bytes());
        }
    }
}

fn cut(value: &str, max_len: usize) -> &str {
    // `str::floor_char_boundary` needs Rust 1.91.
    (0..=value.len().min(max_len)).rev().find_map(|end| value.get(..end)).unwrap_or_default()
}

pub fn put_null_string(out: &mut impl BufMut, encoding: Encoding) {
    match encoding {
        Encoding::Classic => out.put_i16(-1),
        Encoding::Flexible => out.put_u8(0),
    }
}

pub fn put_nullable_string(out: &mut impl BufMut, encoding: Encoding, value: Option<&str>) {
    match value {
        Some(value) => put_string(out, encoding, value),
        None => put_null_string(out, encoding),
    }
}

pub fn put_bytes(out: &mut impl BufMut, encoding: Encoding, value: &[u8]) {
    put_len(out, encoding, value.len());
    out.put_slice(value);
}

/// What stands before the contents of bytes, records (their size) and arrays (their count).
pub fn put_len(out: &mut impl BufMut, encoding: Encoding, len: usize) {
    match encoding {
        Encoding::Classic => out.put_i32(i32::try_from(len).unwrap_or(i32::MAX)),
        Encoding::Flexible => put_unsigned_varint(out, compact_len(len)),
    }
}

/// Null bytes, or a null array.
pub fn put_null_len(out: &mut impl BufMut, encoding: Encoding) {
    match encoding {
        Encoding::Classic => out.put_i32(-1),
        Encoding::Flexible => out.put_u8(0),
    }
}

/// The end of a structure without tagged fields.
pub fn put_no_tagged_fields(out: &mut impl BufMut, encoding: Encoding) {
    if encoding == Encoding::Flexible {
        out.put_u8(0);
    }
}

fn compact_len(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX).saturating_add(1)
}

fn zigzag32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

fn zigzag64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn put_base128(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

fn base128_len(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}
