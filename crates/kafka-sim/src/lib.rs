//! The producer against model brokers of every era, in one thread, from one seed.
//!
//! A seed decides the cluster, the configuration, the workload and every fault ([`plan`]). Bytes
//! travel through a model network ([`network`]) to model brokers ([`serve`], [`log`]), which speak by
//! means of `kafka-protocol`. What the producer does is watched from outside ([`sent`],
//! [`driver`]); what it reports is compared with the logs at the end ([`oracle`]).
#![forbid(unsafe_code)]

mod batch;
mod cluster;
mod driver;
mod era;
mod faults;
mod finale;
mod ledger;
mod log;
mod network;
mod oracle;
mod plan;
mod queue;
mod random;
mod record;
mod run;
mod sent;
mod serve;
mod traffic;
mod violation;
mod wire;
mod workload;
mod world;

pub use plan::{Mode, Plan};
pub use run::{Report, replay, run, run_twice};
pub use violation::{Invariant, Violation};
