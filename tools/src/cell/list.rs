//! `cell list`: names from the bucket's keys, without reading through every cell's files.

use anyhow::{Context as _, Result};
use futures::stream::{self, StreamExt as _};
use holdfast_bucket::{Bucket, BucketArgs};
use holdfast_cellnode::{OwnerReadError, Owners};
use holdfast_core::ownership::{OwnerState, OwnerView};
use holdfast_types::CellName;
use serde_json::{Value, json};

use super::{owner_json, owners, state_name};
use crate::args::open_existing;
use crate::output::{Output, Table};
use crate::progress;

/// Rows of one page: many small cells at once, and never more of a large one.
const PAGE: usize = 1000;
/// Owner records read at once.
const READS: usize = 16;
/// All cells are below this.
const CELLS: &str = "cells/";

/// Options of `cell list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only cells whose name begins so, for example `db:tenant-`.
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    prefix: String,
    /// At most so many.
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Continue after this cell, in the order of the listing.
    #[arg(long, value_name = "CELL")]
    after: Option<CellName>,
    /// Cells that were deleted, too.
    #[arg(long)]
    all: bool,
    /// Where the bucket is.
    #[command(flatten)]
    bucket: BucketArgs,
}

/// A cell and its record.
type Row = (CellName, Result<Option<OwnerView>, OwnerReadError>);

impl List {
    /// Lists.
    pub async fn run(self, output: Output) -> Result<()> {
        let buckets = open_existing(&self.bucket).await?;
        let limit = usize::try_from(self.limit).context("the limit does not fit this machine")?;
        let owners = owners(&buckets);
        let mut names = CellNames::new(&*buckets.bulk, &self.prefix, self.after.as_ref());
        let mut rows: Vec<Row> = Vec::new();
        let spinner = progress::spinner("listing cells");
        while rows.len() < limit {
            let page = names.next_page().await?;
            let Some(page) = page else { break };
            rows.extend(self.read(&owners, page).await);
            spinner.set_message(format!("listing cells: {}", rows.len()));
        }
        spinner.finish_and_clear();
        let is_cut = rows.len() > limit || !names.is_at_end;
        rows.truncate(limit);
        print(&rows, is_cut, output)
    }

    async fn read(&self, owners: &Owners, page: Vec<CellName>) -> Vec<Row> {
        let reads = stream::iter(page).map(|cell| async {
            let owner = owners.read(&cell).await.map(|found| found.map(|(owner, _)| owner));
            (cell, owner)
        });
        let is_purged = |row: &Row| matches!(&row.1, Ok(Some(owner)) if owner.state == OwnerState::Purged);
        let rows: Vec<Row> = reads.buffered(READS).collect().await;
        rows.into_iter().filter(|row| self.all || !is_purged(row)).collect()
    }
}

fn print(rows: &[Row], is_cut: bool, output: Output) -> Result<()> {
    let next = if is_cut { rows.last().map(|(cell, _)| cell.to_string()) } else { None };
    let cells: Vec<Value> = rows.iter().map(row_json).collect();
    output.print(&json!({ "cells": cells, "next": next }), || {
        let mut table = Table::new(["CELL", "STATE", "EPOCH", "NODE"]);
        for (cell, owner) in rows {
            table.row(match owner {
                Ok(Some(owner)) => {
                    vec![
                        cell.to_string(),
                        state_name(owner.state).into(),
                        owner.epoch.to_string(),
                        owner.node.to_string(),
                    ]
                }
                Ok(None) => vec![cell.to_string(), "no owner record".into()],
                Err(error) => vec![cell.to_string(), format!("unreadable: {error}")],
            });
        }
        let more = next.map(|next| format!("more: --after '{next}'\n")).unwrap_or_default();
        if rows.is_empty() { "no cells".into() } else { format!("{table}{more}") }
    })
}

fn row_json((cell, owner): &Row) -> Value {
    let mut row = match owner {
        Ok(Some(owner)) => owner_json(owner),
        Ok(None) => json!({ "state": "no owner record" }),
        Err(error) => json!({ "state": "unreadable", "error": error.to_string() }),
    };
    row["cell"] = cell.to_string().into();
    row
}

/// Walks the names of cells, page by page.
struct CellNames<'a> {
    bucket: &'a dyn Bucket,
    prefix: String,
    after: Option<String>,
    is_at_end: bool,
}

impl<'a> CellNames<'a> {
    fn new(bucket: &'a dyn Bucket, prefix: &str, after: Option<&CellName>) -> Self {
        let after = after.map(|cell| past(&format!("{CELLS}{}", cell.to_key_segment())));
        Self { bucket, prefix: key_prefix(prefix), after, is_at_end: false }
    }

    /// The cells of the next page of keys, or `None` at the end.
    async fn next_page(&mut self) -> Result<Option<Vec<CellName>>> {
        if self.is_at_end {
            return Ok(None);
        }
        let page = self.bucket.list(&self.prefix, self.after.as_deref(), PAGE).await?;
        let mut cells: Vec<CellName> = Vec::new();
        let mut last = None;
        for object in &page.objects {
            let Some(cell_key) = cell_key(&object.key) else { continue };
            if last != Some(cell_key) {
                last = Some(cell_key);
                // What is not a name in its one spelling is not ours.
                cells.extend(CellName::from_key_segment(&cell_key[CELLS.len()..]).ok());
            }
        }
        match (page.next, last) {
            // The rest of the last cell's objects is skipped.
            (Some(_), Some(cell_key)) => self.after = Some(past(cell_key)),
            (Some(next), None) => self.after = Some(next),
            (None, _) => self.is_at_end = true,
        }
        Ok(Some(cells))
    }
}

/// `cells/<cell>` of an object's key.
fn cell_key(key: &str) -> Option<&str> {
    let segment_len = key.strip_prefix(CELLS)?.find('/')?;
    Some(&key[..CELLS.len() + segment_len])
}

/// Sorts right after everything below `key/`: `0` follows `/`.
fn past(key: &str) -> String {
    format!("{key}0")
}

/// The keys of the cells whose name begins with a text: the class as it is, the name as keys spell it.
fn key_prefix(text: &str) -> String {
    let Some((class, name)) = text.split_once(':') else { return format!("{CELLS}{text}") };
    let escaped: String = name
        .bytes()
        .map(|byte| match byte {
            b'-' | b'_' | b'.' => char::from(byte).to_string(),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    format!("{CELLS}{class}:{escaped}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use holdfast_bucket::MemoryBucket;

    async fn names(bucket: &MemoryBucket, prefix: &str, after: Option<&str>) -> (Vec<String>, usize) {
        let after = after.map(|cell| CellName::parse(cell).unwrap());
        let mut walk = CellNames::new(bucket, prefix, after.as_ref());
        let (mut names, mut pages) = (Vec::new(), 0);
        while let Some(page) = walk.next_page().await.unwrap() {
            names.extend(page.iter().map(ToString::to_string));
            pages += 1;
        }
        (names, pages)
    }

    async fn put(bucket: &MemoryBucket, cell: &str, objects: usize) {
        let cell = CellName::parse(cell).unwrap().to_key_segment();
        for number in 0..objects {
            let key = format!("cells/{cell}/ltx/e0000000000000001/0/{number:016x}-{number:016x}.ltx");
            bucket.put(&key, Bytes::new()).await.unwrap();
        }
        bucket.put(&format!("cells/{cell}/own.json"), Bytes::new()).await.unwrap();
    }

    #[tokio::test]
    async fn a_large_cell_costs_one_page() {
        let bucket = MemoryBucket::default();
        // In the order of their keys, which is not the order of their names: `-`, `.` and `%` sort before `/`.
        let cells = ["db:a b", "db:a-b", "db:a.b", "db:a", "db:a0", "db:ab", "db:b"];
        for cell in cells {
            put(&bucket, cell, 2_500).await;
        }
        bucket.put("cells/nonsense/own.json", Bytes::new()).await.unwrap();
        let (found, pages) = names(&bucket, "", None).await;
        assert_eq!(found, cells);
        assert!(pages <= cells.len() + 1, "{pages} pages");
        assert_eq!(names(&bucket, "db:a", None).await.0, &cells[..6]);
        assert_eq!(names(&bucket, "db:a b", None).await.0, ["db:a b"]);
        assert_eq!(names(&bucket, "", Some("db:a")).await.0, ["db:a0", "db:ab", "db:b"]);
        assert_eq!(names(&bucket, "kv", None).await.0, Vec::<String>::new());
    }

    #[tokio::test]
    async fn many_small_cells_share_a_page() {
        let bucket = MemoryBucket::default();
        for number in 0..400 {
            put(&bucket, &format!("db:{number:04}"), 2).await;
        }
        let (found, pages) = names(&bucket, "", None).await;
        assert_eq!(found.len(), 400);
        assert!(pages <= 3, "{pages} pages");
    }

    #[test]
    fn a_prefix_is_spelled_as_keys_are() {
        assert_eq!(key_prefix(""), "cells/");
        assert_eq!(key_prefix("d"), "cells/d");
        assert_eq!(key_prefix("db:"), "cells/db:");
        assert_eq!(key_prefix("db:a/ü"), "cells/db:a%2F%C3%BC");
        let cell = CellName::parse("db:a:b/c d").unwrap();
        assert_eq!(key_prefix(cell.as_str()), format!("cells/{}", cell.to_key_segment()));
    }
}
