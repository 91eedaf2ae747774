//! `bench cells`: what a resident idle cell holds: memory of the whole process, and open files
//! in the node's data directory, with and without them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use holdfast_sql::{Engine, EngineOptions, Outcome, SqlCall, SqlRuntime, SqlRuntimeOptions};
use holdfast_types::{CellName, Epoch, Millis, Txid};
use humantime::parse_duration;
use serde_json::json;

use super::Place;
use super::load::{Connection, Target};
use crate::output::{Output, Table, bytes};
use crate::process::{open_files_below, resident_bytes};
use crate::progress;

/// Connections that make the cells.
const CONNECTIONS: u32 = 32;
/// Most memory of a cell, in bytes.
const CELL_BYTES_MAX: u64 = 64 << 10;
/// Most open files of a cell.
const CELL_FILES_MAX: f64 = 3.0;

/// What makes a cell.
const CREATE: &str = "CREATE TABLE t (v TEXT)";

/// Options of `bench cells`.
#[derive(Debug, clap::Args)]
pub struct Cells {
    /// Resident cells.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    cells: u32,
    /// Time before the measurement, in which idle cells give back what they do not need.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    settle: Duration,
    #[command(flatten)]
    place: Place,
}

/// The process at one time.
#[derive(Clone, Copy)]
struct Held {
    bytes: u64,
    files: u64,
}

impl Held {
    /// The process's memory, and the files below the node's data directory.
    fn now(data_dir: &Path) -> Result<Self> {
        Ok(Self { bytes: resident_bytes()?, files: open_files_below(data_dir)? })
    }
}

impl Cells {
    /// Measures.
    pub async fn run(self, output: Output) -> Result<()> {
        let Self { cells, settle, place } = self;
        let bed = place.fleet(1).await?;
        let public = bed.fleet.addresses.public;
        let data_dir = bed.dir.path().join(bed.fleet.nodes[0].name.as_str());
        // As many again as are open at once, so that what the first requests need is not counted as the cells'.
        make(public, "warm", CONNECTIONS).await?;
        tokio::time::sleep(settle).await;
        let before = Held::now(&data_dir)?;
        make(public, "cell", cells).await?;
        tokio::time::sleep(settle).await;
        let after = Held::now(&data_dir)?;
        let page_cache_bytes = page_cache_of_one(bed.dir.path())?;
        bed.stop().await?;
        let cell_bytes = after.bytes.saturating_sub(before.bytes) / u64::from(cells);
        let cell_files = after.files.saturating_sub(before.files) as f64 / f64::from(cells);
        let result = json!({
            "bench": "cells", "cells": cells,
            "bytes_before": before.bytes, "bytes_after": after.bytes, "cell_bytes": cell_bytes,
            "cell_page_cache_bytes": page_cache_bytes,
            "files_before": before.files, "files_after": after.files, "cell_files": cell_files,
            "wanted_cell_bytes_max": CELL_BYTES_MAX, "wanted_cell_files_max": CELL_FILES_MAX,
        });
        output.print(&result, || {
            let mut table = Table::new(["RESIDENT CELLS", "MEMORY", "OPEN FILES"]);
            table.row([CONNECTIONS.to_string(), bytes(before.bytes), before.files.to_string()]);
            table.row([(CONNECTIONS + cells).to_string(), bytes(after.bytes), after.files.to_string()]);
            table.row(["each".to_owned(), bytes(cell_bytes), format!("{cell_files:.2}")]);
            format!(
                "{table}\nof each {} are SQLite's page cache\n\
                 wanted: each at most {} beyond SQLite's page cache, and {CELL_FILES_MAX} open files",
                bytes(page_cache_bytes),
                bytes(CELL_BYTES_MAX)
            )
        })
    }
}

/// SQLite's page cache of one cell after the same statement, as SQLite itself counts it.
fn page_cache_of_one(dir: &Path) -> Result<u64> {
    let mut engine = Engine::open(&dir.join("one.sqlite"), Txid::ZERO, &EngineOptions::new(dir))?;
    let cell = CellName::new("db", "one")?;
    let body = json!({ "sql": CREATE }).to_string();
    let call = SqlCall {
        method: "POST",
        path: "/query",
        body: body.as_bytes(),
        is_read_only: false,
        cell: &cell,
        now: Millis::ZERO,
        epoch: Epoch::new(1),
    };
    let outcome = SqlRuntime::new(SqlRuntimeOptions::default()).handle(&mut engine, &call, Millis::ZERO);
    ensure!(
        matches!(outcome, Outcome::Reply(reply) if reply.status == 200),
        "the engine refused to create a table"
    );
    Ok(engine.memory().page_cache_bytes)
}

async fn make(public: std::net::SocketAddr, name: &str, cells: u32) -> Result<()> {
    let bar = progress::bar(u64::from(cells), "making cells");
    let lanes = (0..CONNECTIONS).map(|lane| {
        let bar = bar.clone();
        async move {
            let mut connection = Connection::open(public).await?;
            for number in (lane..cells).step_by(CONNECTIONS as usize) {
                let db = format!("{name}-{number}");
                connection.send(&Target::query(public, &db, CREATE)).await?;
                bar.inc(1);
            }
            anyhow::Ok(())
        }
    });
    stream::iter(lanes).buffer_unordered(CONNECTIONS as usize).try_collect::<Vec<()>>().await?;
    bar.finish_and_clear();
    Ok(())
}
