//! The answers of six real brokers, 0.10.0.1 to 4.4.0, read here and by another codec.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka::error_code::ErrorCode;
use kafka::negotiation::{
    InitProducerIdVersion, MetadataVersion, Negotiated, ProduceVersion, VersionCaps, supported,
};
use kafka::wire::{ApiKey, Reader, api_versions, init_producer_id, metadata, produce};
use kafka_protocol::messages::{
    ApiVersionsResponse, InitProducerIdResponse, MetadataResponse, ProduceResponse,
};
use kafka_protocol::protocol::Decodable;
use serde_json::Value;

use crate::oracle;
use crate::vectors::{self, bytes, entries, int, split_response};

/// Of one API: the entry, the version that was asked for, and the body.
fn captured(api: ApiKey) -> Vec<(Value, i16, Bytes)> {
    entries(vectors::CAPTURED)
        .into_iter()
        .filter(|entry| vectors::api(entry["api"].as_str().unwrap()) == api)
        .filter_map(|entry| {
            let version = int(&entry["api_version_sent"]) as i16;
            // ApiVersions is answered whatever was asked.
            if api != ApiKey::ApiVersions && !supported(api).contains(version) {
                return None;
            }
            let (id, body) = split_response(&bytes(&entry["response_frame_hex"]), api, version);
            assert_eq!(i64::from(id), int(&entry["correlation_id"]));
            Some((entry, version, body))
        })
        .collect()
}

fn theirs<T: Decodable>(body: &Bytes, version: i16) -> T {
    let mut body = body.clone();
    let decoded = T::decode(&mut body, version).unwrap();
    assert!(body.is_empty());
    decoded
}

#[test]
fn api_versions() {
    let mut seen = 0;
    for (entry, version, body) in captured(ApiKey::ApiVersions) {
        let answered_as = entry["answered_as"].as_str().unwrap();
        if answered_as == "v5" {
            continue;
        }
        let ours = api_versions::decode_response(&mut Reader::new(&body), version).unwrap();
        let answered_as: i16 = answered_as.trim_start_matches('v').parse().unwrap();
        assert_eq!(ours, oracle::api_versions(&theirs::<ApiVersionsResponse>(&body, answered_as)));
        let downgraded = answered_as != version;
        assert_eq!(ours.error_code == ErrorCode::UNSUPPORTED_VERSION, downgraded, "{entry}");
        seen += 1;
    }
    assert_eq!(seen, 41);
}

#[test]
fn metadata() {
    let captured = captured(ApiKey::Metadata);
    for (entry, version, body) in &captured {
        let assumed = MetadataVersion::assume(*version);
        let ours = metadata::decode_response(&mut Reader::new(body), assumed).unwrap();
        assert_eq!(ours, oracle::metadata(&theirs::<MetadataResponse>(body, *version)), "{entry}");
        assert_eq!(ours.brokers[0].host, "127.0.0.1");
        assert_eq!(ours.topics[0].name.as_deref(), Some("cap-topic"));
        assert_eq!(ours.topics[0].partitions[0].leader_id, 1);
    }
    assert_eq!(captured.len(), 54);
}

#[test]
fn init_producer_id() {
    let captured = captured(ApiKey::InitProducerId);
    for (entry, version, body) in &captured {
        let assumed = InitProducerIdVersion::assume(*version);
        let ours = init_producer_id::decode_response(&mut Reader::new(body), assumed).unwrap();
        let theirs = theirs::<InitProducerIdResponse>(body, *version);
        assert_eq!(ours, oracle::init_producer_id(&theirs), "{entry}");
        assert_eq!((ours.error_code, ours.producer_epoch), (ErrorCode::NONE, 0));
    }
    assert_eq!(captured.len(), 24);
}

#[test]
fn produce() {
    let captured = captured(ApiKey::Produce);
    for (entry, version, body) in &captured {
        let assumed = ProduceVersion::assume(*version);
        let ours = produce::decode_response(&mut Reader::new(body), assumed).unwrap();
        let theirs = theirs::<ProduceResponse>(body, *version);
        assert_eq!(ours, oracle::produce(&theirs, *version), "{entry}");

        let partition = &ours.topics[0].partitions[0];
        match entry["case"].as_str().unwrap() {
            "ok" => {
                assert_eq!(partition.error_code, ErrorCode::NONE);
                assert!(partition.base_offset >= 0);
            }
            "unknown partition" => {
                assert_eq!(partition.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
                assert_eq!((partition.index, partition.base_offset), (99, -1));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(captured.len(), 74);
}

/// Produce, Metadata and InitProducerId that each broker and we would settle on.
#[test]
fn negotiation_with_each_broker() {
    let mut chosen = BTreeMap::new();
    for (entry, version, body) in captured(ApiKey::ApiVersions) {
        let response = api_versions::decode_response(&mut Reader::new(&body), version);
        let Ok(response) = response else { continue };
        if ![0, 3].contains(&version) || !response.error_code.is_ok() {
            continue;
        }
        let negotiated = Negotiated::from_response(&response, &VersionCaps::default());
        let versions = negotiated.map(|negotiated| {
            (
                negotiated.produce().get(),
                negotiated.metadata().get(),
                negotiated.init_producer_id().map(InitProducerIdVersion::get),
            )
        });
        let broker = entry["broker"].as_str().unwrap().trim_start_matches("Apache Kafka ");
        let versions = versions.map_err(|error| error.to_string());
        let before = chosen.insert(broker.to_owned(), versions.clone());
        assert!(before.is_none_or(|before| before == versions), "v0 and v3 say the same");
    }
    let no_common = "no common version of Produce: the broker has 0-2, this client 3-13".to_owned();
    let expected = [
        ("0.10.0.1", Err(no_common)),
        ("0.11.0.3", Ok((3, 4, Some(0)))),
        ("2.8.2", Ok((9, 11, Some(4)))),
        ("3.9.2", Ok((11, 12, Some(5)))),
        ("4.3.1", Ok((13, 13, Some(5)))),
        ("4.4.0", Ok((13, 13, Some(5)))),
    ];
    let expected: BTreeMap<String, _> =
        expected.into_iter().map(|(broker, versions)| (broker.to_owned(), versions)).collect();
    assert_eq!(chosen, expected);
}
