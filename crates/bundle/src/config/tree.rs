//! A configuration file as a tree of values that know where they stand, whichever syntax they were written in.

use crate::{BundleError, ConfigFault, Place};

/// A value and where it stands, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) offset: usize,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// As JSON spells it.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A member of a table.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_offset: usize,
    pub(crate) node: Node,
}

impl Value {
    /// In words.
    pub(crate) const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Table(_) => "an object",
        }
    }
}

impl Node {
    /// As JSON, members in the order of the file.
    pub(crate) fn to_json(&self) -> String {
        let quote = |text: &str| serde_json::Value::from(text).to_string();
        match &self.value {
            Value::Null => "null".into(),
            Value::Bool(value) => value.to_string(),
            Value::Number(text) => text.clone(),
            Value::Text(text) => quote(text),
            Value::List(nodes) => {
                let items: Vec<String> = nodes.iter().map(Self::to_json).collect();
                format!("[{}]", items.join(","))
            }
            Value::Table(entries) => {
                let member = |entry: &Entry| format!("{}:{}", quote(&entry.key), entry.node.to_json());
                let members: Vec<String> = entries.iter().map(member).collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }
}

/// A configuration file.
#[derive(Debug)]
pub(crate) struct ConfigText {
    /// Its name in messages.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
}

impl ConfigText {
    pub(crate) fn place(&self, offset: usize) -> Place {
        Place::at(&self.name, &self.text, offset)
    }

    pub(crate) fn fault(&self, offset: usize, fault: ConfigFault) -> BundleError {
        BundleError::Config { place: self.place(offset), fault }
    }

    /// Refuses a key that stands twice in a table.
    pub(crate) fn check_twice(&self, entries: &[Entry]) -> Result<(), BundleError> {
        for (index, entry) in entries.iter().enumerate() {
            if entries[..index].iter().any(|earlier| earlier.key == entry.key) {
                return Err(self.fault(entry.key_offset, ConfigFault::Twice { key: entry.key.clone() }));
            }
        }
        Ok(())
    }
}
