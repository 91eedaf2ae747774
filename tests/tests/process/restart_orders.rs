//! An owner and the two followers of its ensemble die, freeze and return in every order. One fleet goes through a table of
//! rounds while clients write all the time.

use std::time::{Duration, Instant};

use holdfast_records::{EnsembleRecord, NodeLogRecord, NodeLogState};
use holdfast_tests::cluster::{Cluster, ClusterOptions};

use crate::support::{SOON, client, create, ids};
use crate::tier::{Steady, wait_ensemble, wait_lease_over};

/// Short, so that the whole table takes a minute or two.
const SHORT_TTL: Duration = Duration::from_secs(1);
/// The programs' default.
const SKEW: Duration = Duration::from_millis(500);
/// Databases with a writer each.
const DBS: [&str; 3] = ["one", "two", "three"];
/// Between a writer's rows: the load must not cost the nodes their short leases.
const PAUSE: Duration = Duration::from_millis(5);

/// The owner and the two followers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    O,
    A,
    B,
}
use Part::{A, B, O};

impl Part {
    /// Its name, for followers.
    fn follower(self) -> Option<&'static str> {
        match self {
            O => None,
            A => Some("f1"),
            B => Some("f2"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strike {
    /// SIGKILL. Of an owner the data directory goes too, and its successor has a new name.
    Kill,
    /// SIGSTOP, for longer than the lease. Its successor has a new name too.
    Stop,
}

/// Who is struck, in this order, and who then returns, in this order.
#[derive(Clone, Copy, Debug)]
struct Round {
    strike: Strike,
    order: &'static [Part],
    /// A follower that returns with another disk.
    wiped: Option<Part>,
}

/// Every order of every subset.
const ORDERS: [&[Part]; 15] = [
    &[O],
    &[A],
    &[B],
    &[O, A],
    &[A, O],
    &[O, B],
    &[B, O],
    &[A, B],
    &[B, A],
    &[O, A, B],
    &[O, B, A],
    &[A, O, B],
    &[A, B, O],
    &[B, O, A],
    &[B, A, O],
];

fn table() -> Vec<Round> {
    let round = |strike, order| Round { strike, order, wiped: None };
    let mut rounds: Vec<Round> = ORDERS.iter().map(|order| round(Strike::Kill, *order)).collect();
    rounds.extend(ORDERS.iter().map(|order| round(Strike::Stop, *order)));
    // The owner first, so that it cannot leave the other follower for the one whose disk goes.
    let wiped: [(&[Part], Part); 4] = [(&[O, A], A), (&[O, B], B), (&[O, A, B], A), (&[O, B, A], A)];
    rounds.extend(wiped.map(|(order, part)| Round { strike: Strike::Kill, order, wiped: Some(part) }));
    rounds
}

/// The fleet between rounds and in them.
struct World {
    cluster: Cluster,
    owner: String,
    nodes: usize,
    writers: Vec<Steady>,
    /// Followers that do not run now.
    away: Vec<Part>,
    /// The logs of this round's owners that are no more.
    dead: Vec<NodeLogRecord>,
}

/// The members of which one must answer for a dead session.
fn witnesses(log: &NodeLogRecord) -> Option<&EnsembleRecord> {
    let ensemble = if log.active { Some(&log.ensemble) } else { log.prior.as_ref() };
    ensemble.filter(|ensemble| log.state != NodeLogState::Sealed && !ensemble.members.is_empty())
}

impl World {
    async fn start() -> Self {
        let options = ClusterOptions {
            nodes: 1,
            followers: 2,
            lease_ttl: SHORT_TTL,
            // Longer than any round: what followers hold is what a takeover finds.
            node_args: ["--upload-pace", "10min"].map(Into::into).to_vec(),
            ..ClusterOptions::default()
        };
        let mut cluster = Cluster::start(options).await.unwrap();
        cluster.allow_in_logs("SELF-FENCE");
        cluster.allow_in_logs("RECOVERY BLOCKED");
        let (client, ingress) = (client(), cluster.ingress());
        let mut writers = Vec::new();
        for db in DBS {
            create(&client, ingress, db).await.unwrap();
            writers.push(Steady::paced(&client, ingress, db, PAUSE));
        }
        Self { cluster, owner: "n1".into(), nodes: 1, writers, away: Vec::new(), dead: Vec::new() }
    }

    /// Both followers prove the owner's writes, and every writer is served.
    async fn settle(&mut self) {
        self.dead.clear();
        assert!(self.serves().await, "everybody is there");
        wait_ensemble(&self.cluster, &self.owner, &["f1", "f2"]).await;
        assert!(self.serves().await, "everybody is there");
    }

    /// Waits until every writer is served, and says whether any recovery may stand in the way: then nothing is waited for.
    async fn serves(&mut self) -> bool {
        loop {
            if !self.is_recoverable().await {
                return false;
            }
            let Self { cluster, owner, writers, .. } = self;
            tokio::select! {
                _ = futures::future::join_all(writers.iter().map(|writer| writer.more(2))) => return true,
                () = fenced(cluster, owner) => self.replace_owner().await,
            }
        }
    }

    async fn replace_owner(&mut self) {
        // One that fenced itself at once may have none.
        self.dead.extend(self.cluster.present_log(&self.owner).await.ok());
        self.cluster.kill(&self.owner).unwrap();
        self.cluster.wipe_node(&self.owner).unwrap();
        self.start_owner().await;
    }

    /// A node with a name and a disk that were never there.
    async fn start_owner(&mut self) {
        self.nodes += 1;
        self.owner = format!("n{}", self.nodes);
        self.cluster.start_node(&self.owner).await.unwrap();
    }

    async fn play(&mut self, round: Round) {
        self.settle().await;
        if round.order.contains(&O) {
            self.dead.push(self.cluster.present_log(&self.owner).await.unwrap());
        }
        for part in round.order {
            self.strike(*part, round);
        }
        let mut is_owner_back = !round.order.contains(&O);
        let mut is_served = false;
        for part in round.order {
            match part.follower() {
                Some(follower) => self.bring_back(*part, follower, round.strike).await,
                None => {
                    self.bring_owner_back(round.strike).await;
                    is_owner_back = true;
                }
            }
            is_served = is_owner_back && self.serves().await;
        }
        assert!(is_served, "with everybody back the cells are served");
        if !round.order.contains(&O) && round.strike == Strike::Stop {
            // It leaves a follower alone that was slow, for five minutes.
            self.replace_owner().await;
        }
    }

    fn strike(&mut self, part: Part, round: Round) {
        let name = part.follower().map_or_else(|| self.owner.clone(), Into::into);
        match round.strike {
            Strike::Stop => self.cluster.process(&name).unwrap().pause().unwrap(),
            Strike::Kill => self.cluster.kill(&name).unwrap(),
        }
        if part != O {
            self.away.push(part);
        } else if round.strike == Strike::Kill {
            self.cluster.wipe_node(&name).unwrap();
        }
        if round.wiped == Some(part) {
            self.cluster.wipe_follower(&name).unwrap();
        }
    }

    async fn bring_back(&mut self, part: Part, follower: &str, strike: Strike) {
        match strike {
            Strike::Kill => self.cluster.start_follower(follower).await.unwrap(),
            Strike::Stop => self.cluster.process(follower).unwrap().resume().unwrap(),
        }
        self.away.retain(|other| *other != part);
    }

    async fn bring_owner_back(&mut self, strike: Strike) {
        let old = self.owner.clone();
        if strike == Strike::Stop {
            wait_lease_over(&self.cluster, &old, SKEW).await.unwrap();
        }
        self.start_owner().await;
        if strike == Strike::Stop {
            self.serves().await;
            self.cluster.process(&old).unwrap().resume().unwrap();
            let status = self.cluster.process_mut(&old).unwrap().wait_exit(SOON).await.unwrap();
            assert_eq!(status.code(), Some(3), "`{old}` woke after its lease");
        }
    }

    /// Whether of each ensemble that matters a member runs on its disk.
    async fn is_recoverable(&self) -> bool {
        for dead in &self.dead {
            let log = self.cluster.node_log(dead.node.as_str(), dead.session).await.unwrap().unwrap();
            if let Some(ensemble) = witnesses(&log)
                && !self.has_disk(ensemble).await
            {
                return false;
            }
        }
        true
    }

    async fn has_disk(&self, ensemble: &EnsembleRecord) -> bool {
        for part in [A, B] {
            let name = part.follower().unwrap();
            let lease = self.cluster.follower_lease(name).await.unwrap().unwrap();
            let is_member = ensemble
                .members
                .iter()
                .any(|member| member.follower.as_str() == name && member.incarnation == lease.incarnation);
            if is_member && !self.away.contains(&part) {
                return true;
            }
        }
        false
    }
}

/// Waits until a node that nobody struck has ended by itself: a machine that is too busy costs it its short lease.
async fn fenced(cluster: &mut Cluster, node: &str) {
    let process = cluster.process_mut(node).unwrap();
    loop {
        if let Some(status) = process.exit_status().unwrap() {
            assert_eq!(status.code(), Some(3), "`{node}` ended for another reason than its lease");
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_order_of_restarts_loses_a_write_or_blocks_a_recovery_that_has_a_disk() {
    let mut world = World::start().await;
    let began = Instant::now();
    let rounds = table();
    for round in &rounds {
        let round_began = Instant::now();
        println!("{round:?}, owner `{}`", world.owner);
        world.play(*round).await;
        println!("  took {:?}", round_began.elapsed());
    }
    println!("{} rounds in {:?}", rounds.len(), began.elapsed());
    // Then either of the two is enough for the witness.
    world.settle().await;
    let World { mut cluster, owner, writers, .. } = world;
    let mut written = Vec::new();
    for writer in writers {
        written.push(writer.stop().await);
    }
    for program in [owner.as_str(), "f1", "f2"] {
        cluster.kill(program).unwrap();
    }
    cluster.wipe_node(&owner).unwrap();
    cluster.start_follower("f1").await.unwrap();
    cluster.start_node("witness").await.unwrap();
    let (client, ingress) = (client(), cluster.ingress());
    for (db, written) in DBS.iter().zip(written) {
        let found = ids(&client, ingress, db).await.unwrap();
        println!(
            "`{db}`: {} acknowledged, {} refused, {} unknown, {} found",
            written.acked.len(),
            written.refused.len(),
            written.unknown.len(),
            found.len()
        );
        written.must_be_in(&found);
    }
}
