//! Runs a seed, turning a panic of the producer into a violation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kafka::Micros;

use crate::plan::Plan;
use crate::violation::{Invariant, Violation};
use crate::world::World;

#[derive(Debug, Clone, Default)]
pub struct Report {
    pub records: u64,
    pub written: u64,
    pub requests: u64,
    pub batches: u64,
    pub events: u64,
    pub virtual_time: Micros,
    digest: u64,
}

pub fn run(seed: u64) -> Result<Report, Violation> {
    go(seed, false).0
}

/// Runs the seed again with a record of what happened; returns its last `lines` lines too.
pub fn replay(seed: u64, lines: usize) -> (Result<Report, Violation>, Vec<String>) {
    let (result, mut trace) = go(seed, true);
    let surplus = trace.len().saturating_sub(lines);
    trace.drain(..surplus);
    (result, trace)
}

/// Same seed, same bytes (I14).
pub fn run_twice(seed: u64) -> Result<Report, Violation> {
    let first = run(seed)?;
    let second = run(seed)?;
    if first.digest != second.digest {
        let what = "two runs differ".into();
        return Err(Violation { seed, invariant: Invariant::I14, what });
    }
    Ok(first)
}

fn go(seed: u64, trace: bool) -> (Result<Report, Violation>, Vec<String>) {
    let mut world = World::new(Plan::draw(seed), trace);
    let plan = format!("{:#?}", world.plan);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    let mut lines = world.take_trace();
    lines.insert(0, plan);
    if let Err(panic) = outcome {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        let what = text.to_owned();
        return (Err(Violation { seed, invariant: Invariant::Panic, what }), lines);
    }
    let result = match world.violation.take() {
        Some(violation) => Err(violation),
        None => Ok(Report {
            records: world.ledger.next_token(),
            written: world.ledger.written,
            requests: world.requests,
            batches: world.sent.batches,
            events: world.events,
            virtual_time: world.now,
            digest: world.digest.finish(),
        }),
    };
    (result, lines)
}
