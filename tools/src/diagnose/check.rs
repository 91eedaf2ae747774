//! One thing that was looked at, and how it is.

use std::fmt;

use serde::Serialize;

use crate::output::printable;

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Well.
    Ok,
    /// Worth knowing; nothing is broken.
    Note,
    /// Not looked at.
    Skip,
    /// Wrong.
    Fault,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// How it is.
    pub status: Status,
    /// What.
    pub check: String,
    /// What was seen.
    pub detail: String,
}

impl Check {
    /// Of a thing.
    pub fn new(status: Status, check: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { status, check: check.into(), detail: detail.into() }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            Status::Ok => "ok",
            Status::Note => "note",
            Status::Skip => "skip",
            Status::Fault => "FAULT",
        };
        let detail = printable(&self.detail);
        let gap = if detail.is_empty() { "" } else { ": " };
        write!(f, "{status:<5}  {}{gap}{detail}", self.check)
    }
}
