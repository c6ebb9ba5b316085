//! The answer to Metadata, versions 1 to 13.
#![no_main]

use kafka::negotiation::MetadataVersion;
use kafka::wire::{ApiKey, Reader, metadata, response_header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((version, frame)) = data.split_first() else { return };
    let version = MetadataVersion::assume(1 + i16::from(version % 13));
    let mut reader = Reader::new(frame);
    if response_header::decode(&mut reader, ApiKey::Metadata, version.get()).is_ok() {
        let _ = metadata::decode_response(&mut reader, version);
    }
});
