//! The operations of a bucket by name, and how often each was called.

use std::collections::HashMap;

/// An operation of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `get`.
    Get,
    /// `get_range`.
    GetRange,
    /// `get_stream`.
    GetStream,
    /// `head`.
    Head,
    /// `list`.
    List,
    /// `put`.
    Put,
    /// `put_stream`.
    PutStream,
    /// `put_if`.
    PutIf,
    /// `delete`.
    Delete,
    /// `delete_many`; its key is the first.
    DeleteMany,
}

impl Operation {
    /// The operation's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::GetRange => "get_range",
            Self::GetStream => "get_stream",
            Self::Head => "head",
            Self::List => "list",
            Self::Put => "put",
            Self::PutStream => "put_stream",
            Self::PutIf => "put_if",
            Self::Delete => "delete",
            Self::DeleteMany => "delete_many",
        }
    }
}

/// Counts by operation and key.
#[derive(Debug, Default)]
pub(super) struct Calls {
    counts: HashMap<Operation, HashMap<String, u64>>,
}

impl Calls {
    pub(super) fn add(&mut self, operation: Operation, key: &str) {
        *self.counts.entry(operation).or_default().entry(key.to_owned()).or_default() += 1;
    }

    pub(super) fn count(&self, operation: Operation, key_part: &str) -> u64 {
        let Some(keys) = self.counts.get(&operation) else { return 0 };
        keys.iter().filter(|(key, _)| key.contains(key_part)).map(|(_, count)| count).sum()
    }
}
