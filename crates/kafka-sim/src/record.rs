//! How a record is recognised after its way through the wire: by its timestamp, which is a function
//! of its token, and by a hash of all its bytes.

const BASE_TIMESTAMP: i64 = 1_700_000_000_000;
const BITS: u32 = 22;
const MASK: u64 = (1 << BITS) - 1;
/// Odd, so that multiplying is a bijection: tokens in sequence get timestamps that go up and down.
const FACTOR: u64 = 2_654_435_761;

/// More records than this cannot be told apart.
pub const MAX_TOKENS: usize = 1 << BITS;

const fn inverse() -> u64 {
    let mut inverse = 1u64;
    let mut i = 0;
    while i < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(FACTOR.wrapping_mul(inverse)));
        i += 1;
    }
    inverse
}

pub fn timestamp_of(token: u64) -> i64 {
    BASE_TIMESTAMP + (token.wrapping_mul(FACTOR) & MASK) as i64
}

/// `u64::MAX` when the timestamp is not one of ours.
pub fn token_of(timestamp: i64) -> u64 {
    match timestamp - BASE_TIMESTAMP {
        offset if (0..=MASK as i64).contains(&offset) => {
            (offset as u64).wrapping_mul(inverse()) & MASK
        }
        _ => u64::MAX,
    }
}

/// FNV-1a, eight bytes at a time.
#[derive(Debug)]
pub struct Hash(u64);

impl Hash {
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 ^= self.0 >> 29;
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.word(u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
        }
        for byte in chunks.remainder() {
            self.word(u64::from(*byte));
        }
    }

    /// Null and empty differ.
    pub fn field(&mut self, field: Option<&[u8]>) {
        match field {
            None => self.word(u64::MAX),
            Some(bytes) => {
                self.word(bytes.len() as u64);
                self.bytes(bytes);
            }
        }
    }

    pub fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_their_timestamps() {
        for token in (0..MAX_TOKENS as u64).step_by(997) {
            assert_eq!(token_of(timestamp_of(token)), token);
        }
    }
}
