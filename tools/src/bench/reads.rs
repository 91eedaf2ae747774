//! `bench reads`: one row of a resident cell, through the ingress, the internal call and SQLite, against an echo of as
//! many bytes, and against the same echo behind a call between two programs.

use std::time::Duration;

use anyhow::{Result, ensure};
use humantime::parse_duration;
use serde_json::json;

use super::load::{self, Connection, Target};
use super::{Line, Place, echo, hop, table};
use crate::output::Output;

/// The least share that is good of the echo behind a call: a read also has a queue, a statement and a gate.
const SHARE_MIN: f64 = 0.7;

/// Options of `bench reads`.
#[derive(Debug, clap::Args)]
pub struct Reads {
    /// Time of each run; there are two for each number of connections.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    time: Duration,
    /// Connections at once, in one run each.
    #[arg(long, default_value = "1,64", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: Vec<u16>,
    #[command(flatten)]
    place: Place,
}

impl Reads {
    /// Measures.
    pub async fn run(self, output: Output) -> Result<()> {
        let bed = self.place.fleet(1).await?;
        let public = bed.fleet.addresses.public;
        let mut connection = Connection::open(public).await?;
        let text = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'a value of thirty-two bytes here')";
        connection.send(&Target::query(public, "bench", text)).await?;
        let read = Target::query(public, "bench", "SELECT v FROM t WHERE id = 1");
        let answer = connection.send(&read).await?;
        ensure!(String::from_utf8_lossy(&answer).contains("thirty-two"), "the read answered something else");
        drop(connection);

        let (address, server) = echo::start().await?;
        let echo = Target { address, path: "/echo".into(), body: answer };
        let hop = hop::start().await?;
        let behind_call = Target { address: hop.address, ..echo.clone() };
        let mut lines: Vec<Line> = Vec::new();
        let mut is_good = true;
        for connections in self.connections.into_iter().map(usize::from) {
            let floor = load::run(vec![echo.clone(); connections], self.time).await?;
            let behind_call = load::run(vec![behind_call.clone(); connections], self.time).await?;
            let reads = load::run(vec![read.clone(); connections], self.time).await?;
            is_good &= reads.per_second() >= SHARE_MIN * behind_call.per_second();
            lines.push(floor.line(format!("echo, connections: {connections}"), None));
            let what = format!("echo behind a gRPC call, connections: {connections}");
            lines.push(behind_call.line(what, Some(&floor)));
            lines.push(reads.line(format!("read, connections: {connections}"), Some(&floor)));
        }
        server.abort();
        drop(hop);
        bed.stop().await?;
        output.print(
            &json!({ "bench": "reads", "good": is_good, "wanted_ratio_min": SHARE_MIN, "lines": lines }),
            || format!("{}\nwanted: reads of at least {SHARE_MIN} of the echo behind a call", table(&lines)),
        )
    }
}
