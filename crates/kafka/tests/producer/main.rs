//! The producer's story, told by the answers of a scripted cluster.

mod acks;
mod cluster;
mod connections;
mod delivery;
mod idempotence;
mod topics;
