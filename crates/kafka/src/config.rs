//! What an operator can set for one cluster; names and defaults as in `kafka_cluster {}`.

use std::sync::Arc;

use crate::negotiation::VersionCaps;
use crate::{MILLISECOND, Micros, SECOND};

/// Where a broker listens, as configured or as advertised by the cluster: a name or an address
/// literal (IPv6 without brackets) and a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    pub host: Arc<str>,
    pub port: u16,
}

/// Which replicas must have a record before it counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// The broker does not answer: done when the bytes have left.
    None,
    /// The leader has it.
    Leader,
    /// All in-sync replicas have it.
    All,
}

impl Acks {
    /// The `acks` field of a Produce request.
    pub fn wire(self) -> i16 {
        match self {
            Acks::None => 0,
            Acks::Leader => 1,
            Acks::All => -1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idempotence {
    /// Whenever `acks=all` and the broker allow it.
    Auto,
    /// Required: records wait for a producer id and fail without one.
    On,
    Off,
}

/// How a record with a key finds its partition. Records without a key stick to one partition for a
/// batch at a time in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioner {
    /// As the Java client.
    Murmur2,
    /// As librdkafka's `consistent_random` and lua-resty-kafka.
    Crc32,
    /// The key is not looked at.
    Random,
}

/// Exponential backoff between two bounds, with ±20 % jitter (KIP-580).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub min: Micros,
    pub max: Micros,
}

#[derive(Debug, Clone)]
pub struct Config {
    pub bootstrap: Vec<HostPort>,
    pub client_id: String,
    pub acks: Acks,
    pub idempotence: Idempotence,
    /// How long a busy connection may let a batch grow; an idle one sends at once.
    pub linger: Micros,
    /// Bytes per partition batch, before compression.
    pub batch_size: usize,
    /// Unacknowledged batches per partition.
    pub max_in_flight: usize,
    /// Largest single record, as encoded in a batch of its own.
    pub max_message_size: usize,
    /// Largest Produce request; a single larger batch still goes.
    pub max_request_size: usize,
    /// Bytes held for undelivered records.
    pub buffer_size: usize,
    /// From append to the final answer, everything included.
    pub delivery_timeout: Micros,
    /// From queueing a request on a connection to its answer.
    pub request_timeout: Micros,
    pub connect_timeout: Micros,
    pub retry_backoff: Backoff,
    pub reconnect_backoff: Backoff,
    /// A connection without traffic is closed after this time.
    pub idle_timeout: Micros,
    pub metadata_max_age: Micros,
    pub partitioner: Partitioner,
    pub auto_create_topics: bool,
    pub max_topics: usize,
    pub api_versions: VersionCaps,
}

impl Config {
    /// The defaults of every directive.
    pub fn new(bootstrap: Vec<HostPort>) -> Self {
        Self {
            bootstrap,
            client_id: "nginx".into(),
            acks: Acks::All,
            idempotence: Idempotence::Auto,
            linger: 5 * MILLISECOND,
            batch_size: 256 * 1024,
            max_in_flight: 5,
            max_message_size: 1024 * 1024,
            max_request_size: 1024 * 1024,
            buffer_size: 32 * 1024 * 1024,
            delivery_timeout: 30 * SECOND,
            request_timeout: 10 * SECOND,
            connect_timeout: 10 * SECOND,
            retry_backoff: Backoff { min: 100 * MILLISECOND, max: SECOND },
            reconnect_backoff: Backoff { min: 50 * MILLISECOND, max: 10 * SECOND },
            idle_timeout: 540 * SECOND,
            metadata_max_age: 300 * SECOND,
            partitioner: Partitioner::Murmur2,
            auto_create_topics: false,
            max_topics: 1000,
            api_versions: VersionCaps::default(),
        }
    }
}
