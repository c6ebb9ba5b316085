//! What every request begins with.

use bytes::{BufMut, Bytes, BytesMut};

use super::writer::{put_no_tagged_fields, put_string};
use super::{ApiKey, Encoding};

/// Writes request header v1, or v2 where `version` is flexible. The client id keeps its 16-bit
/// length even in v2, which only adds tagged fields (KIP-511 let old brokers read it that far).
pub fn encode(
    out: &mut BytesMut,
    api_key: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: &str,
) {
    out.put_i16(api_key.code());
    out.put_i16(version);
    out.put_i32(correlation_id);
    put_string(out, Encoding::Classic, client_id);
    put_no_tagged_fields(out, api_key.encoding(version));
}

/// Starts a frame: room for the length, then the header.
pub(super) fn start_frame(
    capacity: usize,
    api_key: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: &str,
) -> BytesMut {
    // 4 length, 8 fixed fields, 2 + n client id, 1 tagged fields.
    let mut out = BytesMut::with_capacity(15 + client_id.len() + capacity);
    out.put_i32(0);
    encode(&mut out, api_key, version, correlation_id, client_id);
    out
}

/// Fills in the length of a frame of `total` bytes, of which `out` holds at least the first.
pub(super) fn set_frame_len(out: &mut BytesMut, total: usize) {
    let len = i32::try_from(total.saturating_sub(4)).unwrap_or(i32::MAX);
    if let Some(prefix) = out.first_chunk_mut::<4>() {
        *prefix = len.to_be_bytes();
    }
}

/// Ends a frame that lies in one piece.
pub(super) fn finish_frame(mut out: BytesMut) -> Bytes {
    let total = out.len();
    set_frame_len(&mut out, total);
    out.freeze()
}
