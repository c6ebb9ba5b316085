//! The answer to ApiVersions, versions 0 to 4.
#![no_main]

use kafka::wire::{ApiKey, Reader, api_versions, response_header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((version, frame)) = data.split_first() else { return };
    let version = i16::from(version % 5);
    let mut reader = Reader::new(frame);
    if response_header::decode(&mut reader, ApiKey::ApiVersions, version).is_ok() {
        let _ = api_versions::decode_response(&mut reader, version);
    }
});
