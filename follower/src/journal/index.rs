//! Where the retained frames of one session stand: twelve bytes a frame.

use std::collections::VecDeque;

use holdfast_types::LogOffset;

/// The place of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePlace {
    /// The segment.
    pub segment: u32,
    /// Where in it.
    pub position: u32,
    /// Its length there; zero for a frame that is lost.
    pub len: u32,
}

const LOST: FramePlace = FramePlace { segment: 0, position: 0, len: 0 };

/// The places of a window of a log.
#[derive(Clone, Debug, Default)]
pub struct FrameIndex {
    first: LogOffset,
    places: VecDeque<FramePlace>,
    bytes: u64,
}

impl FrameIndex {
    /// The offset after the last frame.
    fn next(&self) -> LogOffset {
        LogOffset::new(self.first.get() + self.places.len() as u64)
    }

    /// Bytes of the frames on disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds frames behind the last. What lies between is lost.
    pub fn push(&mut self, first: LogOffset, places: impl IntoIterator<Item = FramePlace>) {
        if self.places.is_empty() {
            self.first = first;
        }
        while self.next() < first {
            self.places.push_back(LOST);
        }
        let known = usize::try_from(self.next().get() - first.get()).unwrap_or(usize::MAX);
        for place in places.into_iter().skip(known) {
            self.bytes += u64::from(place.len);
            self.places.push_back(place);
        }
    }

    /// Drops what lies before `start`; gives the dropped places.
    pub fn drop_below(&mut self, start: LogOffset) -> Vec<FramePlace> {
        let mut dropped = Vec::new();
        while self.first < start
            && let Some(place) = self.places.pop_front()
        {
            self.first = self.first.next();
            self.bytes -= u64::from(place.len);
            if place.len > 0 {
                dropped.push(place);
            }
        }
        dropped
    }

    /// All places.
    pub fn places(&self) -> impl Iterator<Item = FramePlace> {
        self.places.iter().copied().filter(|place| place.len > 0)
    }

    /// The frames from `start` on whose bytes together reach `bytes_max`, but at least one; none at `end` and beyond.
    #[must_use]
    pub fn piece(&self, start: LogOffset, end: LogOffset, bytes_max: u64) -> Vec<(LogOffset, FramePlace)> {
        let skip = usize::try_from(start.get().saturating_sub(self.first.get())).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let mut piece = Vec::new();
        for (index, place) in self.places.iter().enumerate().skip(skip) {
            let offset = LogOffset::new(self.first.get() + index as u64);
            if offset >= end || (!piece.is_empty() && bytes + u64::from(place.len) > bytes_max) {
                break;
            }
            if place.len > 0 {
                bytes += u64::from(place.len);
                piece.push((offset, *place));
            }
        }
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(position: u32) -> FramePlace {
        FramePlace { segment: 1, position, len: 10 }
    }

    fn offsets(index: &FrameIndex, start: u64, end: u64, bytes_max: u64) -> Vec<u64> {
        let piece = index.piece(LogOffset::new(start), LogOffset::new(end), bytes_max);
        piece.iter().map(|(offset, _)| offset.get()).collect()
    }

    #[test]
    fn a_window_moves_and_its_pieces_are_bounded() {
        let mut index = FrameIndex::default();
        index.push(LogOffset::new(5), (0..6).map(place));
        assert_eq!(offsets(&index, 1, 100, 25), [5, 6]);
        assert_eq!(offsets(&index, 7, 100, 1), [7], "at least one");
        assert_eq!(offsets(&index, 7, 9, 1000), [7, 8]);
        assert_eq!(index.drop_below(LogOffset::new(8)).len(), 3);
        assert_eq!((offsets(&index, 1, 100, 1000), index.bytes()), (vec![8, 9, 10], 30));
        assert_eq!(index.drop_below(LogOffset::new(50)).len(), 3);
        index.push(LogOffset::new(60), [place(1)]);
        assert_eq!(offsets(&index, 1, 100, 1000), [60]);
    }

    #[test]
    fn lost_frames_keep_their_offsets() {
        let mut index = FrameIndex::default();
        index.push(LogOffset::new(1), [place(0)]);
        index.push(LogOffset::new(4), [place(1)]);
        assert_eq!(offsets(&index, 1, 100, 1000), [1, 4]);
        assert_eq!((index.places().count(), index.bytes()), (2, 20));
    }
}
