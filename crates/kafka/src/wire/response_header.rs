//! What every response begins with.

use super::{ApiKey, DecodeError, Encoding, Reader};

/// Reads the header of the response to a request of `version` and returns its correlation id.
///
/// Header v0, or v1 (with tagged fields) where the version is flexible; ApiVersions always has v0,
/// because a client must be able to read the answer before it knows what the broker speaks
/// (KIP-511).
pub fn decode(reader: &mut Reader<'_>, api_key: ApiKey, version: i16) -> Result<i32, DecodeError> {
    let correlation_id = reader.i32()?;
    let encoding = match api_key {
        ApiKey::ApiVersions => Encoding::Classic,
        _ => api_key.encoding(version),
    };
    reader.skip_tagged_fields(encoding)?;
    Ok(correlation_id)
}
