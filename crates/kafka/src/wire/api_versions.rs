//! ApiVersions (18): which versions of which API a broker speaks. Versions 0 and 3.

use bytes::Bytes;

use super::request_header::{finish_frame, start_frame};
use super::writer::{put_no_tagged_fields, put_string};
use super::{ApiKey, DecodeError, Encoding, Reader};
use crate::error_code::ErrorCode;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// 35 UNSUPPORTED_VERSION: ask again, with the maximum that [`ranges`](Self::ranges) gives for
    /// ApiVersions, or with version 0 where it gives none (brokers before 2.4).
    pub error_code: ErrorCode,
    pub ranges: Vec<ApiRange>,
    pub throttle_time_ms: i32,
}

/// The versions of one API, both ends included. Mind that a broker may advertise a minimum that it
/// does not serve (KAFKA-18659).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiRange {
    pub api_key: i16,
    pub min: i16,
    pub max: i16,
}

/// A complete frame. The software's name and version (KIP-511) are sent from version 3 on; brokers
/// accept letters, digits, `-` and `.` there.
pub fn encode_request(
    version: i16,
    correlation_id: i32,
    client_id: &str,
    software_name: &str,
    software_version: &str,
) -> Bytes {
    let capacity = software_name.len() + software_version.len() + 11;
    let api = ApiKey::ApiVersions;
    let mut out = start_frame(capacity, api, version, correlation_id, client_id);
    let encoding = api.encoding(version);
    if encoding == Encoding::Flexible {
        put_string(&mut out, encoding, software_name);
        put_string(&mut out, encoding, software_version);
    }
    put_no_tagged_fields(&mut out, encoding);
    finish_frame(out)
}

/// Reads the whole body of the answer to a request of `version`.
///
/// A broker that does not speak `version` answers with error 35 in the layout of version 0, so the
/// error code decides how the rest is read.
pub fn decode_response(body: &mut Reader<'_>, version: i16) -> Result<Response, DecodeError> {
    let error_code = ErrorCode(body.i16()?);
    let version = if error_code == ErrorCode::UNSUPPORTED_VERSION { 0 } else { version };
    let encoding = ApiKey::ApiVersions.encoding(version);

    let count = body.array_len(encoding, 6 + encoding.min_tagged_fields())?;
    let mut ranges = Vec::with_capacity(count);
    for _ in 0..count {
        ranges.push(ApiRange { api_key: body.i16()?, min: body.i16()?, max: body.i16()? });
        body.skip_tagged_fields(encoding)?;
    }
    let throttle_time_ms = if version >= 1 { body.i32()? } else { 0 };
    // Features (KIP-584) mean nothing to a producer.
    body.skip_tagged_fields(encoding)?;
    body.finish()?;
    Ok(Response { error_code, ranges, throttle_time_ms })
}
