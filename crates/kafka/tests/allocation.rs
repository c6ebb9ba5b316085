//! A small frame that claims to hold a lot makes nobody allocate a lot.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use kafka::negotiation::{InitProducerIdVersion, MetadataVersion, ProduceVersion};
use kafka::record_batch::Records;
use kafka::wire::{Encoding, FrameDecoder, Reader};
use kafka::wire::{api_versions, init_producer_id, metadata, produce};

/// The system's allocator, counting what the current thread asks for.
struct Counting;

thread_local! {
    static REQUESTED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; the counter is a constant-initialised
// thread-local without a destructor, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        REQUESTED.set(REQUESTED.get() + layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn requested(run: impl FnOnce()) -> usize {
    let before = REQUESTED.get();
    run();
    REQUESTED.get() - before
}

fn decode_as_everything(bytes: &[u8]) {
    for version in 1..=13 {
        let version = MetadataVersion::assume(version);
        let _ = metadata::decode_response(&mut Reader::new(bytes), version);
    }
    for version in 3..=13 {
        let version = ProduceVersion::assume(version);
        let _ = produce::decode_response(&mut Reader::new(bytes), version);
    }
    for version in [0, 3] {
        let _ = api_versions::decode_response(&mut Reader::new(bytes), version);
    }
    for version in 0..=5 {
        let version = InitProducerIdVersion::assume(version);
        let _ = init_producer_id::decode_response(&mut Reader::new(bytes), version);
    }
}

/// Decodings in [`decode_as_everything`].
const DECODERS: usize = 13 + 11 + 2 + 6;

/// No decoder keeps more than so many bytes per byte of input: a topic of 9 bytes takes 80.
const FACTOR: usize = 32;

#[test]
fn the_counter_counts() {
    assert_eq!(requested(|| drop(Vec::<u8>::with_capacity(12_345))), 12_345);
}

#[test]
fn counts_of_two_thousand_million_allocate_nothing() {
    // 2^31-1 in both encodings, at every place where a count may stand.
    for count in [&[0x7f, 0xff, 0xff, 0xff][..], &[0xff, 0xff, 0xff, 0xff, 0x07]] {
        for before in 0..60 {
            let frame = [&vec![0; before][..], count, &[0; 40]].concat();
            let bytes = requested(|| decode_as_everything(&frame));
            assert!(bytes <= DECODERS * FACTOR * frame.len(), "{bytes} bytes after {before}");
        }
    }
}

#[test]
fn random_bytes_allocate_no_more_than_a_multiple_of_themselves() {
    let mut state = 1u64;
    for len in 0..2000 {
        let frame: Vec<u8> = (0..len)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Small numbers, so that much of it decodes.
                [0, 0, 1, 2, 3, 9, 127, (state >> 33) as u8][(state >> 60) as usize % 8]
            })
            .collect();
        let bytes = requested(|| decode_as_everything(&frame));
        assert!(bytes <= DECODERS * FACTOR * (len + 1), "{bytes} bytes for {len}");
    }
}

#[test]
fn the_primitives_allocate_nothing() {
    let frame = [0xff, 0xff, 0xff, 0xff, 0x07, 0, 0, 0];
    let bytes = requested(|| {
        for encoding in [Encoding::Classic, Encoding::Flexible] {
            let _ = Reader::new(&frame).array_len(encoding, 1);
            let _ = Reader::new(&frame).nullable_bytes(encoding);
            let _ = Reader::new(&frame).nullable_string(encoding);
            let _ = Reader::new(&frame).skip_tagged_fields(encoding);
        }
    });
    assert_eq!(bytes, 0);
}

#[test]
fn a_record_with_two_thousand_million_headers_allocates_nothing() {
    let record = [0x18, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0];
    let bytes = requested(|| assert!(Records::new(&record, 0, 1).next().unwrap().is_err()));
    assert_eq!(bytes, 0);
}

#[test]
fn a_frame_that_is_announced_but_not_sent_allocates_nothing() {
    let bytes = requested(|| {
        let mut decoder = FrameDecoder::new(usize::MAX);
        decoder.push(&[0x7f, 0xff, 0xff, 0xff, 1, 2, 3]);
        assert_eq!(decoder.next_frame(), Ok(None));
    });
    assert!(bytes <= 16, "{bytes}");
}

/// Growing by what is needed would request 4 GB here.
#[test]
fn single_byte_reads_do_not_copy_a_frame_again_and_again() {
    let size = 90_000u32;
    let frame = [&size.to_be_bytes()[..], &vec![7; size as usize]].concat();
    let bytes = requested(|| {
        let mut decoder = FrameDecoder::new(size as usize);
        frame.iter().for_each(|byte| decoder.push(std::slice::from_ref(byte)));
        assert_eq!(decoder.next_frame().unwrap().unwrap().len(), size as usize);
    });
    assert!(bytes <= 3 * frame.len(), "{bytes}");
}
