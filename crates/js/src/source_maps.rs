//! Places in deployed code told as places in the project's files: the frames of stacks that are logged. A map stays the text
//! that it came as until a logged stack names its module, and then gets an index of a fraction of its size. What a program
//! sees of its own stacks is not touched.

mod mappings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::iter;
use std::sync::OnceLock;

use bytes::Bytes;
use memchr::memmem;

use mappings::Mappings;

/// Bytes of the maps of one application that are kept, as much as its code may have; the largest go first.
const BYTES_MAX: usize = 64 << 20;
/// What a frame of the engine's stacks has in it.
const FRAME: &str = "    at ";

/// The maps of an application's modules.
#[derive(Debug, Default)]
pub(crate) struct SourceMaps {
    maps: BTreeMap<String, SourceMap>,
}

/// A module's map.
#[derive(Debug)]
struct SourceMap {
    /// Version 3 of the format (ECMA-426), as JSON.
    json: Bytes,
    /// None where it cannot be read.
    read: OnceLock<Option<Mappings>>,
}

impl SourceMaps {
    /// Maps by the names of modules.
    pub(crate) fn new(maps: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        let mut by_size: Vec<(String, Bytes)> = maps.into_iter().collect();
        by_size.sort_by_key(|(_, json)| json.len());
        let mut total = 0;
        let kept = by_size.into_iter().take_while(|(_, json)| {
            total += json.len();
            total <= BYTES_MAX
        });
        let maps = kept.map(|(name, json)| (name, SourceMap { json, read: OnceLock::new() }));
        Self { maps: maps.collect() }
    }

    /// `text` with the frames in it that have a map; `code_of` knows the modules' code. The rest stays as it is.
    pub(crate) fn map<'c>(&self, text: String, code_of: impl Fn(&str) -> Option<&'c [u8]>) -> String {
        if self.maps.is_empty() || memmem::find(text.as_bytes(), FRAME.as_bytes()).is_none() {
            return text;
        }
        let mut mapped = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            match self.map_frame(line, &code_of) {
                Some(frame) => mapped.push_str(&frame),
                None => mapped.push_str(line),
            }
        }
        mapped
    }

    /// A frame is `at function (module:line:column)` or `at module:line:column`, where names may have parentheses and colons of
    /// their own, and text may follow.
    fn map_frame<'c>(&self, line: &str, code_of: impl Fn(&str) -> Option<&'c [u8]>) -> Option<String> {
        let call = line.trim_start().strip_prefix("at ")?;
        let from = line.len() - call.len();
        let place = Place::first_in(call)?;
        let (colon, end) = (from + place.at, from + place.end);
        let starts = line[from..colon].match_indices(" (").map(|(at, open)| from + at + open.len());
        let (start, map) = iter::once(from)
            .chain(starts)
            .find_map(|start| Some((start, self.maps.get_key_value(&line[start..colon])?)))?;
        let (name, map) = map;
        let code = code_of(name)?;
        let mappings = map.read.get_or_init(|| Mappings::read(&map.json, code)).as_ref()?;
        let (file, row, column) = mappings.original(code, place.line, place.column)?;
        Some(format!("{}{file}:{row}:{column}{}", &line[..start], &line[end..]))
    }
}

/// `:line:column` in a frame.
struct Place {
    at: usize,
    end: usize,
    line: u32,
    column: u32,
}

impl Place {
    fn first_in(call: &str) -> Option<Self> {
        call.match_indices(':').find_map(|(at, _)| {
            let (line, rest) = number(&call[at + 1..])?;
            let (column, rest) = number(rest.strip_prefix(':')?)?;
            let is_end = rest.chars().next().is_none_or(|next| matches!(next, ')' | ' ' | '\n'));
            is_end.then(|| Self { at, end: call.len() - rest.len(), line, column })
        })
    }
}

fn number(text: &str) -> Option<(u32, &str)> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..len].parse().ok()?, &text[len..]))
}
