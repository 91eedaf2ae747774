//! What the bucket and the followers say of logs.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use holdfast_bucket::{Bucket, Buckets};
use holdfast_cellnode::recovery::list_logs;
use holdfast_records::{
    EnsembleRecord, FollowerLease, Key, LogLoss, MemberRecord, NodeLogRecord, NodeLogState, Record,
    RecordError,
};
use holdfast_rpc::follower::{FollowerDescription, HeldLog, LogName};
use holdfast_rpc::{FollowerClient, FollowerPeer};
use holdfast_types::FollowerName;
use serde_json::{Value, json};

/// Records read at once.
const READS: usize = 16;
/// Rows of one page of a listing.
const PAGE: usize = 1000;
/// Longest wait for one follower.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// A log's record as it stands in the bucket.
#[derive(Debug)]
pub struct FoundLog {
    /// Whose.
    pub log: LogName,
    /// The record.
    pub record: Result<NodeLogRecord, RecordError>,
}

/// Every log.
pub async fn read_logs(buckets: &Buckets) -> Result<Vec<FoundLog>> {
    let logs = list_logs(&*buckets.records).await?;
    let reads = stream::iter(logs).map(|log| read_log(&*buckets.records, log)).buffered(READS);
    let found: Vec<Option<FoundLog>> = reads.try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// One log, if it has a record.
pub(super) async fn read_log(records: &dyn Bucket, log: LogName) -> Result<Option<FoundLog>> {
    let key = Key::NodeLog(log.node.clone(), log.session).to_string();
    let object = records.get(&key).await?;
    Ok(object.map(|object| FoundLog { log, record: NodeLogRecord::decode(&object.body) }))
}

/// Every loss that a person declared.
pub async fn losses(buckets: &Buckets) -> Result<Vec<(LogName, Result<LogLoss, RecordError>)>> {
    let mut losses = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = buckets.records.list("log/", after.as_deref(), PAGE).await?;
        for object in &page.objects {
            let Ok(Key::LogLoss(node, session)) = Key::parse(&object.key) else { continue };
            if let Some(object) = buckets.records.get(&object.key).await? {
                losses.push((LogName { node, session }, LogLoss::decode(&object.body)));
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(losses),
        }
    }
}

/// One loss, if it was declared.
pub(super) async fn loss(
    records: &dyn Bucket,
    log: &LogName,
) -> Result<Option<Result<LogLoss, RecordError>>> {
    let key = Key::LogLoss(log.node.clone(), log.session).to_string();
    Ok(records.get(&key).await?.map(|object| LogLoss::decode(&object.body)))
}

/// What the followers of these names say of themselves and the logs they hold, or why they do not.
pub(super) async fn ask(
    buckets: &Buckets,
    client: &FollowerClient,
    followers: impl IntoIterator<Item = FollowerName>,
) -> BTreeMap<FollowerName, Result<FollowerDescription, String>> {
    let asks = followers.into_iter().map(|name| async move {
        let answer = tokio::time::timeout(ASK_TIMEOUT, ask_one(buckets, client, &name)).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {ASK_TIMEOUT:?}")));
        (name, answer)
    });
    futures::future::join_all(asks).await.into_iter().collect()
}

async fn ask_one(
    buckets: &Buckets,
    client: &FollowerClient,
    name: &FollowerName,
) -> Result<FollowerDescription, String> {
    let key = Key::FollowerLease(name.clone()).to_string();
    let object = buckets.leases.get(&key).await.map_err(|error| error.to_string())?;
    let object = object.ok_or_else(|| format!("there is no `{key}`"))?;
    let lease = FollowerLease::decode(&object.body).map_err(|error| error.to_string())?;
    let peer = FollowerPeer { follower: lease.follower, session: lease.session, address: lease.address };
    let link = client.connect(&peer).await.map_err(|error| error.to_string())?;
    link.describe().await.map_err(|error| format!("{peer}: {error}"))
}

/// The names in a record's ensembles.
pub(super) fn follower_names(record: &NodeLogRecord) -> impl Iterator<Item = FollowerName> {
    let ensembles = std::iter::once(&record.ensemble).chain(&record.prior);
    ensembles.flat_map(|ensemble| &ensemble.members).map(|member| member.follower.clone())
}

/// What a described follower holds of a log on the disk that the record names.
pub(super) fn held<'a>(
    description: &'a FollowerDescription,
    member: &MemberRecord,
    log: &LogName,
) -> Option<&'a HeldLog> {
    let is_the_disk = description.incarnation == member.incarnation;
    let held = description.logs.iter().find(|(name, _)| name == log).map(|(_, held)| held);
    held.filter(|_| is_the_disk)
}

/// The members whose word recovers the log, if any is needed.
pub(super) fn witnesses(record: &NodeLogRecord) -> Option<&EnsembleRecord> {
    let ensemble = if record.active { Some(&record.ensemble) } else { record.prior.as_ref() };
    ensemble.filter(|ensemble| !ensemble.members.is_empty())
}

pub(super) const fn state_name(state: NodeLogState) -> &'static str {
    match state {
        NodeLogState::Open => "open",
        NodeLogState::Recovering => "recovering",
        NodeLogState::Sealed => "sealed",
    }
}

pub(super) fn ensemble_json(ensemble: &EnsembleRecord) -> Value {
    let members: Vec<Value> = ensemble
        .members
        .iter()
        .map(|MemberRecord { follower, incarnation }| {
            json!({ "follower": follower.to_string(), "incarnation": incarnation.to_string() })
        })
        .collect();
    json!({ "log_epoch": ensemble.log_epoch.get(), "members": members })
}

pub(super) fn names(ensemble: &EnsembleRecord) -> String {
    let names: Vec<&str> = ensemble.members.iter().map(|member| member.follower.as_str()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
