//! Which requests are broken, and how: ordered rules, a cut of everything, and a trace of what went through.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use http::Method;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::rng::Rng;

/// How many requests the trace remembers.
const TRACE_LEN_MAX: usize = 200_000;

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Action {
    /// Goes through. As the first rule it shields its requests from later rules.
    Pass,
    /// Applied; the connection closes in place of the answer.
    DropAnswer,
    /// Applied; the answer is this status.
    AnswerAfter {
        /// The status.
        status: u16,
        /// The code in the XML body.
        code: String,
    },
    /// Not applied; the answer is this status.
    Status {
        /// The status.
        status: u16,
        /// The code in the XML body, for example `SlowDown`.
        code: String,
    },
    /// Applied after the time, whether or not the client still waits.
    Hold {
        /// The time, in milliseconds.
        ms: u64,
    },
    /// Not applied; the connection closes.
    Cut,
    /// Applied without its `If-Match` and `If-None-Match`.
    IgnoreConditions,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Only this method.
    #[serde(default)]
    pub method: Option<String>,
    /// Only keys, percent-decoded, bucket and query included, that contain this.
    #[serde(default)]
    pub contains: Option<String>,
    /// Only requests with (`true`) or without (`false`) a condition.
    #[serde(default)]
    pub conditional: Option<bool>,
    /// How likely a request that fits is broken.
    #[serde(default = "certain")]
    pub probability: f64,
    /// After this many hits the rule is spent.
    #[serde(default)]
    pub times: Option<u64>,
    /// What happens.
    pub action: Action,
}

fn certain() -> f64 {
    1.0
}

impl Rule {
    /// A rule for every request.
    #[must_use]
    pub fn new(action: Action) -> Self {
        Self { method: None, contains: None, conditional: None, probability: 1.0, times: None, action }
    }

    /// Only this method.
    #[must_use]
    pub fn method(mut self, method: &Method) -> Self {
        self.method = Some(method.to_string());
        self
    }

    /// Only keys that contain this.
    #[must_use]
    pub fn contains(mut self, text: &str) -> Self {
        self.contains = Some(text.into());
        self
    }

    /// Only requests with, or without, a condition.
    #[must_use]
    pub fn conditional(mut self, conditional: bool) -> Self {
        self.conditional = Some(conditional);
        self
    }

    /// How likely.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = probability;
        self
    }

    /// How often.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    fn fits(&self, method: &Method, target: &str, conditional: bool) -> bool {
        self.method.as_deref().is_none_or(|m| m == method.as_str())
            && self.contains.as_deref().is_none_or(|text| target.contains(text))
            && self.conditional.is_none_or(|wanted| wanted == conditional)
            && self.times != Some(0)
    }
}

/// Names a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RuleId(pub u64);

/// How far a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It arrived at the proxy.
    Arrived,
    /// The store answered it, with this status.
    Answered(u16),
}

/// A line of the trace.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When.
    pub at: Instant,
    /// Method.
    pub method: Method,
    /// Path and query, percent-decoded.
    pub target: String,
    /// How far it came.
    pub stage: Stage,
}

#[derive(Debug)]
struct State {
    rules: Vec<(RuleId, Rule, u64)>,
    next_id: u64,
    rng: Rng,
    cut_until: Option<Instant>,
    trace: VecDeque<Seen>,
    held: Vec<String>,
}

/// The proxy's switches; clones share them.
#[derive(Clone, Debug)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    cuts: watch::Sender<u64>,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        let state = State {
            rules: Vec::new(),
            next_id: 0,
            rng: Rng::new(seed),
            cut_until: None,
            trace: VecDeque::new(),
            held: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), cuts: watch::Sender::new(0) }
    }

    /// Adds a rule behind the others; the first one that hits a request decides.
    pub fn add(&self, rule: Rule) -> RuleId {
        let mut state = self.lock();
        let id = RuleId(state.next_id);
        state.next_id += 1;
        state.rules.push((id, rule, 0));
        id
    }

    /// Takes a rule away.
    pub fn remove(&self, id: RuleId) {
        self.lock().rules.retain(|(other, ..)| *other != id);
    }

    /// Takes all rules away and ends a cut.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.rules.clear();
        state.cut_until = None;
    }

    /// How many requests a rule has hit.
    #[must_use]
    pub fn hits(&self, id: RuleId) -> u64 {
        self.lock().rules.iter().find(|(other, ..)| *other == id).map_or(0, |(_, _, hits)| *hits)
    }

    /// Closes every connection now and every new one until the time is over.
    pub fn cut_for(&self, span: Duration) {
        self.lock().cut_until = Some(Instant::now() + span);
        self.cuts.send_modify(|count| *count += 1);
    }

    /// What went through since the start, or since the trace last forgot.
    #[must_use]
    pub fn trace(&self) -> Vec<Seen> {
        self.lock().trace.iter().cloned().collect()
    }

    /// Forgets the trace.
    pub fn forget_trace(&self) {
        self.lock().trace.clear();
    }

    /// Whether a held request, whose client may have gone, will still be applied to a key that contains this.
    #[must_use]
    pub fn is_holding(&self, text: &str) -> bool {
        self.lock().held.iter().any(|target| target.contains(text))
    }

    pub(super) fn hold_begins(&self, target: &str) {
        self.lock().held.push(target.to_owned());
    }

    pub(super) fn hold_ends(&self, target: &str) {
        let held = &mut self.lock().held;
        if let Some(at) = held.iter().position(|other| other == target) {
            held.swap_remove(at);
        }
    }

    pub(super) fn cuts(&self) -> watch::Receiver<u64> {
        self.cuts.subscribe()
    }

    pub(super) fn is_cut(&self) -> bool {
        self.lock().cut_until.is_some_and(|until| Instant::now() < until)
    }

    pub(super) fn decide(&self, method: &Method, target: &str, conditional: bool) -> Action {
        let mut state = self.lock();
        let State { rules, rng, cut_until, .. } = &mut *state;
        if cut_until.is_some_and(|until| Instant::now() < until) {
            return Action::Cut;
        }
        for (_, rule, hits) in rules {
            if rule.fits(method, target, conditional) && rng.chance(rule.probability) {
                *hits += 1;
                if let Some(times) = &mut rule.times {
                    *times -= 1;
                }
                return rule.action.clone();
            }
        }
        Action::Pass
    }

    pub(super) fn record(&self, method: &Method, target: &str, stage: Stage) {
        let mut state = self.lock();
        if state.trace.len() == TRACE_LEN_MAX {
            state.trace.pop_front();
        }
        let seen = Seen { at: Instant::now(), method: method.clone(), target: target.into(), stage };
        state.trace.push_back(seen);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}
