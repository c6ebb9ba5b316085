//! Kafka's wire format: frames, headers and the bodies of the requests that a producer needs.
//!
//! Encoders take versions that only [negotiation](crate::negotiation) can make; decoders take
//! whatever a broker sends, allocate no more than a small multiple of what they were given, and
//! refuse bytes that are left over.
//!
//! Source of the layouts: <https://kafka.apache.org/protocol> and the messages' JSON schemas.

mod api_key;
pub mod api_versions;
mod broker;
mod frame;
pub mod init_producer_id;
pub mod metadata;
pub mod produce;
mod reader;
pub mod request_header;
pub mod response_header;
pub mod writer;

pub use api_key::{ApiKey, Encoding};
pub use broker::Broker;
pub use frame::{FrameDecoder, FrameError};
pub use reader::{DecodeError, Reader};
