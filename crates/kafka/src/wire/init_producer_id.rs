//! InitProducerId (22): a producer id for idempotent writes (KIP-98). Versions 0 to 5.

use bytes::{BufMut, Bytes};

use super::request_header::{finish_frame, start_frame};
use super::writer::{put_no_tagged_fields, put_null_string};
use super::{ApiKey, DecodeError, Reader};
use crate::error_code::ErrorCode;
use crate::negotiation::InitProducerIdVersion;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    pub throttle_time_ms: i32,
    pub error_code: ErrorCode,
    /// -1 with an error.
    pub producer_id: i64,
    /// -1 with an error.
    pub producer_epoch: i16,
}

/// A complete frame that asks for a new producer id without a transactional id.
pub fn encode_request(
    version: InitProducerIdVersion,
    correlation_id: i32,
    client_id: &str,
) -> Bytes {
    let api = ApiKey::InitProducerId;
    let version = version.get();
    let encoding = api.encoding(version);
    let mut out = start_frame(20, api, version, correlation_id, client_id);
    put_null_string(&mut out, encoding);
    // The transaction timeout: not looked at without a transactional id; Java sends the maximum.
    out.put_i32(i32::MAX);
    if version >= 3 {
        // The producer id and epoch that a transactional producer would want to go on with (KIP-360).
        out.put_i64(-1);
        out.put_i16(-1);
    }
    put_no_tagged_fields(&mut out, encoding);
    finish_frame(out)
}

/// Reads the whole body of a response.
pub fn decode_response(
    body: &mut Reader<'_>,
    version: InitProducerIdVersion,
) -> Result<Response, DecodeError> {
    let response = Response {
        throttle_time_ms: body.i32()?,
        error_code: ErrorCode(body.i16()?),
        producer_id: body.i64()?,
        producer_epoch: body.i16()?,
    };
    body.skip_tagged_fields(ApiKey::InitProducerId.encoding(version.get()))?;
    body.finish()?;
    Ok(response)
}
