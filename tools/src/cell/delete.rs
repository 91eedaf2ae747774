//! `cell delete`: purges a cell. First the owner record says so, at a new epoch that is the floor of every later restore;
//! only then are objects deleted, so that nothing which is deleted was still needed, and nothing that a late uploader
//! leaves behind is ever read.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use holdfast_bucket::{BucketArgs, Buckets, Version};
use holdfast_cellnode::{OwnerReadError, Owners, lease_view};
use holdfast_core::ownership::{ClaimOutcome, Claimant, ForcedPurgeOutcome, Intent, Previous, Protocol};
use holdfast_records::{Key, NodeLogState, cell_prefix, epoch_of};
use holdfast_rpc::{Access, CallError, CellCall, CellClient, NodeCallError, PROTOCOL, Peer, whole_body};
use holdfast_types::{CellName, Epoch, NodeName, SessionId};

use serde_json::json;

use super::owners;
use crate::args::open_existing;
use crate::log::{FoundLog, read_logs, recoveries};
use crate::output::{Output, count};
use crate::peers::{self, CLOCK_SKEW_MAX_MS, FoundLease};
use crate::progress;

/// The claimant's name; no node may run under it at the same time.
const OPERATOR: &str = "operator";
/// Claims before giving up: between them the owner was asked to release the cell.
const ROUNDS: u32 = 20;
/// Between claims after a failure, and for the last of those that raced with a release.
const PAUSE: Duration = Duration::from_millis(250);
/// Times that a session is asked to let a cell go that has no record.
const ASKED_MAX: u32 = 3;
/// Time of one request that wakes a cell.
const WAKE: Duration = Duration::from_secs(30);
/// Objects listed and deleted at once.
const PAGE: usize = 1000;

/// Options of `cell delete`.
#[derive(Debug, clap::Args)]
pub struct Delete {
    /// The cell, for example `db:users`.
    cell: CellName,
    /// Yes, for ever.
    #[arg(long)]
    yes: bool,
    /// Also where the owner record is missing, damaged or of a newer release. Every node that lives must answer, and give the
    /// cell up; one that does not must be stopped, and its lease end, before.
    #[arg(long)]
    force_unreadable: bool,
    /// Where the bucket is.
    #[command(flatten)]
    bucket: BucketArgs,
}

impl Delete {
    /// Deletes.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { cell, yes, force_unreadable, bucket } = self;
        if !yes {
            bail!("this deletes `{cell}` and its whole history from the bucket for ever; add --yes to do it");
        }
        let buckets = open_existing(&bucket).await?;
        let (epoch, previous) = match owners(&buckets).read(&cell).await {
            Err(error @ OwnerReadError::Record { .. }) if force_unreadable => {
                force(&buckets, &cell, &error.to_string()).await?
            }
            Ok(None) if force_unreadable => force(&buckets, &cell, "the owner record is missing").await?,
            Err(error @ OwnerReadError::Record { .. }) => bail!("{error}. {WITHOUT_RECORD}"),
            _ => purge(&buckets, &cell).await?,
        };
        let objects = delete_objects(&buckets, &cell, epoch).await?;
        let deleted = json!({ "cell": cell.to_string(), "epoch": epoch.get(), "objects": objects });
        let first = if previous == Previous::Purged {
            "was deleted before; what came later is gone, too"
        } else {
            "is deleted"
        };
        output.print(&deleted, || {
            format!(
                "`{cell}` {first}: {} removed; no epoch below {epoch} is ever read again\n\
                 An upload that was under way may still leave objects, which nothing reads; run this again to remove them.\n\
                 Backups are unaffected: exported files, and versions or copies that the store itself keeps.",
                count(objects, "object")
            )
        })
    }
}

/// Claims the cell's next epoch as its purge; a live owner is asked to give the cell up first.
async fn purge(buckets: &Buckets, cell: &CellName) -> Result<(Epoch, Previous)> {
    let owners = owners(buckets).recovering(recoveries(buckets).await?);
    let spinner = progress::spinner(format!("claiming `{cell}`"));
    let mut refusal = None;
    let mut outcome = owners.claim(cell, operator()?, Intent::Purge).await;
    for _ in 0..ROUNDS {
        outcome = match outcome {
            ClaimOutcome::Claimed { owner, version: _, previous } => return Ok((owner.epoch, previous)),
            ClaimOutcome::NothingToPurge => return Err(nothing(buckets, cell).await),
            ClaimOutcome::NotOwner { node, session } => {
                spinner.set_message(format!("`{node}` gives `{cell}` up"));
                match claim_from(buckets, &owners, cell, (node, session)).await {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        refusal = Some(error);
                        tokio::time::sleep(PAUSE).await;
                        owners.claim(cell, operator()?, Intent::Purge).await
                    }
                }
            }
            ClaimOutcome::Incompatible { node, theirs } => bail!(
                "`{node}` owns `{cell}` and speaks protocol {}-{}, this program {}-{}: use the release that the node has",
                theirs.min,
                theirs.max,
                PROTOCOL.min,
                PROTOCOL.max
            ),
            ClaimOutcome::Failed(failure) => {
                refusal = Some(anyhow!("{}", owners.hold_up(cell).unwrap_or_else(|| failure.to_string())));
                tokio::time::sleep(PAUSE).await;
                owners.claim(cell, operator()?, Intent::Purge).await
            }
        };
    }
    let refusal = refusal.unwrap_or_else(|| anyhow!("its owner takes it again and again; stop its clients"));
    Err(refusal.context(format!("`{cell}` is not deleted, since it could not be claimed; try again")))
}

/// What is left where the record is of no use.
const WITHOUT_RECORD: &str = "Without the record nobody knows which session owns the cell or which epoch is the last. Put \
    the record back from a copy, or add --force-unreadable: then every node that lives is asked to give the cell up, and the \
    cell is deleted once none has it and the logs of all other sessions are at their ends";

/// Claims a cell without a record to claim it by.
async fn force(buckets: &Buckets, cell: &CellName, found: &str) -> Result<(Epoch, Previous)> {
    let spinner = progress::spinner(format!("{found}; asking every node about `{cell}`"));
    let leases = async || {
        let found = peers::leases(buckets).await.ok()?;
        let seen =
            found.into_iter().map(|FoundLease { node, lease }| (node, lease.ok().as_ref().map(lease_view)));
        Some(seen.collect())
    };
    let lets_go = async |node: NodeName, session| {
        spinner.set_message(format!("{found}; asking `{node}` to give `{cell}` up"));
        lets_go(buckets, cell, (node, session)).await
    };
    let unsealed = async || {
        let logs = read_logs(buckets).await.ok()?;
        let is_sealed =
            |log: &FoundLog| log.record.as_ref().is_ok_and(|record| record.state == NodeLogState::Sealed);
        let open = logs.into_iter().filter(|log| !is_sealed(log));
        Some(open.map(|FoundLog { log, .. }| (log.node, log.session)).collect())
    };
    match owners(buckets).purge_by_force(cell, operator()?, leases, lets_go, unsealed).await {
        ForcedPurgeOutcome::Purged(epoch) => Ok((epoch, Previous::Absent)),
        ForcedPurgeOutcome::Readable => purge(buckets, cell).await,
        ForcedPurgeOutcome::NothingToPurge => Err(nothing(buckets, cell).await),
        ForcedPurgeOutcome::Failed(failure) => {
            Err(anyhow!(failure).context(format!("`{cell}` is not deleted ({found})")))
        }
    }
}

/// Whether a session surely has the cell no more. The first answer may be that the record could not be written, which it
/// could not; the cell is gone from there all the same, and the next answer says so.
async fn lets_go(buckets: &Buckets, cell: &CellName, (node, session): (NodeName, SessionId)) -> bool {
    for attempt in 0..ASKED_MAX {
        if attempt > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        match asked(buckets, cell, (&node, session)).await {
            Ok(()) => return true,
            Err(error) => {
                tracing::debug!(%node, attempt, error = format!("{error:#}"), "the cell is not given up")
            }
        }
    }
    false
}

async fn asked(buckets: &Buckets, cell: &CellName, (node, session): (&NodeName, SessionId)) -> Result<()> {
    let lease = owners(buckets).read_lease(node).await?.filter(|lease| lease.session == session);
    let lease = lease.context("its lease has changed")?;
    match peers::client(buckets).await?.release_cell(&Peer::of(&lease), cell).await {
        Ok(()) | Err(NodeCallError::Refused(CallError::NotOwner(_))) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What there is where no owner record is.
async fn nothing(buckets: &Buckets, cell: &CellName) -> anyhow::Error {
    let prefix = cell_prefix(cell);
    match buckets.bulk.list(&prefix, None, 1).await {
        Ok(page) if page.objects.is_empty() => {
            anyhow!("there is no cell `{cell}` in `{}`", buckets.records.url())
        }
        Ok(_) => anyhow!("`{cell}` has objects but no owner record. {WITHOUT_RECORD}"),
        Err(error) => anyhow::Error::new(error).context(format!("whether `{cell}` has objects is unknown")),
    }
}

/// Asks a live owner to release the cell, and claims all the while: clients that wait for the cell make its node claim it
/// again right after the release, so a claim that only began then would come too late.
async fn claim_from(
    buckets: &Buckets,
    owners: &Owners,
    cell: &CellName,
    owner: (NodeName, SessionId),
) -> Result<ClaimOutcome<Version>> {
    let me = operator()?;
    let claim = async {
        loop {
            match owners.claim(cell, me.clone(), Intent::Purge).await {
                ClaimOutcome::NotOwner { .. } => tokio::task::yield_now().await,
                outcome => return outcome,
            }
        }
    };
    tokio::pin!(claim);
    tokio::select! {
        biased;
        outcome = &mut claim => return Ok(outcome),
        asked = ask(buckets, owners, cell, owner) => asked?,
    }
    // One that is given up in the middle may have landed: the next then finds the cell purged, which is as good.
    match tokio::time::timeout(PAUSE, claim).await {
        Ok(outcome) => Ok(outcome),
        Err(_) => Ok(owners.claim(cell, me.clone(), Intent::Purge).await),
    }
}

fn operator() -> Result<Claimant> {
    Ok(Claimant {
        node: NodeName::parse(OPERATOR).context("the operator's name")?,
        session: peers::fresh_session()?,
        protocol: Protocol { min: PROTOCOL.min, max: PROTOCOL.max },
        clock_skew_max_ms: CLOCK_SKEW_MAX_MS,
    })
}

/// Asks a live owner to release the cell.
async fn ask(
    buckets: &Buckets,
    owners: &Owners,
    cell: &CellName,
    owner: (NodeName, SessionId),
) -> Result<()> {
    let (node, session) = owner;
    let lease = owners.read_lease(&node).await?.filter(|lease| lease.session == session);
    // Gone meanwhile: the next claim sees that.
    let Some(lease) = lease else { return Ok(()) };
    let client = peers::client(buckets).await?;
    let peer = Peer::of(&lease);
    match client.release_cell(&peer, cell).await {
        Ok(()) => Ok(()),
        Err(NodeCallError::Refused(CallError::NotOwner(_))) => {
            // Owned and not resident: only a resident cell can be released, so it is woken first.
            wake(&client, &peer, cell).await?;
            released(client.release_cell(&peer, cell).await, &node)
        }
        refused => released(refused, &node),
    }
}

fn released(answer: Result<(), NodeCallError>, node: &NodeName) -> Result<()> {
    answer.map_err(anyhow::Error::new).with_context(|| format!("its owner `{node}` does not release it"))
}

async fn wake(client: &CellClient, peer: &Peer, cell: &CellName) -> Result<()> {
    let call = CellCall {
        cell: cell.clone(),
        access: Access::ReadOnly,
        request: http::Request::get("/").body(whole_body(Bytes::new()))?,
        object: holdfast_rpc::ObjectCall::default(),
        deadline: tokio::time::Instant::now() + WAKE,
    };
    match client.call(peer, call).await {
        Ok(_) => Ok(()),
        Err(error) => bail!("its owner `{}` cannot wake it: {error}", peer.node),
    }
}

/// Deletes everything of the epochs up to the purge's; the owner record stays, because it is what keeps late uploads out.
/// Whoever wants the cell meanwhile has it anew, in a later epoch: that is the new cell's, and stays.
async fn delete_objects(buckets: &Buckets, cell: &CellName, purged: Epoch) -> Result<u64> {
    let prefix = format!("{}ltx/", cell_prefix(cell));
    let spinner = progress::spinner("deleting objects");
    let (mut deleted, mut after) = (0, None);
    loop {
        let page = buckets.bulk.list(&prefix, after.as_deref(), PAGE).await?;
        let keys = page.objects.into_iter().map(|object| object.key);
        // The mark says nothing about what is above the floor, and may be of an owner that came after the purge.
        let keys = keys.filter(|key| !matches!(Key::parse(key), Ok(Key::Retired(_))));
        // What is of no epoch is nobody's.
        let is_later = |key: &String| epoch_of(cell, key).is_some_and(|epoch| epoch > purged);
        let keys: Vec<String> = keys.filter(|key| !is_later(key)).collect();
        if !keys.is_empty() {
            buckets.bulk.delete_many(&keys).await.context("some objects are left; run this again")?;
            deleted += u64::try_from(keys.len()).unwrap_or(u64::MAX);
            spinner.set_message(format!("deleting objects: {deleted}"));
        }
        let Some(next) = page.next else {
            spinner.finish_and_clear();
            return Ok(deleted);
        };
        after = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdfast_bucket::{Bucket, MemoryBucket};

    use super::*;

    #[tokio::test]
    async fn what_a_later_epoch_has_stored_stays() {
        let bucket: Arc<dyn Bucket> = Arc::new(MemoryBucket::new());
        let buckets = Buckets { bulk: bucket.clone(), records: bucket.clone(), leases: bucket.clone() };
        let cell = CellName::new("db", "a").unwrap();
        let key = |epoch: u64, file: &str| format!("cells/db:a/ltx/e{epoch:016x}/{file}");
        let old =
            [key(1, "opener.json"), key(9, "0/1-1.ltx"), key(16, "opener.json"), "cells/db:a/ltx/x".into()];
        let new = [
            key(17, "opener.json"),
            key(17, "0/1-1.ltx"),
            key(0x1_0000, "opener.json"),
            "cells/db:a/ltx/retired.json".into(),
        ];
        let others = ["cells/db:a/own.json".to_owned(), "cells/db:ab/ltx/e1".to_owned()];
        for key in old.iter().chain(&new).chain(&others) {
            bucket.put(key, Bytes::new()).await.unwrap();
        }
        assert_eq!(delete_objects(&buckets, &cell, Epoch::new(16)).await.unwrap(), 4);
        let left = bucket.list("", None, 100).await.unwrap().objects.into_iter().map(|object| object.key);
        let mut expected: Vec<String> = new.into_iter().chain(others).collect();
        expected.sort();
        assert_eq!(left.collect::<Vec<_>>(), expected);
    }
}
