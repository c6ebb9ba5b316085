//! Seeds in CI: `SEEDS=n` for more of them, `SEED=n cargo test -p kafka-sim replay -- --nocapture` for
//! one in full.

use kafka_sim::{Violation, replay as replay_seed, run, run_twice};

/// Seeds that found something once.
const KEPT: &[u64] = &[];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Prints the end of the story, then fails.
fn fail(violation: &Violation) -> ! {
    let (_, trace) = replay_seed(violation.seed, 60);
    for line in trace {
        println!("{line}");
    }
    panic!("{violation}");
}

#[test]
fn seeds() {
    for seed in 1..=number("SEEDS").unwrap_or(300) {
        // Every tenth also proves that a seed decides everything (I14).
        let result = if seed % 10 == 0 { run_twice(seed) } else { run(seed) };
        if let Err(violation) = result {
            fail(&violation);
        }
    }
}

#[test]
fn kept_seeds() {
    for seed in KEPT {
        if let Err(violation) = run(*seed) {
            fail(&violation);
        }
    }
}

/// With `TRACE=1` the whole story.
#[test]
fn replay() {
    let Some(seed) = number("SEED") else { return };
    let lines = if number("TRACE").is_some() { usize::MAX } else { 60 };
    let (result, trace) = replay_seed(seed, lines);
    for line in trace {
        println!("{line}");
    }
    match result {
        Ok(report) => println!("seed {seed} holds: {report:?}"),
        Err(violation) => panic!("{violation}"),
    }
}
