//! Metadata (3): brokers, topics and the leaders of their partitions. Versions 1 to 13.

use bytes::{BufMut, Bytes};

use super::request_header::{finish_frame, start_frame};
use super::writer::{put_len, put_no_tagged_fields, put_null_len, put_string};
use super::{ApiKey, DecodeError, Encoding, Reader};
use crate::error_code::ErrorCode;
use crate::negotiation::MetadataVersion;

pub use super::Broker;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// 0 before version 3.
    pub throttle_time_ms: i32,
    pub brokers: Vec<Broker>,
    /// `None` before version 2.
    pub cluster_id: Option<String>,
    /// -1 when unknown.
    pub controller_id: i32,
    pub topics: Vec<Topic>,
    /// Version 13 on: 129 REBOOTSTRAP_REQUIRED (KIP-1102).
    pub error_code: ErrorCode,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    pub error_code: ErrorCode,
    /// `None` only from version 12 on, and only for topics that were asked for by id.
    pub name: Option<String>,
    /// All zero before version 10 and where the cluster has no topic ids (KIP-516).
    pub topic_id: [u8; 16],
    pub is_internal: bool,
    pub partitions: Vec<Partition>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    pub error_code: ErrorCode,
    pub index: i32,
    /// -1 when there is none at the moment.
    pub leader_id: i32,
    /// -1 when absent: before version 7, or unknown to the broker.
    pub leader_epoch: i32,
}

/// A complete frame. `topics`: `None` asks for all topics, an empty slice for none, that is, for the
/// brokers only.
///
/// `allow_auto_topic_creation` exists from version 4 on; below, brokers create a missing topic
/// whenever their own configuration lets them.
pub fn encode_request(
    version: MetadataVersion,
    correlation_id: i32,
    client_id: &str,
    topics: Option<&[&str]>,
    allow_auto_topic_creation: bool,
) -> Bytes {
    let api = ApiKey::Metadata;
    let version = version.get();
    let encoding = api.encoding(version);
    let topics_len: usize = topics.unwrap_or_default().iter().map(|name| name.len() + 20).sum();
    let mut out = start_frame(topics_len + 9, api, version, correlation_id, client_id);

    match topics {
        None => put_null_len(&mut out, encoding),
        Some(topics) => {
            put_len(&mut out, encoding, topics.len());
            for name in topics {
                if version >= 10 {
                    // The topic id: none, the name decides. Brokers heed ids from version 12 on.
                    out.put_bytes(0, 16);
                }
                put_string(&mut out, encoding, name);
                put_no_tagged_fields(&mut out, encoding);
            }
        }
    }
    if version >= 4 {
        out.put_u8(allow_auto_topic_creation.into());
    }
    if (8..=10).contains(&version) {
        // include_cluster_authorized_operations
        out.put_u8(0);
    }
    if version >= 8 {
        // include_topic_authorized_operations
        out.put_u8(0);
    }
    put_no_tagged_fields(&mut out, encoding);
    finish_frame(out)
}

/// Reads the whole body of a response.
pub fn decode_response(
    body: &mut Reader<'_>,
    version: MetadataVersion,
) -> Result<Response, DecodeError> {
    let version = version.get();
    let encoding = ApiKey::Metadata.encoding(version);

    let throttle_time_ms = if version >= 3 { body.i32()? } else { 0 };
    let brokers = Broker::decode_array(body, encoding)?;
    let cluster_id = match version {
        2.. => body.nullable_string(encoding)?.map(str::to_owned),
        _ => None,
    };
    let controller_id = body.i32()?;
    let count = body.array_len(encoding, min_topic_len(version, encoding))?;
    let mut topics = Vec::with_capacity(count);
    for _ in 0..count {
        topics.push(decode_topic(body, version, encoding)?);
    }
    if (8..=10).contains(&version) {
        // cluster_authorized_operations
        body.i32()?;
    }
    let error_code = if version >= 13 { ErrorCode(body.i16()?) } else { ErrorCode::NONE };
    body.skip_tagged_fields(encoding)?;
    body.finish()?;
    Ok(Response { throttle_time_ms, brokers, cluster_id, controller_id, topics, error_code })
}

/// Error code, name, topic id, is_internal, partitions, tagged fields.
fn min_topic_len(version: i16, encoding: Encoding) -> usize {
    let topic_id = if version >= 10 { 16 } else { 0 };
    2 + encoding.min_string() + topic_id + 1 + encoding.min_array() + encoding.min_tagged_fields()
}

/// Error code, index, leader, replicas, in-sync replicas, tagged fields.
fn min_partition_len(encoding: Encoding) -> usize {
    2 + 4 + 4 + 2 * encoding.min_array() + encoding.min_tagged_fields()
}

fn decode_topic(
    body: &mut Reader<'_>,
    version: i16,
    encoding: Encoding,
) -> Result<Topic, DecodeError> {
    let error_code = ErrorCode(body.i16()?);
    let name = match version {
        12.. => body.nullable_string(encoding)?,
        _ => Some(body.string(encoding)?),
    }
    .map(str::to_owned);
    let topic_id = if version >= 10 { body.uuid()? } else { [0; 16] };
    let is_internal = body.bool()?;
    let count = body.array_len(encoding, min_partition_len(encoding))?;
    let mut partitions = Vec::with_capacity(count);
    for _ in 0..count {
        partitions.push(decode_partition(body, version, encoding)?);
    }
    if version >= 8 {
        // topic_authorized_operations
        body.i32()?;
    }
    body.skip_tagged_fields(encoding)?;
    Ok(Topic { error_code, name, topic_id, is_internal, partitions })
}

fn decode_partition(
    body: &mut Reader<'_>,
    version: i16,
    encoding: Encoding,
) -> Result<Partition, DecodeError> {
    let partition = Partition {
        error_code: ErrorCode(body.i16()?),
        index: body.i32()?,
        leader_id: body.i32()?,
        leader_epoch: if version >= 7 { body.i32()? } else { -1 },
    };
    skip_node_ids(body, encoding)?; // replicas
    skip_node_ids(body, encoding)?; // in-sync replicas
    if version >= 5 {
        skip_node_ids(body, encoding)?; // offline replicas
    }
    body.skip_tagged_fields(encoding)?;
    Ok(partition)
}

fn skip_node_ids(body: &mut Reader<'_>, encoding: Encoding) -> Result<(), DecodeError> {
    let count = body.array_len(encoding, 4)?;
    body.take(4 * count).map(|_| ())
}
