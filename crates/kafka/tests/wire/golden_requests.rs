//! Requests encode to the bytes that Kafka's own client would send.

use std::sync::Arc;

use bytes::Bytes;
use kafka::negotiation::{InitProducerIdVersion, MetadataVersion, ProduceVersion};
use kafka::record_batch::{BatchBuilder, RecordBatch};
use kafka::wire::produce::{PartitionData, TopicData};
use kafka::wire::{api_versions, init_producer_id, metadata, produce};
use serde_json::Value;

use crate::record_batches::idempotent_batch;
use crate::vectors::{self, Vector, frames, int, topic_id};

fn assert_frame(vector: &Vector, encoded: &[u8]) {
    assert_eq!(hex::encode(encoded), hex::encode(&vector.frame), "{}", vector.name);
}

#[test]
fn api_versions() {
    let mut seen = Vec::new();
    for vector in frames(vectors::API_VERSIONS, "request") {
        if vector.name.contains("null_client_id") {
            continue;
        }
        let software = (&vector.json["clientSoftwareName"], &vector.json["clientSoftwareVersion"]);
        let encoded = api_versions::encode_request(
            vector.version,
            vector.correlation_id,
            &vector.client_id,
            software.0.as_str().unwrap_or("not sent"),
            software.1.as_str().unwrap_or("not sent"),
        );
        assert_frame(&vector, &encoded);
        seen.push(vector.version);
    }
    assert_eq!(seen, [0, 3, 0]);
}

#[test]
fn api_versions_as_in_the_23_byte_example() {
    let encoded = api_versions::encode_request(0, 0x0102_0304, "wire-read", "", "");
    assert_eq!(hex::encode(&encoded), "0000001300120000010203040009776972652d72656164");
    assert_eq!(encoded.len(), 23);
}

#[test]
fn metadata() {
    let mut seen = 0;
    for vector in frames(vectors::METADATA, "request") {
        if vector.name.contains("by_topic_id") {
            continue;
        }
        let names: Option<Vec<&str>> = vector.json["topics"]
            .as_array()
            .map(|topics| topics.iter().map(|topic| topic["name"].as_str().unwrap()).collect());
        let encoded = metadata::encode_request(
            MetadataVersion::assume(vector.version),
            vector.correlation_id,
            &vector.client_id,
            names.as_deref(),
            vector.json["allowAutoTopicCreation"] == true,
        );
        assert_frame(&vector, &encoded);
        seen += 1;
    }
    assert_eq!(seen, 13 * 3);
}

#[test]
fn init_producer_id() {
    let mut seen = 0;
    for mut vector in frames(vectors::INIT_PRODUCER_ID, "request") {
        if vector.version >= 4 {
            // These vectors go on with an old id, which only a transactional producer does. They end
            // in id, epoch, no tagged fields.
            let at = vector.frame.len() - 11;
            assert_eq!(vector.frame[at..at + 10], *b"\x01\x02\x03\x04\x05\x06\x07\x08\x00\x03");
            vector.frame[at..at + 10].fill(0xff);
        }
        let encoded = init_producer_id::encode_request(
            InitProducerIdVersion::assume(vector.version),
            vector.correlation_id,
            &vector.client_id,
        );
        assert_frame(&vector, &encoded);
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn produce() {
    let mut seen = 0;
    for vector in frames(vectors::PRODUCE, "request") {
        let topics = vector.json["topicData"].as_array().unwrap();
        let topics: Vec<TopicData> = topics
            .iter()
            .enumerate()
            .map(|(index, topic)| topic_data(&vector.name, index, topic))
            .collect();
        let mut segments = Vec::new();
        let total = produce::encode_request(
            ProduceVersion::assume(vector.version),
            vector.correlation_id,
            &vector.client_id,
            int(&vector.json["acks"]) as i16,
            int(&vector.json["timeoutMs"]) as i32,
            &topics,
            &mut segments,
        );
        assert_eq!(segments.len(), 1, "{}: small records are copied", vector.name);
        assert_eq!(total, vector.frame.len());
        assert_frame(&vector, &segments.concat());
        seen += 1;
    }
    assert_eq!(seen, 16);
}

fn topic_data(vector: &str, topic_index: usize, topic: &Value) -> TopicData {
    let partitions = topic["partitionData"].as_array().unwrap();
    let partitions = partitions.iter().map(|partition| {
        let index = int(&partition["index"]) as i32;
        let (batch, header) = batch_of(vector, topic_index, index);
        PartitionData { index, header, records: batch.records }
    });
    TopicData {
        name: Arc::from(topic["name"].as_str().unwrap_or("not sent")),
        topic_id: topic_id(&topic["topicId"]),
        partitions: partitions.collect(),
    }
}

/// The batches that the vectors' `records` describe.
fn batch_of(vector: &str, topic_index: usize, partition: i32) -> (RecordBatch, [u8; 61]) {
    const TIMESTAMP: i64 = 1_700_000_000_000;
    let mut builder = BatchBuilder::new();
    if vector.contains("idempotent") {
        let batch = idempotent_batch();
        let header = batch.header(0x0102_0304_0506_0708, 3, 41);
        (batch, header)
    } else if vector.contains("two_topics") {
        let value = format!("v{topic_index}{partition}");
        builder.push(TIMESTAMP, Some(b"k"), Some(value.as_bytes()), &[]);
        let batch = builder.finish();
        let header = batch.header(7, 0, 10 * partition);
        (batch, header)
    } else {
        builder.push(TIMESTAMP, None, Some(b"x"), &[]);
        let batch = builder.finish();
        let header = batch.header(-1, -1, -1);
        (batch, header)
    }
}

#[test]
fn large_records_are_handed_on_without_a_copy() {
    let batch = |size: usize| {
        let mut builder = BatchBuilder::new();
        builder.push(0, None, Some(&vec![b'x'; size]), &[]);
        builder.finish()
    };
    let (small, large) = (batch(1000), batch(5000));
    assert!(small.records.len() <= 1024);
    let data = |index, batch: &RecordBatch| PartitionData {
        index,
        header: batch.header(-1, -1, -1),
        records: batch.records.clone(),
    };
    for version in [3, 9, 12, 13] {
        let topics = [TopicData {
            name: "t".into(),
            topic_id: [7; 16],
            partitions: vec![data(0, &large), data(1, &small), data(2, &large)],
        }];
        let encode = |topics: &[TopicData]| {
            let mut out = vec![Bytes::from_static(b"before")];
            let version = ProduceVersion::assume(version);
            let total = produce::encode_request(version, 1, "c", -1, 1000, topics, &mut out);
            assert_eq!(out.remove(0), "before");
            assert_eq!(total, out.iter().map(Bytes::len).sum::<usize>());
            out
        };
        let segments = encode(&topics);
        // Tagged fields follow the last records from version 9 on.
        assert_eq!(segments.len(), if version >= 9 { 5 } else { 4 });
        for index in [1, 3] {
            assert_eq!(segments[index].as_ptr(), large.records.as_ptr());
        }
        let frame = segments.concat();
        assert_eq!(frame[..4], (frame.len() as i32 - 4).to_be_bytes());
    }
}
