//! What the error code of a partition in a Produce response means: one table for all of it.

use super::ErrorCode;

/// What to do with a batch after its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProduceClass {
    pub action: ProduceAction,
    /// The records may be in the partition's log when this code arrives. Once true for a batch, a
    /// later "not written" for a retry of it does not make it false (franz-go#1217).
    pub maybe_persisted: bool,
    /// The leader may have changed.
    pub refresh_metadata: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProduceAction {
    /// Written; the base offset is that of the first copy where this one was a duplicate.
    Done,
    /// A duplicate of something whose offset the broker no longer knows.
    DoneWithoutOffset,
    /// Send the same bytes again until the delivery timeout.
    Retry,
    /// Send the same bytes again, but at most so many times.
    RetryLimited(u32),
    /// Too large: cut in two and send the halves; a single record fails.
    Split,
    /// Fail for good; nothing was written.
    Reject,
    /// The records named in the answer fail for good, the others are sent again.
    RejectRecords,
    /// The broker expected another sequence number: who is to blame depends on the batch's place.
    OutOfOrderSequence,
    /// The batch's epoch is older than the one in the log.
    InvalidProducerEpoch,
    /// The log has forgotten the producer id (brokers 1.0 to 2.4).
    UnknownProducerId,
    /// Idempotent writes are not allowed (brokers before 2.8 want IDEMPOTENT_WRITE, KIP-679).
    DisableIdempotence,
    /// The topic has an old message format, which cannot hold sequence numbers (up to 3.x).
    NoIdempotenceForTopic,
    /// The broker does not know the codec: encode again with another.
    Recompress,
    /// Versions no longer match, as after a downgrade: negotiate anew on a new connection.
    Reconnect,
    /// Not in the table: fail, and say which number it was.
    Unknown,
}

impl ErrorCode {
    /// Reads the code as that of a partition in a Produce response.
    pub fn produce_class(self) -> ProduceClass {
        use ProduceAction::*;

        let class =
            |action| ProduceClass { action, maybe_persisted: false, refresh_metadata: false };
        let maybe_persisted = |class| ProduceClass { maybe_persisted: true, ..class };
        let refresh_metadata = |class| ProduceClass { refresh_metadata: true, ..class };

        match self {
            Self::NONE => maybe_persisted(class(Done)),
            // No Apache broker sends it, others may.
            Self::DUPLICATE_SEQUENCE_NUMBER => maybe_persisted(class(DoneWithoutOffset)),

            // Deterministic for bytes that the broker cannot read, so not for ever.
            Self::UNKNOWN_SERVER_ERROR => maybe_persisted(class(RetryLimited(2))),
            // The bytes changed on the way (or in memory). Retriable since KIP-467.
            Self::CORRUPT_MESSAGE => class(RetryLimited(1)),

            Self::UNKNOWN_TOPIC_OR_PARTITION
            | Self::LEADER_NOT_AVAILABLE
            | Self::NOT_LEADER_OR_FOLLOWER
            | Self::BROKER_NOT_AVAILABLE
            | Self::REPLICA_NOT_AVAILABLE
            | Self::LISTENER_NOT_FOUND
            | Self::FENCED_LEADER_EPOCH
            | Self::UNKNOWN_TOPIC_ID
            | Self::INCONSISTENT_TOPIC_ID => refresh_metadata(class(Retry)),
            // The broker is behind us, not we behind it.
            Self::UNKNOWN_LEADER_EPOCH | Self::NOT_ENOUGH_REPLICAS => class(Retry),
            // Only CreateTopics has it; the throttle time says how long to wait.
            Self::THROTTLING_QUOTA_EXCEEDED => class(Retry),
            // In the leader's log, but not (known to be) in enough others.
            Self::REQUEST_TIMED_OUT | Self::NOT_ENOUGH_REPLICAS_AFTER_APPEND => {
                maybe_persisted(class(Retry))
            }
            Self::NETWORK_EXCEPTION | Self::KAFKA_STORAGE_ERROR => {
                refresh_metadata(maybe_persisted(class(Retry)))
            }

            Self::MESSAGE_TOO_LARGE | Self::RECORD_LIST_TOO_LARGE => class(Split),
            Self::INVALID_TIMESTAMP | Self::INVALID_RECORD => class(RejectRecords),
            Self::INVALID_TOPIC_EXCEPTION
            | Self::INVALID_REQUIRED_ACKS
            | Self::TOPIC_AUTHORIZATION_FAILED
            | Self::INVALID_REQUEST
            | Self::POLICY_VIOLATION => class(Reject),
            // These are about transactions, of which there are none here.
            Self::INVALID_TXN_STATE
            | Self::INVALID_PRODUCER_ID_MAPPING
            | Self::CONCURRENT_TRANSACTIONS
            | Self::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            | Self::PRODUCER_FENCED
            | Self::TRANSACTION_ABORTABLE => class(Reject),

            Self::OUT_OF_ORDER_SEQUENCE_NUMBER => class(OutOfOrderSequence),
            Self::INVALID_PRODUCER_EPOCH => class(InvalidProducerEpoch),
            Self::UNKNOWN_PRODUCER_ID => class(UnknownProducerId),
            Self::CLUSTER_AUTHORIZATION_FAILED => class(DisableIdempotence),
            Self::UNSUPPORTED_FOR_MESSAGE_FORMAT => class(NoIdempotenceForTopic),
            Self::UNSUPPORTED_COMPRESSION_TYPE => class(Recompress),
            Self::UNSUPPORTED_VERSION => class(Reconnect),

            _ => maybe_persisted(class(Unknown)),
        }
    }
}
