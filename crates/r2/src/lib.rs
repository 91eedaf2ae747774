//! R2 buckets of applications, each a part of the fleet's bucket: what a request asks for, what conditions, ranges and
//! checksums come to, and the store that keeps objects whole while they are replaced, deleted and listed. It must never
//! show a part of an object, nor delete a body that a record names or may still come to name.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod condition;
mod digest;
mod error;
mod limits;
mod list;
mod part_tag;
mod range;
mod request;
mod store;

pub use answer::{Answer, AnswerBody};
pub use error::R2Error;
pub use store::{Failure, R2, Swept};
