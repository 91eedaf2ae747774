//! `log list`: the logs that somebody may still have to do something about.

use std::collections::BTreeSet;

use anyhow::Result;
use holdfast_bucket::BucketArgs;
use holdfast_records::{NodeLogRecord, NodeLogState};
use holdfast_types::Millis;
use serde_json::{Value, json};

use super::follower_client;
use super::view::{self, FoundLog, names, state_name, witnesses};
use crate::args::open_existing;
use crate::output::{Output, Table, bytes, span};
use crate::peers;

/// Options of `log list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Sealed logs too: every session there ever was.
    #[arg(long)]
    pub(super) all: bool,
    /// Where the bucket is.
    #[command(flatten)]
    pub(super) bucket: BucketArgs,
}

struct Row {
    found: FoundLog,
    is_alive: bool,
    /// When the session began, where its lease still says.
    started_ms: Option<Millis>,
    /// The most that one follower says it holds, in bytes; none where none answers.
    retained: Option<u64>,
}

impl List {
    /// Lists.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { all, bucket } = self;
        let buckets = open_existing(&bucket).await?;
        let leases = peers::leases(&buckets).await?;
        let mut logs = view::read_logs(&buckets).await?;
        logs.retain(|found| {
            all || !matches!(&found.record, Ok(record) if record.state == NodeLogState::Sealed)
        });
        let unsealed = logs.iter().filter_map(|found| found.record.as_ref().ok());
        let followers: BTreeSet<_> = unsealed
            .filter(|record| record.state != NodeLogState::Sealed)
            .flat_map(view::follower_names)
            .collect();
        let answers = if followers.is_empty() {
            Default::default()
        } else {
            view::ask(&buckets, &follower_client(&buckets).await?, followers).await
        };
        let now = peers::now();
        let rows: Vec<Row> = logs
            .into_iter()
            .map(|found| {
                let lease = leases
                    .iter()
                    .filter_map(|lease| lease.lease.as_ref().ok())
                    .find(|lease| lease.node == found.log.node && lease.session == found.log.session);
                let held = found.record.iter().flat_map(|record| {
                    let ensembles = std::iter::once(&record.ensemble).chain(&record.prior);
                    ensembles.flat_map(|ensemble| &ensemble.members)
                });
                let held = held.filter_map(|member| {
                    let answer = answers.get(&member.follower)?.as_ref().ok()?;
                    Some(view::held(answer, member, &found.log)?.bytes)
                });
                let retained = held.max();
                let is_alive = lease.is_some_and(|lease| peers::LeaseState::of(lease, now).is_live());
                Row { is_alive, started_ms: lease.map(|lease| lease.started_ms), retained, found }
            })
            .collect();
        let value: Vec<Value> = rows.iter().map(|row| row.to_json(now)).collect();
        output.print(&value, || {
            if rows.is_empty() {
                return "no log is open: nothing waits on followers".into();
            }
            let mut table =
                Table::new(["NODE", "SESSION", "STATE", "EPOCH", "FOLLOWERS", "RETAINED", "AGE", "NOTE"]);
            rows.iter().for_each(|row| table.row(row.to_cells(now)));
            table.to_string()
        })
    }
}

impl Row {
    fn to_json(&self, now: Millis) -> Value {
        let FoundLog { log, record } = &self.found;
        let mut row = json!({
            "node": log.node.to_string(), "session": log.session.to_string(), "alive": self.is_alive,
            "retained_bytes": self.retained, "age_ms": self.started_ms.map(|started| now.since(started)),
        });
        match record {
            Ok(record) => {
                row["state"] = state_name(record.state).into();
                row["active"] = record.active.into();
                row["ensemble"] = view::ensemble_json(&record.ensemble);
                row["blocked"] = record.recovery.as_ref().map(|recovery| recovery.blocked.clone()).into();
                row["loss_declared"] = record.loss_declared.into();
            }
            Err(error) => row["error"] = error.to_string().into(),
        }
        row
    }

    fn to_cells(&self, now: Millis) -> [String; 8] {
        let FoundLog { log, record } = &self.found;
        let age = self.started_ms.map_or("-".into(), |started| span(now.since(started)));
        let retained = self.retained.map_or("-".into(), bytes);
        let (node, session) = (log.node.to_string(), log.session.to_string());
        match record {
            Ok(record) => [
                node,
                session,
                state_name(record.state).into(),
                record.ensemble.log_epoch.to_string(),
                names(&record.ensemble),
                retained,
                age,
                note(record, self.is_alive, now),
            ],
            Err(error) => {
                [node, session, "?".into(), String::new(), String::new(), retained, age, error.to_string()]
            }
        }
    }
}

fn note(record: &NodeLogRecord, is_alive: bool, now: Millis) -> String {
    let recovery = record.recovery.as_ref();
    match record.state {
        NodeLogState::Sealed if record.loss_declared => "LOSS DECLARED".into(),
        NodeLogState::Sealed => String::new(),
        NodeLogState::Recovering if recovery.is_some_and(|recovery| !recovery.blocked.is_empty()) => {
            "BLOCKED".into()
        }
        NodeLogState::Recovering => {
            let silent = recovery.map_or(0, |recovery| now.since(recovery.heartbeat_ms));
            format!("being recovered, last progress {} ago", span(silent))
        }
        NodeLogState::Open if is_alive && record.active => "acknowledged by these followers".into(),
        NodeLogState::Open if is_alive => "acknowledged by the bucket".into(),
        NodeLogState::Open if witnesses(record).is_some() => "dead, to be recovered".into(),
        NodeLogState::Open => "dead, nothing to gather".into(),
    }
}
