//! Evens nodes out, in one waker of the fleet: reads what nodes own, and asks those with more than their share to give cells to those
//! with less, as `holdfast_core::rebalance` plans. Operators pause it by `fleet/rebalance.json`. Whatever it asks twice, late or
//! wrongly moves cells and loses nothing.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use holdfast_bucket::{Bucket, BucketError};
use holdfast_core::rebalance::{Load, Rebalance, Transfer};
use holdfast_records::{Key, NodeLease, RebalanceSwitch, Record};
use holdfast_rpc::{CellClient, MoveCall, NodeCallError, PROTOCOL, Peer};
use holdfast_telemetry::metrics;
use holdfast_types::{Millis, NodeName};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::clock;
use crate::leases::read_leases;

/// Between two rounds of which the first moved something.
const PAUSE: Duration = Duration::from_millis(100);
/// Rounds in a row, before the next tick is waited for: what is read at a tick is read again then.
const ROUNDS_MAX: usize = 64;

/// What balancing works with.
pub(crate) struct Balance {
    /// Between looks.
    pub(crate) interval: Duration,
    /// Where the switch is.
    pub(crate) records: Arc<dyn Bucket>,
    /// Where nodes' leases are.
    pub(crate) leases: Arc<dyn Bucket>,
    /// Asks nodes.
    pub(crate) client: CellClient,
    /// Whether this waker is the one.
    pub(crate) mine: watch::Receiver<bool>,
}

/// Why a round moved nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BalanceError {
    /// The store failed. Disposition: retry.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// A node with a live lease did not say what it owns. Disposition: retry.
    #[error(transparent)]
    Node(#[from] NodeCallError),
}

impl Balance {
    /// Looks for ever.
    pub(crate) async fn run(self) {
        let mut planner = Rebalance::default();
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            for _ in 0..ROUNDS_MAX {
                let was_balancing = planner.is_balancing();
                let moved = self.round(&mut planner).await.unwrap_or_else(|error| {
                    tracing::debug!(%error, "nodes could not be compared; the next tick will");
                    0
                });
                if was_balancing != planner.is_balancing() {
                    tracing::info!(is_balancing = planner.is_balancing(), "evening the cells of nodes out");
                }
                if moved == 0 {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// One look, and what it leads to. How many cells have moved.
    ///
    /// # Errors
    /// [`BalanceError`]; nothing was moved.
    pub(crate) async fn round(&self, planner: &mut Rebalance) -> Result<u64, BalanceError> {
        if !*self.mine.borrow() || self.is_paused().await? {
            planner.stop();
            return Ok(0);
        }
        let now = clock::wall();
        let leases = read_leases(&*self.leases).await?;
        let takers: Vec<NodeLease> = leases.into_iter().filter(|lease| takes_cells(lease, now)).collect();
        // Leases are up to a renewal old: good enough to see that nothing is to do.
        let told: Vec<Load> = takers.iter().map(|lease| load(lease, lease.load.cells)).collect();
        if planner.clone().plan(&told).is_empty() && !planner.is_balancing() {
            return Ok(0);
        }
        let fresh = takers.iter().map(|lease| async move {
            let description = self.client.describe(&Peer::of(lease)).await?;
            Ok::<_, NodeCallError>((load(lease, description.cells), description.draining))
        });
        let fresh: Vec<Load> = try_join_all(fresh)
            .await?
            .into_iter()
            .filter_map(|(load, is_draining)| (!is_draining).then_some(load))
            .collect();
        let transfers = planner.plan(&fresh);
        let moves = transfers.iter().map(|transfer| self.transfer(transfer, &takers));
        Ok(join_all(moves).await.into_iter().sum())
    }

    async fn transfer(&self, transfer: &Transfer, takers: &[NodeLease]) -> u64 {
        let Transfer { from, to, cells, keep } = transfer;
        let find = |node: &NodeName| takers.iter().find(|lease| lease.node == *node);
        let (Some(giver), Some(taker)) = (find(from), find(to)) else { return 0 };
        let call = MoveCall { to: Peer::of(taker), weight: taker.load.weight, cells: *cells, keep: *keep };
        match self.client.move_cells(&Peer::of(giver), &call).await {
            Ok(moved) => {
                tracing::debug!(%from, %to, asked = cells, moved, "cells have moved");
                metrics().waker_moved(moved);
                moved
            }
            Err(error) => {
                tracing::debug!(%from, %to, %error, "cells could not be moved");
                0
            }
        }
    }

    /// What cannot be read as ours was written by a newer release: it may say that nothing is to move.
    async fn is_paused(&self) -> Result<bool, BucketError> {
        let key = Key::RebalanceSwitch.to_string();
        let Some(object) = self.records.get(&key).await? else { return Ok(false) };
        match RebalanceSwitch::decode(&object.body) {
            Ok(switch) => Ok(switch.paused),
            Err(error) => {
                tracing::warn!(key, %error, "no cells are moved: whether they may be cannot be read");
                Ok(true)
            }
        }
    }
}

fn takes_cells(lease: &NodeLease, now: Millis) -> bool {
    now < lease.expires_ms && !lease.draining && lease.protocol.is_compatible_with(PROTOCOL)
}

fn load(lease: &NodeLease, cells: u64) -> Load {
    Load { node: lease.node.clone(), weight: lease.load.weight, cells }
}
