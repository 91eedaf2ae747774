//! A restore across epochs: from the newest down its bases, each clipped exactly at the base position, until a snapshot
//! or the very beginning. Pure: the caller lists an epoch when it is asked for, so no more is listed than is needed.

use crate::plan::{Plan, PlanError, PlannedFile, plan_epoch};
use holdfast_types::{Epoch, Position, Txid};

/// What the bucket holds of one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochFiles {
    /// The epoch.
    pub epoch: Epoch,
    /// Where it continues from, by its opener; `None` when it began with an empty database.
    pub base: Option<Position>,
    /// Its files, all levels, in any order.
    pub files: Vec<PlannedFile>,
}

/// The part of a plan that lies in one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochPlan {
    /// The epoch.
    pub epoch: Epoch,
    /// Its files, in order; may be empty.
    pub files: Vec<PlannedFile>,
}

/// Files to apply across epochs, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineagePlan {
    /// The epochs that contribute, oldest first.
    pub epochs: Vec<EpochPlan>,
    /// The last transaction after them; 0 when there is no database yet.
    pub end: Txid,
}

impl LineagePlan {
    /// All files in order, each with its epoch.
    pub fn files(&self) -> impl Iterator<Item = (Epoch, &PlannedFile)> {
        self.epochs.iter().flat_map(|part| part.files.iter().map(|file| (part.epoch, file)))
    }
}

/// What comes after an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineageStep {
    /// Give this epoch next; it is restored up to exactly this position.
    Needs(Position),
    /// The plan is complete.
    Complete(LineagePlan),
}

/// Why there is no plan across epochs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineageError {
    /// An epoch has no plan. Disposition: that of the source.
    #[error("epoch {epoch}: {source}")]
    Epoch {
        /// The epoch.
        epoch: Epoch,
        /// What is wrong.
        source: PlanError,
    },
    /// Another epoch was asked for. Disposition: bug.
    #[error("epoch {given} was given where epoch {asked} was asked for")]
    Unasked {
        /// The epoch given.
        given: Epoch,
        /// The epoch asked for.
        asked: Epoch,
    },
    /// The base is not of an older epoch. Disposition: corrupt.
    #[error("epoch {epoch} is based on {base}, which is not older")]
    Base {
        /// The epoch.
        epoch: Epoch,
        /// Its base.
        base: Position,
    },
    /// Nothing was asked for: the plan is complete or has failed. Disposition: bug.
    #[error("no epoch was asked for: the plan is complete or has failed")]
    Complete,
}

/// Builds a plan, newest epoch first.
#[derive(Clone, Debug)]
pub struct Lineage {
    asked: Option<(Option<Epoch>, Option<Txid>)>,
    end: Option<Txid>,
    newest_first: Vec<EpochPlan>,
}

impl Lineage {
    /// Starts at the newest epoch, up to its newest transaction or to `clip`, inclusive.
    #[must_use]
    pub fn new(clip: Option<Txid>) -> Self {
        Self { asked: Some((None, clip)), end: None, newest_first: Vec::new() }
    }

    /// Takes an epoch's files. The first call gives the newest epoch, each later one the epoch asked for.
    ///
    /// # Errors
    /// [`LineageError`].
    pub fn push(&mut self, epoch_files: &EpochFiles) -> Result<LineageStep, LineageError> {
        let EpochFiles { epoch, base, files } = epoch_files;
        let (asked, clip) = self.asked.take().ok_or(LineageError::Complete)?;
        if let Some(asked) = asked.filter(|asked| asked != epoch) {
            return Err(LineageError::Unasked { given: *epoch, asked });
        }
        if let Some(base) = base.filter(|base| base.epoch >= *epoch) {
            return Err(LineageError::Base { epoch: *epoch, base });
        }
        let from = base.map_or(Txid::ZERO, |base| base.txid);
        // The clip lies in an older epoch: nothing of this one is needed.
        if let Some((base, clip)) = base.zip(clip).filter(|(base, clip)| *clip < base.txid) {
            return Ok(self.descend(Position { epoch: base.epoch, txid: clip }));
        }
        let Plan { files, end, starts_from_snapshot } =
            plan_epoch(files, from, clip).map_err(|source| LineageError::Epoch { epoch: *epoch, source })?;
        self.end.get_or_insert(end);
        self.newest_first.push(EpochPlan { epoch: *epoch, files });
        match base.filter(|base| base.txid > Txid::ZERO && !starts_from_snapshot) {
            Some(base) => Ok(self.descend(base)),
            None => Ok(LineageStep::Complete(self.complete())),
        }
    }

    fn descend(&mut self, to: Position) -> LineageStep {
        self.asked = Some((Some(to.epoch), Some(to.txid)));
        LineageStep::Needs(to)
    }

    fn complete(&mut self) -> LineagePlan {
        let mut epochs = std::mem::take(&mut self.newest_first);
        epochs.reverse();
        LineagePlan { epochs, end: self.end.unwrap_or(Txid::ZERO) }
    }
}
