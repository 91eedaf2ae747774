//! Where something is in a text file: for messages that name file, line and column and show the line.

use std::fmt;

/// Longest part of a source line that a message shows, in characters: generated files have lines of megabytes.
const EXCERPT_LEN_MAX: usize = 160;

/// A position in a file. Small, because every error has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(Box<Position>);

/// What a [`Place`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file, relative to the project where it lies below it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    excerpt: String,
    /// Characters of the excerpt before the position.
    caret: usize,
}

impl Place {
    /// At a byte offset of a file's text; an offset past the end is its end.
    #[must_use]
    pub fn at(file: &str, text: &str, offset: usize) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line_start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let before = text[line_start..offset].chars().count();
        let line = text[..line_start].matches('\n').count() + 1;
        let whole = text[line_start..].lines().next().unwrap_or_default();
        // The window slides so that the position is inside it.
        let skipped = before.saturating_sub(EXCERPT_LEN_MAX / 2);
        let excerpt = whole.chars().skip(skipped).take(EXCERPT_LEN_MAX).map(visible).collect();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Self(Box::new(Position {
            file: file.to_owned(),
            line: number(line),
            column: number(before + 1),
            excerpt,
            caret: before - skipped,
        }))
    }

    /// The source line, and a mark below the position; two lines, each after a line break.
    #[must_use]
    pub fn excerpt(&self) -> String {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let indent = " ".repeat(self.caret);
        format!("\n  {number} | {}\n  {margin} | {indent}^", self.excerpt)
    }
}

/// One column each, and nothing that moves a terminal's cursor.
fn visible(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

impl std::ops::Deref for Place {
    type Target = Position;

    fn deref(&self) -> &Position {
        &self.0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters() {
        let text = "één\n\tlet x = `ü` + y;\r\nlast";
        let place = Place::at("a.ts", text, text.find('y').unwrap());
        assert_eq!(place.to_string(), "a.ts:2:16");
        assert_eq!(place.excerpt(), "\n  2 |  let x = `ü` + y;\n    |                ^");
        assert_eq!(Place::at("a.ts", text, 999).to_string(), "a.ts:3:5");
        assert_eq!(Place::at("a.ts", "", 0).to_string(), "a.ts:1:1");
    }

    #[test]
    fn a_line_of_megabytes_is_cut_around_the_place() {
        let text = "x".repeat(1 << 20);
        let place = Place::at("a.js", &text, 500_000);
        assert_eq!(place.column, 500_001);
        assert!(place.excerpt().len() < 3 * EXCERPT_LEN_MAX, "{}", place.excerpt().len());
    }
}
