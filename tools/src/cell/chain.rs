//! What a cell's prefix in the bucket holds, epoch by epoch.

use std::collections::BTreeMap;

use anyhow::Result;
use holdfast_bucket::Buckets;
use holdfast_records::{Key, Level, Opener, OpenerReason, Record, cell_prefix};
use holdfast_types::{CellName, Epoch, Txid};

use crate::progress;

/// Rows of one page of a listing.
const PAGE: usize = 1000;

/// The files of one level of one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelFiles {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) min: Txid,
    pub(super) max: Txid,
}

/// What is there of one epoch.
#[derive(Debug, Default)]
pub(super) struct EpochFiles {
    /// Its opener, or why it cannot be read; an epoch without one never acknowledged anything.
    pub(super) opener: Option<Result<Opener, String>>,
    /// By level number.
    pub(super) levels: BTreeMap<u8, LevelFiles>,
}

/// Everything below `cells/<cell>/ltx/`.
#[derive(Debug, Default)]
pub(super) struct CellFiles {
    pub(super) epochs: BTreeMap<Epoch, EpochFiles>,
    /// Keys that this format does not know.
    pub(super) unknown: u64,
}

impl CellFiles {
    fn add(&mut self, key: &str, len: u64) {
        let (epoch, level, min, max) = match Key::parse(key) {
            Ok(Key::Opener(_, epoch)) => {
                self.epochs.entry(epoch).or_default();
                return;
            }
            Ok(Key::Ltx { cell: _, epoch, level, min, max }) => (epoch, level, min, max),
            _ => {
                self.unknown += 1;
                return;
            }
        };
        let fresh = LevelFiles { files: 0, bytes: 0, min, max };
        let level = self.epochs.entry(epoch).or_default().levels.entry(level.number()).or_insert(fresh);
        level.files += 1;
        level.bytes += len;
        (level.min, level.max) = (level.min.min(min), level.max.max(max));
    }
}

/// Lists a cell's files and reads its openers.
pub(super) async fn read(buckets: &Buckets, cell: &CellName) -> Result<CellFiles> {
    let prefix = format!("{}ltx/", cell_prefix(cell));
    let spinner = progress::spinner("listing the cell's files");
    let mut files = CellFiles::default();
    let (mut after, mut seen) = (None::<String>, 0);
    loop {
        let page = buckets.bulk.list(&prefix, after.as_deref(), PAGE).await?;
        page.objects.iter().for_each(|object| files.add(&object.key, object.len));
        seen += page.objects.len();
        spinner.set_message(format!("listing the cell's files: {seen}"));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    spinner.finish_and_clear();
    for (epoch, found) in &mut files.epochs {
        let object = buckets.bulk.get(&Key::Opener(cell.clone(), *epoch).to_string()).await?;
        found.opener = object.map(|object| Opener::decode(&object.body).map_err(|error| error.to_string()));
    }
    Ok(files)
}

/// Why an epoch began, in words.
pub(super) fn reason(reason: OpenerReason) -> &'static str {
    match reason {
        OpenerReason::Created => "created",
        OpenerReason::LocalWake => "woken on the same node",
        OpenerReason::AfterRelease => "claimed after a release",
        OpenerReason::Takeover => "taken over",
        OpenerReason::AfterPurge => "created after a delete",
    }
}

/// A level's name.
pub(super) fn level_name(number: u8) -> &'static str {
    match Level::from_number(number) {
        Some(Level::Zero) => "0 transactions",
        Some(Level::One) => "1 compactions",
        Some(Level::Snapshot) => "9 snapshots",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_summed_by_epoch_and_level() {
        let mut files = CellFiles::default();
        let base = "cells/db:a/ltx/e0000000000000002";
        files.add(&format!("{base}/opener.json"), 90);
        files.add(&format!("{base}/0/0000000000000004-0000000000000004.ltx"), 100);
        files.add(&format!("{base}/0/0000000000000005-0000000000000005.ltx"), 200);
        files.add(&format!("{base}/9/0000000000000001-0000000000000005.ltx"), 1000);
        files.add(&format!("{base}/junk"), 1);
        assert_eq!(files.unknown, 1);
        let levels = &files.epochs[&Epoch::new(2)].levels;
        let expected = LevelFiles { files: 2, bytes: 300, min: Txid::new(4), max: Txid::new(5) };
        assert_eq!(levels[&0], expected);
        assert_eq!(levels[&9].files, 1);
    }
}
