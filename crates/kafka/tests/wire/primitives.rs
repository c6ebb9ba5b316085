//! Integers and variable-length integers.

use bytes::BytesMut;
use kafka::wire::writer::{
    put_unsigned_varint, put_varint, put_varlong, unsigned_varint_len, varint_len, varlong_len,
};
use kafka::wire::{DecodeError, Reader};

use crate::vectors::{self, bytes, entries, int};

fn written(put: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
    let mut out = BytesMut::new();
    put(&mut out);
    out.to_vec()
}

#[test]
fn the_vectors_of_variable_length_integers() {
    let entries = entries(vectors::VARINTS);
    for entry in &entries {
        let (value, expected) = (int(&entry["value"]), bytes(&entry["hex"]));
        let mut reader = Reader::new(&expected);
        let (encoded, len, decoded) = match entry["type"].as_str().unwrap() {
            "varint" => {
                let value = value as i32;
                let decoded = reader.varint().map(i64::from);
                (written(|out| put_varint(out, value)), varint_len(value), decoded)
            }
            "unsigned_varint" => {
                let value = value as u32;
                let decoded = reader.unsigned_varint().map(i64::from);
                (
                    written(|out| put_unsigned_varint(out, value)),
                    unsigned_varint_len(value),
                    decoded,
                )
            }
            "varlong" => {
                (written(|out| put_varlong(out, value)), varlong_len(value), reader.varlong())
            }
            other => panic!("{other}"),
        };
        assert_eq!(encoded, expected, "{entry}");
        assert_eq!(len, expected.len(), "{entry}");
        assert_eq!(decoded, Ok(value), "{entry}");
        assert_eq!(reader.finish(), Ok(()));
    }
    assert_eq!(entries.len(), 36);
}

#[test]
fn three_hundred_takes_different_bytes_with_and_without_a_sign() {
    assert_eq!(written(|out| put_unsigned_varint(out, 300)), [0xac, 0x02]);
    assert_eq!(written(|out| put_varint(out, 300)), [0xd8, 0x04]);
}

#[test]
fn variable_length_integers_survive_at_every_bit() {
    for bit in 0..64 {
        for value in [1u64 << bit, (1 << bit) - 1, !(1 << bit)] {
            let (long, int, unsigned) = (value as i64, value as i32, value as u32);
            let bytes = written(|out| {
                put_varlong(out, long);
                put_varint(out, int);
                put_unsigned_varint(out, unsigned);
            });
            let expected = varlong_len(long) + varint_len(int) + unsigned_varint_len(unsigned);
            assert_eq!(bytes.len(), expected);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.varlong(), Ok(long));
            assert_eq!(reader.varint(), Ok(int));
            assert_eq!(reader.unsigned_varint(), Ok(unsigned));
        }
    }
}

#[test]
fn a_variable_length_integer_that_is_too_long_is_refused() {
    let too_long = Err(DecodeError::VarintTooLong);
    for bytes in [&[0xff, 0xff, 0xff, 0xff, 0x10][..], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01]] {
        assert_eq!(Reader::new(bytes).unsigned_varint().map(|_| ()), too_long);
        assert_eq!(Reader::new(bytes).varint().map(|_| ()), too_long);
    }
    for last in [0x02, 0x80] {
        let mut bytes = [0xff; 10];
        bytes[9] = last;
        assert_eq!(Reader::new(&bytes).varlong().map(|_| ()), too_long);
    }
    assert_eq!(Reader::new(&[0xff; 4]).varint().map(|_| ()), truncated(1, 0));
}

fn truncated(needed: usize, remaining: usize) -> Result<(), DecodeError> {
    Err(DecodeError::Truncated { needed, remaining })
}

#[test]
fn integers_are_big_endian() {
    let bytes = [0x81, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08];
    assert_eq!(Reader::new(&bytes).u8(), Ok(0x81));
    assert_eq!(Reader::new(&bytes).i8(), Ok(-0x7f));
    assert_eq!(Reader::new(&bytes).i16(), Ok(-0x7efe));
    assert_eq!(Reader::new(&bytes).i32(), Ok(-0x7efd_fcfc));
    assert_eq!(Reader::new(&bytes).u32(), Ok(0x8102_0304));
    assert_eq!(Reader::new(&bytes).i64(), Ok(-0x7efd_fcfb_faf9_f8f8));
    assert_eq!(Reader::new(&bytes).bool(), Ok(true));
    assert_eq!(Reader::new(&[0]).bool(), Ok(false));
    assert_eq!(Reader::new(&bytes[..7]).i64().map(|_| ()), truncated(8, 7));
    assert_eq!(Reader::new(&bytes).uuid().map(|_| ()), truncated(16, 8));
}

#[test]
fn what_is_left_over_is_an_error() {
    let mut reader = Reader::new(&[1, 2, 3]);
    assert_eq!(reader.u8(), Ok(1));
    assert_eq!(reader.remaining(), 2);
    assert_eq!(reader.finish(), Err(DecodeError::TrailingBytes(2)));
}
