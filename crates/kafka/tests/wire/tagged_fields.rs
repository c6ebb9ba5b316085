//! Tagged fields (KIP-482). That unknown ones are skipped on every structure is shown in
//! `differential`, which sprinkles them everywhere.

use kafka::error_code::ErrorCode;
use kafka::negotiation::{InitProducerIdVersion, ProduceVersion};
use kafka::wire::produce::LeaderIdAndEpoch;
use kafka::wire::{ApiKey, DecodeError, Encoding, Reader};
use kafka::wire::{init_producer_id, produce, response_header};

fn tags(bytes: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, DecodeError> {
    let mut seen = Vec::new();
    let mut reader = Reader::new(bytes);
    reader.tagged_fields(Encoding::Flexible, |tag, mut field| {
        seen.push((tag, field.take(field.remaining())?.to_vec()));
        Ok(())
    })?;
    reader.finish()?;
    Ok(seen)
}

#[test]
fn each_field_is_handed_out_with_its_own_bytes() {
    assert_eq!(tags(&[0]), Ok(vec![]));
    assert_eq!(
        tags(&[3, 0, 1, 0xaa, 7, 0, 0x80, 0x01, 2, 0xbb, 0xcc]),
        Ok(vec![(0, vec![0xaa]), (7, vec![]), (128, vec![0xbb, 0xcc])])
    );
}

#[test]
fn the_classic_encoding_has_none() {
    let mut reader = Reader::new(&[1, 2, 3]);
    assert_eq!(reader.skip_tagged_fields(Encoding::Classic), Ok(()));
    assert_eq!(reader.remaining(), 3);
}

#[test]
fn a_tag_twice_or_out_of_order_is_an_error() {
    let error = |previous, tag| Err(DecodeError::TagOrder { previous, tag });
    assert_eq!(tags(&[2, 5, 0, 5, 0]), error(5, 5));
    assert_eq!(tags(&[2, 5, 0, 4, 0]), error(5, 4));
    assert_eq!(tags(&[3, 0, 0, 9, 0, 1, 0]), error(9, 1));
}

#[test]
fn sizes_and_counts_are_checked() {
    assert_eq!(tags(&[1, 0, 2, 0xaa]), Err(DecodeError::Truncated { needed: 2, remaining: 1 }));
    assert_eq!(tags(&[2, 0, 0]), Err(DecodeError::CountTooLarge { count: 2, remaining: 2 }));
    assert_eq!(
        tags(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0]),
        Err(DecodeError::CountTooLarge { count: u32::MAX as usize, remaining: 1 })
    );
    assert_eq!(
        tags(&[1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        Err(DecodeError::Truncated { needed: u32::MAX as usize, remaining: 0 })
    );
}

#[test]
fn the_response_header_has_them_from_the_first_flexible_version_on() {
    let bytes = [0, 0, 0, 9, 1, 3, 1, 0xff];
    let read = |api, version| {
        let mut reader = Reader::new(&bytes);
        (response_header::decode(&mut reader, api, version), reader.remaining())
    };
    assert_eq!(read(ApiKey::Produce, 8), (Ok(9), 4));
    assert_eq!(read(ApiKey::Produce, 9), (Ok(9), 0));
    assert_eq!(read(ApiKey::Metadata, 9), (Ok(9), 0));
    assert_eq!(read(ApiKey::InitProducerId, 1), (Ok(9), 4));
    assert_eq!(read(ApiKey::InitProducerId, 2), (Ok(9), 0));
    assert_eq!(read(ApiKey::SaslHandshake, 1), (Ok(9), 4));
    // The answer to ApiVersions must be readable before anything is known of the broker.
    assert_eq!(read(ApiKey::ApiVersions, 0), (Ok(9), 4));
    assert_eq!(read(ApiKey::ApiVersions, 3), (Ok(9), 4));
}

/// A Produce response of version 10 with one partition, refused with 6.
fn produce_response(partition_tags: &[u8], end_tags: &[u8]) -> Vec<u8> {
    let mut body = vec![2, 2, b't', 2];
    body.extend([0, 0, 0, 0, 0, 6]);
    body.extend([0xff; 24]);
    body.extend([1, 0]); // no record errors, no message
    body.extend(partition_tags);
    body.push(0); // topic
    body.extend([0, 0, 0, 0]); // throttle time
    body.extend(end_tags);
    body
}

fn decode_produce(body: &[u8]) -> Result<produce::Response, DecodeError> {
    produce::decode_response(&mut Reader::new(body), ProduceVersion::assume(10))
}

#[test]
fn a_known_field_stands_between_unknown_ones_inside_and_outside() {
    // Inside the leader: one unknown field. After it: another one.
    let leader = [2, 0, 12, 0, 0, 0, 5, 0, 0, 0, 77, 1, 9, 1, 0xee, 3, 1, 0xdd];
    let endpoints = [2, 0, 15, 2, 0, 0, 0, 5, 2, b'h', 0, 0, 0x23, 0x84, 0, 1, 6, 0, 8, 0];
    let response = decode_produce(&produce_response(&leader, &endpoints)).unwrap();
    let partition = &response.topics[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(partition.current_leader, Some(LeaderIdAndEpoch { leader_id: 5, leader_epoch: 77 }));
    let endpoint = &response.node_endpoints[0];
    assert_eq!((endpoint.node_id, &*endpoint.host, endpoint.port), (5, "h", 9092));
    assert_eq!(endpoint.rack, None);
}

#[test]
fn a_known_field_must_fill_its_size() {
    let one_byte_more = [1, 0, 10, 0, 0, 0, 5, 0, 0, 0, 77, 0, 0xee];
    let error = decode_produce(&produce_response(&one_byte_more, &[0])).unwrap_err();
    assert_eq!(error, DecodeError::TrailingBytes(1));
    let one_byte_less = [1, 0, 8, 0, 0, 0, 5, 0, 0, 0, 77];
    let error = decode_produce(&produce_response(&one_byte_less, &[0])).unwrap_err();
    assert_eq!(error, DecodeError::Truncated { needed: 1, remaining: 0 });
    let no_endpoints_and_one_byte = [1, 0, 2, 1, 0xee];
    let error = decode_produce(&produce_response(&[0], &no_endpoints_and_one_byte)).unwrap_err();
    assert_eq!(error, DecodeError::TrailingBytes(1));
}

#[test]
fn a_response_with_bytes_left_over_is_refused() {
    let body = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    let version = InitProducerIdVersion::assume(2);
    let whole = init_producer_id::decode_response(&mut Reader::new(&body), version).unwrap();
    assert_eq!(whole.producer_id, 1);
    let longer = [&body[..], &[0]].concat();
    let error = init_producer_id::decode_response(&mut Reader::new(&longer), version);
    assert_eq!(error, Err(DecodeError::TrailingBytes(1)));
}
