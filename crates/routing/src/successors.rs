//! Who gets the cells that a node gives up in order: the node at which placement would put them, as the leases describe the fleet,
//! told of each cell so that it has it before the next request comes. All of it is advice: a node that is told wrongly refuses, and
//! a cell that nobody was told of is placed by the next request for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_bucket::Bucket;
use holdfast_core::placement::{Candidate, place};
use holdfast_records::ProtocolRange;
use holdfast_rpc::{CellClient, NodeCallError, Peer};
use holdfast_types::{CellName, Epoch, NodeName, SessionId};
use tokio::time::Instant;

use crate::leases::{Leases, PeerView};
use crate::router::now_ms;

/// A node that could not be reached, or takes nothing, gets nothing for this time.
const AVOIDED_FOR: Duration = Duration::from_secs(5);

/// Chooses successors and tells them.
pub struct Successors {
    leases: Leases,
    client: CellClient,
    known: Mutex<Known>,
}

/// What has become of earlier choices.
#[derive(Default)]
struct Known {
    /// Cells given to each node since its lease last told another number: the number, and how many.
    given: HashMap<NodeName, (u64, u64)>,
    /// Until when a session is left alone.
    avoided: HashMap<SessionId, Instant>,
}

impl std::fmt::Debug for Successors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Successors").finish_non_exhaustive()
    }
}

impl Successors {
    /// As the leases in this bucket describe the fleet.
    #[must_use]
    pub fn new(leases: Arc<dyn Bucket>, client: CellClient, protocol: ProtocolRange) -> Self {
        Self { leases: Leases::new(leases, protocol), client, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node that a cell of `me` should go to; none where there is no other that takes cells.
    pub async fn of(&self, cell: &CellName, me: &NodeName) -> Option<Arc<Peer>> {
        let nodes = self.leases.list().await?;
        let mut known = self.known();
        let now = Instant::now();
        known.refresh(&nodes, now);
        let candidates: Vec<Candidate> =
            nodes.iter().filter(|node| node.node != *me).map(|node| known.candidate(node, now)).collect();
        let chosen = place(cell, &candidates)?;
        nodes.iter().find(|node| node.node == *chosen).map(|node| Arc::clone(&node.address))
    }

    /// Tells a session that a cell was given up for it. In which epoch it has the cell, once it has.
    ///
    /// # Errors
    /// [`NodeCallError`]: it does not have the cell, or not yet.
    pub async fn tell(&self, to: &Peer, cell: &CellName, is_asleep: bool) -> Result<Epoch, NodeCallError> {
        let answer = self.client.adopt_cell(to, cell, is_asleep).await;
        let mut known = self.known();
        match &answer {
            Ok(_) => known.given.entry(to.node.clone()).or_default().1 += 1,
            Err(_) => {
                known.avoided.insert(to.session, Instant::now() + AVOIDED_FOR);
            }
        }
        answer
    }

    /// As of a second ago at most: whether there is another node that takes cells.
    pub async fn are_there(&self, me: &NodeName) -> bool {
        let nodes = self.leases.list().await.unwrap_or_default();
        let now = now_ms();
        nodes
            .iter()
            .any(|node| node.node != *me && !node.draining && node.protocol_ok && now < node.expires_ms)
    }
}

impl Known {
    /// What a newer lease tells is known better by it, and whom nobody lists is forgotten.
    fn refresh(&mut self, nodes: &[PeerView], now: Instant) {
        let mut given = HashMap::with_capacity(nodes.len());
        for node in nodes {
            let before = self.given.get(&node.node).filter(|(listed, _)| *listed == node.cells);
            given.insert(node.node.clone(), before.copied().unwrap_or((node.cells, 0)));
        }
        self.given = given;
        self.avoided.retain(|_, until| now < *until);
    }

    fn candidate(&self, view: &PeerView, now: Instant) -> Candidate {
        // A lease tells what was owned at its last renewal: what it has been given since counts, too.
        let given = self.given.get(&view.node).map_or(0, |(_, given)| *given);
        let is_avoided = self.avoided.get(&view.session).is_some_and(|until| now < *until);
        Candidate {
            node: view.node.clone(),
            weight: view.weight,
            cells: view.cells.saturating_add(given),
            draining: view.draining || is_avoided,
            live: now_ms() < view.expires_ms,
            protocol_ok: view.protocol_ok,
        }
    }
}
