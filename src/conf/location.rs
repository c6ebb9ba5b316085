//! What the `kafka_*` directives of a location say, merged down from `http` and `server`.

use super::allowed_topics::AllowedTopic;
use super::complex_value::ComplexValue;
use super::methods::Methods;
use super::position::Position;

/// The resolved values of one `location`, `if` or `limit_except` block. The plain fields are valid
/// once nginx has merged the block with its parents, and so always at run time.
pub struct LocationConf {
    /// `kafka_pass`: present exactly where the content handler may run.
    pub pass: Option<Pass>,
    /// The index of `kafka_pass`'s cluster in [`super::clusters`]; present whenever `pass` is.
    pub cluster: Option<usize>,
    pub methods: Methods,
    /// Present whenever `pass` is.
    pub topic: Option<TopicConf>,
    pub allowed_topics: Option<Vec<AllowedTopic>>,
    pub key: Option<ComplexValue>,
    pub partition: Option<ComplexValue>,
    pub timestamp: Option<ComplexValue>,
    pub value: ValueSource,
    pub empty_body: EmptyBody,
    pub headers: Vec<HeaderConf>,
    pub async_: bool,
    pub error_detail: bool,
    /// `None`: 200, or 202 with `kafka_async on`.
    pub success_status: Option<u16>,
    pub ignore_client_abort: bool,
    pub(super) set: Settings,
}

/// The directives as they were read; `None` inherits.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub methods: Option<Methods>,
    pub topic: Option<TopicConf>,
    pub allowed_topics: Option<Vec<AllowedTopic>>,
    pub key: Option<ComplexValue>,
    pub partition: Option<ComplexValue>,
    pub timestamp: Option<ComplexValue>,
    pub value: Option<ValueSource>,
    pub empty_body: Option<(EmptyBody, Position)>,
    pub headers: Option<Vec<HeaderConf>>,
    pub async_: Option<bool>,
    pub error_detail: Option<bool>,
    pub success_status: Option<u16>,
    pub ignore_client_abort: Option<bool>,
}

/// `kafka_pass CLUSTER`.
#[derive(Clone)]
pub struct Pass {
    pub cluster: String,
    pub position: Position,
}

/// `kafka_topic`.
#[derive(Clone)]
pub struct TopicConf {
    pub value: ComplexValue,
    /// The names, where the value holds no variable: already split and checked.
    pub constant: Option<Vec<String>>,
    pub position: Position,
}

/// `kafka_value`: where the value of a record comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSource {
    /// The raw bytes of the request body.
    Body,
    /// A tombstone: the null value.
    None,
}

/// `kafka_empty_body`: what an empty raw body becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyBody {
    /// A value of length 0.
    Value,
    /// A tombstone.
    Null,
    /// 400.
    Reject,
}

/// `kafka_header NAME VALUE`: not sent when the value is empty.
#[derive(Clone)]
pub struct HeaderConf {
    pub name: Vec<u8>,
    pub value: ComplexValue,
}

impl Default for LocationConf {
    fn default() -> Self {
        Self {
            pass: None,
            cluster: None,
            methods: Methods::default(),
            topic: None,
            allowed_topics: None,
            key: None,
            partition: None,
            timestamp: None,
            value: ValueSource::Body,
            empty_body: EmptyBody::Value,
            headers: Vec::new(),
            async_: false,
            error_detail: false,
            success_status: None,
            ignore_client_abort: true,
            set: Settings::default(),
        }
    }
}

impl LocationConf {
    /// Whether `kafka_allowed_topics` lets a topic through; everything passes where it is not set.
    pub fn allowed_topics_permit(&self, topic: &[u8]) -> bool {
        self.allowed_topics
            .as_ref()
            .is_none_or(|allowed| allowed.iter().any(|one| one.permits(topic)))
    }
}
