//! What goes wrong, and when: a seeded schedule of process and store faults, and the hand that starts again what has
//! ended. It notes as a broken promise every end of a process that no fault explains. It must never take all disks of an
//! ensemble that a recovery may need: that loses writes by right.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use holdfast_records::NodeLogRecord;
use http::Method;
use rustix::process::Signal;

use super::ChaosOptions;
use crate::cluster::{Cluster, Process};
use crate::fault_proxy::{Action, Rule, RuleId};
use crate::rng::Rng;
use crate::workload::Tally;

/// How often it looks.
const TICK: Duration = Duration::from_millis(50);
/// How long a held write is held, in milliseconds.
const HOLD_MS: u64 = 30_000;
/// Exit code of a self-fence.
const SELF_FENCE_CODE: i32 = 3;
/// Exit code of a Rust program that panicked.
const PANIC_CODE: i32 = 101;

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Wipe,
    Freeze,
    Restart,
    LostAnswers,
    LateErrors,
    Conflicts,
    SlowDown,
    FailingReads,
    HeldWrites,
    StoreCut,
}

const FAULTS: &[Fault] = &[
    Fault::Kill,
    Fault::Wipe,
    Fault::Freeze,
    Fault::Restart,
    Fault::LostAnswers,
    Fault::LateErrors,
    Fault::Conflicts,
    Fault::SlowDown,
    Fault::FailingReads,
    Fault::HeldWrites,
    Fault::StoreCut,
];

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Wipe => "kill_and_wipe",
            Self::Freeze => "freeze",
            Self::Restart => "restart",
            Self::LostAnswers => "lost_answers",
            Self::LateErrors => "applied_but_500",
            Self::Conflicts => "409",
            Self::SlowDown => "503",
            Self::FailingReads => "failing_reads",
            Self::HeldWrites => "held_writes",
            Self::StoreCut => "store_cut",
        }
    }

    fn name_of_follower(self) -> &'static str {
        match self {
            Self::Kill => "follower_kill",
            Self::Wipe => "follower_kill_and_wipe",
            Self::Freeze => "follower_freeze",
            Self::Restart => "follower_restart",
            other => other.name(),
        }
    }

    /// The rule and how many milliseconds it stands, for faults of the store.
    fn rule(self) -> Option<(Rule, u64)> {
        let status = |status, code: &str| Action::Status { status, code: code.into() };
        let put = |action, probability| Rule::new(action).method(&Method::PUT).probability(probability);
        match self {
            Self::LostAnswers => Some((put(Action::DropAnswer, 0.2), 3_000)),
            Self::LateErrors => {
                let late = Action::AnswerAfter { status: 500, code: "InternalError".into() };
                Some((put(late, 0.2), 3_000))
            }
            Self::Conflicts => Some((put(status(409, "ConditionalRequestConflict"), 0.3), 3_000)),
            Self::SlowDown => Some((put(status(503, "SlowDown"), 0.3), 3_000)),
            Self::FailingReads => {
                let failing = Rule::new(status(503, "SlowDown")).method(&Method::GET);
                Some((failing.probability(0.3), 3_000))
            }
            Self::HeldWrites => Some((put(Action::Hold { ms: HOLD_MS }, 0.05), 3_000)),
            Self::Kill | Self::Wipe | Self::Freeze | Self::Restart | Self::StoreCut => None,
        }
    }
}

/// What was put off.
#[derive(Debug)]
enum Later {
    Start(String),
    Resume(String),
    EndRule(String, RuleId),
}

pub(super) struct Nemesis {
    rng: Rng,
    nodes: Vec<String>,
    followers: Vec<String>,
    ttl: Duration,
    ends: Instant,
    next_process_fault: Instant,
    next_store_fault: Instant,
    later: Vec<(Instant, Later)>,
    /// Nodes and followers that a fault has in its hands, until they run again.
    touched: Vec<String>,
    terminated: Vec<String>,
    done: BTreeMap<&'static str, u64>,
    self_fences: u64,
    tally: Arc<Tally>,
}

impl Nemesis {
    pub(super) fn new(options: &ChaosOptions, tally: Arc<Tally>) -> Self {
        let now = Instant::now();
        Self {
            rng: Rng::new(options.seed ^ 0x6e65_6d65_7369_7321),
            nodes: (1..=options.nodes).map(|number| format!("n{number}")).collect(),
            followers: (1..=options.followers).map(|number| format!("f{number}")).collect(),
            ttl: options.lease_ttl,
            ends: now + options.duration,
            next_process_fault: now + Duration::from_secs(5),
            next_store_fault: now + Duration::from_secs(4),
            later: Vec::new(),
            touched: Vec::new(),
            terminated: Vec::new(),
            done: BTreeMap::new(),
            self_fences: 0,
            tally,
        }
    }

    pub(super) fn faults_done(&self) -> BTreeMap<&'static str, u64> {
        self.done.clone()
    }

    pub(super) fn self_fences(&self) -> u64 {
        self.self_fences
    }

    /// Until the end of the run; then everything is healed.
    pub(super) async fn run(&mut self, cluster: &mut Cluster) -> Result<()> {
        let mut tick = tokio::time::interval(TICK);
        while Instant::now() < self.ends {
            tick.tick().await;
            self.see_ends(cluster)?;
            self.do_what_is_due(cluster).await?;
            let now = Instant::now();
            if now >= self.next_process_fault {
                self.break_a_process(cluster).await?;
                self.next_process_fault = now + self.between(4_000, 9_000);
            }
            if now >= self.next_store_fault {
                self.break_the_store(cluster);
                self.next_store_fault = now + self.between(4_000, 8_000);
            }
        }
        for (_, faults) in cluster.all_faults() {
            faults.clear();
        }
        for (_, later) in std::mem::take(&mut self.later) {
            if let Later::Resume(name) = later {
                cluster.process(&name)?.resume()?;
            }
        }
        Ok(())
    }

    fn between(&mut self, min_ms: u64, max_ms: u64) -> Duration {
        Duration::from_millis(min_ms + self.rng.next_u64() % (max_ms - min_ms))
    }

    fn put_off(&mut self, span: Duration, later: Later) {
        self.later.push((Instant::now() + span, later));
    }

    /// Starts again what has ended, and asks why it has.
    fn see_ends(&mut self, cluster: &mut Cluster) -> Result<()> {
        for name in [self.nodes.clone(), self.followers.clone()].concat() {
            let waits = self.later.iter().any(|(_, later)| matches!(later, Later::Start(n) if *n == name));
            let process = cluster.process_mut(&name)?;
            let Some(status) = process.exit_status()? else { continue };
            if waits {
                continue;
            }
            let was_terminated = self.terminated.contains(&name);
            let was_ready = process.address("admin").is_ok();
            match status.code() {
                Some(SELF_FENCE_CODE) if self.nodes.contains(&name) => self.self_fences += 1,
                Some(0) if was_terminated => {}
                // Asked to end before it had begun.
                None if was_terminated && !was_ready && status.signal() == Some(Signal::TERM.as_raw()) => {}
                // A store that fails during the start may end it; a panic is never right.
                Some(code) if !was_ready && code != PANIC_CODE => {
                    *self.done.entry("failed_start").or_default() += 1;
                }
                _ if Process::was_killed(status) && self.touched.contains(&name) => {}
                _ => {
                    let tail = process.log_tail();
                    self.tally
                        .violation(format!("`{name}` ended with {status} for no reason; its log:\n{tail}"));
                }
            }
            self.terminated.retain(|n| *n != name);
            self.later.retain(|(_, later)| !matches!(later, Later::Resume(n) if *n == name));
            let pause = self.between(100, 2_000);
            self.put_off(pause, Later::Start(name));
        }
        for name in ["store".to_owned(), "i1".to_owned(), "i2".to_owned()] {
            if let Ok(process) = cluster.process_mut(&name)
                && let Some(status) = process.exit_status()?
            {
                anyhow::bail!("`{name}` ended with {status}; its log:\n{}", process.log_tail());
            }
        }
        Ok(())
    }

    async fn do_what_is_due(&mut self, cluster: &mut Cluster) -> Result<()> {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.later).into_iter().partition(|(at, _)| *at <= now);
        self.later = later;
        for (_, what) in due {
            match what {
                Later::Start(name) => {
                    if self.followers.contains(&name) {
                        cluster.spawn_follower(&name).await?;
                    } else {
                        cluster.spawn_node(&name, &[]).await?;
                    }
                    self.touched.retain(|n| *n != name);
                }
                Later::Resume(name) => {
                    cluster.process(&name)?.resume()?;
                    self.touched.retain(|n| *n != name);
                }
                Later::EndRule(name, rule) => cluster.faults(&name).remove(rule),
            }
        }
        Ok(())
    }

    /// A node or a follower. At least one node is always left alone; followers may all be away, but not all disks.
    async fn break_a_process(&mut self, cluster: &mut Cluster) -> Result<()> {
        let free = |names: &[String]| -> Vec<String> {
            names.iter().filter(|name| !self.touched.contains(name)).cloned().collect()
        };
        let (nodes, followers) = (free(&self.nodes), free(&self.followers));
        if !followers.is_empty() && self.rng.chance(0.5) {
            let name = self.rng.pick(&followers).clone();
            let fault = if self.may_lose_disk(cluster, &name).await? && self.rng.chance(0.5) {
                Fault::Wipe
            } else {
                *self.rng.pick(&[Fault::Kill, Fault::Freeze, Fault::Restart])
            };
            return self.break_one(cluster, name, fault).await;
        }
        if nodes.len() < 2 {
            return Ok(());
        }
        let name = self.rng.pick(&nodes).clone();
        let fault = *self.rng.pick(&[Fault::Kill, Fault::Wipe, Fault::Freeze, Fault::Restart]);
        self.break_one(cluster, name, fault).await
    }

    async fn break_one(&mut self, cluster: &mut Cluster, name: String, mut fault: Fault) -> Result<()> {
        let process = cluster.process_mut(&name)?;
        if process.exit_status()?.is_some() {
            return Ok(());
        }
        let is_follower = self.followers.contains(&name);
        self.touched.push(name.clone());
        match fault {
            Fault::Freeze => {
                process.pause()?;
                let frozen = self.ttl + self.between(1_000, 4_000);
                self.put_off(frozen, Later::Resume(name));
            }
            Fault::Restart => {
                process.terminate()?;
                self.terminated.push(name);
            }
            _ => {
                process.kill()?;
                match fault {
                    Fault::Wipe if !is_follower => cluster.wipe_node(&name)?,
                    // Dead, it acknowledges nothing more: what the records say now of its disk is the last word.
                    Fault::Wipe if is_spare(cluster, &name).await? => cluster.wipe_follower(&name)?,
                    _ => fault = Fault::Kill,
                }
                let away = self.between(200, 6_000);
                self.put_off(away, Later::Start(name));
            }
        }
        let done = if is_follower { fault.name_of_follower() } else { fault.name() };
        *self.done.entry(done).or_default() += 1;
        Ok(())
    }

    /// Whether no session can come to need this follower's disk alone: everybody is well, no write of a log record is held
    /// somewhere, and every log that names the follower has another member with its disk.
    async fn may_lose_disk(&self, cluster: &Cluster, name: &str) -> Result<bool> {
        let is_calm = self.touched.is_empty() && cluster.all_faults().all(|(_, f)| !f.is_holding("/log/"));
        Ok(is_calm && is_spare(cluster, name).await?)
    }

    /// Before one program, or before all.
    fn break_the_store(&mut self, cluster: &Cluster) {
        let store_faults: Vec<Fault> =
            FAULTS.iter().copied().filter(|f| f.rule().is_some() || matches!(f, Fault::StoreCut)).collect();
        let fault = *self.rng.pick(&store_faults);
        let left = self.ends.saturating_duration_since(Instant::now());
        if matches!(fault, Fault::HeldWrites) && left < Duration::from_millis(HOLD_MS + 5_000) {
            // What is held must land before the check, or its harm would not be seen.
            return;
        }
        *self.done.entry(fault.name()).or_default() += 1;
        let all: Vec<String> = cluster.all_faults().map(|(name, _)| name.to_owned()).collect();
        let targets = if self.rng.chance(0.5) { all } else { vec![self.rng.pick(&all).clone()] };
        for name in targets {
            match fault.rule() {
                Some((rule, ms)) => {
                    let rule = cluster.faults(&name).add(rule);
                    self.put_off(Duration::from_millis(ms), Later::EndRule(name, rule));
                }
                None => cluster.faults(&name).cut_for(Duration::from_secs(2)),
            }
        }
    }
}

/// Whether every log that names a follower can be recovered without its disk.
async fn is_spare(cluster: &Cluster, name: &str) -> Result<bool> {
    for log in cluster.open_logs().await? {
        if is_named(&log, name) && !has_another_disk(cluster, &log, name).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_named(log: &NodeLogRecord, name: &str) -> bool {
    let ensembles = std::iter::once(&log.ensemble).chain(&log.prior);
    ensembles.flat_map(|ensemble| &ensemble.members).any(|member| member.follower.as_str() == name)
}

/// Only of a log whose ensemble is not being changed: then all its members hold everything.
async fn has_another_disk(cluster: &Cluster, log: &NodeLogRecord, name: &str) -> Result<bool> {
    for member in &log.ensemble.members {
        let lease = cluster.follower_lease(member.follower.as_str()).await?;
        let is_there = lease.is_some_and(|lease| lease.incarnation == member.incarnation);
        if log.active && member.follower.as_str() != name && is_there {
            return Ok(true);
        }
    }
    Ok(false)
}
