//! Cutting a stream of bytes into frames: a 32-bit length, then so many bytes.

use bytes::{Buf, Bytes};

/// Bytes of the length before each frame.
const PREFIX: usize = 4;

/// The shortest response is a correlation id.
const MIN_FRAME: usize = 4;

/// Why a stream cannot be a Kafka broker's. There is no way on: close the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("the peer sent a frame of negative length {0}, it may not be a Kafka broker")]
    Negative(i32),
    #[error("the peer sent a frame of {0} bytes, too short for a Kafka response")]
    TooShort(usize),
    #[error("the peer sent a frame of {len} bytes, the limit is {max}")]
    TooLong { len: usize, max: usize },
    #[error("an HTTP server answers here, not a Kafka broker")]
    Http,
    #[error("the peer answers with a TLS alert: this listener expects TLS")]
    TlsAlert,
    #[error("the peer answers with a TLS handshake: it is a TLS server")]
    TlsHandshake,
}

/// Collects received bytes and hands out whole frames.
///
/// It never allocates for a length that has only been announced: the buffer is at most twice what
/// has been received, and no larger than the current frame and one read. With no incomplete frame
/// it holds no memory.
#[derive(Debug)]
pub struct FrameDecoder {
    max_frame: usize,
    buffer: Vec<u8>,
    /// How much of the buffer has been handed out.
    consumed: usize,
    failed: Option<FrameError>,
}

impl FrameDecoder {
    /// Frames over `max_frame` bytes, without their length, are refused.
    pub fn new(max_frame: usize) -> Self {
        Self { max_frame, buffer: Vec::new(), consumed: 0, failed: None }
    }

    /// Another limit, for the frames that have not begun to be read.
    pub fn set_max_frame(&mut self, max_frame: usize) {
        self.max_frame = max_frame;
    }

    /// Appends what was received. Bytes that come after an error are dropped.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_some() || bytes.is_empty() {
            return;
        }
        if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
            self.consumed = 0;
        }
        self.grow(bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame without its length, `None` until all of it has been pushed. An error repeats
    /// for ever.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let len = match self.frame_len() {
            Ok(Some(len)) => len,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.failed = Some(error);
                self.release();
                return Err(error);
            }
        };
        let start = self.consumed + PREFIX;
        let Some(end) = start.checked_add(len).filter(|end| *end <= self.buffer.len()) else {
            return Ok(None);
        };
        if self.consumed == 0 && end == self.buffer.len() {
            // The usual case, and that of large frames: no copy.
            let mut frame = Bytes::from(std::mem::take(&mut self.buffer));
            frame.advance(PREFIX);
            return Ok(Some(frame));
        }
        let frame = Bytes::copy_from_slice(&self.buffer[start..end]);
        self.consumed = end;
        if self.consumed == self.buffer.len() {
            self.release();
        }
        Ok(Some(frame))
    }

    /// Bytes of memory held.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    fn release(&mut self) {
        self.buffer = Vec::new();
        self.consumed = 0;
    }

    /// Makes room for `additional` bytes: by doubling, which keeps single-byte reads linear, but not
    /// past the end of the frame that is being received.
    fn grow(&mut self, additional: usize) {
        let needed = self.buffer.len().saturating_add(additional);
        let capacity = self.buffer.capacity();
        if needed <= capacity {
            return;
        }
        let doubled = capacity.saturating_mul(2);
        let target = match self.frame_len() {
            Ok(Some(len)) if len.saturating_add(PREFIX) >= needed => {
                doubled.min(len.saturating_add(PREFIX))
            }
            _ => doubled,
        };
        self.buffer.reserve_exact(target.max(needed) - self.buffer.len());
    }

    /// The length of the frame at the front, checked.
    fn frame_len(&self) -> Result<Option<usize>, FrameError> {
        let unread = self.buffer.get(self.consumed..).unwrap_or_default();
        let Some(prefix) = unread.first_chunk::<PREFIX>() else { return Ok(None) };
        let signed = i32::from_be_bytes(*prefix);
        let len = usize::try_from(signed).map_err(|_| FrameError::Negative(signed))?;
        if len < MIN_FRAME {
            return Err(FrameError::TooShort(len));
        }
        if len > self.max_frame {
            // Read as a length, the first bytes of these protocols are over 350 MB.
            return Err(match *prefix {
                [b'H', b'T', b'T', b'P'] => FrameError::Http,
                [0x15, 0x03, ..] => FrameError::TlsAlert,
                [0x16, 0x03, ..] => FrameError::TlsHandshake,
                _ => FrameError::TooLong { len, max: self.max_frame },
            });
        }
        Ok(Some(len))
    }
}
