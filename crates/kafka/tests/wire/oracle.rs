//! What the crate `kafka-protocol` read, in this crate's types.

use kafka::error_code::ErrorCode;
use kafka::wire::api_versions::{self, ApiRange};
use kafka::wire::metadata::{self, Partition, Topic};
use kafka::wire::produce::{self, LeaderIdAndEpoch, PartitionResponse, RecordError, TopicResponse};
use kafka::wire::{Broker, init_producer_id};
use kafka_protocol::messages::produce_response::LeaderIdAndEpoch as TheirLeader;
use kafka_protocol::messages::{
    ApiVersionsResponse, InitProducerIdResponse, MetadataResponse, ProduceResponse,
};
use kafka_protocol::protocol::StrBytes;

fn owned(text: &Option<StrBytes>) -> Option<String> {
    text.as_ref().map(|text| text.to_string())
}

pub fn api_versions(theirs: &ApiVersionsResponse) -> api_versions::Response {
    api_versions::Response {
        error_code: ErrorCode(theirs.error_code),
        ranges: theirs
            .api_keys
            .iter()
            .map(|api| ApiRange {
                api_key: api.api_key,
                min: api.min_version,
                max: api.max_version,
            })
            .collect(),
        throttle_time_ms: theirs.throttle_time_ms,
    }
}

pub fn metadata(theirs: &MetadataResponse) -> metadata::Response {
    let brokers = theirs.brokers.iter().map(|broker| Broker {
        node_id: broker.node_id.0,
        host: broker.host.to_string(),
        port: broker.port,
        rack: owned(&broker.rack),
    });
    let topics = theirs.topics.iter().map(|topic| Topic {
        error_code: ErrorCode(topic.error_code),
        name: topic.name.as_ref().map(|name| name.to_string()),
        topic_id: topic.topic_id.into_bytes(),
        is_internal: topic.is_internal,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| Partition {
                error_code: ErrorCode(partition.error_code),
                index: partition.partition_index,
                leader_id: partition.leader_id.0,
                leader_epoch: partition.leader_epoch,
            })
            .collect(),
    });
    metadata::Response {
        throttle_time_ms: theirs.throttle_time_ms,
        brokers: brokers.collect(),
        cluster_id: owned(&theirs.cluster_id),
        controller_id: theirs.controller_id.0,
        topics: topics.collect(),
        error_code: ErrorCode(theirs.error_code),
    }
}

pub fn init_producer_id(theirs: &InitProducerIdResponse) -> init_producer_id::Response {
    init_producer_id::Response {
        throttle_time_ms: theirs.throttle_time_ms,
        error_code: ErrorCode(theirs.error_code),
        producer_id: theirs.producer_id.0,
        producer_epoch: theirs.producer_epoch,
    }
}

pub fn produce(theirs: &ProduceResponse, version: i16) -> produce::Response {
    let topics = theirs.responses.iter().map(|topic| TopicResponse {
        name: (version < 13).then(|| topic.name.to_string()),
        topic_id: topic.topic_id.into_bytes(),
        partitions: topic
            .partition_responses
            .iter()
            .map(|partition| PartitionResponse {
                index: partition.index,
                error_code: ErrorCode(partition.error_code),
                base_offset: partition.base_offset,
                log_append_time_ms: partition.log_append_time_ms,
                log_start_offset: partition.log_start_offset,
                record_errors: partition
                    .record_errors
                    .iter()
                    .map(|error| RecordError {
                        batch_index: error.batch_index,
                        message: owned(&error.batch_index_error_message),
                    })
                    .collect(),
                error_message: owned(&partition.error_message),
                current_leader: current_leader(&partition.current_leader),
            })
            .collect(),
    });
    let node_endpoints = theirs.node_endpoints.iter().map(|node| Broker {
        node_id: node.node_id.0,
        host: node.host.to_string(),
        port: node.port,
        rack: owned(&node.rack),
    });
    produce::Response {
        throttle_time_ms: theirs.throttle_time_ms,
        topics: topics.collect(),
        node_endpoints: node_endpoints.collect(),
    }
}

/// Theirs does not tell an absent leader from the default one.
fn current_leader(theirs: &TheirLeader) -> Option<LeaderIdAndEpoch> {
    (*theirs != TheirLeader::default()).then_some(LeaderIdAndEpoch {
        leader_id: theirs.leader_id.0,
        leader_epoch: theirs.leader_epoch,
    })
}
