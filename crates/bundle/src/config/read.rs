//! Typed reading of a configuration's tree: each refusal names the key, and where it stands.

use super::keys::nearest;
use super::tree::{ConfigText, Entry, Node, Value};
use crate::{BundleError, ConfigFault};

/// A text and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) text: String,
    pub(crate) offset: usize,
}

/// Reads a file's values under their full names.
pub(super) struct Reader<'a> {
    pub(super) file: &'a ConfigText,
}

impl<'a> Reader<'a> {
    fn wrong_type(&self, key: &str, node: &Node, expected: &'static str) -> BundleError {
        let found = node.value.type_name();
        self.file.fault(node.offset, ConfigFault::Type { key: key.to_owned(), expected, found })
    }

    pub(super) fn wrong_value(&self, key: &str, spot: &Spot, problem: impl Into<String>) -> BundleError {
        let (key, value) = (key.to_owned(), spot.text.clone());
        self.file.fault(spot.offset, ConfigFault::Value { key, value, problem: problem.into() })
    }

    pub(super) fn table(&self, key: &str, node: &'a Node) -> Result<&'a [Entry], BundleError> {
        match &node.value {
            Value::Table(entries) => Ok(entries),
            _ => Err(self.wrong_type(key, node, "an object")),
        }
    }

    pub(super) fn list(&self, key: &str, node: &'a Node) -> Result<&'a [Node], BundleError> {
        match &node.value {
            Value::List(nodes) => Ok(nodes),
            _ => Err(self.wrong_type(key, node, "a list")),
        }
    }

    pub(super) fn text(&self, key: &str, node: &Node) -> Result<Spot, BundleError> {
        match &node.value {
            Value::Text(text) => Ok(Spot { text: text.clone(), offset: node.offset }),
            _ => Err(self.wrong_type(key, node, "a string")),
        }
    }

    pub(super) fn texts(&self, key: &str, node: &'a Node) -> Result<Vec<Spot>, BundleError> {
        self.list(key, node)?.iter().map(|item| self.text(key, item)).collect()
    }

    pub(super) fn flag(&self, key: &str, node: &Node) -> Result<bool, BundleError> {
        match node.value {
            Value::Bool(value) => Ok(value),
            _ => Err(self.wrong_type(key, node, "a boolean")),
        }
    }

    /// A key that the table of this name does not have.
    pub(super) fn unknown(&self, above: &str, entry: &Entry, known: &[&str]) -> BundleError {
        let key = if above.is_empty() { entry.key.clone() } else { format!("{above}.{}", entry.key) };
        let nearest = nearest(&entry.key, known.iter().copied());
        self.file.fault(entry.key_offset, ConfigFault::UnknownKey { key, nearest })
    }

    pub(super) fn not_yet(&self, above: &str, entry: &Entry) -> BundleError {
        let key = if above.is_empty() { entry.key.clone() } else { format!("{above}.{}", entry.key) };
        self.file.fault(entry.key_offset, ConfigFault::NotYet { key })
    }

    pub(super) fn missing(&self, offset: usize, key: &str, what: &'static str) -> BundleError {
        self.file.fault(offset, ConfigFault::Missing { key: key.to_owned(), what })
    }
}
