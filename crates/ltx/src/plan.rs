//! Which files of one epoch restore it: the cheapest chain without a gap, where each file costs its bytes and a request.
//! Pure. A gap is an error that names the missing transaction and the newest consistent position (INV-CHAIN-1); a plan
//! never has one. Files may overlap, because an owner and whoever recovered it may have cut differently: pages are whole
//! and as of a file's end, so a file that begins at or before a position and ends after it leads from there to its end.

use holdfast_types::Txid;
use std::cmp::Reverse;
use std::collections::HashMap;

/// What one more request costs, in bytes that could be read in its time: 20 ms at 50 MB/s. Small files are thus chosen by
/// their number, large ones by their length.
pub const REQUEST_COST_BYTES: u64 = 1 << 20;

/// A listed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlannedFile {
    /// Its level: 0, 1 or 9.
    pub level: u8,
    /// First transaction; 1 makes it a snapshot on any level.
    pub min: Txid,
    /// Last transaction.
    pub max: Txid,
    /// Length in bytes.
    pub len: u64,
}

/// Files to apply, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The files; each begins right after the end of the one before, or earlier, and ends later.
    pub files: Vec<PlannedFile>,
    /// The last transaction after them.
    pub end: Txid,
    /// Whether the first file is a snapshot, so that nothing from before is needed.
    pub starts_from_snapshot: bool,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A transaction is in no usable file. Disposition: corrupt, unless the listing was stale (reread).
    #[error(
        "transaction {missing} is in no usable file, so transaction {target} cannot be reached; the newest consistent position is {newest}{}",
        .straddler.map_or(String::new(), |file| format!(" (level {} has {} to {}, which is more than was asked for)", file.level, file.min.to_hex(), file.max.to_hex()))
    )]
    Gap {
        /// The first transaction that is missing.
        missing: Txid,
        /// The newest position that the files can restore; 0 when there is none.
        newest: Txid,
        /// Where the plan was to end.
        target: Txid,
        /// A file that has the transaction but reaches beyond the clip.
        straddler: Option<PlannedFile>,
    },
    /// A listed file has no range. Disposition: corrupt.
    #[error(
        "a file of level {level} is listed with transactions {min} to {max}, which is no range from 1 on"
    )]
    Range {
        /// Its level.
        level: u8,
        /// First transaction.
        min: Txid,
        /// Last transaction.
        max: Txid,
    },
}

/// Plans the way from `from` (what is there already, exclusive; 0 for nothing) to `clip`, inclusive, or to the newest
/// transaction that any file names. The listing may be in any order and may hold duplicates and overlaps. A chain from a
/// snapshot is preferred to one that needs what is before `from`; of several, the cheapest is chosen. When `clip` lies
/// before `from`, what is there is no use, and only a chain from a snapshot will do.
///
/// # Errors
/// [`PlanError`].
pub fn plan_epoch(files: &[PlannedFile], from: Txid, clip: Option<Txid>) -> Result<Plan, PlanError> {
    if let Some(&PlannedFile { level, min, max, .. }) =
        files.iter().find(|file| file.min == Txid::ZERO || file.min > file.max)
    {
        return Err(PlanError::Range { level, min, max });
    }
    let newest_listed = files.iter().map(|file| file.max).max().unwrap_or(from);
    let target = clip.unwrap_or(newest_listed.max(from));
    let mut usable: Vec<PlannedFile> = files.iter().copied().filter(|file| file.max <= target).collect();
    usable.sort_unstable_by_key(|file| (file.max, Reverse(file.min), file.len, file.level));

    let from_nothing = Reach::search(&usable, Txid::ZERO);
    if let Some(plan) = from_nothing.plan(target).filter(|plan| plan.starts_from_snapshot) {
        return Ok(plan);
    }
    let mut newest = from_nothing.newest();
    if from <= target {
        let from_position = Reach::search(&usable, from);
        if let Some(plan) = from_position.plan(target) {
            return Ok(plan);
        }
        newest = newest.max(from_position.newest());
    }
    let missing = newest.next();
    let straddler = files.iter().copied().find(|file| file.min <= missing && file.max > target);
    Err(PlanError::Gap { missing, newest, target, straddler })
}

/// The cheapest way to a position.
#[derive(Clone, Copy)]
struct Way {
    cost: u64,
    last: Option<PlannedFile>,
    /// The position that the last file is applied to.
    from: Txid,
}

/// All positions that files reach from a start, each with its cheapest way.
struct Reach {
    start: Txid,
    ways: HashMap<Txid, Way>,
}

impl Reach {
    /// One pass: files ascend by their last transaction, so every way to a position within a file is known when the
    /// file is looked at.
    fn search(files: &[PlannedFile], start: Txid) -> Self {
        let mut ways = HashMap::from([(start, Way { cost: 0, last: None, from: start })]);
        // Positions that no later position undercuts: both columns ascend.
        let mut frontier = vec![(start, 0)];
        let useful = files.iter().filter(|file| file.max > start);
        for group in useful.collect::<Vec<_>>().chunk_by(|left, right| left.max == right.max) {
            let best =
                group.iter().filter_map(|file| Way::through(**file, &frontier)).min_by_key(|way| way.cost);
            let Some(way) = best else { continue };
            let position = group[0].max;
            ways.insert(position, way);
            while frontier.pop_if(|(_, cost)| *cost >= way.cost).is_some() {}
            frontier.push((position, way.cost));
        }
        Self { start, ways }
    }

    fn newest(&self) -> Txid {
        self.ways.keys().copied().max().unwrap_or(self.start)
    }

    fn plan(&self, target: Txid) -> Option<Plan> {
        let mut way = self.ways.get(&target)?;
        let mut files = Vec::new();
        while let Some(file) = way.last {
            files.push(file);
            way = self.ways.get(&way.from).expect("a way is made of ways");
        }
        files.reverse();
        let starts_from_snapshot = self.start == Txid::ZERO && !files.is_empty();
        Some(Plan { files, end: target, starts_from_snapshot })
    }
}

impl Way {
    /// The cheapest way that ends with this file; none where no position leads into it.
    fn through(file: PlannedFile, frontier: &[(Txid, u64)]) -> Option<Self> {
        let before = file.min.previous().expect("files start at 1 or later");
        let at = frontier.partition_point(|(position, _)| *position < before);
        let (from, cost) = *frontier.get(at)?;
        let cost = cost.saturating_add(file.len).saturating_add(REQUEST_COST_BYTES);
        Some(Self { cost, last: Some(file), from })
    }
}
