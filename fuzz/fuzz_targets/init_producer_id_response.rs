//! The answer to InitProducerId, versions 0 to 5.
#![no_main]

use kafka::negotiation::InitProducerIdVersion;
use kafka::wire::{ApiKey, Reader, init_producer_id, response_header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((version, frame)) = data.split_first() else { return };
    let version = InitProducerIdVersion::assume(i16::from(version % 6));
    let mut reader = Reader::new(frame);
    if response_header::decode(&mut reader, ApiKey::InitProducerId, version.get()).is_ok() {
        let _ = init_producer_id::decode_response(&mut reader, version);
    }
});
