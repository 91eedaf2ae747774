//! Binding arguments to a statement's parameters. Every parameter needs one and every argument a parameter: a value that
//! silently becomes NULL is a bug that nobody sees.

use std::borrow::Cow;

use super::reply::clip;
use super::value::Value;
use crate::error::SqlFailure;
use crate::ffi::Statement;

/// Arguments by position and by name. A name comes with or without its sign (`:`, `@`, `$`).
#[derive(Debug, Default)]
pub(super) struct Args<'a> {
    pub(super) positional: Vec<Value<'a>>,
    pub(super) named: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl Args<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.positional.is_empty() && self.named.is_empty()
    }

    /// Binds all. A named argument has precedence over a positional one.
    ///
    /// # Errors
    /// `ARGS_INVALID` with the parameter or argument that has no counterpart, or SQLite's error.
    pub(super) fn bind(&self, statement: &mut Statement<'_>) -> Result<(), SqlFailure> {
        let count = statement.parameter_count();
        if self.positional.len() > count {
            let text = format!("{} arguments for a statement with {count} parameters", self.positional.len());
            return Err(invalid(text));
        }
        let mut is_used = vec![false; self.named.len()];
        for number in 1..=count {
            let name = statement.parameter_name(number);
            let by_name = name.as_deref().and_then(|name| self.find(name));
            let value = match by_name {
                Some(index) => {
                    is_used[index] = true;
                    &self.named[index].1
                }
                None => self.positional.get(number - 1).ok_or_else(|| missing(number, name.as_deref()))?,
            };
            statement.bind(number, value.as_column())?;
        }
        match is_used.iter().position(|is_used| !is_used) {
            None => Ok(()),
            Some(index) => {
                Err(invalid(format!("the statement has no parameter `{}`", clip(&self.named[index].0))))
            }
        }
    }

    fn find(&self, parameter: &str) -> Option<usize> {
        self.named.iter().position(|(name, _)| *name == parameter || parameter.get(1..) == Some(name))
    }
}

fn invalid(text: String) -> SqlFailure {
    SqlFailure::new("ARGS_INVALID", text)
}

fn missing(number: usize, name: Option<&str>) -> SqlFailure {
    invalid(match name {
        Some(name) => format!("parameter `{}` has no argument", clip(name)),
        None => format!("parameter {number} has no argument"),
    })
}
