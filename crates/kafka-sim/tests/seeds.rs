//! Seeds in CI: `SEEDS=n` for more of them, `SEED=n cargo test -p kafka-sim replay -- --nocapture` for
//! one in full.

use kafka_sim::{Violation, replay as replay_seed, run, run_twice};

/// Seeds that found something in the first version of the producer. A change of
/// `kafka_sim::Plan::draw` gives them another meaning: then find new ones.
const KEPT: &[u64] = &[
    // A useless broker, and topics that fail, were asked without a pause (I12).
    20, 166, 276, // More unsettled batches than a broker remembers (I7).
    24, 2284, // The throttle time of ApiVersions was not heeded (I13).
    40,
    // acks=0: the broker's only answer to a stale leader is to close the connection (I2).
    126, 928, // A leader that could not be reached made the timer spin (I11).
    153, // 6 NOT_LEADER_OR_FOLLOWER after the append (I3, I4).
    234, 640, 1154, 3301, // acks=0: requests behind an answered one were forgotten (I11).
    249, 1297, // Halves of a split batch changed places (I5).
    641, 774, // Records that wait for metadata were counted too low (I10).
    1818,
];

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
