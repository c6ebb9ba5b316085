//! The broker's side of the protocol, by `kafka-protocol`.

use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiVersionsRequest, InitProducerIdRequest, MetadataRequest, ProduceRequest, RequestHeader,
    ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};

use crate::batch::{self, Batch};

pub const PRODUCE: i16 = 0;
pub const METADATA: i16 = 3;
pub const API_VERSIONS: i16 = 18;
pub const INIT_PRODUCER_ID: i16 = 22;

#[derive(Debug)]
pub struct Request {
    pub api: i16,
    pub version: i16,
    pub correlation_id: i32,
    pub body: Body,
    /// Of the frame, its length field included.
    pub size: usize,
}

#[derive(Debug)]
pub enum Body {
    ApiVersions,
    Metadata(MetadataRequest),
    InitProducerId(InitProducerIdRequest),
    Produce { request: ProduceRequest, batches: Vec<SentBatch> },
}

/// One partition of a Produce request.
#[derive(Debug, Clone)]
pub struct SentBatch {
    pub topic: TopicRef,
    pub partition: i32,
    pub batch: Rc<Batch>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopicRef {
    Name(String),
    Id(uuid::Uuid),
}

/// Reads a whole frame without its length field. Every byte must be accounted for.
pub fn decode(mut frame: Bytes) -> Result<Request, String> {
    let size = frame.len() + 4;
    if frame.len() < 8 {
        return Err(format!("a frame of {} bytes", frame.len()));
    }
    let api = i16::from_be_bytes([frame[0], frame[1]]);
    let version = i16::from_be_bytes([frame[2], frame[3]]);
    let header_version = match api {
        PRODUCE => ProduceRequest::header_version(version),
        METADATA => MetadataRequest::header_version(version),
        API_VERSIONS => ApiVersionsRequest::header_version(version),
        INIT_PRODUCER_ID => InitProducerIdRequest::header_version(version),
        other => return Err(format!("API key {other}")),
    };
    let error = |e| format!("API {api} version {version}: {e}");
    let header = RequestHeader::decode(&mut frame, header_version).map_err(error)?;
    let body = match api {
        PRODUCE => {
            let request = ProduceRequest::decode(&mut frame, version).map_err(error)?;
            let batches = read_batches(&request, version)?;
            Body::Produce { request, batches }
        }
        METADATA => Body::Metadata(MetadataRequest::decode(&mut frame, version).map_err(error)?),
        INIT_PRODUCER_ID => {
            Body::InitProducerId(InitProducerIdRequest::decode(&mut frame, version).map_err(error)?)
        }
        _ => {
            ApiVersionsRequest::decode(&mut frame, version).map_err(error)?;
            Body::ApiVersions
        }
    };
    if !frame.is_empty() {
        return Err(format!("API {api} version {version}: {} bytes too many", frame.len()));
    }
    Ok(Request { api, version, correlation_id: header.correlation_id, body, size })
}

fn read_batches(request: &ProduceRequest, version: i16) -> Result<Vec<SentBatch>, String> {
    if request.transactional_id.is_some() {
        return Err("a transactional id".into());
    }
    let mut batches = Vec::new();
    for topic in &request.topic_data {
        let reference = match version {
            13.. => TopicRef::Id(topic.topic_id),
            _ => TopicRef::Name(topic.name.0.as_str().to_owned()),
        };
        for partition in &topic.partition_data {
            let records = partition.records.as_ref().ok_or("null records")?;
            let batch = batch::parse(records)
                .map_err(|e| format!("{reference:?} partition {}: {e}", partition.index))?;
            batches.push(SentBatch {
                topic: reference.clone(),
                partition: partition.index,
                batch: Rc::new(batch),
            });
        }
    }
    if batches.is_empty() {
        return Err("a Produce request without records".into());
    }
    Ok(batches)
}

/// A frame with its length field.
pub fn encode<R: Encodable + HeaderVersion>(correlation_id: i32, version: i16, body: &R) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_i32(0);
    ResponseHeader::default()
        .with_correlation_id(correlation_id)
        .encode(&mut frame, R::header_version(version))
        .expect("the header is encodable");
    body.encode(&mut frame, version).expect("the answer is encodable");
    let length = frame.len() as i32 - 4;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame.freeze()
}
