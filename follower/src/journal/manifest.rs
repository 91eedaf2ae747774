//! Which segments there are: one small file, replaced as a whole. A segment that it names and that is not there was taken
//! away by somebody else; one that it does not name is a leftover of a crash.

use serde::{Deserialize, Serialize};

use super::format;

pub(super) const MANIFEST: &str = "segments.json";
pub(super) const SPARE: &str = "spare";

/// The file's name of a segment.
pub(super) fn segment_name(number: u32) -> String {
    format!("segment-{number:08x}")
}

/// Reads [`segment_name`].
pub(super) fn segment_number(name: &str) -> Option<u32> {
    let number = u32::from_str_radix(name.strip_prefix("segment-")?, 16).ok()?;
    (segment_name(number) == name).then_some(number)
}

/// The segments, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    version: u32,
    pub(super) segments: Vec<SegmentRow>,
}

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SegmentRow {
    pub(super) number: u32,
    /// Where it ends, all of it fsynced; none for the one that is being written.
    pub(super) end: Option<u64>,
}

impl Manifest {
    pub(super) fn new(segments: Vec<SegmentRow>) -> Self {
        Self { version: 1, segments }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let body = serde_json::to_string(self).expect("numbers serialize");
        format!("{:08x} {body}\n", checksum(&body)).into_bytes()
    }

    /// None for anything damaged, or of another release.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (crc, body) = std::str::from_utf8(bytes).ok()?.trim_end().split_once(' ')?;
        let is_whole = u32::from_str_radix(crc, 16).ok()? == checksum(body);
        let manifest: Self = serde_json::from_str(body).ok()?;
        let is_ordered = manifest.segments.is_sorted_by(|a, b| a.number < b.number);
        (is_whole && is_ordered && manifest.version == 1).then_some(manifest)
    }
}

fn checksum(body: &str) -> u32 {
    let mut crc = format::crc();
    crc.update(body.as_bytes());
    format::finish(&crc)
}
