//! Runs many seeds: `cargo run -p kafka-sim --release -- --seeds 1000 --start 1`.

use std::time::Instant;

use kafka_sim::{Report, Violation, run};

struct Options {
    seeds: u64,
    start: u64,
    /// Go on after a failure, up to so many.
    failures: usize,
}

fn options() -> Result<Options, String> {
    let mut options = Options { seeds: 1000, start: 1, failures: 10 };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse::<u64>().ok());
        let value = value.ok_or_else(|| format!("{name} needs a number"))?;
        match name.as_str() {
            "--seeds" => options.seeds = value,
            "--start" => options.start = value,
            "--failures" => options.failures = value as usize,
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(options)
}

fn main() {
    let options = options().unwrap_or_else(|error| {
        eprintln!("{error}; options: --seeds N --start N --failures N");
        std::process::exit(2);
    });
    let begin = Instant::now();
    let mut total = Report::default();
    let mut violations: Vec<Violation> = Vec::new();
    let mut done = 0;
    for seed in options.start..options.start + options.seeds {
        match run(seed) {
            Ok(report) => {
                total.records += report.records;
                total.written += report.written;
                total.requests += report.requests;
                total.batches += report.batches;
                total.events += report.events;
                total.virtual_time += report.virtual_time;
            }
            Err(violation) => violations.push(violation),
        }
        done += 1;
        if violations.len() >= options.failures {
            break;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{done} seeds in {seconds:.1} s: {} records, {} written, {} requests ({:.0}/s), {} batches, \
         {} events, {} virtual s",
        total.records,
        total.written,
        total.requests,
        total.requests as f64 / seconds,
        total.batches,
        total.events,
        total.virtual_time / 1_000_000,
    );
    for violation in &violations {
        println!("{violation}");
    }
    if !violations.is_empty() {
        std::process::exit(1);
    }
}
