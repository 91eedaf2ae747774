//! The waker's loop: tells the machine what happened, and does what it says, each effect in a task of its own. At most as
//! many hints run at once as the machine lets, and one listing.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use holdfast_core::waker::{HintOutcome, Waker, WakerEffect, WakerEvent};
use holdfast_routing::{RouteError, Router, Woken};
use holdfast_rpc::{ArmedAlarm, CallError, WakeCall, WakeReply};
use holdfast_telemetry::{HintResult, WakerLevels, metrics};
use holdfast_types::{AlarmId, CellName, SessionId, WakeMinute, WakerName};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock;
use crate::index::Index;

/// Between two log lines that say what is overdue.
const REPORT_PAUSE: Duration = Duration::from_secs(60);

/// What the loop works with.
pub(crate) struct Rounds {
    pub(crate) name: WakerName,
    pub(crate) machine: Waker,
    pub(crate) index: Index,
    pub(crate) hints: Hints,
    pub(crate) tick: Duration,
    /// The shards that are ours.
    pub(crate) held: watch::Receiver<BTreeSet<u16>>,
    /// The sessions that are alive.
    pub(crate) live: watch::Receiver<BTreeSet<SessionId>>,
}

/// Sends hints. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Hints {
    pub(crate) router: Router,
    pub(crate) timeout: Duration,
}

/// What is told of it all.
#[derive(Default)]
struct Told {
    /// Entries counted.
    noted: u64,
    /// When something overdue was last reported.
    reported: Option<Instant>,
}

impl Rounds {
    /// Runs for ever.
    ///
    /// # Errors
    /// A task that ended by a bug: its answer will never come.
    pub(crate) async fn run(mut self) -> Result<()> {
        let mut running = JoinSet::new();
        let mut told = Told::default();
        let mut ticks = tokio::time::interval(self.tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let wait = self.machine.next_at().map(|at| Duration::from_millis(at.since(clock::monotonic())));
            let event = tokio::select! {
                biased;
                changed = self.held.changed() => {
                    changed.context("the keeper of shards has ended")?;
                    WakerEvent::ShardsHeld(self.held.borrow_and_update().clone())
                }
                changed = self.live.changed() => {
                    changed.context("the reader of leases has ended")?;
                    WakerEvent::SessionsRead(self.live.borrow_and_update().clone())
                }
                _ = ticks.tick() => WakerEvent::Tick,
                Some(done) = running.join_next() => done.context("a look at an alarm ended by a bug")?,
                () = tokio::time::sleep(wait.unwrap_or(self.tick)) => WakerEvent::TimeReached,
            };
            let is_tick = event == WakerEvent::Tick;
            for effect in self.machine.on(event, clock::now()) {
                self.execute(effect, &mut running);
            }
            if is_tick {
                self.tell(&mut told);
            }
        }
    }

    fn execute(&self, effect: WakerEffect, running: &mut JoinSet<WakerEvent>) {
        let index = self.index.clone();
        match effect {
            WakerEffect::List { after, limit } => {
                running.spawn(async move { index.list(after, limit).await });
            }
            WakerEffect::ReadRetirement { cell, with_floor } => {
                running.spawn(async move { index.retirement(cell, with_floor).await });
            }
            WakerEffect::Delete { cell, entries } => {
                running.spawn(async move { index.delete(cell, entries).await });
            }
            WakerEffect::Hint { cell, minute, id } => {
                let hints = self.hints.clone();
                running.spawn(async move { hints.hint(cell, minute, id).await });
            }
        }
    }

    fn tell(&self, told: &mut Told) {
        let backlog = self.machine.backlog(clock::now());
        metrics().waker_due(usize::try_from(backlog.noted - told.noted).unwrap_or(usize::MAX));
        told.noted = backlog.noted;
        let levels = WakerLevels {
            cells: backlog.cells,
            in_flight: backlog.in_flight,
            window: backlog.window,
            overdue: backlog.overdue,
            oldest: Duration::from_millis(backlog.oldest_ms),
        };
        metrics().waker_backlog(self.name.as_str(), levels);
        if backlog.overdue > 0 && told.reported.is_none_or(|at| at.elapsed() >= REPORT_PAUSE) {
            told.reported = Some(Instant::now());
            tracing::warn!(
                waker = %self.name, cells = backlog.overdue, oldest = ?levels.oldest,
                "alarms are overdue by more than a minute: their handlers are retried, or their cells cannot be opened"
            );
        }
    }
}

impl Hints {
    async fn hint(self, cell: CellName, minute: WakeMinute, id: AlarmId) -> WakerEvent {
        let began = Instant::now();
        let deadline = tokio::time::Instant::now() + self.timeout;
        let call = WakeCall { cell: cell.clone(), minute, id, deadline };
        let answer = self.router.wake(call).await;
        if let Err(error) = &answer {
            tracing::debug!(%cell, %minute, alarm = %id, %error, "nobody looked at an alarm");
        }
        let (outcome, result) = sort(answer, id);
        metrics().waker_hint(result, began.elapsed());
        WakerEvent::Hinted { cell, outcome }
    }
}

/// What came of a hint, for the machine and for metrics.
fn sort(answer: Result<Woken, RouteError>, hinted: AlarmId) -> (HintOutcome, HintResult) {
    match answer {
        Ok(Woken { reply: WakeReply { epoch, armed }, node: _, session }) => {
            let armed = armed.map(|ArmedAlarm { id, deadline_ms }| (id, deadline_ms));
            let is_it = armed.is_some_and(|(id, _)| id == hinted);
            let result = if is_it { HintResult::Armed } else { HintResult::Other };
            (HintOutcome::Looked { session, epoch, armed }, result)
        }
        Err(RouteError::Refused(CallError::Overloaded { reason: _, retry_after_ms })) => {
            (HintOutcome::Overloaded { retry_after_ms }, HintResult::Overloaded)
        }
        Err(RouteError::Refused(CallError::Rejected { status, reason: _ })) if status.as_u16() == 404 => {
            (HintOutcome::Missing, HintResult::Missing)
        }
        Err(_) => (HintOutcome::Failed, HintResult::Failed),
    }
}
