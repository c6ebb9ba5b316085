//! The types that cross the producer's boundary: what goes in, what comes out.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::error_code::ErrorCode;

/// Names a TCP connection between the producer and its driver. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// Names a host name look-up. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(pub u64);

/// One record to be written. Borrowed: [`Producer::append`](crate::Producer::append) encodes it at
/// once and keeps nothing of it.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    pub topic: &'a str,
    /// An explicit partition, else the partitioner chooses.
    pub partition: Option<i32>,
    pub key: Option<&'a [u8]>,
    /// `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    pub headers: &'a [(&'a [u8], Option<&'a [u8]>)],
    /// Milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// Comes back in exactly one [`Completion`].
    pub token: u64,
}

/// Why [`Producer::append`](crate::Producer::append) took none of the records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    #[error("the record takes {encoded} bytes, the limit is {limit}")]
    TooLarge { index: usize, encoded: usize, limit: usize },
    #[error("the buffer is full")]
    Full,
    #[error("topic does not exist")]
    UnknownTopic { index: usize },
    /// The cluster refuses this topic (29 TOPIC_AUTHORIZATION_FAILED, 17 INVALID_TOPIC …); known
    /// from a recent answer.
    #[error("the cluster refuses the topic: {code}")]
    TopicRefused { index: usize, code: ErrorCode },
    #[error("partition {partition} does not exist, the topic has {count}")]
    UnknownPartition { index: usize, partition: i32, count: i32 },
    #[error("too many topics")]
    TooManyTopics,
    /// No broker has been reachable for `delivery_timeout`.
    #[error("the cluster is unreachable: {0}")]
    Unreachable(Arc<str>),
    /// The cluster asked us to slow down and the buffer is filling up; try again after this many
    /// microseconds.
    #[error("throttled by the cluster")]
    Throttled { for_micros: u64 },
    /// [`Producer::close`](crate::Producer::close) was called.
    #[error("the producer is closing")]
    Closing,
}

/// What happened to a record in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Acknowledged as `acks` asks. The offset is unknown with `acks=0`, or where the broker only
    /// recognised a duplicate.
    Written { base_offset: Option<i64>, log_append_time_ms: Option<i64> },
    /// Definitely not in any log: the caller may try again.
    NotWritten(Failure),
    /// Possibly in the log: the caller may try again only if a duplicate does not matter.
    Ambiguous(Failure),
    /// The broker, or the rules of the protocol, refused this record for good.
    Rejected(Failure),
}

/// Why a record was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// For people: what happened, with the broker's own message where there is one.
    pub message: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The deadline passed.
    DeliveryTimeout,
    /// The topic does not exist.
    UnknownTopic,
    /// The explicit partition does not exist.
    UnknownPartition,
    /// A broker's error code decided.
    Broker(ErrorCode),
    /// [`Producer::cancel`](crate::Producer::cancel) was in time.
    Cancelled,
    /// The producer was closed before.
    Closed,
    /// The cluster cannot do what the configuration demands (no common version, no idempotence).
    Unsupported,
}

/// The end of consecutive records of one partition: the record of `tokens[i]` has the offset
/// `base_offset + i`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub tokens: Vec<u64>,
    pub topic: Arc<str>,
    /// `None` when no partition had been chosen yet.
    pub partition: Option<i32>,
    pub delivery: Delivery,
}

/// What the driver reports.
#[derive(Debug)]
pub enum Input<'a> {
    /// The time of [`Producer::next_timer`](crate::Producer::next_timer) has come.
    Timer,
    /// The answer to [`Output::Resolve`]: all addresses, in order of preference.
    Resolved { query: QueryId, result: Result<Vec<SocketAddr>, String> },
    /// The connection is established.
    Connected { conn: ConnId },
    /// The next bytes that the broker sent.
    Received { conn: ConnId, bytes: &'a [u8] },
    /// So many bytes of [`Producer::transmit`](crate::Producer::transmit) have been handed to the
    /// operating system.
    Transmitted { conn: ConnId, bytes: usize },
    /// The connection could not be made, or has ended; the driver has let go of it.
    Closed { conn: ConnId, reason: String },
}

/// What the driver is asked to do.
#[derive(Debug)]
pub enum Output {
    Resolve {
        query: QueryId,
        host: Arc<str>,
        port: u16,
    },
    /// Open a TCP connection. `host` is the name behind `addr`.
    Connect {
        conn: ConnId,
        addr: SocketAddr,
        host: Arc<str>,
    },
    /// [`Producer::transmit`](crate::Producer::transmit) has bytes for this connection.
    Transmit {
        conn: ConnId,
    },
    /// Close the connection and report nothing more about it.
    Close {
        conn: ConnId,
    },
    Completed(Completion),
    Event(Event),
}

/// How loud an [`Event`] is in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    Notice,
    Info,
}

/// Something an operator may want to know. Events of one `kind` may come often: rate-limit by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub severity: Severity,
    /// A stable word, such as `connect` or `idempotence`.
    pub kind: &'static str,
    /// What happened and what to do about it.
    pub message: String,
}
