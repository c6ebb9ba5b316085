//! The answer to Produce, versions 3 to 13.
#![no_main]

use kafka::negotiation::ProduceVersion;
use kafka::wire::{ApiKey, Reader, produce, response_header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((version, frame)) = data.split_first() else { return };
    let version = ProduceVersion::assume(3 + i16::from(version % 11));
    let mut reader = Reader::new(frame);
    if response_header::decode(&mut reader, ApiKey::Produce, version.get()).is_ok() {
        let _ = produce::decode_response(&mut reader, version);
    }
});
