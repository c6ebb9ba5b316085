//! Strings, bytes and arrays in both encodings.

use bytes::BytesMut;
use kafka::wire::writer::{put_bytes, put_len, put_null_len, put_nullable_string, put_string};
use kafka::wire::{DecodeError, Encoding, Reader};

const BOTH: [Encoding; 2] = [Encoding::Classic, Encoding::Flexible];

fn string_bytes(encoding: Encoding, value: Option<&str>) -> Vec<u8> {
    let mut out = BytesMut::new();
    put_nullable_string(&mut out, encoding, value);
    out.to_vec()
}

#[test]
fn cat_null_and_empty() {
    assert_eq!(string_bytes(Encoding::Classic, Some("cat")), [0x00, 0x03, 0x63, 0x61, 0x74]);
    assert_eq!(string_bytes(Encoding::Flexible, Some("cat")), [0x04, 0x63, 0x61, 0x74]);
    assert_eq!(string_bytes(Encoding::Classic, None), [0xff, 0xff]);
    assert_eq!(string_bytes(Encoding::Flexible, None), [0x00]);
    assert_eq!(string_bytes(Encoding::Classic, Some("")), [0x00, 0x00]);
    assert_eq!(string_bytes(Encoding::Flexible, Some("")), [0x01]);
}

#[test]
fn strings_and_bytes_of_every_length_around_the_limits() {
    let lengths = (0..300).chain(16_380..16_390).chain(32_760..=32_767);
    for len in lengths {
        let text = "x".repeat(len);
        for encoding in BOTH {
            let mut out = BytesMut::new();
            put_string(&mut out, encoding, &text);
            put_bytes(&mut out, encoding, text.as_bytes());
            let mut reader = Reader::new(&out);
            assert_eq!(reader.string(encoding), Ok(&*text));
            assert_eq!(reader.bytes(encoding), Ok(text.as_bytes()));
            assert_eq!(reader.finish(), Ok(()));
        }
    }
}

#[test]
fn a_string_that_the_classic_encoding_cannot_hold_is_cut_at_a_character() {
    let text = "ü".repeat(16_400);
    let mut out = BytesMut::new();
    put_string(&mut out, Encoding::Classic, &text);
    let mut reader = Reader::new(&out);
    assert_eq!(reader.string(Encoding::Classic), Ok(&text[..32_766]));
    assert_eq!(reader.finish(), Ok(()));
}

#[test]
fn null_is_refused_where_a_value_is_required() {
    for encoding in BOTH {
        let null = string_bytes(encoding, None);
        assert_eq!(Reader::new(&null).nullable_string(encoding), Ok(None));
        assert_eq!(Reader::new(&null).string(encoding), Err(DecodeError::UnexpectedNull));

        let mut null = BytesMut::new();
        put_null_len(&mut null, encoding);
        assert_eq!(Reader::new(&null).nullable_bytes(encoding), Ok(None));
        assert_eq!(Reader::new(&null).bytes(encoding), Err(DecodeError::UnexpectedNull));
        assert_eq!(Reader::new(&null).nullable_array_len(encoding, 1), Ok(None));
        assert_eq!(Reader::new(&null).array_len(encoding, 1), Err(DecodeError::UnexpectedNull));
    }
}

#[test]
fn lengths_below_minus_one_are_refused() {
    let string = Reader::new(&[0xff, 0xfe]).nullable_string(Encoding::Classic);
    assert_eq!(string, Err(DecodeError::NegativeLength(-2)));
    let bytes = Reader::new(&[0x80, 0, 0, 0]).nullable_bytes(Encoding::Classic);
    assert_eq!(bytes, Err(DecodeError::NegativeLength(i32::MIN.into())));
    let array = Reader::new(&[0xff, 0xff, 0xff, 0xfe]).nullable_array_len(Encoding::Classic, 1);
    assert_eq!(array, Err(DecodeError::NegativeLength(-2)));
}

#[test]
fn strings_must_be_utf_8() {
    let string = Reader::new(&[0x02, 0xff]).string(Encoding::Flexible);
    assert_eq!(string, Err(DecodeError::NotUtf8));
}

#[test]
fn an_array_cannot_have_more_elements_than_bytes_are_left_for() {
    for encoding in BOTH {
        let mut out = BytesMut::new();
        put_len(&mut out, encoding, 3);
        out.extend_from_slice(&[0; 17]);
        assert_eq!(Reader::new(&out).array_len(encoding, 5), Ok(3));
        assert_eq!(
            Reader::new(&out).array_len(encoding, 6),
            Err(DecodeError::CountTooLarge { count: 3, remaining: 17 })
        );
    }
}
