//! The wire format against Kafka's own bytes, against real brokers' answers, against another codec,
//! and against bytes that no broker would send.

mod captured_responses;
mod compact_encodings;
mod differential;
mod error_codes;
mod frames;
mod golden_requests;
mod golden_responses;
mod negotiation;
mod oracle;
mod primitives;
mod random;
mod record_batches;
mod tagged_fields;
mod truncation;
mod vectors;
