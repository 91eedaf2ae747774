//! `bench writes`: single-row writes, each acknowledged only with the bucket's proof, in many cells at once; against the
//! store's own conditional writes on the same disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use holdfast_bucket::{Bucket, BucketArgs, Commit, Guard};
use humantime::parse_duration;
use serde_json::json;

use super::load::{self, Connection, Measured, Target};
use super::{Place, table};
use crate::output::Output;

/// The least share of the floor that is good.
const SHARE_MIN: f64 = 0.5;
/// Bytes of the floor's objects: about as long as the file of a one-row transaction.
const OBJECT_LEN: usize = 400;
/// Bound of one conditional write of the floor, in milliseconds.
const DEADLINE_MS: u64 = 10_000;

/// Options of `bench writes`.
#[derive(Debug, clap::Args)]
pub struct Writes {
    /// Time of each run; there are two.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    time: Duration,
    /// Cells, each with one connection that writes.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    cells: u32,
    #[command(flatten)]
    place: Place,
}

impl Writes {
    /// Measures.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { time, cells, place } = self;
        let bed = place.fleet(1).await?;
        let public = bed.fleet.addresses.public;
        let mut connection = Connection::open(public).await?;
        let mut targets = Vec::new();
        for number in 0..cells {
            let db = format!("bench-{number}");
            connection.send(&Target::query(public, &db, "CREATE TABLE t (v TEXT)")).await?;
            targets.push(Target::query(
                public,
                &db,
                "INSERT INTO t VALUES ('a value of thirty-two bytes here')",
            ));
        }
        drop(connection);
        let bucket = BucketArgs::at(&bed.fleet.bucket_url).open().await?.bulk;
        let floor = conditional_writes(&bucket, cells, time).await?;
        let writes = load::run(targets, time).await?;
        bed.stop().await?;
        let lines = [
            floor.line(format!("conditional write, at once: {cells}"), None),
            writes.line(format!("proven write, cells: {cells}"), Some(&floor)),
        ];
        let is_good = lines.iter().filter_map(|line| line.ratio_to_floor).all(|ratio| ratio >= SHARE_MIN);
        output.print(
            &json!({ "bench": "writes", "good": is_good, "wanted_ratio_min": SHARE_MIN, "lines": lines }),
            || format!("{}\nwanted: at least {SHARE_MIN} of the floor", table(&lines)),
        )
    }
}

/// Conditional creates of distinct keys, so many at once.
async fn conditional_writes(bucket: &Arc<dyn Bucket>, at_once: u32, time: Duration) -> Result<Measured> {
    let end = Instant::now() + time;
    let body = Bytes::from(vec![7; OBJECT_LEN]);
    let tasks = (0..at_once).map(|lane| {
        let (bucket, body) = (Arc::clone(bucket), body.clone());
        tokio::spawn(async move {
            let mut latencies_us = Vec::new();
            for number in 0_u64.. {
                let begun = Instant::now();
                let key = format!("probe/bench-{lane}/{number:016x}");
                match bucket.put_if(&key, body.clone(), Guard::Absent, DEADLINE_MS).await {
                    Commit::Applied(_) => {}
                    Commit::Rejected => bail!("the store refused to create `{key}`, which is new"),
                    Commit::Unknown(error) => return Err(error.into()),
                }
                let done = Instant::now();
                if done >= end {
                    break;
                }
                latencies_us.push(load::micros(done - begun));
            }
            anyhow::Ok(latencies_us)
        })
    });
    let mut all = Vec::new();
    for latencies in futures::future::try_join_all(tasks).await? {
        all.extend(latencies?);
    }
    Ok(Measured::new(all, time))
}
