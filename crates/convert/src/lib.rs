//! Pure conversions between HTTP requests, Kafka records and HTTP answers: functions over bytes, no
//! I/O, no clock.
#![forbid(unsafe_code)]

pub mod answer;
mod json;
pub mod partition;
mod shown;
pub mod timestamp;
pub mod topic;
