//! Executes a forced purge of the core against the bucket. Whom to ask, and how, the caller brings along.

use holdfast_bucket::Version;
use holdfast_core::ownership::{
    Claimant, ForcedPurge, ForcedPurgeEffect, ForcedPurgeEvent, ForcedPurgeOutcome, LeaseView, Sighting,
};
use holdfast_records::{Key, OwnerRecord, Record, cell_prefix, epoch_of};
use holdfast_types::{CellName, NodeName, SessionId};

use super::{OwnerReadError, Owners, READ_ATTEMPTS, pause_after, view};
use crate::{clock, random};

/// Rows of one page of a listing.
const PAGE: usize = 1000;

impl Owners {
    /// Purges a cell whose owner record is missing or cannot be read. `leases` reads the lease of every node, none where one
    /// cannot be read; it answers `None` when the bucket does not. `lets_go` has a session let the cell go, and says whether
    /// it surely did. `unsealed` names the sessions whose node logs are not at their ends, or cannot be read.
    pub async fn purge_by_force(
        &self,
        cell: &CellName,
        me: Claimant,
        leases: impl AsyncFn() -> Option<Vec<(NodeName, Option<LeaseView>)>>,
        lets_go: impl AsyncFn(NodeName, SessionId) -> bool,
        unsealed: impl AsyncFn() -> Option<Vec<(NodeName, SessionId)>>,
    ) -> ForcedPurgeOutcome {
        let (mut purge, mut effect) = ForcedPurge::start(me, random::write_id());
        loop {
            let event = match effect {
                ForcedPurgeEffect::LookAtOwner => self.sight(cell).await,
                ForcedPurgeEffect::ReadLeases => {
                    // Taken before the read, as for every judgement of a lease.
                    let wall_now = clock::wall();
                    let read = leases().await;
                    read.map_or(ForcedPurgeEvent::ReadFailed, |leases| ForcedPurgeEvent::LeasesRead {
                        leases,
                        wall_now,
                    })
                }
                ForcedPurgeEffect::AskToLetGo { node, session } => {
                    if lets_go(node, session).await {
                        ForcedPurgeEvent::LetGo
                    } else {
                        ForcedPurgeEvent::NotLetGo
                    }
                }
                ForcedPurgeEffect::ReadLogs => unsealed()
                    .await
                    .map_or(ForcedPurgeEvent::ReadFailed, |unsealed| ForcedPurgeEvent::LogsRead { unsealed }),
                ForcedPurgeEffect::ListHistory => self.list_history(cell).await,
                ForcedPurgeEffect::WriteOwner { owner, guard } => {
                    ForcedPurgeEvent::Answered(self.write(cell, &owner, guard).await)
                }
                ForcedPurgeEffect::Finish(outcome) => return outcome,
            };
            effect = purge.on(event);
        }
    }

    async fn sight(&self, cell: &CellName) -> ForcedPurgeEvent<Version> {
        let key = Key::Owner(cell.clone()).to_string();
        for attempt in 0..READ_ATTEMPTS {
            match self.records.get(&key).await {
                Ok(None) => return ForcedPurgeEvent::Seen(Sighting::Missing),
                Ok(Some(object)) => {
                    let version = object.version;
                    return ForcedPurgeEvent::Seen(match OwnerRecord::decode(&object.body) {
                        Ok(record) => Sighting::Readable { owner: view(record), version },
                        Err(_) => Sighting::Unreadable { version },
                    });
                }
                Err(error) => pause_after(&OwnerReadError::from(error), cell.as_str(), attempt).await,
            }
        }
        ForcedPurgeEvent::ReadFailed
    }

    async fn list_history(&self, cell: &CellName) -> ForcedPurgeEvent<Version> {
        let prefix = cell_prefix(cell);
        let record = Key::Owner(cell.clone()).to_string();
        let (mut newest, mut is_there, mut after) = (None, false, None);
        let mut attempt = 0;
        loop {
            match self.records.list(&prefix, after.as_deref(), PAGE).await {
                Ok(page) => {
                    is_there |= page.objects.iter().any(|object| object.key != record);
                    let epochs = page.objects.iter().filter_map(|object| epoch_of(cell, &object.key));
                    newest = newest.max(epochs.max());
                    let Some(next) = page.next else {
                        return ForcedPurgeEvent::HistorySeen { newest, is_there };
                    };
                    after = Some(next);
                }
                Err(error) => {
                    pause_after(&OwnerReadError::from(error), cell.as_str(), attempt).await;
                    attempt += 1;
                    if attempt == READ_ATTEMPTS {
                        return ForcedPurgeEvent::ReadFailed;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use holdfast_bucket::{Bucket, MemoryBucket};
    use holdfast_core::ownership::{
        ClaimOutcome, FORCED_EPOCH_GAP, ForcedPurgeFailure, Intent, OwnerState, Protocol,
    };
    use holdfast_types::{Epoch, Millis};

    use super::*;

    const OWN: &str = "cells/db:a/own.json";

    fn me() -> Claimant {
        Claimant {
            node: NodeName::parse("operator").unwrap(),
            session: SessionId::from_bits(9),
            protocol: Protocol { min: 1, max: 1 },
            clock_skew_max_ms: 500,
        }
    }

    async fn cell_with_history() -> (Arc<dyn Bucket>, Owners, CellName) {
        let bucket: Arc<dyn Bucket> = Arc::new(MemoryBucket::new());
        let owners = Owners::new(bucket.clone(), bucket.clone());
        for file in ["opener.json", "0/1-1.ltx"] {
            let key = format!("cells/db:a/ltx/e{:016x}/{file}", 3);
            bucket.put(&key, Bytes::from("x")).await.unwrap();
        }
        (bucket, owners, CellName::new("db", "a").unwrap())
    }

    async fn purge(owners: &Owners, cell: &CellName) -> ForcedPurgeOutcome {
        owners
            .purge_by_force(
                cell,
                me(),
                async || Some(Vec::new()),
                async |_, _| true,
                async || Some(Vec::new()),
            )
            .await
    }

    #[tokio::test]
    async fn whatever_is_in_the_place_of_the_record_is_purged_and_claimed_anew_above_all() {
        for found in [None, Some(""), Some("{\"version\":\"1."), Some("{\"version\":\"9.0\",\"shape\":1}")] {
            let (bucket, owners, cell) = cell_with_history().await;
            if let Some(body) = found {
                bucket.put(OWN, Bytes::from(body)).await.unwrap();
            }
            let outcome = purge(&owners, &cell).await;
            let ForcedPurgeOutcome::Purged(expected) = outcome else { panic!("{outcome:?} of {found:?}") };
            assert!(expected >= Epoch::new(3 + FORCED_EPOCH_GAP));
            let (owner, _) = owners.read(&cell).await.unwrap().unwrap();
            assert_eq!((owner.state, owner.floor), (OwnerState::Purged, expected));
            assert_eq!(purge(&owners, &cell).await, ForcedPurgeOutcome::Readable);
            let claimed = owners.claim(&cell, me(), Intent::Own).await;
            let ClaimOutcome::Claimed { owner, .. } = claimed else { panic!("{claimed:?}") };
            assert_eq!((owner.epoch, owner.floor), (expected.next(), expected), "the floor is carried along");
        }
    }

    #[tokio::test]
    async fn a_record_that_comes_between_is_left_alone() {
        let (bucket, owners, cell) = cell_with_history().await;
        bucket.put(OWN, Bytes::from("torn")).await.unwrap();
        let golden = include_str!("../../../crates/records/golden/owner-1.0.json").trim();
        // The last thing before the write.
        let restored = async |_, _| bucket.put(OWN, Bytes::from(golden)).await.is_ok();
        let lease = LeaseView {
            session: SessionId::from_bits(1),
            expires_ms: Millis::new(u64::MAX / 2),
            protocol: me().protocol,
        };
        let leases = async || Some(vec![(NodeName::parse("n").unwrap(), Some(lease.clone()))]);
        let outcome = owners.purge_by_force(&cell, me(), leases, restored, async || Some(Vec::new())).await;
        assert_eq!(outcome, ForcedPurgeOutcome::Readable);
        assert_eq!(bucket.get(OWN).await.unwrap().unwrap().body, golden);
    }

    #[tokio::test]
    async fn nothing_is_written_while_a_node_may_own_the_cell() {
        let (bucket, owners, cell) = cell_with_history().await;
        let node = NodeName::parse("n").unwrap();
        let lease = LeaseView {
            session: SessionId::from_bits(1),
            expires_ms: Millis::new(u64::MAX / 2),
            protocol: me().protocol,
        };
        for (lease, failure) in [
            (Some(lease), ForcedPurgeFailure::StillHeld(node.clone())),
            (None, ForcedPurgeFailure::UnreadableLease(node.clone())),
        ] {
            let leases = async || Some(vec![(node.clone(), lease.clone())]);
            let none = async || Some(Vec::new());
            let outcome = owners.purge_by_force(&cell, me(), leases, async |_, _| false, none).await;
            assert_eq!(outcome, ForcedPurgeOutcome::Failed(failure));
            assert!(bucket.get(OWN).await.unwrap().is_none());
        }
        let session = SessionId::from_bits(1);
        let unsealed = async || Some(vec![(node.clone(), session)]);
        let outcome =
            owners.purge_by_force(&cell, me(), async || Some(Vec::new()), async |_, _| true, unsealed).await;
        assert_eq!(
            outcome,
            ForcedPurgeOutcome::Failed(ForcedPurgeFailure::UnsealedLog(node.clone(), session))
        );
        assert!(bucket.get(OWN).await.unwrap().is_none());
    }
}
