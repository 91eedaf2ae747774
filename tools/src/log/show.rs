//! `log show`: everything of one log, from the bucket and from its followers.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use holdfast_bucket::{Bucket, BucketArgs};
use holdfast_records::{EnsembleRecord, LogLoss, MemberRecord, NodeLogRecord, RecordError, bundle_prefix};
use holdfast_rpc::follower::{FollowerDescription, HeldLog, LogName};
use holdfast_types::{FollowerName, LogOffset, Millis};
use serde_json::{Value, json};

use super::view::{self, ensemble_json, state_name, witnesses};
use super::{Which, follower_client, is_dead};
use crate::args::open_existing;
use crate::output::{Output, bytes, span};
use crate::peers;

/// Rows of one page of a listing.
const PAGE: usize = 1_000;

/// Options of `log show`.
#[derive(Debug, clap::Args)]
pub struct Show {
    #[command(flatten)]
    pub(super) which: Which,
    /// Where the bucket is.
    #[command(flatten)]
    pub(super) bucket: BucketArgs,
}

struct Shown {
    log: LogName,
    record: NodeLogRecord,
    is_dead: bool,
    loss: Option<Result<LogLoss, RecordError>>,
    bundles: Bundles,
    answers: BTreeMap<FollowerName, Result<FollowerDescription, String>>,
    now: Millis,
}

/// The bundles in the bucket.
#[derive(Default)]
struct Bundles {
    count: u64,
    bytes: u64,
}

impl Bundles {
    async fn list(bucket: &dyn Bucket, log: &LogName) -> Result<Self> {
        let prefix = bundle_prefix(&log.node, log.session);
        let (mut found, mut after) = (Self::default(), None::<String>);
        loop {
            let page = bucket.list(&prefix, after.as_deref(), PAGE).await?;
            for object in page.objects {
                found.count += 1;
                found.bytes += object.len;
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(found),
            }
        }
    }
}

impl Show {
    /// Shows.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { which, bucket } = self;
        let buckets = open_existing(&bucket).await?;
        let log = which.find(&buckets).await?;
        let Some(found) = view::read_log(&*buckets.records, log.clone()).await? else {
            bail!("{log} has no log record; `holdfast log list --all` shows those there are");
        };
        let record = found.record?;
        let client = follower_client(&buckets).await?;
        let answers = view::ask(&buckets, &client, view::follower_names(&record)).await;
        let is_dead = is_dead(&buckets, &log).await?;
        let loss = view::loss(&*buckets.records, &log).await?;
        let bundles = Bundles::list(&*buckets.records, &log).await?;
        let shown = Shown { log, record, is_dead, loss, bundles, answers, now: peers::now() };
        output.print(&shown.to_json(), || shown.to_text())
    }
}

impl Shown {
    fn member_json(&self, member: &MemberRecord) -> Value {
        let mut shown = json!({
            "follower": member.follower.to_string(), "incarnation": member.incarnation.to_string(),
        });
        match self.answers.get(&member.follower) {
            Some(Ok(description)) => {
                shown["reachable"] = true.into();
                shown["found_incarnation"] = description.incarnation.to_string().into();
                if let Some(held) = view::held(description, member, &self.log) {
                    shown["held"] = held_json(held);
                }
            }
            Some(Err(error)) => {
                shown["reachable"] = false.into();
                shown["error"] = error.clone().into();
            }
            None => {}
        }
        shown
    }

    fn to_json(&self) -> Value {
        let Self { log, record, is_dead, loss, bundles, answers: _, now: _ } = self;
        let with_members = |ensemble: &EnsembleRecord| {
            let mut shown = ensemble_json(ensemble);
            shown["members"] = ensemble.members.iter().map(|member| self.member_json(member)).collect();
            shown
        };
        json!({
            "node": log.node.to_string(),
            "session": log.session.to_string(),
            "dead": is_dead,
            "state": state_name(record.state),
            "active": record.active,
            "ensemble": with_members(&record.ensemble),
            "prior": record.prior.as_ref().map(with_members),
            "recovery": record.recovery.as_ref().map(|recovery| json!({
                "claimant": recovery.claimant.to_string(),
                "claimant_node": recovery.claimant_node.as_ref().map(ToString::to_string),
                "heartbeat_ms": recovery.heartbeat_ms.get(),
                "done_below": recovery.done_below.get(),
                "blocked": recovery.blocked,
            })),
            "bundles_from": record.bundles_from.map(LogOffset::get),
            "bundles": { "count": bundles.count, "bytes": bundles.bytes },
            "loss_declared": record.loss_declared,
            "loss": loss.as_ref().and_then(|loss| loss.as_ref().ok()).map(|loss| json!({
                "declared_ms": loss.declared_ms.get(), "reason": loss.reason,
            })),
        })
    }

    fn to_text(&self) -> String {
        let Self { log, record, is_dead, loss, bundles, answers: _, now } = self;
        let life = if *is_dead { "dead" } else { "alive" };
        let mut text = format!(
            "node      {}\nsession   {}, {life}\nstate     {}\n",
            log.node,
            log.session,
            state_name(record.state)
        );
        text += &self.ensemble_text("ensemble", &record.ensemble);
        if !record.active {
            text += "          not active: nothing was acknowledged on its word\n";
        }
        if let Some(prior) = &record.prior {
            text += &self.ensemble_text("prior", prior);
        }
        if let Some(recovery) = &record.recovery {
            let silent = span(now.since(recovery.heartbeat_ms));
            text += &format!(
                "recovery  by session {}, last progress {silent} ago, done below offset {}\n",
                recovery.claimant, recovery.done_below
            );
            if !recovery.blocked.is_empty() {
                text += &format!("          BLOCKED: {}\n", recovery.blocked);
            }
        }
        if let Some(from) = record.bundles_from {
            let Bundles { count, bytes: len } = bundles;
            text += &format!("bundles   {count} ({}), to be read from offset {from} on\n", bytes(*len));
        }
        if witnesses(record).is_none() {
            text += "needs     no follower: all that was acknowledged is in the bucket\n";
        }
        match loss {
            Some(Ok(loss)) => {
                text += &format!(
                    "loss      declared {} ago: {}\n",
                    span(now.since(loss.declared_ms)),
                    loss.reason
                );
            }
            Some(Err(error)) => text += &format!("loss      its record cannot be read: {error}\n"),
            None => {}
        }
        text
    }

    fn ensemble_text(&self, title: &str, ensemble: &EnsembleRecord) -> String {
        let mut text =
            format!("{title:<9} log epoch {}, followers: {}\n", ensemble.log_epoch, view::names(ensemble));
        for member in &ensemble.members {
            let state = match self.answers.get(&member.follower) {
                Some(Ok(found)) if found.incarnation != member.incarnation => {
                    format!("answers, but has another disk now ({})", found.incarnation)
                }
                Some(Ok(found)) => match view::held(found, member, &self.log) {
                    Some(held) => held_text(held),
                    None => "answers, and holds nothing of it".into(),
                },
                Some(Err(error)) => format!("does not answer: {error}"),
                None => "was not asked".into(),
            };
            text += &format!("          `{}` (disk {}): {state}\n", member.follower, member.incarnation);
        }
        text
    }
}

fn held_json(held: &HeldLog) -> Value {
    let HeldLog { incarnation: _, log_epoch, start, end, complete, sealed, bytes } = held;
    json!({
        "log_epoch": log_epoch.get(), "start": start.get(), "end": end.get(), "complete": complete,
        "sealed": sealed, "bytes": bytes,
    })
}

fn held_text(held: &HeldLog) -> String {
    let HeldLog { incarnation: _, log_epoch, start, end, complete, sealed, bytes: len } = held;
    let complete = if *complete { "" } else { ", DAMAGED: frames may be missing" };
    let sealed = if *sealed { ", sealed" } else { "" };
    let frames = end.get().saturating_sub(start.get());
    format!(
        "holds {frames} frames from offset {start} on ({}), log epoch {log_epoch}{sealed}{complete}",
        bytes(*len)
    )
}
