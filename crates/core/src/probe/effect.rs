//! What the shell must do for a probe, and its result.

use super::ProbeStep;

/// An effect of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeEffect {
    /// Take a step with the objects of this attempt.
    Take {
        /// Counts from 1.
        attempt: u32,
        /// The step.
        step: ProbeStep,
    },
    /// Done.
    Conclude(ProbeVerdict),
}

/// What a step showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// As it must be.
    Passed,
    /// Cannot be told.
    Unclear,
    /// The store cannot be used.
    Failed(StoreFault),
}

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreFault {
    /// A write was applied although its condition did not hold.
    ConditionIgnored,
    /// A write was refused in every attempt although its condition held.
    ConditionNeverHolds,
    /// A ranged read returned the whole object.
    RangeIgnored,
    /// A read returned bytes that were not written, or not those asked for.
    WrongBytes,
    /// A read did not find what was written before it.
    NotFoundAfterWrite,
    /// The store does not know the operation or the header.
    Unsupported,
    /// The store does not let us.
    Refused,
}

impl StoreFault {
    /// The fault in words, for the line that says why the program stops.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::ConditionIgnored => "the store ignores the condition of a write and applies it",
            Self::ConditionNeverHolds => "the store refuses a conditional write whose condition holds",
            Self::RangeIgnored => "the store ignores the range of a read and sends the whole object",
            Self::WrongBytes => "the store returns other bytes than were written",
            Self::NotFoundAfterWrite => "the store does not find an object that it has just written",
            Self::Unsupported => "the store does not support the operation",
            Self::Refused => "the store refuses access",
        }
    }
}

/// What a probe says of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeVerdict {
    /// Every step passed in one attempt.
    Fit,
    /// No attempt went through, and none showed a fault: warn and go on.
    Unclear {
        /// The step that the last attempt did not get past.
        step: ProbeStep,
    },
    /// The store cannot be used: stop.
    Unfit {
        /// The step that showed it.
        step: ProbeStep,
        /// The fault.
        fault: StoreFault,
    },
}
