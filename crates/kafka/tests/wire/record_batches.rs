//! Record batches.

use kafka::record_batch::{
    BatchBuilder, BatchHeader, HEADER_LEN, RecordBatch, RecordFields, RecordView, Records,
    encoded_record_len, max_record_len,
};
use kafka::wire::DecodeError;
use serde_json::Value;

use crate::random::Random;
use crate::vectors::{self, bytes, entry, int};

/// The batch of the vector `idempotent_none` and of the Produce requests.
pub fn idempotent_batch() -> RecordBatch {
    build(&entry(vectors::RECORD_BATCHES, "idempotent_none")["fields"])
}

fn build(fields: &Value) -> RecordBatch {
    let mut builder = BatchBuilder::new();
    for record in fields["records"].as_array().unwrap() {
        let bytes = |value: &'_ Value| value.as_str().map(|text| text.as_bytes().to_vec());
        let headers: Vec<(Vec<u8>, Option<Vec<u8>>)> = record["headers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|header| (bytes(&header["key"]).unwrap(), bytes(&header["value"])))
            .collect();
        let headers: Vec<(&[u8], Option<&[u8]>)> =
            headers.iter().map(|(key, value)| (&**key, value.as_deref())).collect();
        builder.push(
            int(&record["timestamp"]),
            bytes(&record["key"]).as_deref(),
            bytes(&record["value"]).as_deref(),
            &headers,
        );
    }
    builder.finish()
}

fn encoded(batch: &RecordBatch, producer_id: i64, epoch: i16, base_sequence: i32) -> Vec<u8> {
    [&batch.header(producer_id, epoch, base_sequence)[..], &batch.records].concat()
}

#[test]
fn uncompressed_batches_are_those_of_kafkas_own_classes() {
    for name in [
        "idempotent_none",
        "minimal_null_null",
        "negative_timestamp_delta_and_seq_wrap",
        "transactional_two_byte_varints",
    ] {
        let entry = entry(vectors::RECORD_BATCHES, name);
        let mut expected = bytes(&entry["hex"]);
        let fields = &entry["fields"];
        let mut batch = build(fields);
        if name.starts_with("transactional") {
            batch.attributes = 0x10;
            // Leader epoch 12 there, which is outside the CRC.
            expected[12..16].fill(0xff);
        }
        let encoded = encoded(
            &batch,
            int(&fields["producer_id"]),
            int(&fields["producer_epoch"]) as i16,
            int(&fields["base_sequence"]) as i32,
        );
        assert_eq!(hex::encode(&encoded), hex::encode(&expected), "{name}");
        assert_eq!(batch.len(), int(&entry["size"]) as usize);
        let crc = u32::from_be_bytes(encoded[17..21].try_into().unwrap());
        assert_eq!(i64::from(crc), int(&entry["crc32c"]), "{name}");
    }
}

#[test]
fn decoded_records_are_those_of_the_vector() {
    let bytes = bytes(&entry(vectors::RECORD_BATCHES, "idempotent_none")["hex"]);
    let (header, records) = BatchHeader::decode(&bytes).unwrap();
    assert_eq!((header.producer_id, header.producer_epoch), (0x0102_0304_0506_0708, 3));
    assert_eq!((header.base_sequence, header.count, header.last_offset_delta), (41, 3, 2));
    assert_eq!(header.partition_leader_epoch, -1);
    let base = 1_700_000_000_000;
    assert_eq!((header.base_timestamp, header.max_timestamp), (base, base + 7));

    let records = Records::new(records, header.base_timestamp, header.count);
    let records: Vec<RecordView> = records.map(Result::unwrap).collect();
    let record = |at, offset_delta, key: Option<&'static [u8]>, value: Option<&'static [u8]>| {
        RecordView { timestamp_ms: base + at, offset_delta, key, value, headers: vec![] }
    };
    let mut expected = [
        record(0, 0, Some(b"k1"), Some(b"hello")),
        record(5, 1, None, Some(b"world")),
        record(7, 2, Some(b"k3"), None),
    ];
    expected[1].headers = vec![(b"h1", Some(b"v1")), (b"h2", None)];
    assert_eq!(records, expected);
}

#[test]
fn the_predicted_length_of_a_record_is_its_length() {
    let mut random = Random::new(3);
    for _ in 0..2000 {
        let (key, value, header) = (random.bytes(), random.bytes(), random.bytes());
        let all = [(&header[..], None), (&key[..], Some(&value[..])), (b"", Some(b""))];
        let record = RecordFields {
            key: random.bool().then_some(&key),
            value: random.bool().then_some(&value),
            headers: &all[..random.below(4)],
        };
        let mut builder = BatchBuilder::new();
        let before = [0, 1, 63, 64, 65][random.below(5)];
        for _ in 0..before {
            builder.push(1000, None, None, &[]);
        }
        let timestamp = if before == 0 { 1000 } else { random.i64() >> random.below(64) };
        let len = builder.len();
        builder.push(timestamp, record.key, record.value, record.headers);
        let delta = timestamp.wrapping_sub(1000);
        let predicted = encoded_record_len(&record, before, delta);
        assert_eq!(builder.len() - len, predicted);
        assert!(predicted <= max_record_len(&record));
        assert!(max_record_len(&record) - predicted <= 4 + 9 + 2);
    }
}

#[test]
fn what_is_pushed_comes_out_again() {
    let mut random = Random::new(11);
    for _ in 0..200 {
        let records: Vec<_> = (0..=random.below(70))
            .map(|_| {
                let key = random.bool().then(|| random.bytes());
                (random.i64(), key, random.bool().then(|| random.bytes()))
            })
            .collect();
        let mut builder = BatchBuilder::new();
        for (timestamp, key, value) in &records {
            builder.push(*timestamp, key.as_deref(), value.as_deref(), &[(b"h", Some(b"v"))]);
        }
        assert_eq!(builder.record_count(), records.len());
        assert_eq!(builder.base_timestamp(), Some(records[0].0));
        assert!(builder.capacity() >= builder.len() - HEADER_LEN);
        let len = builder.len();
        let batch = builder.finish();
        assert_eq!((batch.len(), batch.count as usize), (len, records.len()));
        assert_eq!(batch.max_timestamp, records.iter().map(|record| record.0).max().unwrap());

        let bytes = encoded(&batch, 5, 1, 9);
        let (header, encoded_records) = BatchHeader::decode(&bytes).unwrap();
        assert_eq!(encoded_records, batch.records);
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (5, 1, 9));
        assert_eq!(header.count, batch.count);
        for (index, (decoded, sent)) in batch.iter().zip(&records).enumerate() {
            let decoded = decoded.unwrap();
            assert_eq!(decoded.timestamp_ms, sent.0);
            assert_eq!(decoded.offset_delta as usize, index);
            assert_eq!(decoded.key, sent.1.as_deref());
            assert_eq!(decoded.value, sent.2.as_deref());
            assert_eq!(decoded.headers, [(&b"h"[..], Some(&b"v"[..]))]);
        }
    }
}

#[test]
fn an_open_batch_holds_nothing_until_it_is_used() {
    let builder = BatchBuilder::new();
    assert_eq!((builder.len(), builder.capacity(), builder.record_count()), (61, 0, 0));
    assert_eq!(builder.base_timestamp(), None);
}

#[test]
fn a_closed_batch_holds_just_its_bytes() {
    let mut builder = BatchBuilder::new();
    for _ in 0..100 {
        builder.push(0, None, Some(&[b'x'; 90]), &[]);
    }
    assert!(builder.capacity() > builder.len() - HEADER_LEN, "it grows by doubling");
    let records = builder.finish().records;
    let len = records.len();
    assert_eq!(records.try_into_mut().unwrap().capacity(), len);
}

fn numbered(count: i64) -> RecordBatch {
    let mut builder = BatchBuilder::new();
    for number in 0..count {
        builder.push(1000 + 10 * number, None, Some(number.to_string().as_bytes()), &[]);
    }
    builder.finish()
}

fn values(batch: &RecordBatch) -> Vec<(i64, i32, String)> {
    batch
        .iter()
        .map(Result::unwrap)
        .map(|record| {
            let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
            (record.timestamp_ms, record.offset_delta, value)
        })
        .collect()
}

#[test]
fn retained_records_keep_their_times_and_move_up() {
    let kept = numbered(5).retain(|index| index == 1 || index == 4);
    assert_eq!(values(&kept), [(1010, 0, "1".into()), (1040, 1, "4".into())]);
    assert_eq!((kept.base_timestamp, kept.max_timestamp, kept.count), (1010, 1040, 2));
    // As if the others had never been there.
    let mut builder = BatchBuilder::new();
    builder.push(1010, None, Some(b"1"), &[]);
    builder.push(1040, None, Some(b"4"), &[]);
    assert_eq!(kept, builder.finish());
    assert_eq!(numbered(3).retain(|_| false).count, 0);

    let mut transactional = numbered(2);
    transactional.attributes = 0x10;
    assert_eq!(transactional.retain(|index| index == 1).attributes, 0x10);
}

#[test]
fn a_batch_splits_near_half_its_bytes_and_loses_nothing() {
    for count in 2..40 {
        let batch = numbered(count);
        let (first, second) = batch.split().unwrap();
        assert_eq!(first.count + second.count, batch.count);
        let numbers = |batch: &RecordBatch| {
            values(batch).into_iter().map(|value| (value.0, value.2)).collect::<Vec<_>>()
        };
        assert_eq!([numbers(&first), numbers(&second)].concat(), numbers(&batch));
        let difference = first.records.len().abs_diff(second.records.len());
        // Records take 8 to 10 bytes; the second half's are written again with shorter deltas.
        assert!(difference <= 2 * 10 + second.count as usize, "{count} records: {difference}");
    }
}

#[test]
fn a_batch_splits_even_if_one_record_is_nearly_all_of_it() {
    for large in [0, 1, 2] {
        let mut builder = BatchBuilder::new();
        for index in 0..3 {
            let value = vec![b'x'; if index == large { 10_000 } else { 1 }];
            builder.push(0, None, Some(&value), &[]);
        }
        let (first, second) = builder.finish().split().unwrap();
        assert!(first.count >= 1 && second.count >= 1);
        assert_eq!(first.count + second.count, 3);
    }
    assert_eq!(numbered(1).split(), None);
    assert_eq!(numbered(0).split(), None);
}

#[test]
fn records_that_are_not_what_they_should_be_end_the_iteration_with_an_error() {
    let errors = |bytes: &[u8], count| {
        let all: Vec<_> = Records::new(bytes, 0, count).collect();
        assert!(all[..all.len().saturating_sub(1)].iter().all(Result::is_ok));
        all.last().cloned().and_then(Result::err)
    };
    let good = [0x0c, 0, 0, 0, 1, 1, 0];
    assert_eq!(errors(&good, 1), None);
    let none = Some(DecodeError::Truncated { needed: 1, remaining: 0 });
    assert_eq!(errors(&good, 2), none, "a record too few");
    assert_eq!(errors(&good, 0), Some(DecodeError::TrailingBytes(7)), "a record too many");
    let negative_length = [0x01, 0, 0, 0, 1, 1, 0];
    assert_eq!(errors(&negative_length, 1), Some(DecodeError::NegativeLength(-1)));
    let too_long = [0x0e, 0, 0, 0, 1, 1, 0, 0];
    assert_eq!(errors(&too_long, 1), Some(DecodeError::TrailingBytes(1)));
    let key_of_minus_2 = [0x0c, 0, 0, 0, 3, 1, 0];
    assert_eq!(errors(&key_of_minus_2, 1), Some(DecodeError::NegativeLength(-2)));
    let header_without_key = [0x10, 0, 0, 0, 1, 1, 2, 1, 1];
    assert_eq!(errors(&header_without_key, 1), Some(DecodeError::UnexpectedNull));
    let headers_without_end = [0x0e, 0, 0, 0, 1, 1, 0x80, 0x01];
    assert_eq!(
        errors(&headers_without_end, 1),
        Some(DecodeError::CountTooLarge { count: 64, remaining: 0 })
    );
}
