//! A broken promise, as a checker words it.

use std::fmt;

/// What a run must never show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Id of the invariant (design 10), or the name of a promise that has none.
    pub invariant: &'static str,
    /// What was seen.
    pub text: String,
}

impl Violation {
    /// Words a violation.
    #[must_use]
    pub fn new(invariant: &'static str, text: fmt::Arguments<'_>) -> Self {
        Self { invariant, text: text.to_string() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.text)
    }
}

/// Names the violation when the condition does not hold.
///
/// # Errors
/// The violation.
pub fn require(holds: bool, invariant: &'static str, text: fmt::Arguments<'_>) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation::new(invariant, text)) }
}
