//! Every prefix of every response is refused, and damaged ones never panic.

use bytes::Bytes;
use kafka::negotiation::{InitProducerIdVersion, MetadataVersion, ProduceVersion};
use kafka::record_batch::BatchHeader;
use kafka::wire::{ApiKey, DecodeError, Reader, response_header};
use kafka::wire::{api_versions, init_producer_id, metadata, produce};

use crate::random::Random;
use crate::vectors::{self, Vector, bytes, entries, frames};

fn decode_body(api: ApiKey, version: i16, body: &mut Reader<'_>) -> Result<(), DecodeError> {
    match api {
        ApiKey::Produce => {
            produce::decode_response(body, ProduceVersion::assume(version)).map(|_| ())
        }
        ApiKey::Metadata => {
            metadata::decode_response(body, MetadataVersion::assume(version)).map(|_| ())
        }
        ApiKey::ApiVersions => api_versions::decode_response(body, version).map(|_| ()),
        ApiKey::InitProducerId => {
            let version = InitProducerIdVersion::assume(version);
            init_producer_id::decode_response(body, version).map(|_| ())
        }
        ApiKey::SaslHandshake => unreachable!("no vectors"),
    }
}

/// Header and body of a response.
fn decode(vector: &Vector, frame: &[u8]) -> Result<(), DecodeError> {
    let mut reader = Reader::new(frame);
    response_header::decode(&mut reader, vector.api, vector.version)?;
    decode_body(vector.api, vector.version, &mut reader)
}

fn responses() -> Vec<Vector> {
    [vectors::API_VERSIONS, vectors::METADATA, vectors::PRODUCE, vectors::INIT_PRODUCER_ID]
        .into_iter()
        .flat_map(|json| frames(json, "response"))
        .collect()
}

#[test]
fn a_response_cut_short_anywhere_is_refused() {
    let responses = responses();
    for vector in &responses {
        let frame = &vector.frame[4..];
        assert_eq!(decode(vector, frame), Ok(()));
        for len in 0..frame.len() {
            assert!(decode(vector, &frame[..len]).is_err(), "{} cut at {len}", vector.name);
        }
    }
    assert_eq!(responses.len(), 4 + 14 + 28 + 6);
}

#[test]
fn a_response_with_a_byte_too_many_is_refused() {
    for vector in responses() {
        let longer = [&vector.frame[4..], &[0]].concat();
        assert_eq!(decode(&vector, &longer), Err(DecodeError::TrailingBytes(1)), "{}", vector.name);
    }
}

#[test]
fn a_damaged_response_never_panics() {
    let mut random = Random::new(7);
    for vector in responses() {
        for at in 4..vector.frame.len() {
            for value in [0x00, 0x01, 0x7f, 0x80, 0xff, random.next() as u8] {
                let mut frame = vector.frame[4..].to_vec();
                frame[at - 4] = value;
                let _ = decode(&vector, &frame);
            }
        }
        for _ in 0..200 {
            let mut frame = vector.frame[4..].to_vec();
            for _ in 0..=random.below(6) {
                let at = random.below(frame.len());
                frame[at] = random.next() as u8;
            }
            let _ = decode(&vector, &frame);
        }
    }
}

#[test]
fn a_response_read_as_another_version_or_api_never_panics() {
    const APIS: [(ApiKey, i16); 4] = [
        (ApiKey::Produce, 13),
        (ApiKey::Metadata, 13),
        (ApiKey::ApiVersions, 4),
        (ApiKey::InitProducerId, 5),
    ];
    for vector in responses() {
        for (api, max) in APIS {
            for version in 0..=max {
                let _ = decode_body(api, version, &mut Reader::new(&vector.frame[8..]));
            }
        }
    }
}

#[test]
fn a_batch_cut_short_or_damaged_is_refused() {
    let batches: Vec<Bytes> =
        entries(vectors::RECORD_BATCHES).iter().map(|entry| bytes(&entry["hex"]).into()).collect();
    for batch in &batches {
        assert!(BatchHeader::decode(batch).is_ok());
        for len in 0..batch.len() {
            assert!(BatchHeader::decode(&batch[..len]).is_err());
        }
        // Base offset and leader epoch are the broker's to change; all the rest is checked.
        for at in (8..12).chain(16..batch.len()) {
            let mut damaged = batch.to_vec();
            damaged[at] ^= 0x40;
            assert!(BatchHeader::decode(&damaged).is_err(), "byte {at}");
        }
    }
    assert_eq!(batches.len(), 8);
}
