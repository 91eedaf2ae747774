//! Makes a module's binary one that the engine can run as we need it: memories of its own become imports, so that we
//! make them where they never move, and its start function becomes an export, so that it can be stopped like any call.
//! Indices stay as they are. Reads valid binaries only: the engine has validated them.

use std::ops::Range;

/// The module name of the imports that stand for a module's own memories, and the name of the export of its start
/// function. A module that uses it itself is refused.
pub(super) const OWN: &str = "holdfast:own";

/// The name of each import of a memory.
pub(super) const OWN_MEMORY: &str = "memory";

const CUSTOM: u8 = 0;
const IMPORTS: u8 = 2;
const FUNCTIONS: u8 = 3;
const MEMORIES: u8 = 5;
const GLOBALS: u8 = 6;
const EXPORTS: u8 = 7;
const START: u8 = 8;
const ELEMENTS: u8 = 9;
const DATA: u8 = 11;
/// Bytes before the first section: magic and version.
const HEADER_BYTES: usize = 8;

/// What a module exports, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExportEntry {
    pub(super) name: String,
    /// 0 function, 1 table, 2 memory, 3 global.
    kind: u8,
    /// In the index space of its kind.
    pub(super) index: u32,
}

impl ExportEntry {
    /// Its kind, in a word.
    pub(super) fn kind(&self) -> &'static str {
        match self.kind {
            0 => "function",
            1 => "table",
            2 => "memory",
            _ => "global",
        }
    }
}

/// What an instance has of its own, beside memories and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) functions: u32,
    pub(super) globals: u32,
    /// Element segments and data segments.
    pub(super) segments: u32,
    /// Of all element segments.
    pub(super) items: u64,
}

/// A binary that is ready, and what was read of the one it was made from.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) bytes: Vec<u8>,
    pub(super) exports: Vec<ExportEntry>,
    /// Module and name of each import, in the order of the original.
    pub(super) imports: Vec<(String, String)>,
    /// The index of its start function.
    pub(super) start: Option<u32>,
    pub(super) held: Held,
    /// The custom sections: the name, and where their content is in the original.
    pub(super) custom: Vec<(String, Range<usize>)>,
}

/// Prepares a valid binary. None where it is cut off or uses our name.
pub(super) fn prepare(original: &[u8]) -> Option<Prepared> {
    let sections = sections(original)?;
    let find = |id| sections.iter().find(|section| section.id == id).map(|section| section.content(original));
    let memories = find(MEMORIES).map_or(Some(Vec::new()), memory_types)?;
    let exports = find(EXPORTS).map_or(Some(Vec::new()), export_entries)?;
    let imported = find(IMPORTS).map_or(Some(Vec::new()), import_names)?;
    let first_number = |id| match find(id) {
        Some(content) => Reader(content).u32().map(Some),
        None => Some(None),
    };
    let start = first_number(START)?;
    let held = Held {
        functions: first_number(FUNCTIONS)?.unwrap_or(0),
        globals: first_number(GLOBALS)?.unwrap_or(0),
        segments: first_number(ELEMENTS)?.unwrap_or(0).checked_add(first_number(DATA)?.unwrap_or(0))?,
        items: find(ELEMENTS).map_or(Some(0), element_items)?,
    };
    if exports.iter().any(|export| export.name == OWN) || imported.iter().any(|(module, _)| module == OWN) {
        return None;
    }
    let mut custom = Vec::new();
    for section in sections.iter().filter(|section| section.id == CUSTOM) {
        let content = section.content(original);
        let mut reader = Reader(content);
        let name = reader.name()?.to_owned();
        custom.push((name, section.range.end - reader.0.len()..section.range.end));
    }
    let mut writer = Writer { bytes: original[..HEADER_BYTES].to_vec(), original };
    let imports: Vec<u8> = memories.iter().flat_map(|memory| import_of(memory)).collect();
    let export: Vec<u8> = start.iter().flat_map(|index| export_of(*index)).collect();
    let mut pending = [(IMPORTS, memories.len(), imports), (EXPORTS, usize::from(start.is_some()), export)];
    for section in sections.iter().filter(|section| section.id != CUSTOM) {
        for (id, count, extra) in &mut pending {
            // A section that is not there comes before the first one that follows it.
            if section.id > *id && *count > 0 {
                writer.section(*id, 0, &[], *count, extra);
                *count = 0;
            }
        }
        match pending.iter_mut().find(|(id, count, _)| *id == section.id && *count > 0) {
            Some((id, count, extra)) => {
                let mut reader = Reader(section.content(original));
                let there = usize::try_from(reader.u32()?).ok()?;
                writer.section(*id, there, reader.0, *count, extra);
                *count = 0;
            }
            None if section.id == MEMORIES || section.id == START => {}
            None => writer.copy(section),
        }
    }
    for (id, count, extra) in &pending {
        if *count > 0 {
            writer.section(*id, 0, &[], *count, extra);
        }
    }
    Some(Prepared { bytes: writer.bytes, exports, imports: imported, start, held, custom })
}

struct Section {
    id: u8,
    /// Where it begins, its id included.
    begin: usize,
    /// Of its content.
    range: Range<usize>,
}

impl Section {
    fn content<'b>(&self, original: &'b [u8]) -> &'b [u8] {
        &original[self.range.clone()]
    }
}

fn sections(original: &[u8]) -> Option<Vec<Section>> {
    let mut reader = Reader(original.get(HEADER_BYTES..)?);
    let mut sections = Vec::new();
    while !reader.0.is_empty() {
        let begin = original.len() - reader.0.len();
        let id = reader.byte()?;
        let len = usize::try_from(reader.u32()?).ok()?;
        let from = original.len() - reader.0.len();
        reader.take(len)?;
        sections.push(Section { id, begin, range: from..from + len });
    }
    Some(sections)
}

/// The types of the memories that a module defines, each as its bytes.
fn memory_types(content: &[u8]) -> Option<Vec<&[u8]>> {
    let mut reader = Reader(content);
    (0..reader.u32()?).map(|_| reader.limits()).collect()
}

fn export_entries(content: &[u8]) -> Option<Vec<ExportEntry>> {
    let mut reader = Reader(content);
    let count = reader.u32()?;
    let mut entry = || {
        let name = reader.name()?.to_owned();
        Some(ExportEntry { name, kind: reader.byte()?, index: reader.u32()? })
    };
    (0..count).map(|_| entry()).collect()
}

fn import_names(content: &[u8]) -> Option<Vec<(String, String)>> {
    let mut reader = Reader(content);
    let count = reader.u32()?;
    let mut names = || {
        let names = (reader.name()?.to_owned(), reader.name()?.to_owned());
        reader.skip_import_type()?;
        Some(names)
    };
    (0..count).map(|_| names()).collect()
}

/// The items of all element segments.
fn element_items(content: &[u8]) -> Option<u64> {
    let mut reader = Reader(content);
    let mut items = 0;
    for _ in 0..reader.u32()? {
        // Bit 0: it is not active. Bit 1: its table, or that it is declared, comes. Bit 2: its items are expressions.
        let flags = reader.u32()?;
        if flags & 1 == 0 {
            if flags & 2 != 0 {
                reader.u32()?;
            }
            reader.skip_expression()?;
        }
        if flags & 3 != 0 {
            // The kind or the type of the items.
            reader.byte()?;
        }
        let count = reader.u32()?;
        for _ in 0..count {
            if flags & 4 == 0 {
                reader.u32()?;
            } else {
                reader.skip_expression()?;
            }
        }
        items += u64::from(count);
    }
    Some(items)
}

fn import_of(memory_type: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_name(&mut bytes, OWN);
    write_name(&mut bytes, OWN_MEMORY);
    bytes.push(2);
    bytes.extend_from_slice(memory_type);
    bytes
}

fn export_of(function: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_name(&mut bytes, OWN);
    bytes.push(0);
    write_u32(&mut bytes, function);
    bytes
}

struct Writer<'b> {
    bytes: Vec<u8>,
    original: &'b [u8],
}

impl Writer<'_> {
    fn copy(&mut self, section: &Section) {
        self.bytes.extend_from_slice(&self.original[section.begin..section.range.end]);
    }

    /// A section of the entries `there` and `extra`.
    fn section(&mut self, id: u8, count: usize, there: &[u8], more: usize, extra: &[u8]) {
        let mut content = Vec::with_capacity(there.len() + extra.len() + 5);
        write_u32(
            &mut content,
            u32::try_from(count + more).expect("a section's count is below the engine's bound"),
        );
        content.extend_from_slice(there);
        content.extend_from_slice(extra);
        self.bytes.push(id);
        write_u32(&mut self.bytes, u32::try_from(content.len()).expect("a module is smaller than 4 GiB"));
        self.bytes.extend_from_slice(&content);
    }
}

fn write_u32(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).expect("seven bits"));
}

fn write_name(bytes: &mut Vec<u8>, name: &str) {
    write_u32(bytes, u32::try_from(name.len()).expect("our names are short"));
    bytes.extend_from_slice(name.as_bytes());
}

/// Reads from the front.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// LEB128 of at most 64 bits.
    fn u64(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn u32(&mut self) -> Option<u32> {
        u32::try_from(self.u64()?).ok()
    }

    fn name(&mut self) -> Option<&'b str> {
        let len = usize::try_from(self.u32()?).ok()?;
        std::str::from_utf8(self.take(len)?).ok()
    }

    /// Passes the type of an import.
    fn skip_import_type(&mut self) -> Option<()> {
        match self.byte()? {
            0 => self.u32().map(|_| ()),
            1 => {
                self.byte()?;
                self.limits().map(|_| ())
            }
            2 => self.limits().map(|_| ()),
            3 => self.take(2).map(|_| ()),
            _ => None,
        }
    }

    /// Passes a constant expression.
    fn skip_expression(&mut self) -> Option<()> {
        loop {
            match self.byte()? {
                // end
                0x0b => return Some(()),
                // i32.const, i64.const, global.get, ref.null, ref.func
                0x41 | 0x42 | 0x23 | 0xd0 | 0xd2 => self.u64().map(|_| ())?,
                // f32.const, f64.const
                0x43 => self.take(4).map(|_| ())?,
                0x44 => self.take(8).map(|_| ())?,
                // Sums, differences and products of integers.
                0x6a..=0x6c | 0x7c..=0x7e => {}
                // v128.const
                0xfd => {
                    self.u32()?;
                    self.take(16)?;
                }
                _ => return None,
            }
        }
    }

    /// The bytes of a memory's or a table's limits: flags, the least pages, the most where bit 0 of the flags says so.
    fn limits(&mut self) -> Option<&'b [u8]> {
        let whole = self.0;
        let flags = self.byte()?;
        self.u64()?;
        if flags & 1 != 0 {
            self.u64()?;
        }
        Some(&whole[..whole.len() - self.0.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(text: &str) -> Prepared {
        let original = wat::parse_str(text).unwrap();
        let prepared = prepare(&original).unwrap();
        wasmi::Module::validate(&wasmi::Engine::default(), &prepared.bytes).unwrap();
        prepared
    }

    #[test]
    fn own_memories_become_imports_and_the_start_function_an_export() {
        let text = "(module (import \"a\" \"f\" (func $f)) (memory (export \"m\") 1 3) (func $g call $f) (start $g))";
        let original = wat::parse_str(text).unwrap();
        let prepared = prepared(text);
        assert_eq!(prepared.start, Some(1));
        assert_eq!(prepared.imports, [("a".to_owned(), "f".to_owned())]);
        assert_eq!(prepared.exports, [ExportEntry { name: "m".into(), kind: 2, index: 0 }]);
        let module = wasmi::Module::new(&wasmi::Engine::default(), &prepared.bytes).unwrap();
        let imports: Vec<_> = module.imports().map(|import| import.module().to_owned()).collect();
        assert_eq!(imports, ["a", OWN]);
        assert!(module.get_export(OWN).is_some() && module.get_export("m").is_some());
        assert!(prepared.bytes.len() > original.len());
    }

    #[test]
    fn sections_that_are_not_there_are_made_in_their_places() {
        for text in [
            "(module (memory 1))",
            "(module (memory 1) (data (i32.const 0) \"x\"))",
            "(module (func $s) (start $s))",
            "(module (func $s) (memory 2) (start $s) (table 1 funcref) (elem (i32.const 0) $s))",
            "(module (import \"a\" \"m\" (memory 1)))",
            "(module)",
        ] {
            prepared(text);
        }
    }

    #[test]
    fn what_an_instance_holds_is_counted() {
        let text = "(module (table $t 9 funcref) (table $x 9 externref) (global i32 (i32.const 1)) (global (mut i64) (i64.const -1))
          (func $f) (func $g) (memory 1) (data \"passive\") (data (i32.const 0) \"active\")
          (elem (i32.const 1) $f $g) (elem (table $t) (i32.const 70000) func $f)
          (elem func $f $f $f) (elem declare func $g)
          (elem (i32.const 0) funcref (ref.func $f) (ref.null func)) (elem funcref (item ref.func $g))
          (elem (table $x) (offset (i32.const 2)) externref (ref.null extern)) (elem declare funcref (ref.func $f)))";
        let held = Held { functions: 2, globals: 2, segments: 10, items: 2 + 1 + 3 + 1 + 2 + 1 + 1 + 1 };
        assert_eq!(prepared(text).held, held);
        assert_eq!(prepared("(module)").held, Held { functions: 0, globals: 0, segments: 0, items: 0 });
    }

    #[test]
    fn custom_sections_are_found_in_the_original() {
        let text = "(module (@custom \"meta\" \"hello\") (memory 1))";
        let original = wat::parse_str(text).unwrap();
        let (name, range) = prepared(text).custom[0].clone();
        assert_eq!((name.as_str(), &original[range]), ("meta", &b"hello"[..]));
    }

    #[test]
    fn what_uses_our_name_or_is_cut_off_is_refused() {
        let ours = wat::parse_str("(module (func (export \"holdfast:own\")))").unwrap();
        assert!(prepare(&ours).is_none());
        let whole = wat::parse_str("(module (memory (export \"m\") 1) (func $s) (start $s))").unwrap();
        for len in 0..whole.len() {
            let _ = prepare(&whole[..len]);
        }
    }
}
