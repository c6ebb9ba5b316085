//! What the error code of a topic in a Metadata response means.

use super::ErrorCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataTopicClass {
    Ok,
    /// The broker does not know the topic. One answer proves nothing: a KRaft broker says so of a
    /// topic that is being created, and any broker may lag behind.
    Unknown,
    /// Ask again after a while and keep what was known before.
    Retry,
    /// Not allowed, or no valid name: asking again soon will not help.
    Refused,
}

impl ErrorCode {
    /// Reads the code as that of a topic in a Metadata response. Codes that brokers do not use there
    /// count as passing trouble: time bounds the retries, and old data stays valid meanwhile.
    pub fn metadata_topic_class(self) -> MetadataTopicClass {
        match self {
            ErrorCode::NONE => MetadataTopicClass::Ok,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => MetadataTopicClass::Unknown,
            ErrorCode::INVALID_TOPIC_EXCEPTION | ErrorCode::TOPIC_AUTHORIZATION_FAILED => {
                MetadataTopicClass::Refused
            }
            _ => MetadataTopicClass::Retry,
        }
    }
}
