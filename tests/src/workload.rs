//! The load: counters and ledgers over many databases through several ingresses. Each worker has its own databases and
//! one request in flight, so that what it sees must be in order; on a few hot databases others write at the same time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use anyhow::Result;
use holdfast_types::Position;
use serde_json::{Value, json};

use crate::client::{Outcome, SqlClient};
use crate::ledger::{Ending, Entry, Ledger};
use crate::rng::Rng;

/// How many violations are kept word for word.
const VIOLATIONS_KEPT_MAX: usize = 50;
/// How long a worker leaves a database alone that refused it, in milliseconds.
const REFUSED_PAUSE_MS: u64 = 30;
/// One operation in so many is a read.
const READ_SHARE: f64 = 0.15;
/// One database in so many is hot.
const HOT_EVERY: usize = 10;
/// Workers that only write to hot databases.
const HOT_WORKERS: usize = 4;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS ledger (op_id TEXT NOT NULL, n INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 1), n INTEGER NOT NULL);
INSERT OR IGNORE INTO counter VALUES (1, 0);";

/// Makes one INSERT do what the batch does in two statements.
const TRIGGER: &str = "CREATE TRIGGER IF NOT EXISTS count_it AFTER INSERT ON ledger
BEGIN UPDATE counter SET n = n + 1 WHERE id = 1; END;";

const INSERT: &str =
    "INSERT INTO ledger (op_id, n) VALUES (?, (SELECT n + 1 FROM counter WHERE id = 1)) RETURNING n";

/// What the load needs to know.
#[derive(Clone, Debug)]
pub struct WorkloadOptions {
    /// How many databases.
    pub dbs: usize,
    /// How many workers with databases of their own.
    pub workers: usize,
    /// The seed.
    pub seed: u64,
    /// How long a client waits for an answer.
    pub timeout: Duration,
}

/// What is known so far; shared by all workers.
#[derive(Debug, Default)]
pub struct Tally {
    /// Acknowledged writes.
    pub acked: AtomicU64,
    /// Writes that certainly did not run.
    pub refused: AtomicU64,
    /// Writes of which nobody knows.
    pub unknown: AtomicU64,
    /// Answered reads.
    pub reads: AtomicU64,
    /// Broken promises.
    pub violation_count: AtomicU64,
    violations: Mutex<Vec<String>>,
}

impl Tally {
    /// Notes a broken promise.
    pub fn violation(&self, text: String) {
        self.violation_count.fetch_add(1, Ordering::Relaxed);
        let mut kept = self.violations.lock().expect("no holder panics");
        if kept.len() < VIOLATIONS_KEPT_MAX {
            kept.push(text);
        }
    }

    /// The first broken promises, word for word.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.violations.lock().expect("no holder panics").clone()
    }
}

/// The running load.
#[derive(Debug)]
pub struct Workload {
    stop: Arc<AtomicBool>,
    tally: Arc<Tally>,
    workers: tokio::task::JoinSet<Result<Duration>>,
}

/// Where the ingresses are now; they move when restarted.
pub type Ingresses = Arc<RwLock<Vec<SocketAddr>>>;

/// The name of one of the load's databases.
#[must_use]
pub fn db_name(index: usize) -> String {
    format!("ledger-{index:04}")
}

impl Workload {
    /// Starts all workers.
    #[must_use]
    pub fn start(options: &WorkloadOptions, ingresses: &Ingresses, ledger: &Ledger) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let tally = Arc::new(Tally::default());
        let client = SqlClient::new(options.timeout);
        let mut rng = Rng::new(options.seed);
        let mut workers = tokio::task::JoinSet::new();
        let hot: Vec<usize> = (0..options.dbs).filter(|index| is_hot(*index)).collect();
        let own = (0..options.workers)
            .map(|worker| (worker..options.dbs).step_by(options.workers).collect::<Vec<_>>());
        let shared = std::iter::repeat_n(hot, HOT_WORKERS);
        for (number, dbs) in own.chain(shared).filter(|dbs| !dbs.is_empty()).enumerate() {
            let worker = Worker {
                number,
                rng: rng.fork(),
                dbs: dbs.into_iter().map(Db::new).collect(),
                client: client.clone(),
                ingresses: ingresses.clone(),
                ledger: ledger.clone(),
                tally: tally.clone(),
                next_op: 0,
            };
            workers.spawn(worker.run(stop.clone()));
        }
        Self { stop, tally, workers }
    }

    /// The counts so far.
    #[must_use]
    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Lets every worker end its operation. The longest time that any database of one worker was without an
    /// acknowledgement while it was asked.
    ///
    /// # Errors
    /// When the ledger could not be written.
    pub async fn stop(mut self) -> Result<Duration> {
        self.stop.store(true, Ordering::SeqCst);
        let mut longest = Duration::ZERO;
        while let Some(worker) = self.workers.join_next().await {
            longest = longest.max(worker??);
        }
        Ok(longest)
    }
}

/// One hot database is written by several workers: what one of them sees is in order, but not without gaps.
fn is_hot(index: usize) -> bool {
    index.is_multiple_of(HOT_EVERY)
}

/// What one worker knows of a database.
struct Db {
    name: String,
    index: usize,
    ready: bool,
    /// The highest counter that an answer has revealed.
    seen_n: u64,
    seen_position: Option<Position>,
    /// Since when it has been asked without an acknowledgement.
    waiting_since: Option<Instant>,
}

impl Db {
    fn new(index: usize) -> Self {
        Self {
            name: db_name(index),
            index,
            ready: false,
            seen_n: 0,
            seen_position: None,
            waiting_since: None,
        }
    }

    /// Even databases get one INSERT with a trigger, odd ones a transaction of two statements.
    fn has_trigger(&self) -> bool {
        (self.index / HOT_EVERY + self.index).is_multiple_of(2)
    }
}

struct Worker {
    number: usize,
    rng: Rng,
    dbs: Vec<Db>,
    client: SqlClient,
    ingresses: Ingresses,
    ledger: Ledger,
    tally: Arc<Tally>,
    next_op: u64,
}

impl Worker {
    async fn run(mut self, stop: Arc<AtomicBool>) -> Result<Duration> {
        let mut longest = Duration::ZERO;
        while !stop.load(Ordering::SeqCst) {
            let at = self.rng.below(self.dbs.len());
            let asked = Instant::now();
            self.dbs[at].waiting_since.get_or_insert(asked);
            if self.step(at).await? {
                let since = self.dbs[at].waiting_since.take().expect("set above");
                longest = longest.max(since.elapsed());
            } else {
                tokio::time::sleep(Duration::from_millis(REFUSED_PAUSE_MS)).await;
            }
        }
        Ok(longest)
    }

    /// One operation; whether it was acknowledged.
    async fn step(&mut self, at: usize) -> Result<bool> {
        let ingress = {
            let ingresses = self.ingresses.read().expect("no holder panics");
            *self.rng.pick(&ingresses)
        };
        if !self.dbs[at].ready {
            return Ok(self.set_up(at, ingress).await);
        }
        if self.rng.chance(READ_SHARE) {
            Ok(self.read(at, ingress).await)
        } else {
            self.write(at, ingress).await
        }
    }

    async fn set_up(&mut self, at: usize, ingress: SocketAddr) -> bool {
        let db = &mut self.dbs[at];
        let trigger = if db.has_trigger() { TRIGGER } else { "" };
        let outcome = self.client.sequence(ingress, &db.name, &format!("{SCHEMA}{trigger}")).await;
        db.ready = matches!(outcome, Outcome::Acked(..));
        db.ready
    }

    async fn read(&mut self, at: usize, ingress: SocketAddr) -> bool {
        let db = &mut self.dbs[at];
        let sql = "SELECT n, (SELECT count(*) FROM ledger) FROM counter WHERE id = 1";
        let Outcome::Acked(rows, position) = self.client.query(ingress, &db.name, sql, &[]).await else {
            return false;
        };
        self.tally.reads.fetch_add(1, Ordering::Relaxed);
        let number = |column: usize| rows.first().and_then(|row| row.get(column)).and_then(Value::as_u64);
        match (number(0), number(1)) {
            (Some(n), Some(count)) if n == count => {
                if n < db.seen_n {
                    let Db { name, seen_n, .. } = db;
                    self.tally
                        .violation(format!("`{name}`: a read shows counter {n} after {seen_n} was shown"));
                }
                db.seen_n = db.seen_n.max(n);
            }
            other => self.tally.violation(format!("`{}`: counter and rows are {other:?}", db.name)),
        }
        self.see_position(at, position, false);
        true
    }

    async fn write(&mut self, at: usize, ingress: SocketAddr) -> Result<bool> {
        let op = format!("{}-{}", self.number, self.next_op);
        self.next_op += 1;
        let db = &self.dbs[at];
        let args = vec![json!(op)];
        let outcome = if db.has_trigger() {
            self.client.query(ingress, &db.name, INSERT, &args).await
        } else {
            let count = ("UPDATE counter SET n = n + 1 WHERE id = 1", Vec::new());
            match self.client.transaction(ingress, &db.name, &[(INSERT, args), count]).await {
                Outcome::Acked(mut rows, position) => Outcome::Acked(rows.swap_remove(0), position),
                Outcome::Refused(reason) => Outcome::Refused(reason),
                Outcome::Unknown(reason) => Outcome::Unknown(reason),
            }
        };
        let entry = |ending, n, position: Option<Position>, note| Entry {
            db: db.name.clone(),
            op: op.clone(),
            ending,
            n,
            position: position.map(|p| (p.epoch.get(), p.txid.get())),
            note,
        };
        match outcome {
            Outcome::Acked(rows, position) => {
                let n = rows.first().and_then(|row| row.first()).and_then(Value::as_u64);
                self.ledger.write(entry(Ending::Acked, n, position, String::new())).await?;
                self.tally.acked.fetch_add(1, Ordering::Relaxed);
                self.see_ack(at, &op, n, position);
                Ok(true)
            }
            Outcome::Refused(reason) => {
                self.ledger.write(entry(Ending::Refused, None, None, reason)).await?;
                self.tally.refused.fetch_add(1, Ordering::Relaxed);
                Ok(false)
            }
            Outcome::Unknown(reason) => {
                self.ledger.write(entry(Ending::Unknown, None, None, reason)).await?;
                self.tally.unknown.fetch_add(1, Ordering::Relaxed);
                Ok(false)
            }
        }
    }

    fn see_ack(&mut self, at: usize, op: &str, n: Option<u64>, position: Option<Position>) {
        let db = &mut self.dbs[at];
        match n {
            Some(n) if n > db.seen_n => db.seen_n = n,
            other => {
                let Db { name, seen_n, .. } = db;
                self.tally
                    .violation(format!("`{name}`: write {op} returned {other:?} after {seen_n} was shown"));
            }
        }
        self.see_position(at, position, true);
    }

    /// Epochs never go down for what one client sees in order, and an acknowledged write has a txid of its own.
    fn see_position(&mut self, at: usize, position: Option<Position>, is_write: bool) {
        let db = &mut self.dbs[at];
        let Some(position) = position else {
            self.tally.violation(format!("`{}`: an answer without a position", db.name));
            return;
        };
        if let Some(seen) = db.seen_position {
            let in_order = position.epoch >= seen.epoch
                && if is_write { position.txid > seen.txid } else { position.txid >= seen.txid };
            if !in_order {
                let what = if is_write { "write" } else { "read" };
                self.tally.violation(format!("`{}`: a {what} at {position} after {seen}", db.name));
            }
        }
        db.seen_position = Some(position);
    }
}

#[cfg(test)]
mod tests;
