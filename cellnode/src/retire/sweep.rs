//! Deletes what a mark does not keep. May be begun, broken off and repeated by anybody: what it deletes is read by nobody.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use holdfast_core::retire::{HistoryObject, Mark};
use holdfast_records::{Key, Level, cell_prefix};
use holdfast_telemetry::metrics;
use holdfast_types::Epoch;

use super::may_act;
use crate::cells::Resident;
use crate::node::Node;

/// Rows listed at once.
const PAGE: usize = 1_000;
/// Objects deleted with one call...
const BATCH: usize = 250;
/// ...and so many a second by each lane: a store that is asked for more has less time for what proves writes.
const DELETES_PER_SECOND: u64 = 500;
/// While every upload lane is in use.
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// How often that pause is made before a batch goes anyway.
const BUSY_PAUSES_MAX: u32 = 25;

/// An object that may go.
struct Retired {
    key: String,
    len: u64,
}

/// Lists the epochs up to the mark's and deletes what it does not keep.
///
/// # Errors
/// The store's, or that the cell has left: some of it may be deleted.
pub(super) async fn sweep(node: &Arc<Node>, resident: &Arc<Resident>, mark: &Mark) -> anyhow::Result<()> {
    let prefix = format!("{}ltx/", cell_prefix(&resident.cell));
    let mut after: Option<String> = None;
    // Openers go last: an epoch that has data and no opener looks like damage to whoever does not know of the mark.
    let mut openers = Vec::new();
    loop {
        let page = node.buckets.bulk.list(&prefix, after.as_deref(), PAGE).await?;
        let (mut files, mut is_past) = (Vec::new(), false);
        for object in page.objects {
            let Some((epoch, kind)) = read(&object.key) else { continue };
            is_past = epoch > mark.by;
            if is_past {
                break;
            }
            if !mark.keeps(epoch, kind) {
                let retired = Retired { key: object.key, len: object.len };
                if kind == HistoryObject::Opener { openers.push(retired) } else { files.push(retired) }
            }
        }
        delete(node, resident, files).await?;
        match page.next.filter(|_| !is_past) {
            Some(next) => after = Some(next),
            None => return delete(node, resident, openers).await,
        }
    }
}

/// What an object of a cell's history is; none where it is none.
fn read(key: &str) -> Option<(Epoch, HistoryObject)> {
    match Key::parse(key) {
        Ok(Key::Opener(_, epoch)) => Some((epoch, HistoryObject::Opener)),
        Ok(Key::Ltx { epoch, level: Level::Snapshot, max, .. }) => {
            Some((epoch, HistoryObject::Snapshot(max)))
        }
        Ok(Key::Ltx { epoch, level: Level::Zero | Level::One, max, .. }) => {
            Some((epoch, HistoryObject::File(max)))
        }
        _ => None,
    }
}

async fn delete(node: &Arc<Node>, resident: &Arc<Resident>, retired: Vec<Retired>) -> anyhow::Result<()> {
    for batch in retired.chunks(BATCH) {
        for _ in 0..BUSY_PAUSES_MAX {
            if node.uploads.available_permits() > 0 {
                break;
            }
            tokio::time::sleep(BUSY_PAUSE).await;
        }
        anyhow::ensure!(may_act(node, resident), "the cell has left this node");
        let keys: Vec<String> = batch.iter().map(|retired| retired.key.clone()).collect();
        node.buckets.bulk.delete_many(&keys).await.context("some objects are left")?;
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        metrics().retired(count, batch.iter().map(|retired| retired.len).sum());
        tokio::time::sleep(Duration::from_millis(count * 1_000 / DELETES_PER_SECOND)).await;
    }
    Ok(())
}
