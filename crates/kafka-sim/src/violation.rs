//! A broken invariant (kafka-core.md §8.4).

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invariant {
    /// Exactly one completion per accepted record.
    I1,
    /// Written: in the log exactly once, where reported, byte for byte.
    I2,
    /// Not written or rejected: never in any log.
    I3,
    /// No record twice.
    I4,
    /// Written records are in the order of their appends.
    I5,
    /// A sequence number always stands for the same record.
    I6,
    /// The in-flight window, the first-batch gate, one broker at a time.
    I7,
    /// No partition twice in a request, request size.
    I8,
    /// Every frame parses; versions as negotiated; correlation ids in sequence.
    I9,
    /// Memory is bounded and given back.
    I10,
    /// Liveness, deadlines, no busy loop.
    I11,
    /// Bounded traffic while something is broken for good.
    I12,
    /// Nothing is sent on a throttled connection.
    I13,
    /// Same seed, same bytes.
    I14,
    /// A single record leaves an idle producer in the round of its append.
    I15,
    /// The producer panicked.
    Panic,
}

#[derive(Debug, Clone)]
pub struct Violation {
    pub seed: u64,
    pub invariant: Invariant,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, invariant, what } = self;
        writeln!(f, "{invariant:?} broken by seed {seed}: {what}")?;
        write!(f, "replay: SEED={seed} cargo test -p kafka-sim replay -- --nocapture")
    }
}
