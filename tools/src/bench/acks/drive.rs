//! The load of `bench acks`: connections with one single-row update in flight each. Every acknowledgement is counted,
//! those outside of the measured time too, so that the rows can be held against the count.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use http::HeaderValue;
use serde_json::Value;

use crate::bench::load::{Connection, Measured, Target, micros};

/// Time before anything is measured: connections, caches and routes settle.
const WARM_UP: Duration = Duration::from_millis(500);
/// Cells prepared or read back at once.
const LANES: usize = 16;

/// What makes a cell ready.
const PREPARE: &str = "CREATE TABLE acks (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, v TEXT NOT NULL); \
                       INSERT INTO acks VALUES (1, 0, 'a value of thirty-two bytes here')";
/// The write that is measured.
const UPDATE: &str = "UPDATE acks SET n = n + 1 WHERE id = 1";
/// Tells how often it took effect.
const COUNT: &str = "SELECT n FROM acks";

/// An ingress, and what it asks of a client.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) authorization: Option<HeaderValue>,
}

impl Door {
    async fn open(&self) -> Result<Connection> {
        Ok(Connection::open(self.address).await?.with_authorization(self.authorization.clone()))
    }

    async fn query(&self, db: &str, sql: &str) -> Result<Value> {
        let answer = self.open().await?.send(&Target::query(self.address, db, sql)).await?;
        serde_json::from_slice(&answer).with_context(|| format!("the answer for `{db}` is no JSON"))
    }
}

/// What a run saw.
pub(super) struct Acked {
    pub(super) measured: Measured,
    /// Updates that were acknowledged, those outside of the measured time too.
    pub(super) count: u64,
}

/// Cells of one run.
pub(super) struct Cells {
    door: Door,
    names: Vec<String>,
}

impl Cells {
    /// Makes so many, with names that begin so.
    pub(super) async fn prepare(door: Door, prefix: &str, count: u32) -> Result<Self> {
        let names: Vec<String> = (1..=count).map(|number| format!("{prefix}-{number}")).collect();
        let door_of = &door;
        stream::iter(names.iter())
            .map(|name| door_of.query(name, PREPARE))
            .buffer_unordered(LANES)
            .try_collect::<Vec<Value>>()
            .await?;
        Ok(Self { door, names })
    }

    /// Updates for so long on so many connections, dealt over the cells in turn; then holds the rows against what was
    /// acknowledged.
    pub(super) async fn measure(&self, connections: u32, time: Duration) -> Result<Acked> {
        let names = self.names.iter().cycle().take(connections as usize);
        let opened = try_join_all(names.map(|name| async move {
            let target = Target::query(self.door.address, name, UPDATE);
            anyhow::Ok((self.door.open().await?, target))
        }));
        let opened = opened.await?;
        let begin = Instant::now() + WARM_UP;
        let end = begin + time;
        let lanes: Vec<_> = opened
            .into_iter()
            .map(|(connection, target)| tokio::spawn(lane(connection, target, begin, end)))
            .collect();
        let (mut latencies_us, mut acknowledged) = (Vec::new(), 0);
        for lane in try_join_all(lanes).await? {
            let Lane { latencies_us: measured, acknowledged: count } = lane?;
            latencies_us.extend(measured);
            acknowledged += count;
        }
        let stored = self.stored().await?;
        ensure!(
            stored == acknowledged,
            "{acknowledged} writes were acknowledged, but the rows have seen {stored}: this is a fault"
        );
        Ok(Acked { measured: Measured::new(latencies_us, time), count: acknowledged })
    }

    /// How many updates the rows have seen.
    async fn stored(&self) -> Result<u64> {
        let counts = stream::iter(self.names.iter()).map(|name| async move {
            let answer = self.door.query(name, COUNT).await?;
            answer["rows"][0][0].as_u64().with_context(|| format!("no count in {answer}"))
        });
        Ok(counts.buffer_unordered(LANES).try_collect::<Vec<u64>>().await?.into_iter().sum())
    }
}

/// What one connection saw.
struct Lane {
    latencies_us: Vec<u32>,
    acknowledged: u64,
}

/// One update after the other; what is sent is also waited for.
async fn lane(mut connection: Connection, target: Target, begin: Instant, end: Instant) -> Result<Lane> {
    let mut lane = Lane { latencies_us: Vec::new(), acknowledged: 0 };
    loop {
        let sent = Instant::now();
        if sent >= end {
            return Ok(lane);
        }
        connection.send(&target).await?;
        lane.acknowledged += 1;
        let answered = Instant::now();
        if sent >= begin && answered < end {
            lane.latencies_us.push(micros(answered - sent));
        }
    }
}
