//! Responses that Kafka's own classes wrote decode to what was put into them.

use kafka::error_code::ErrorCode;
use kafka::negotiation::{InitProducerIdVersion, MetadataVersion, ProduceVersion};
use kafka::wire::api_versions::ApiRange;
use kafka::wire::metadata::{Partition, Topic};
use kafka::wire::produce::{LeaderIdAndEpoch, PartitionResponse, RecordError, TopicResponse};
use kafka::wire::{Broker, DecodeError, Reader, api_versions, init_producer_id, metadata, produce};
use serde_json::Value;

use crate::vectors::{self, frames, int, int_or, string, topic_id};

fn list<T>(value: &Value, item: impl FnMut(&Value) -> T) -> Vec<T> {
    value.as_array().map(|items| items.iter().map(item).collect()).unwrap_or_default()
}

fn error_code(value: &Value) -> ErrorCode {
    ErrorCode(int_or(value, 0) as i16)
}

fn broker(value: &Value) -> Broker {
    Broker {
        node_id: int(&value["nodeId"]) as i32,
        host: string(&value["host"]).unwrap(),
        port: int(&value["port"]) as i32,
        rack: string(&value["rack"]),
    }
}

#[test]
fn api_versions() {
    let mut seen = 0;
    for vector in frames(vectors::API_VERSIONS, "response") {
        let body = vector.response_body();
        let response = api_versions::decode_response(&mut Reader::new(&body), vector.version);
        let expected = api_versions::Response {
            error_code: error_code(&vector.json["errorCode"]),
            ranges: list(&vector.json["apiKeys"], |api| ApiRange {
                api_key: int(&api["apiKey"]) as i16,
                min: int(&api["minVersion"]) as i16,
                max: int(&api["maxVersion"]) as i16,
            }),
            throttle_time_ms: int_or(&vector.json["throttleTimeMs"], 0) as i32,
        };
        assert_eq!(response, Ok(expected), "{}", vector.name);
        seen += 1;
    }
    assert_eq!(seen, 4);
}

#[test]
fn an_unsupported_api_versions_request_is_answered_as_version_0() {
    for (name, ranges) in [
        ("apiversions_unsupported_downgrade", vec![ApiRange { api_key: 18, min: 0, max: 3 }]),
        ("apiversions_unsupported_downgrade_old", vec![]),
    ] {
        let vectors = frames(vectors::API_VERSIONS, "response");
        let vector = vectors.iter().find(|vector| vector.name == name).unwrap();
        for asked in [0, 3, 4, 99] {
            let body = vector.response_body();
            let response = api_versions::decode_response(&mut Reader::new(&body), asked).unwrap();
            assert_eq!(response.error_code, ErrorCode::UNSUPPORTED_VERSION);
            assert_eq!(response.ranges, ranges);
        }
    }
}

#[test]
fn metadata() {
    let mut seen = 0;
    for vector in frames(vectors::METADATA, "response") {
        let body = vector.response_body();
        let version = MetadataVersion::assume(vector.version);
        let response = metadata::decode_response(&mut Reader::new(&body), version);
        let json = &vector.json;
        let expected = metadata::Response {
            throttle_time_ms: int_or(&json["throttleTimeMs"], 0) as i32,
            brokers: list(&json["brokers"], broker),
            cluster_id: string(&json["clusterId"]),
            controller_id: int(&json["controllerId"]) as i32,
            topics: list(&json["topics"], |topic| Topic {
                error_code: error_code(&topic["errorCode"]),
                name: string(&topic["name"]),
                topic_id: topic_id(&topic["topicId"]),
                is_internal: topic["isInternal"].as_bool().unwrap(),
                partitions: list(&topic["partitions"], |partition| Partition {
                    error_code: error_code(&partition["errorCode"]),
                    index: int(&partition["partitionIndex"]) as i32,
                    leader_id: int(&partition["leaderId"]) as i32,
                    leader_epoch: int_or(&partition["leaderEpoch"], -1) as i32,
                }),
            }),
            error_code: error_code(&json["errorCode"]),
        };
        assert_eq!(response, Ok(expected), "{}", vector.name);
        seen += 1;
    }
    assert_eq!(seen, 14);
}

#[test]
fn metadata_version_13_may_ask_for_a_new_bootstrap() {
    let vectors = frames(vectors::METADATA, "response");
    let name = "metadata_v13_rebootstrap_required";
    let vector = vectors.iter().find(|vector| vector.name == name).unwrap();
    let body = vector.response_body();
    let version = MetadataVersion::assume(13);
    let response = metadata::decode_response(&mut Reader::new(&body), version).unwrap();
    assert_eq!(response.error_code, ErrorCode::REBOOTSTRAP_REQUIRED);
    assert_eq!(response.cluster_id, None);
    assert_eq!(response.controller_id, -1);
}

#[test]
fn a_topic_in_metadata_may_lack_a_name_from_version_12_on() {
    // No throttling, brokers, cluster id or controller; one topic without name or partitions.
    let mut body = vec![0, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 2];
    body.extend([0, 100, 0]);
    body.extend([0x77; 16]);
    body.extend([0, 1, 0x80, 0, 0, 0, 0]);
    let decode = |version, end: &[u8]| {
        let body = [&body[..], end].concat();
        metadata::decode_response(&mut Reader::new(&body), MetadataVersion::assume(version))
    };
    let topic = decode(12, &[0]).unwrap().topics.remove(0);
    assert_eq!((topic.name, topic.topic_id), (None, [0x77; 16]));
    assert_eq!(topic.error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(decode(11, &[0]), Err(DecodeError::UnexpectedNull));
}

#[test]
fn init_producer_id() {
    let mut seen = 0;
    for vector in frames(vectors::INIT_PRODUCER_ID, "response") {
        let body = vector.response_body();
        let version = InitProducerIdVersion::assume(vector.version);
        let response = init_producer_id::decode_response(&mut Reader::new(&body), version);
        let expected = init_producer_id::Response {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            producer_id: 0x0102_0304_0506_0708,
            producer_epoch: 3,
        };
        assert_eq!(response, Ok(expected), "{}", vector.name);
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn produce() {
    let mut seen = 0;
    for vector in frames(vectors::PRODUCE, "response") {
        let body = vector.response_body();
        let version = ProduceVersion::assume(vector.version);
        let response = produce::decode_response(&mut Reader::new(&body), version);
        let expected = produce::Response {
            throttle_time_ms: int(&vector.json["throttleTimeMs"]) as i32,
            topics: list(&vector.json["responses"], |topic| TopicResponse {
                name: string(&topic["name"]),
                topic_id: topic_id(&topic["topicId"]),
                partitions: list(&topic["partitionResponses"], partition_response),
            }),
            node_endpoints: list(&vector.json["nodeEndpoints"], broker),
        };
        assert_eq!(response, Ok(expected), "{}", vector.name);
        seen += 1;
    }
    assert_eq!(seen, 28);
}

fn partition_response(value: &Value) -> PartitionResponse {
    let leader = &value["currentLeader"];
    PartitionResponse {
        index: int(&value["index"]) as i32,
        error_code: error_code(&value["errorCode"]),
        base_offset: int(&value["baseOffset"]),
        log_append_time_ms: int(&value["logAppendTimeMs"]),
        log_start_offset: int_or(&value["logStartOffset"], -1),
        record_errors: list(&value["recordErrors"], |error| RecordError {
            batch_index: int(&error["batchIndex"]) as i32,
            message: string(&error["batchIndexErrorMessage"]),
        }),
        error_message: string(&value["errorMessage"]),
        current_leader: leader.is_object().then(|| LeaderIdAndEpoch {
            leader_id: int(&leader["leaderId"]) as i32,
            leader_epoch: int(&leader["leaderEpoch"]) as i32,
        }),
    }
}

#[test]
fn produce_version_10_names_the_new_leader_and_its_address() {
    let vectors = frames(vectors::PRODUCE, "response");
    let vector = vectors.iter().find(|vector| vector.name == "produce_v10_not_leader").unwrap();
    let body = vector.response_body();
    let version = ProduceVersion::assume(10);
    let response = produce::decode_response(&mut Reader::new(&body), version).unwrap();
    let partition = &response.topics[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(partition.current_leader, Some(LeaderIdAndEpoch { leader_id: 5, leader_epoch: 77 }));
    let endpoint = &response.node_endpoints[0];
    assert_eq!((endpoint.node_id, &*endpoint.host, endpoint.port), (5, "b5.example", 9095));
    assert_eq!(response.throttle_time_ms, 250);
}
