//! Pseudo-random numbers for jitter and sticky partitions: SplitMix64, seeded by the driver so that
//! the same seed gives the same bytes. Not for secrets.

#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The bias of a multiply-shift over 64 bits is far below anything that matters here.
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}
