//! The only source of chance: everything that a run draws comes from its seed.

use kafka::Micros;

/// SplitMix64. Streams are forked by purpose, so that one more draw in the network does not change
/// what the workload does.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x5bf0_3635_d1a2_9d71)
    }

    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Both ends included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (self.next() >> 11) as f64 / (1u64 << 53) as f64 <= probability
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Every order of magnitude is as likely as every other; `low` is at least 1.
    pub fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let bits = |n: u64| f64::from(64 - n.leading_zeros());
        let (from, to) = (bits(low), bits(high));
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        let exponent = from + (to - from) * unit;
        let top = 2f64.powf(exponent) as u64;
        self.between(top / 2, top.max(1)).clamp(low, high)
    }

    /// The time until the next of events that come once per `mean`, roughly exponential, at most
    /// four times the mean.
    pub fn interval(&mut self, mean: Micros) -> Micros {
        let unit = ((self.next() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        let factor = (-unit.ln()).min(4.0);
        ((mean as f64 * factor) as u64).max(1)
    }
}
