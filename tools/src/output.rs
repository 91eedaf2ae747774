//! What goes to stdout: text or tables for people, one JSON value for programs, never both. Nothing here panics when the
//! reader of a pipe has gone.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use serde::Serialize;

/// How results are printed.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    is_json: bool,
}

impl Output {
    /// For people, or for programs.
    #[must_use]
    pub const fn new(is_json: bool) -> Self {
        Self { is_json }
    }

    /// Whether programs read it.
    #[must_use]
    pub const fn is_json(self) -> bool {
        self.is_json
    }

    /// A line of text.
    pub fn line(self, text: impl fmt::Display) -> Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// A JSON value on a line, or spread out on a terminal.
    pub fn json(self, value: &impl Serialize) -> Result<()> {
        let text = if io::stdout().is_terminal() {
            serde_json::to_string_pretty(value)?
        } else {
            serde_json::to_string(value)?
        };
        self.line(text)
    }

    /// The value for programs, or the text for people.
    pub fn print(self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        if self.is_json { self.json(value) } else { self.line(text().trim_end_matches('\n')) }
    }

    /// Bytes as they are.
    pub fn raw(self, bytes: &[u8]) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }
}

/// Columns of text, aligned; numbers to the right.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    #[must_use]
    pub fn new<S: AsRef<str>>(head: impl IntoIterator<Item = S>) -> Self {
        Self { head: head.into_iter().map(|name| printable(name.as_ref())).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub fn row<S: AsRef<str>>(&mut self, row: impl IntoIterator<Item = S>) {
        self.rows.push(row.into_iter().map(|cell| printable(cell.as_ref())).collect());
    }

    fn cell(row: &[String], column: usize) -> &str {
        row.get(column).map_or("", String::as_str)
    }

    fn columns(&self) -> Vec<Column> {
        let column = |column: usize| {
            let cells = || self.rows.iter().map(move |row| Self::cell(row, column));
            let width =
                cells().chain([Self::cell(&self.head, column)]).map(|cell| cell.chars().count()).max();
            let mut filled = cells().filter(|cell| !cell.is_empty()).peekable();
            let is_numeric = filled.peek().is_some() && filled.all(is_number);
            Column { width: width.unwrap_or(0), is_numeric }
        };
        (0..self.head.len()).map(column).collect()
    }

    fn write_row(f: &mut fmt::Formatter<'_>, row: &[String], columns: &[Column]) -> fmt::Result {
        let mut line = String::new();
        for (index, &Column { width, is_numeric }) in columns.iter().enumerate() {
            let cell = Self::cell(row, index);
            line.push_str(if index == 0 { "" } else { "  " });
            line.push_str(&if is_numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") });
        }
        writeln!(f, "{}", line.trim_end())
    }
}

#[derive(Clone, Copy)]
struct Column {
    width: usize,
    is_numeric: bool,
}

/// Words such as `nan` parse as numbers, too.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns();
        Self::write_row(f, &self.head, &columns)?;
        self.rows.iter().try_for_each(|row| Self::write_row(f, row, &columns))
    }
}

/// Text without control characters, which could otherwise move a terminal's cursor or colour what follows.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Bytes for people: `812 B`, `1.5 MiB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Milliseconds for people: `840 ms`, `7.3 s`, `12 min`, `3 h`, `2 d`.
#[must_use]
pub fn span(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..120_000 => format!("{:.1} s", millis as f64 / 1e3),
        120_000..7_200_000 => format!("{} min", millis / 60_000),
        7_200_000..172_800_000 => format!("{} h", millis / 3_600_000),
        _ => format!("{} d", millis / 86_400_000),
    }
}

/// `1 cell`, `2 cells`.
#[must_use]
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_aligns_its_columns_and_puts_numbers_to_the_right() {
        let mut table = Table::new(["NAME", "N"]);
        table.row(["ä", "1"]);
        table.row(["bcdef", "100"]);
        table.row(["x"]);
        assert_eq!(table.to_string(), "NAME     N\nä        1\nbcdef  100\nx\n");
    }

    #[test]
    fn words_that_parse_as_numbers_are_words() {
        let mut table = Table::new(["A", "B"]);
        table.row(["nan", "inf"]);
        table.row(["infinity", "x"]);
        assert_eq!(table.to_string(), "A         B\nnan       inf\ninfinity  x\n");
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(printable("ü🦀"), "ü🦀");
    }

    #[test]
    fn sizes_and_times_are_for_people() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!(bytes(5 << 30), "5.0 GiB");
        assert_eq!(span(999), "999 ms");
        assert_eq!(span(7_300), "7.3 s");
        assert_eq!(span(3_600_000), "60 min");
        assert_eq!(span(86_400_000), "24 h");
        assert_eq!((count(1, "cell"), count(2, "cell")), ("1 cell".into(), "2 cells".into()));
    }
}
