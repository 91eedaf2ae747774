//! What proves an entry obsolete.

use holdfast_types::{AlarmId, Epoch};

use crate::mutant::{self, Mutant};

/// What the bucket says of a cell's entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retirement {
    /// Installations up to this one are obsolete, but the armed one.
    pub mark: Option<AlarmId>,
    /// The installation at or below the mark that is armed.
    pub armed: Option<AlarmId>,
    /// Installations of epochs below this one belong to a cell that was purged since.
    pub floor: Epoch,
}

impl Retirement {
    /// Whether an installation's entry means nothing any more, for ever (INV-WAKE-1).
    #[must_use]
    pub fn proves_obsolete(&self, id: AlarmId) -> bool {
        let is_armed = self.armed == Some(id) && !mutant::is(Mutant::WakerDeletesArmed);
        let is_retired = self.mark.is_some_and(|mark| id <= mark) && !is_armed;
        is_retired || id.epoch < self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::AlarmSeq;

    fn id(epoch: u64, seq: u64) -> AlarmId {
        AlarmId { epoch: Epoch::new(epoch), seq: AlarmSeq::new(seq) }
    }

    #[test]
    fn only_what_is_at_or_below_the_mark_is_obsolete_and_never_what_is_armed() {
        let retirement = Retirement { mark: Some(id(3, 5)), armed: Some(id(2, 9)), floor: Epoch::ZERO };
        for gone in [id(1, 1), id(2, 8), id(2, 10), id(3, 5)] {
            assert!(retirement.proves_obsolete(gone), "{gone}");
        }
        for kept in [id(2, 9), id(3, 6), id(4, 1)] {
            assert!(!retirement.proves_obsolete(kept), "{kept}");
        }
        assert!(!Retirement::default().proves_obsolete(id(1, 1)));
    }

    #[test]
    fn what_a_purge_left_behind_is_obsolete() {
        let retirement = Retirement { mark: None, armed: None, floor: Epoch::new(4) };
        assert!(retirement.proves_obsolete(id(3, 9)));
        assert!(!retirement.proves_obsolete(id(4, 1)));
    }
}
