//! Recoveries of a process: one attempt at a log at a time, shared by all who need it, and what is known of those that
//! cannot go on.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_bucket::Bucket;
use holdfast_core::log_record::{LogRecord, MemberId};
use holdfast_core::recovery::{RecoveryOutcome, Standing};
use holdfast_rpc::follower::LogName;
use holdfast_telemetry::{RecoveryResult, metrics};
use holdfast_types::{CellName, NodeName, SessionId};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::attempt::{Tools, attempt, blocked_text};
use super::witness::LogWitness;
use crate::random;

/// Longest wait of one activation. Requests give up at their own deadlines; the next one begins again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a log line about the same hold-up stands.
const REPEAT_AFTER: Duration = Duration::from_secs(30);
/// Longest wait for followers to forget what was recovered: they find out by themselves.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);
/// Gatherings at once: each holds up to 128 MiB.
const GATHERINGS_MAX: usize = 2;
/// Cells whose hold-up is remembered for answers.
const HELD_UP_MAX: usize = 10_000;
/// Logs that are remembered as sealed.
const SEALED_MAX: usize = 1_024;

/// What recoveries are made of.
#[derive(Clone, Debug)]
pub struct RecoveryParts {
    /// Who recovers: this process's session.
    pub claimant: SessionId,
    /// The node whose lease that session holds; none of a tool.
    pub claimant_node: Option<NodeName>,
    /// How far two machines' clocks may differ, in milliseconds.
    pub clock_skew_max_ms: u64,
    /// Where log records are.
    pub records: Arc<dyn Bucket>,
    /// Where nodes' leases are.
    pub leases: Arc<dyn Bucket>,
    /// Where cells' files are.
    pub bulk: Arc<dyn Bucket>,
    /// The followers.
    pub witness: Arc<dyn LogWitness>,
    /// Pause between attempts while somebody waits.
    pub retry: Duration,
}

/// Why a log is not recovered.
#[derive(Clone, Debug)]
struct HoldUp {
    reason: String,
    is_blocked: bool,
    told: Instant,
    /// When it was last found so.
    found: Instant,
}

/// Recovers logs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recoveries {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    tools: Tools,
    retry: Duration,
    running: Mutex<HashMap<LogName, watch::Receiver<Option<RecoveryOutcome>>>>,
    held_up: Mutex<HashMap<LogName, HoldUp>>,
    waiting: Mutex<HashMap<CellName, LogName>>,
    /// Logs that were found sealed, which they are for ever: each of a dead owner's cells asks for the same one.
    sealed: Mutex<HashSet<LogName>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recoveries {
    /// Puts them together.
    #[must_use]
    pub fn new(parts: RecoveryParts) -> Self {
        let RecoveryParts {
            claimant,
            claimant_node,
            clock_skew_max_ms,
            records,
            leases,
            bulk,
            witness,
            retry,
        } = parts;
        let gatherings = Arc::new(Semaphore::new(GATHERINGS_MAX));
        let tools =
            Tools { claimant, claimant_node, clock_skew_max_ms, records, leases, bulk, witness, gatherings };
        let inner = Inner {
            tools,
            retry,
            running: Mutex::default(),
            held_up: Mutex::default(),
            waiting: Mutex::default(),
            sealed: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// One attempt, or the end of the one that is under way. It goes on when the caller goes away. The session must be
    /// dead ([`holdfast_core::ownership::is_session_dead`]).
    pub async fn attempt(&self, log: &LogName) -> RecoveryOutcome {
        let mut outcome = {
            let mut running = lock(&self.inner.running);
            match running.get(log) {
                Some(outcome) => outcome.clone(),
                None => {
                    let (sender, outcome) = watch::channel(None);
                    running.insert(log.clone(), outcome.clone());
                    tokio::spawn(Arc::clone(&self.inner).run(log.clone(), sender));
                    outcome
                }
            }
        };
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().expect("waited for it"),
            // The task panicked or the process ends; the log is as it was.
            Err(_) => {
                lock(&self.inner.running).remove(log);
                RecoveryOutcome::Superseded
            }
        }
    }

    /// Attempts until the log is recovered, for a cell that cannot be claimed before. False: not within the patience of
    /// an activation; [`Self::hold_up`] says why.
    pub async fn recover_for(&self, cell: &CellName, log: &LogName) -> bool {
        if lock(&self.inner.sealed).contains(log) {
            return true;
        }
        {
            let mut waiting = lock(&self.inner.waiting);
            if waiting.len() >= HELD_UP_MAX {
                waiting.clear();
            }
            waiting.insert(cell.clone(), log.clone());
        }
        let patience = Instant::now() + PATIENCE;
        loop {
            if let RecoveryOutcome::Recovered { .. } = self.attempt(log).await {
                lock(&self.inner.waiting).remove(cell);
                return true;
            }
            if Instant::now() + self.inner.retry >= patience {
                return false;
            }
            let jitter = self.inner.retry / 4 * u32::from(random::byte()) / 256;
            tokio::time::sleep(self.inner.retry + jitter).await;
        }
    }

    /// What a cell's activation waits for, for people.
    #[must_use]
    pub fn hold_up(&self, cell: &CellName) -> Option<String> {
        let log = lock(&self.inner.waiting).get(cell).cloned()?;
        let known = lock(&self.inner.held_up).get(&log).map(|hold_up| hold_up.reason.clone());
        let under_way = || lock(&self.inner.running).contains_key(&log).then(|| "it is under way".to_owned());
        // Neither: somebody else has recovered it since.
        let reason = known.or_else(under_way)?;
        Some(format!("the log of {log}, its dead owner, is not recovered yet: {reason}"))
    }

    /// Looks again at what this process could not recover when it last tried, and forgets what others have ended or are at:
    /// nobody may ask this process for it again. What cannot be read stays as it was.
    pub async fn review(&self) {
        let known: Vec<(LogName, Instant)> =
            lock(&self.inner.held_up).iter().map(|(log, hold_up)| (log.clone(), hold_up.found)).collect();
        for (log, found) in known {
            if let Some(standing) = self.inner.tools.standing(&log).await {
                self.inner.reviewed(&log, found, standing);
            }
        }
    }

    /// The logs whose recovery waits for followers or for a person, and why.
    #[must_use]
    pub fn blocked(&self) -> BTreeMap<String, String> {
        let held_up = lock(&self.inner.held_up);
        let blocked = held_up.iter().filter(|(_, hold_up)| hold_up.is_blocked);
        blocked.map(|(log, hold_up)| (log.to_string(), hold_up.reason.clone())).collect()
    }
}

impl Inner {
    async fn run(self: Arc<Self>, log: LogName, sender: watch::Sender<Option<RecoveryOutcome>>) {
        let started = Instant::now();
        let outcome = attempt(&self.tools, &log).await;
        self.note(&log, &outcome, started.elapsed());
        if let RecoveryOutcome::Recovered { record } = &outcome {
            self.note_sealed(&log);
            self.release(&log, record);
        }
        lock(&self.running).remove(&log);
        sender.send_replace(Some(outcome));
    }

    fn note(&self, log: &LogName, outcome: &RecoveryOutcome, elapsed: Duration) {
        let (result, reason) = match outcome {
            RecoveryOutcome::Recovered { record } => {
                self.note_recovered(log, record, elapsed);
                return metrics().recovery(RecoveryResult::Recovered);
            }
            RecoveryOutcome::Busy { claimant } => {
                (RecoveryResult::Busy, format!("session {claimant} is at it"))
            }
            RecoveryOutcome::Superseded => (RecoveryResult::Busy, "another recoverer took over".to_owned()),
            RecoveryOutcome::Blocked { log_epoch, missing } => {
                let text = format!("log epoch {log_epoch}: {}", blocked_text(missing));
                (RecoveryResult::Blocked, text)
            }
            RecoveryOutcome::Failed(failure) => (RecoveryResult::Failed, failure.to_string()),
        };
        metrics().recovery(result);
        let is_blocked = result == RecoveryResult::Blocked;
        let (is_news, was_blocked) = {
            let mut held_up = lock(&self.held_up);
            let known = held_up.get(log);
            let is_news =
                known.is_none_or(|known| known.reason != reason || known.told.elapsed() >= REPEAT_AFTER);
            let was_blocked = known.is_some_and(|known| known.is_blocked);
            let told = match known {
                Some(known) if !is_news => known.told,
                _ => Instant::now(),
            };
            let found = Instant::now();
            held_up.insert(log.clone(), HoldUp { reason: reason.clone(), is_blocked, told, found });
            (is_news, was_blocked)
        };
        metrics().recoveries_blocked_changed(i64::from(is_blocked) - i64::from(was_blocked));
        match (is_news, is_blocked) {
            (true, true) => tracing::error!(
                node = %log.node, session = %log.session, reason,
                "RECOVERY BLOCKED: acknowledged writes of a dead session are only on followers that do not answer"
            ),
            (true, false) => {
                tracing::info!(node = %log.node, session = %log.session, reason, "a recovery has not ended");
            }
            (false, _) => {}
        }
    }

    /// A record was read that was not older than what was found.
    fn reviewed(&self, log: &LogName, found: Instant, standing: Standing) {
        let mut held_up = lock(&self.held_up);
        // An attempt of this process has ended meanwhile, and knows better.
        let Some(known) = held_up.get_mut(log).filter(|known| known.found == found) else { return };
        let was_blocked = known.is_blocked;
        known.is_blocked = was_blocked && standing == Standing::Blocked;
        let is_unblocked = was_blocked && !known.is_blocked;
        if standing == Standing::Ended {
            held_up.remove(log);
        }
        if is_unblocked {
            metrics().recoveries_blocked_changed(-1);
            tracing::info!(
                node = %log.node, session = %log.session, ?standing, "a recovery is not blocked any more"
            );
        }
    }

    fn note_sealed(&self, log: &LogName) {
        let mut sealed = lock(&self.sealed);
        if sealed.len() >= SEALED_MAX {
            sealed.clear();
        }
        sealed.insert(log.clone());
    }

    fn note_recovered(&self, log: &LogName, record: &LogRecord, elapsed: Duration) {
        let known = lock(&self.held_up).remove(log);
        if known.is_some_and(|known| known.is_blocked) {
            metrics().recoveries_blocked_changed(-1);
        }
        tracing::info!(
            node = %log.node, session = %log.session, loss_declared = record.loss_declared, ?elapsed,
            "the log of a dead session is recovered"
        );
    }

    /// Has the followers forget the log. They may be gone, and they find out by themselves.
    fn release(&self, log: &LogName, record: &LogRecord) {
        let ensembles = std::iter::once(&record.ensemble).chain(&record.prior);
        let mut members: Vec<MemberId> = ensembles.flat_map(|ensemble| ensemble.members.clone()).collect();
        members.sort_unstable();
        members.dedup();
        for member in members {
            let (witness, log) = (Arc::clone(&self.tools.witness), log.clone());
            tokio::spawn(async move {
                let released = tokio::time::timeout(RELEASE_TIMEOUT, witness.release(&member, &log)).await;
                if !matches!(released, Ok(Ok(()))) {
                    tracing::debug!(%log, follower = %member.follower, ?released, "a follower did not forget a log");
                }
            });
        }
    }
}
