//! Cutting the received stream into frames.

use kafka::wire::{FrameDecoder, FrameError};

fn frame(payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as i32).to_be_bytes(), payload].concat()
}

fn first(bytes: &[u8]) -> Result<Option<bytes::Bytes>, FrameError> {
    let mut decoder = FrameDecoder::new(1 << 20);
    decoder.push(bytes);
    decoder.next_frame()
}

#[test]
fn frames_come_out_however_the_bytes_come_in() {
    let payloads: Vec<Vec<u8>> =
        [4, 5, 100, 4, 1000].iter().map(|len| vec![*len as u8; *len]).collect();
    let stream: Vec<u8> = payloads.iter().flat_map(|payload| frame(payload)).collect();
    for step in 1..stream.len() {
        let mut decoder = FrameDecoder::new(1000);
        let mut seen = Vec::new();
        for part in stream.chunks(step) {
            decoder.push(part);
            while let Some(frame) = decoder.next_frame().unwrap() {
                seen.push(frame.to_vec());
            }
        }
        assert_eq!(seen, payloads, "{step} bytes at a time");
        assert_eq!(decoder.capacity(), 0, "idle");
    }
}

#[test]
fn all_frames_of_one_read_come_out() {
    let mut decoder = FrameDecoder::new(100);
    decoder.push(&[frame(b"abcd"), frame(b"efghi"), frame(b"jk")[..3].to_vec()].concat());
    assert_eq!(decoder.next_frame().unwrap().unwrap(), "abcd");
    assert_eq!(decoder.next_frame().unwrap().unwrap(), "efghi");
    assert_eq!(decoder.next_frame(), Ok(None));
    decoder.push(&[4, b'l', b'm', b'n', b'o']);
    assert_eq!(decoder.next_frame().unwrap().unwrap(), "lmno");
    decoder.push(&[frame(b"abcd"), frame(b"efghi")].concat());
    assert_eq!(decoder.next_frame().unwrap().unwrap(), "abcd");
    assert!(decoder.capacity() > 0);
    assert_eq!(decoder.next_frame().unwrap().unwrap(), "efghi");
    assert_eq!(decoder.capacity(), 0, "idle");
}

#[test]
fn impossible_lengths_are_refused() {
    assert_eq!(first(&[0xff, 0xff, 0xff, 0xff]), Err(FrameError::Negative(-1)));
    assert_eq!(first(&[0x80, 0, 0, 0]), Err(FrameError::Negative(i32::MIN)));
    assert_eq!(first(&[0, 0, 0, 0]), Err(FrameError::TooShort(0)));
    assert_eq!(first(&[0, 0, 0, 3]), Err(FrameError::TooShort(3)));
    assert_eq!(first(&[0, 0x10, 0, 0]), Ok(None), "1 MiB is the limit here");
    assert_eq!(
        first(&[0, 0x10, 0, 1]),
        Err(FrameError::TooLong { len: (1 << 20) + 1, max: 1 << 20 })
    );
    assert_eq!(first(&[0xff, 0xff, 0xff]), Ok(None), "not enough to tell");
}

#[test]
fn http_and_tls_are_recognised_and_named() {
    let http = first(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err();
    assert_eq!(http, FrameError::Http);
    assert_eq!(http.to_string(), "an HTTP server answers here, not a Kafka broker");
    let alert = first(&[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x50]).unwrap_err();
    assert_eq!(alert, FrameError::TlsAlert);
    assert!(alert.to_string().contains("TLS alert"));
    let handshake = first(&[0x16, 0x03, 0x01, 0x02, 0x00]).unwrap_err();
    assert_eq!(handshake, FrameError::TlsHandshake);
    assert!(handshake.to_string().contains("TLS server"));
}

#[test]
fn an_error_stays_and_holds_no_memory() {
    let mut decoder = FrameDecoder::new(100);
    decoder.push(&[0, 0, 0, 1, 2, 3, 4]);
    for _ in 0..3 {
        assert_eq!(decoder.next_frame(), Err(FrameError::TooShort(1)));
        decoder.push(&frame(b"valid"));
        assert_eq!(decoder.capacity(), 0);
    }
}

#[test]
fn an_announced_length_allocates_nothing() {
    let mut decoder = FrameDecoder::new(100 << 20);
    decoder.push(&(100i32 << 20).to_be_bytes());
    assert_eq!(decoder.next_frame(), Ok(None));
    assert!(decoder.capacity() <= 64, "{}", decoder.capacity());
    decoder.push(&[0; 1000]);
    assert!(decoder.capacity() <= 2 * 1004, "{}", decoder.capacity());
}

#[test]
fn memory_stays_within_twice_the_received_and_within_the_frame() {
    let size = 1_000_000;
    let stream = frame(&vec![7; size]);
    let mut decoder = FrameDecoder::new(size);
    let mut received = 0;
    for part in stream.chunks(1460) {
        assert_eq!(decoder.next_frame(), Ok(None));
        decoder.push(part);
        received += part.len();
        assert!(decoder.capacity() <= (2 * received).min(stream.len()));
    }
    assert_eq!(decoder.next_frame().unwrap().unwrap().len(), size);
    assert_eq!(decoder.capacity(), 0);
}

/// Quadratic copying would move 2^43 bytes here, which takes many minutes.
#[test]
fn single_byte_reads_take_linear_time() {
    let size = 4 << 20;
    let stream = frame(&vec![7; size]);
    let mut decoder = FrameDecoder::new(size);
    for byte in &stream[..stream.len() - 1] {
        decoder.push(std::slice::from_ref(byte));
        assert_eq!(decoder.next_frame(), Ok(None));
    }
    decoder.push(&stream[stream.len() - 1..]);
    assert_eq!(decoder.next_frame().unwrap().unwrap().len(), size);
}
