//! Requests: from the body to a record, and from its end to an answer.

mod answer;
mod body;
mod failure;
pub mod handler;
mod produce;
mod request;
pub mod variables;

pub use failure::Failure;
pub use request::{Outcome, Waiter};
