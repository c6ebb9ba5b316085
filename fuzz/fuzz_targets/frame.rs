//! A stream in reads of some size: frames lose nothing and memory stays within bounds.
#![no_main]

use kafka::wire::FrameDecoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((step, stream)) = data.split_first() else { return };
    let mut decoder = FrameDecoder::new(1 << 20);
    let mut handed_out = 0;
    let mut received = 0;
    for part in stream.chunks(usize::from(*step).max(1)) {
        decoder.push(part);
        received += part.len();
        assert!(decoder.capacity() <= 2 * received);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    let start = handed_out + 4;
                    assert_eq!(stream[start..start + frame.len()], frame);
                    handed_out = start + frame.len();
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next_frame(), Err(error));
                    return;
                }
            }
        }
    }
});
