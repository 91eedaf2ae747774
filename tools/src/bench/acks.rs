//! `bench acks`: acknowledged single-row updates over the public SQL API: through an ingress, the owner and what proves
//! its writes, each program a process of its own; beside what disk and loopback cost in the same run. It must never
//! report bucket proofs as an ensemble's, nor a write whose row does not show it.

mod children;
mod drive;
mod fleet;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use http::{HeaderValue, Uri};
use serde::Serialize;
use serde_json::json;

use self::drive::{Acked, Cells, Door};
use self::fleet::ProcessFleet;
use super::floor::Floors;
use super::load::{Measured, process_cpu};
use super::{Line, Place, table};
use crate::output::Output;
use crate::peers::fresh_session;
use crate::process::take_signals;

/// Connections and cells of the runs that are made when neither is given.
const CASES: [Case; 3] = [
    Case { connections: 1, cells: 1 },
    Case { connections: 64, cells: 1 },
    Case { connections: 64, cells: 64 },
];
/// Time of each of the floors.
const FLOOR_TIME: Duration = Duration::from_secs(1);
/// How much dearer than disk and loopback the median of a lone client may be.
const RATIO_MAX: f64 = 2.0;

/// Options of `bench acks`.
#[derive(Debug, clap::Args)]
pub struct Acks {
    /// Connections, each with one update in flight, dealt over the cells in turn. Default, when neither this nor
    /// --cells is given: 1 on one cell, 64 on one cell, 64 on 64 cells.
    #[arg(long, requires = "cells", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    connections: Option<u32>,
    /// Cells, each with one row.
    #[arg(long, requires = "connections", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cells: Option<u32>,
    /// Time of each run, after half a second that is not counted.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Followers of the fleet that is started for this. 0: the bucket proves each write.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=8))]
    followers: u32,
    /// An ingress of a fleet that runs already, `http://host:port`; nothing is started then. The cells stay: they are
    /// `db:bench-acks-…`.
    #[arg(long, value_name = "URL", conflicts_with = "followers")]
    ingress: Option<Uri>,
    /// A bearer token, where that ingress asks for one.
    #[arg(long, env = "HOLDFAST_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    #[command(flatten)]
    place: Place,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    connections: u32,
    cells: u32,
}

/// A line of the result, and what it was measured with.
#[derive(Debug, Serialize)]
struct AckLine {
    connections: u32,
    cells: u32,
    /// The median by that of one sync and two round trips; for a lone client, whose write waits for nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_to_floor: Option<f64>,
    /// CPU microseconds that an update took, by program; of a fleet that was started for this.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    cpu_us_by_program: BTreeMap<String, f64>,
    #[serde(flatten)]
    line: Line,
}

/// A case that was run.
struct Ran {
    case: Case,
    measured: Measured,
    cpu_us: BTreeMap<String, f64>,
}

/// The load generator among the programs.
const LOAD: &str = "load";

impl Acks {
    /// Measures.
    pub async fn run(self, output: Output) -> Result<()> {
        let mut signals = take_signals()?;
        tokio::select! {
            biased;
            // What was started ends with the future that is dropped.
            () = signals.next() => bail!("interrupted"),
            done = self.measure(output) => done,
        }
    }

    async fn measure(self, output: Output) -> Result<()> {
        match &self.ingress {
            Some(ingress) => {
                let door = self.door(resolve(ingress).await?)?;
                let floors = Floors::measure(&self.place.dir, FLOOR_TIME).await?;
                let measured = self.cases(&door, None).await?;
                self.report(output, "the fleet's own", &floors, measured)
            }
            None => {
                let mut fleet = ProcessFleet::start(&self.place.dir, self.followers as usize).await?;
                let door = Door { address: fleet.public, authorization: None };
                let floors = Floors::measure(fleet.dir(), FLOOR_TIME).await?;
                let before = fleet.log_epoch().await?;
                let measured = self.cases(&door, Some(&fleet)).await?;
                let after = fleet.log_epoch().await?;
                ensure!(
                    before == after,
                    "the ensemble changed while it was measured (log epoch {before:?}, then {after:?}), so that the \
                     bucket has proven some of the writes; measure again"
                );
                fleet.stop().await?;
                self.report(output, if before.is_some() { "ensemble" } else { "bucket" }, &floors, measured)
            }
        }
    }

    fn door(&self, address: SocketAddr) -> Result<Door> {
        let authorization = self.token.as_ref().map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).context("this is no token")?;
            value.set_sensitive(true);
            anyhow::Ok(value)
        });
        Ok(Door { address, authorization: authorization.transpose()? })
    }

    async fn cases(&self, door: &Door, fleet: Option<&ProcessFleet>) -> Result<Vec<Ran>> {
        let cases = match (self.connections, self.cells) {
            (Some(connections), Some(cells)) => vec![Case { connections, cells }],
            _ => CASES.to_vec(),
        };
        let run = fresh_session()?;
        let mut measured = Vec::new();
        for (number, case) in cases.into_iter().enumerate() {
            let cells =
                Cells::prepare(door.clone(), &format!("bench-acks-{run}-{number}"), case.cells).await?;
            let time = Duration::from_secs(u64::from(self.seconds));
            let before = cpu(fleet)?;
            let Acked { measured: seen, count } = cells.measure(case.connections, time).await?;
            measured.push(Ran { case, measured: seen, cpu_us: per_update(&before, &cpu(fleet)?, count) });
        }
        Ok(measured)
    }

    fn report(&self, output: Output, proof: &str, floors: &Floors, measured: Vec<Ran>) -> Result<()> {
        let floor_p50_us = floors.write_p50_us();
        let lines: Vec<AckLine> = measured.into_iter().map(|ran| ack_line(ran, floor_p50_us)).collect();
        let is_good = lines.iter().filter_map(|line| line.p50_to_floor).all(|ratio| ratio <= RATIO_MAX);
        let floors = floors.lines();
        let followers = self.ingress.is_none().then_some(self.followers);
        let result = json!({
            "bench": "acks", "proof": proof, "followers": followers, "seconds": self.seconds,
            "good": is_good, "wanted_p50_to_floor_max": RATIO_MAX,
            "floor_p50_us": floor_p50_us, "floors": floors, "lines": lines,
        });
        output.print(&result, || text(proof, floor_p50_us, &floors, &lines))
    }
}

/// The CPU that the fleet and this process have taken so far, by program; empty where the fleet is somebody else's.
fn cpu(fleet: Option<&ProcessFleet>) -> Result<BTreeMap<String, Duration>> {
    let Some(fleet) = fleet else { return Ok(BTreeMap::new()) };
    let mut cpu = fleet.cpu()?;
    cpu.insert(LOAD.to_owned(), process_cpu());
    Ok(cpu)
}

/// The microseconds that each update took of what came between.
fn per_update(
    before: &BTreeMap<String, Duration>,
    after: &BTreeMap<String, Duration>,
    updates: u64,
) -> BTreeMap<String, f64> {
    let taken = |(name, after): (&String, &Duration)| {
        let taken = after.saturating_sub(before.get(name).copied().unwrap_or_default());
        (name.clone(), taken.as_secs_f64() * 1e6 / updates.max(1) as f64)
    };
    after.iter().map(taken).collect()
}

fn ack_line(ran: Ran, floor_p50_us: u64) -> AckLine {
    let Ran { case: Case { connections, cells }, measured, cpu_us: cpu_us_by_program } = ran;
    let line = measured.line(format!("update, connections: {connections}, cells: {cells}"), None);
    let p50_to_floor = (connections == 1).then(|| line.p50_us as f64 / floor_p50_us.max(1) as f64);
    AckLine { connections, cells, p50_to_floor, cpu_us_by_program, line }
}

fn text(proof: &str, floor_p50_us: u64, floors: &[Line], lines: &[AckLine]) -> String {
    let all: Vec<Line> = floors.iter().chain(lines.iter().map(|line| &line.line)).cloned().collect();
    let mut text = format!("{}\nproof: {proof}; every acknowledged update is in its row\n", table(&all));
    for AckLine { connections, cells, p50_to_floor, cpu_us_by_program, line } in lines {
        if !cpu_us_by_program.is_empty() {
            let each: Vec<String> =
                cpu_us_by_program.iter().map(|(name, us)| format!("{name} {us:.1}")).collect();
            let all: f64 = cpu_us_by_program.values().sum();
            text.push_str(&format!(
                "connections: {connections}, cells: {cells}: CPU us per update: {}; in all {all:.1}\n",
                each.join(", ")
            ));
        }
        if let Some(ratio) = p50_to_floor {
            let p50_us = line.p50_us;
            text.push_str(&format!(
                "1 connection: p50 {p50_us} us is {ratio:.2} times one fdatasync and two round trips \
                 ({floor_p50_us} us); wanted: at most {RATIO_MAX}\n"
            ));
        }
    }
    text
}

/// The address of `http://host:port`.
async fn resolve(ingress: &Uri) -> Result<SocketAddr> {
    ensure!(
        ingress.scheme_str() == Some("http") && matches!(ingress.path(), "" | "/"),
        "`{ingress}` is not of the form `http://host:port`; TLS is not measured here"
    );
    let host = ingress.host().with_context(|| format!("`{ingress}` names no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut addresses = tokio::net::lookup_host((host, ingress.port_u16().unwrap_or(80)))
        .await
        .with_context(|| format!("`{host}` cannot be found"))?;
    addresses.next().with_context(|| format!("`{host}` has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lone_client_is_held_against_the_floor() {
        let ran = |connections, cpu_us| {
            let measured = Measured::new(vec![300; 10], Duration::from_secs(1));
            Ran { case: Case { connections, cells: 1 }, measured, cpu_us }
        };
        let alone = ack_line(ran(1, BTreeMap::new()), 200);
        assert!((alone.p50_to_floor.unwrap() - 1.5).abs() < 1e-9);
        let second = |s| BTreeMap::from([("ingress".to_owned(), Duration::from_secs(s))]);
        let crowd = ack_line(ran(64, per_update(&second(1), &second(2), 20_000)), 200);
        assert!(crowd.p50_to_floor.is_none());
        let text = text("bucket", 200, &[], &[alone, crowd]);
        assert!(text.contains("p50 300 us is 1.50 times") && text.contains("proof: bucket"), "{text}");
        assert!(
            text.contains("connections: 64, cells: 1: CPU us per update: ingress 50.0; in all 50.0"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn an_ingress_is_named_by_host_and_port() {
        for (url, address) in [("http://127.0.0.1:81", "127.0.0.1:81"), ("http://[::1]:82/", "[::1]:82")] {
            assert_eq!(resolve(&url.parse().unwrap()).await.unwrap(), address.parse().unwrap());
        }
        for bad in ["https://127.0.0.1:81", "127.0.0.1:81", "http://127.0.0.1:81/path"] {
            assert!(resolve(&bad.parse().unwrap()).await.is_err(), "{bad}");
        }
    }
}
