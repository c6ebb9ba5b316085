//! Produce (0): record batches to the leaders of their partitions. Versions 3 to 13.
//!
//! The request changes at 9 (flexible) and 13 (topic ids, KIP-516) only; the versions between differ
//! in what the answer may hold.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::request_header::{set_frame_len, start_frame};
use super::writer::{put_len, put_no_tagged_fields, put_null_string, put_string};
use super::{ApiKey, Broker, DecodeError, Encoding, Reader};
use crate::error_code::ErrorCode;
use crate::negotiation::ProduceVersion;
use crate::record_batch::HEADER_LEN;

/// Records above this size are not copied into the request but handed on as they are: a copy of
/// less costs no more than one more iovec.
const INLINE_RECORDS: usize = 1024;

#[derive(Debug, Clone)]
pub struct TopicData {
    /// Sent up to version 12.
    pub name: Arc<str>,
    /// Sent from version 13 on.
    pub topic_id: [u8; 16],
    pub partitions: Vec<PartitionData>,
}

/// One record batch: [`RecordBatch::header`](crate::record_batch::RecordBatch::header) and the
/// records behind it.
#[derive(Debug, Clone)]
pub struct PartitionData {
    pub index: i32,
    pub header: [u8; HEADER_LEN],
    pub records: Bytes,
}

/// Pushes the pieces of a complete frame to `out` and returns how many bytes they are together.
///
/// `acks` is -1, 0 or 1; `timeout_ms` is how long the broker may wait for its in-sync replicas.
/// There is no transactional id.
pub fn encode_request(
    version: ProduceVersion,
    correlation_id: i32,
    client_id: &str,
    acks: i16,
    timeout_ms: i32,
    topics: &[TopicData],
    out: &mut Vec<Bytes>,
) -> usize {
    let api = ApiKey::Produce;
    let encoding = api.encoding(version.get());
    let mut framing =
        start_frame(framing_len(topics), api, version.get(), correlation_id, client_id);
    // Where in the framing which records belong.
    let mut cuts: Vec<(usize, &Bytes)> = Vec::new();

    put_null_string(&mut framing, encoding); // transactional_id
    framing.put_i16(acks);
    framing.put_i32(timeout_ms);
    put_len(&mut framing, encoding, topics.len());
    for topic in topics {
        if version.uses_topic_ids() {
            framing.put_slice(&topic.topic_id);
        } else {
            put_string(&mut framing, encoding, &topic.name);
        }
        put_len(&mut framing, encoding, topic.partitions.len());
        for partition in &topic.partitions {
            put_partition(&mut framing, encoding, partition, &mut cuts);
        }
        put_no_tagged_fields(&mut framing, encoding);
    }
    put_no_tagged_fields(&mut framing, encoding);

    let total = framing.len() + cuts.iter().map(|(_, records)| records.len()).sum::<usize>();
    set_frame_len(&mut framing, total);
    let mut framing = framing.freeze();
    let mut cut_off = 0;
    for (at, records) in cuts {
        out.push(framing.split_to(at - cut_off));
        out.push(records.clone());
        cut_off = at;
    }
    if !framing.is_empty() {
        out.push(framing);
    }
    total
}

fn put_partition<'a>(
    framing: &mut BytesMut,
    encoding: Encoding,
    partition: &'a PartitionData,
    cuts: &mut Vec<(usize, &'a Bytes)>,
) {
    framing.put_i32(partition.index);
    put_len(framing, encoding, HEADER_LEN + partition.records.len());
    framing.put_slice(&partition.header);
    if partition.records.len() > INLINE_RECORDS {
        cuts.push((framing.len(), &partition.records));
    } else {
        framing.put_slice(&partition.records);
    }
    put_no_tagged_fields(framing, encoding);
}

/// An upper bound of what goes into the framing after the header.
fn framing_len(topics: &[TopicData]) -> usize {
    let partition_len = |partition: &PartitionData| {
        let inline = match partition.records.len() {
            len if len > INLINE_RECORDS => 0,
            len => len,
        };
        4 + 5 + HEADER_LEN + inline + 1
    };
    let topic_len = |topic: &TopicData| {
        topic.name.len().max(16)
            + 5
            + 5
            + 1
            + topic.partitions.iter().map(partition_len).sum::<usize>()
    };
    2 + 2 + 4 + 5 + 1 + topics.iter().map(topic_len).sum::<usize>()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub throttle_time_ms: i32,
    pub topics: Vec<TopicResponse>,
    /// From version 10 on: the addresses of the leaders named in
    /// [`current_leader`](PartitionResponse::current_leader) (KIP-951).
    pub node_endpoints: Vec<Broker>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicResponse {
    /// `None` from version 13 on.
    pub name: Option<String>,
    /// All zero before version 13.
    pub topic_id: [u8; 16],
    pub partitions: Vec<PartitionResponse>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionResponse {
    pub index: i32,
    pub error_code: ErrorCode,
    /// Of the first record; -1 with an error.
    pub base_offset: i64,
    /// -1 unless the topic's timestamps are those of appending.
    pub log_append_time_ms: i64,
    /// -1 before version 5 and when unknown.
    pub log_start_offset: i64,
    /// From version 8 on: the records that made the broker refuse the batch (KIP-467).
    pub record_errors: Vec<RecordError>,
    /// From version 8 on.
    pub error_message: Option<String>,
    /// From version 10 on, with 6 NOT_LEADER_OR_FOLLOWER and 74 FENCED_LEADER_EPOCH (KIP-951).
    pub current_leader: Option<LeaderIdAndEpoch>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// The record's place in the batch, from 0.
    pub batch_index: i32,
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderIdAndEpoch {
    /// -1 when unknown.
    pub leader_id: i32,
    /// -1 when unknown.
    pub leader_epoch: i32,
}

/// Reads the whole body of a response.
pub fn decode_response(
    body: &mut Reader<'_>,
    version: ProduceVersion,
) -> Result<Response, DecodeError> {
    let encoding = ApiKey::Produce.encoding(version.get());
    let name_len = if version.uses_topic_ids() { 16 } else { encoding.min_string() };
    let topic_len = name_len + encoding.min_array() + encoding.min_tagged_fields();
    let count = body.array_len(encoding, topic_len)?;
    let mut topics = Vec::with_capacity(count);
    for _ in 0..count {
        topics.push(decode_topic(body, version, encoding)?);
    }
    let throttle_time_ms = body.i32()?;
    let mut node_endpoints = Vec::new();
    body.tagged_fields(encoding, |tag, mut field| {
        if tag == 0 {
            node_endpoints = Broker::decode_array(&mut field, encoding)?;
            field.finish()?;
        }
        Ok(())
    })?;
    body.finish()?;
    Ok(Response { throttle_time_ms, topics, node_endpoints })
}

fn decode_topic(
    body: &mut Reader<'_>,
    version: ProduceVersion,
    encoding: Encoding,
) -> Result<TopicResponse, DecodeError> {
    let (name, topic_id) = if version.uses_topic_ids() {
        (None, body.uuid()?)
    } else {
        (Some(body.string(encoding)?.to_owned()), [0; 16])
    };
    // Index, error code, base offset, log append time, tagged fields.
    let count = body.array_len(encoding, 4 + 2 + 8 + 8 + encoding.min_tagged_fields())?;
    let mut partitions = Vec::with_capacity(count);
    for _ in 0..count {
        partitions.push(decode_partition(body, version.get(), encoding)?);
    }
    body.skip_tagged_fields(encoding)?;
    Ok(TopicResponse { name, topic_id, partitions })
}

fn decode_partition(
    body: &mut Reader<'_>,
    version: i16,
    encoding: Encoding,
) -> Result<PartitionResponse, DecodeError> {
    let mut partition = PartitionResponse {
        index: body.i32()?,
        error_code: ErrorCode(body.i16()?),
        base_offset: body.i64()?,
        log_append_time_ms: body.i64()?,
        log_start_offset: if version >= 5 { body.i64()? } else { -1 },
        record_errors: Vec::new(),
        error_message: None,
        current_leader: None,
    };
    if version >= 8 {
        let min_len = 4 + encoding.min_string() + encoding.min_tagged_fields();
        let count = body.array_len(encoding, min_len)?;
        partition.record_errors.reserve_exact(count);
        for _ in 0..count {
            partition.record_errors.push(RecordError {
                batch_index: body.i32()?,
                message: body.nullable_string(encoding)?.map(str::to_owned),
            });
            body.skip_tagged_fields(encoding)?;
        }
        partition.error_message = body.nullable_string(encoding)?.map(str::to_owned);
    }
    body.tagged_fields(encoding, |tag, mut field| {
        if tag == 0 {
            partition.current_leader =
                Some(LeaderIdAndEpoch { leader_id: field.i32()?, leader_epoch: field.i32()? });
            field.skip_tagged_fields(encoding)?;
            field.finish()?;
        }
        Ok(())
    })?;
    Ok(partition)
}
