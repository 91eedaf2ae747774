//! What a rule matches, what it does, and what a test can ask of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::Operation;
use crate::ErrorKind;

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing, but it is counted by the rule.
    None,
    /// The request takes this long to arrive.
    Latency(Duration),
    /// The request does not arrive until the rule is released.
    Hold,
    /// The request is carried out; its answer does not come until the rule is released.
    HoldAnswer,
    /// The request never arrives; the caller gets this error. `put_if` tries again after `Unavailable`, as a real
    /// store's client does after 409, 429 and 503.
    Fail(ErrorKind),
    /// The request is carried out; the caller gets this error instead of its answer.
    LoseAnswer(ErrorKind),
    /// `put_if` is refused although its condition may hold; nothing is applied.
    Reject,
    /// `put_if` is applied whatever its condition.
    IgnoreCondition,
    /// A ranged read returns the whole object.
    IgnoreRange,
    /// A read returns bytes of the right length, all of them wrong.
    WrongBytes,
    /// The body of a read breaks off after so many bytes.
    ShortBody(usize),
    /// Listings do not show keys that contain this.
    StaleList(String),
}

/// A fault and which calls it strikes.
#[derive(Clone, Debug)]
pub struct Rule {
    fault: Fault,
    operations: Vec<Operation>,
    prefix: String,
    part: String,
    skip: u64,
    times: u64,
}

impl Rule {
    /// A rule for every call.
    #[must_use]
    pub fn new(fault: Fault) -> Self {
        let (prefix, part) = Default::default();
        Self { fault, operations: Vec::new(), prefix, part, skip: 0, times: u64::MAX }
    }

    /// Only these operations; called more than once, any of them.
    #[must_use]
    pub fn on(mut self, operation: Operation) -> Self {
        self.operations.push(operation);
        self
    }

    /// Only keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Only keys that contain `part`.
    #[must_use]
    pub fn containing(mut self, part: impl Into<String>) -> Self {
        self.part = part.into();
        self
    }

    /// Lets the first `skip` matching calls pass.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Strikes at most `times` calls.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    fn matches(&self, operation: Operation, key: &str) -> bool {
        (self.operations.is_empty() || self.operations.contains(&operation))
            && key.starts_with(&self.prefix)
            && key.contains(&self.part)
    }
}

/// A rule at work.
#[derive(Debug)]
pub(super) struct ActiveRule {
    rule: Rule,
    matched: AtomicU64,
    struck: watch::Sender<u64>,
    released: watch::Sender<bool>,
}

impl ActiveRule {
    pub(super) fn new(rule: Rule) -> Self {
        Self {
            rule,
            matched: AtomicU64::new(0),
            struck: watch::Sender::new(0),
            released: watch::Sender::new(false),
        }
    }

    /// Whether the rule acts on this call.
    pub(super) fn strike(&self, operation: Operation, key: &str) -> bool {
        if *self.released.borrow() || !self.rule.matches(operation, key) {
            return false;
        }
        let number = self.matched.fetch_add(1, Ordering::Relaxed);
        let strikes = number >= self.rule.skip && number - self.rule.skip < self.rule.times;
        if strikes {
            self.struck.send_modify(|struck| *struck += 1);
        }
        strikes
    }

    pub(super) fn release(&self) {
        self.released.send_replace(true);
    }

    async fn wait_for_release(&self) {
        // The sender lives in `self`, so the wait cannot fail.
        let _ = self.released.subscribe().wait_for(|released| *released).await;
    }
}

/// A test's hold on a rule. Dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct RuleHandle {
    rule: Arc<ActiveRule>,
}

impl RuleHandle {
    pub(super) fn new(rule: Arc<ActiveRule>) -> Self {
        Self { rule }
    }

    /// Ends the rule: it strikes no more, and what it holds goes on.
    pub fn release(&self) {
        self.rule.release();
    }

    /// Calls struck so far.
    #[must_use]
    pub fn struck(&self) -> u64 {
        *self.rule.struck.borrow()
    }

    /// Waits until `count` calls were struck.
    pub async fn wait_struck(&self, count: u64) {
        // The sender lives in the rule, so the wait cannot fail.
        let _ = self.rule.struck.subscribe().wait_for(|struck| *struck >= count).await;
    }
}

/// Everything that the rules want of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    latency: Duration,
    hold: Vec<Arc<ActiveRule>>,
    hold_answer: Vec<Arc<ActiveRule>>,
    pub(super) fail_before: Option<ErrorKind>,
    pub(super) lose_answer: Option<ErrorKind>,
    pub(super) reject: bool,
    pub(super) ignore_condition: bool,
    pub(super) ignore_range: bool,
    pub(super) wrong_bytes: bool,
    pub(super) short_body: Option<usize>,
    pub(super) hidden: Vec<String>,
}

impl Plan {
    pub(super) fn add(&mut self, rule: &Arc<ActiveRule>) {
        match &rule.rule.fault {
            Fault::None => {}
            Fault::Latency(latency) => self.latency += *latency,
            Fault::Hold => self.hold.push(Arc::clone(rule)),
            Fault::HoldAnswer => self.hold_answer.push(Arc::clone(rule)),
            Fault::Fail(kind) => self.fail_before = self.fail_before.or(Some(*kind)),
            Fault::LoseAnswer(kind) => self.lose_answer = self.lose_answer.or(Some(*kind)),
            Fault::Reject => self.reject = true,
            Fault::IgnoreCondition => self.ignore_condition = true,
            Fault::IgnoreRange => self.ignore_range = true,
            Fault::WrongBytes => self.wrong_bytes = true,
            Fault::ShortBody(len) => {
                self.short_body = Some(self.short_body.map_or(*len, |old| old.min(*len)))
            }
            Fault::StaleList(part) => self.hidden.push(part.clone()),
        }
    }

    pub(super) async fn wait_before(&self) {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        for rule in &self.hold {
            rule.wait_for_release().await;
        }
    }

    pub(super) async fn wait_after(&self) {
        for rule in &self.hold_answer {
            rule.wait_for_release().await;
        }
    }
}
