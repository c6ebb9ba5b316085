//! Exponential backoff with jitter (KIP-580).

use super::random::Random;
use crate::{Backoff, Micros};

impl Backoff {
    /// The pause before attempt `failures + 1`: `min` × 2^(failures−1), at most `max`, ±20 %.
    pub(super) fn pause(&self, failures: u32, random: &mut Random) -> Micros {
        let doublings = failures.saturating_sub(1).min(32);
        let base = self.min.saturating_mul(1 << doublings).min(self.max).max(1);
        let jitter = base / 5;
        base - jitter + random.below(2 * jitter as usize + 1) as Micros
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_bound_with_a_fifth_of_jitter() {
        let backoff = Backoff { min: 100, max: 1000 };
        let mut random = Random::new(1);
        for (failures, base) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (500, 1000)] {
            for _ in 0..200 {
                let pause = backoff.pause(failures, &mut random);
                assert!(
                    (base - base / 5..=base + base / 5).contains(&pause),
                    "{failures}: {pause}"
                );
            }
        }
    }
}
