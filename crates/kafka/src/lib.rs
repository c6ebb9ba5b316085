//! A Kafka producer as a **sans-IO** state machine.
//!
//! It is fully deterministic: it never touches a socket, a clock, a thread or a random source.
//! Bytes, time and entropy come in as arguments; bytes to write, connect and close wishes, the next
//! deadline and completions come out. The same producer runs under nginx, under a simulation and
//! under fuzzers.
//!
//! The contract of its run loop, in one sentence: **mutate** ([`Producer::append`],
//! [`Producer::handle`], [`Producer::cancel`], [`Producer::close`]), **then [`Producer::poll`] until
//! it returns `None`, then wait for input or until [`Producer::next_timer`].**
//!
//! No output is produced, and so no record completes, inside a mutating call.
#![forbid(unsafe_code)]

mod api;
mod config;
pub mod error_code;
pub mod negotiation;
mod producer;
pub mod record_batch;
pub mod wire;

pub use api::{
    AppendError, Completion, ConnId, Delivery, Event, Failure, FailureKind, Input, Output, QueryId,
    Record, Severity,
};
pub use config::{Acks, Backoff, Config, HostPort, Idempotence, Partitioner};
pub use producer::{Producer, murmur2};

/// Time in microseconds since any fixed point that the driver likes; never goes backwards.
pub type Micros = u64;
pub const MILLISECOND: Micros = 1_000;
pub const SECOND: Micros = 1_000_000;
