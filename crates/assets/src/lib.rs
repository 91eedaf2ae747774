//! Static files of an application: which file a path leads to, what `_headers` and `_redirects` say, and how a request is
//! answered. It does no I/O: it names a file, and is given its bytes.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod paths;
mod pattern;
mod range;
mod rules;
mod site;

pub use answer::{Answer, Reading, answer};
pub use rules::{Headers, Redirects, RuleError};
pub use site::Site;
