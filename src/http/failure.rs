//! What a failure means to the client, and what it may read about it.

use std::borrow::Cow;
use std::sync::Arc;

use kafka::error_code::ErrorCode;
use kafka::{AppendError, Delivery, FailureKind};

const COULD_NOT_SEND: &str = "could not send message to topic";
const OUTCOME_UNKNOWN: &str = "delivery outcome unknown";
const NO_TOPIC: &str = "topic does not exist";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub status: u16,
    /// `$kafka_status`.
    pub name: &'static str,
    reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    /// Lies in the client's own request: it may always read it.
    Own(Cow<'static, str>),
    /// Lies behind the gateway: the client reads `fixed`, unless `kafka_error_detail` is on.
    Behind { fixed: &'static str, detail: Arc<str> },
}

impl Failure {
    /// A reason that lies in the request itself.
    pub fn own(status: u16, name: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { status, name, reason: Reason::Own(reason.into()) }
    }

    fn behind(status: u16, name: &'static str, detail: impl Into<Arc<str>>) -> Self {
        let fixed = if status == 504 { OUTCOME_UNKNOWN } else { COULD_NOT_SEND };
        Self { status, name, reason: Reason::Behind { fixed, detail: detail.into() } }
    }

    /// A mistake of ours.
    pub fn internal() -> Self {
        Self::own(500, "internal_error", "internal error")
    }

    /// What the client reads.
    pub fn text(&self, detail: bool) -> &str {
        match &self.reason {
            Reason::Own(reason) => reason,
            Reason::Behind { detail: text, .. } if detail => text,
            Reason::Behind { fixed, .. } => fixed,
        }
    }

    /// `$kafka_error`: for the operator.
    pub fn detail(&self) -> &str {
        self.text(true)
    }

    /// Whether the client has to change something.
    pub fn is_own(&self) -> bool {
        matches!(self.reason, Reason::Own(_))
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Self {
        let text = error.to_string();
        match error {
            AppendError::TooLarge { .. } => Self::own(413, "too_large", text),
            AppendError::UnknownTopic { .. } => Self::own(404, "unknown_topic", NO_TOPIC),
            AppendError::UnknownPartition { .. } => Self::own(400, "unknown_partition", text),
            AppendError::TopicRefused { code, .. } => Self::behind(502, broker_error(code), text),
            AppendError::Full => Self::behind(503, "buffer_full", text),
            AppendError::TooManyTopics => Self::behind(503, "too_many_topics", text),
            AppendError::Unreachable(_) => Self::behind(503, "unreachable", text),
            AppendError::Throttled { .. } => Self::behind(503, "throttled", text),
            AppendError::Closing => Self::behind(503, "closing", text),
        }
    }
}

impl Failure {
    /// `None`: the record was written.
    pub fn of(delivery: &Delivery) -> Option<Self> {
        let (status, failure) = match delivery {
            Delivery::Written { .. } => return None,
            Delivery::NotWritten(failure) => (503, failure),
            Delivery::Ambiguous(failure) => (504, failure),
            Delivery::Rejected(failure) => (502, failure),
        };
        let message = &failure.message;
        let name = match failure.kind {
            FailureKind::DeliveryTimeout => "delivery_timeout",
            FailureKind::UnknownTopic => "unknown_topic",
            FailureKind::UnknownPartition => "unknown_partition",
            FailureKind::Broker(code) => broker_error(code),
            FailureKind::Cancelled => "cancelled",
            FailureKind::Closed => "closed",
            FailureKind::Unsupported => "unsupported",
        };
        if status == 504 {
            // Whatever the cause, the client must learn that it may have been written.
            return Some(Self::behind(504, name, format!("{OUTCOME_UNKNOWN}: {message}")));
        }
        Some(match failure.kind {
            FailureKind::UnknownTopic => Self::own(404, name, NO_TOPIC),
            FailureKind::UnknownPartition => Self::own(400, name, message.to_string()),
            FailureKind::Broker(code) if status == 502 => match code {
                ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::RECORD_LIST_TOO_LARGE => {
                    Self::own(413, name, message.to_string())
                }
                ErrorCode::INVALID_TIMESTAMP | ErrorCode::INVALID_RECORD => {
                    Self::own(400, name, message.to_string())
                }
                _ => Self::behind(502, name, message.clone()),
            },
            _ => Self::behind(status, name, message.clone()),
        })
    }
}

fn broker_error(code: ErrorCode) -> &'static str {
    code.name().unwrap_or("UNKNOWN_ERROR_CODE")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: FailureKind) -> kafka::Failure {
        kafka::Failure { kind, message: "because".into() }
    }

    fn seen(delivery: Delivery) -> (u16, &'static str, String, String) {
        let failure = Failure::of(&delivery).unwrap();
        (
            failure.status,
            failure.name,
            failure.text(false).to_owned(),
            failure.text(true).to_owned(),
        )
    }

    #[test]
    fn what_a_broker_refuses() {
        let rejected = |code| seen(Delivery::Rejected(failed(FailureKind::Broker(code))));
        let (name, text) = ("TOPIC_AUTHORIZATION_FAILED", COULD_NOT_SEND.to_owned());
        assert_eq!(
            rejected(ErrorCode::TOPIC_AUTHORIZATION_FAILED),
            (502, name, text, "because".into())
        );
        assert_eq!(rejected(ErrorCode::MESSAGE_TOO_LARGE).0, 413);
        assert_eq!(rejected(ErrorCode::RECORD_LIST_TOO_LARGE).0, 413);
        assert_eq!(rejected(ErrorCode::INVALID_RECORD).0, 400);
        assert_eq!(rejected(ErrorCode::INVALID_TIMESTAMP).2, "because");
        assert_eq!(rejected(ErrorCode(999)).1, "UNKNOWN_ERROR_CODE");
    }

    #[test]
    fn what_may_be_tried_again() {
        let timeout = || failed(FailureKind::DeliveryTimeout);
        let not_written = seen(Delivery::NotWritten(timeout()));
        assert_eq!(not_written, (503, "delivery_timeout", COULD_NOT_SEND.into(), "because".into()));
        let ambiguous = seen(Delivery::Ambiguous(timeout()));
        let detail = "delivery outcome unknown: because".to_owned();
        assert_eq!(ambiguous, (504, "delivery_timeout", OUTCOME_UNKNOWN.into(), detail));
        let broker = failed(FailureKind::Broker(ErrorCode::MESSAGE_TOO_LARGE));
        assert_eq!(seen(Delivery::Ambiguous(broker)).0, 504);
        assert!(
            Failure::of(&Delivery::Written { base_offset: None, log_append_time_ms: None })
                .is_none()
        );
    }

    #[test]
    fn what_was_not_even_accepted() {
        let of = |error: AppendError| Failure::from(error);
        assert_eq!(of(AppendError::Full).status, 503);
        assert_eq!(of(AppendError::Full).text(false), COULD_NOT_SEND);
        assert_eq!(of(AppendError::Full).text(true), "the buffer is full");
        let large = of(AppendError::TooLarge { index: 0, encoded: 9, limit: 8 });
        assert_eq!((large.status, large.is_own()), (413, true));
        assert_eq!(of(AppendError::UnknownTopic { index: 0 }).text(false), NO_TOPIC);
        let refused =
            AppendError::TopicRefused { index: 0, code: ErrorCode::TOPIC_AUTHORIZATION_FAILED };
        assert_eq!(of(refused).status, 502);
    }
}
