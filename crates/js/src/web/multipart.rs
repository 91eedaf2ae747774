//! `multipart/form-data` (RFC 7578, as the HTML and Fetch Standards write and read it), both ways, and the content types
//! of forms. Hostile input gives an error; the number of parts and the size of their headers are bounded.

use std::fmt::Write as _;

/// Parts of one form. Far more than forms have, far less than would let a body of a megabyte make a million objects.
pub(crate) const PARTS_MAX: usize = 10_000;

/// Bytes of one part's headers.
pub(crate) const PART_HEADERS_LEN_MAX: usize = 16 * 1024;

/// Why a body is not a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MultipartError {
    /// The body does not begin with the boundary of its content type.
    #[error("FormData body does not begin with the boundary of its Content-Type header")]
    NoBoundary,
    /// The body ends before its last boundary.
    #[error("FormData body ends before its closing boundary")]
    Unterminated,
    /// A part has no `Content-Disposition: form-data; name="…"`.
    #[error("a part of the FormData body has no Content-Disposition header with a name")]
    NoName,
    /// A part's headers are not lines of text, or longer than [`PART_HEADERS_LEN_MAX`].
    #[error("a part of the FormData body has headers that are malformed or longer than 16384 bytes")]
    BadHeaders,
    /// More than [`PARTS_MAX`] parts.
    #[error("FormData body has more than 10000 parts")]
    TooManyParts,
}

/// One part: its content is `start..end` of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormPart {
    pub(crate) name: String,
    pub(crate) filename: Option<String>,
    /// The type of a file: `text/plain` where the part does not say.
    pub(crate) content_type: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Splits `body` at `boundary`.
///
/// # Errors
/// [`MultipartError`], with nothing kept.
pub(crate) fn parse(body: &[u8], boundary: &str) -> Result<Vec<FormPart>, MultipartError> {
    let delimiter = format!("--{boundary}");
    let delimiter = delimiter.as_bytes();
    let mut at = if body.starts_with(delimiter) {
        delimiter.len()
    } else {
        // A preamble: RFC 2046 lets text stand before the first boundary.
        let separator = [b"\r\n", delimiter].concat();
        find(body, &separator, 0).ok_or(MultipartError::NoBoundary)? + separator.len()
    };
    let separator = [b"\r\n", delimiter].concat();
    let mut parts = Vec::new();
    loop {
        if body[at..].starts_with(b"--") {
            return Ok(parts);
        }
        while body.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            at += 1;
        }
        if !body[at..].starts_with(b"\r\n") {
            return Err(MultipartError::Unterminated);
        }
        at += 2;
        if parts.len() == PARTS_MAX {
            return Err(MultipartError::TooManyParts);
        }
        let (headers, start) = headers(body, at)?;
        // An empty content shares its line end with the headers.
        let end = find(body, &separator, start - 2).ok_or(MultipartError::Unterminated)?;
        parts.push(part(headers, start, end.max(start))?);
        at = end + separator.len();
    }
}

/// The text of the headers that begin at `at`, and where the content begins.
fn headers(body: &[u8], at: usize) -> Result<(&str, usize), MultipartError> {
    let window = &body[at..body.len().min(at + PART_HEADERS_LEN_MAX)];
    let len = if window.starts_with(b"\r\n") {
        0
    } else {
        find(window, b"\r\n\r\n", 0).ok_or(MultipartError::BadHeaders)? + 2
    };
    let text = std::str::from_utf8(&window[..len]).map_err(|_| MultipartError::BadHeaders)?;
    Ok((text, at + len + 2))
}

fn part(headers: &str, start: usize, end: usize) -> Result<FormPart, MultipartError> {
    let mut disposition = None;
    let mut content_type = None;
    for line in headers.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(MultipartError::BadHeaders)?;
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "content-disposition" => disposition = Some(value),
            "content-type" => content_type = Some(value.to_owned()),
            _ => {}
        }
    }
    let disposition = disposition.ok_or(MultipartError::NoName)?;
    let (kind, parameters) = disposition.split_once(';').ok_or(MultipartError::NoName)?;
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return Err(MultipartError::NoName);
    }
    let mut name = None;
    let mut filename = None;
    for (key, value) in split_parameters(parameters) {
        match key.as_str() {
            "name" => name = Some(unescape(&value)),
            "filename" => filename = Some(unescape(&value)),
            _ => {}
        }
    }
    let name = name.ok_or(MultipartError::NoName)?;
    let content_type = content_type.unwrap_or_else(|| "text/plain".to_owned());
    Ok(FormPart { name, filename, content_type, start, end })
}

/// `; key=value; key="quoted \" value"` as pairs with lower-case keys.
fn split_parameters(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        let Some((key, after)) = rest.split_once('=') else { return pairs };
        let (value, after) = parameter_value(after);
        pairs.push((key.trim().to_ascii_lowercase(), value));
        rest = after;
    }
}

fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return (text[..end].trim().to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[index + 1..]),
            // Old browsers escape a quote with a backslash and leave the backslashes of Windows paths alone.
            '\\' if quoted[index + 1..].starts_with('"') => {
                value.push('"');
                characters.next();
            }
            other => value.push(other),
        }
    }
    (value, "")
}

/// Undoes what the HTML Standard escapes in names.
fn unescape(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    text.replace("%0D", "\r")
        .replace("%0d", "\r")
        .replace("%0A", "\n")
        .replace("%0a", "\n")
        .replace("%22", "\"")
}

fn escape(text: &str) -> String {
    text.replace('\n', "%0A").replace('\r', "%0D").replace('"', "%22")
}

/// Line ends as forms have them: CR LF.
fn with_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n")
}

/// One entry of a form that is written.
pub(crate) enum FormEntry<'a> {
    Text { name: &'a str, value: &'a str },
    File { name: &'a str, filename: &'a str, content_type: &'a str, content: &'a [u8] },
}

/// Writes `entries` with `boundary` between them.
pub(crate) fn encode<'a>(boundary: &str, entries: impl Iterator<Item = FormEntry<'a>>) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"");
        match entry {
            FormEntry::Text { name, value } => {
                head.push_str(&escape(&with_line_ends(name)));
                head.push_str("\"\r\n\r\n");
                body.extend_from_slice(head.as_bytes());
                body.extend_from_slice(with_line_ends(value).as_bytes());
            }
            FormEntry::File { name, filename, content_type, content } => {
                head.push_str(&escape(&with_line_ends(name)));
                let filename = escape(filename);
                write!(head, "\"; filename=\"{filename}\"\r\nContent-Type: {content_type}\r\n\r\n")
                    .expect("text grows without errors");
                body.extend_from_slice(head.as_bytes());
                body.extend_from_slice(content);
            }
        }
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    body
}

/// The lower-case essence of a content type, and its `boundary`.
pub(crate) fn content_type(value: &str) -> (String, Option<String>) {
    let (essence, parameters) = value.split_once(';').unwrap_or((value, ""));
    let boundary =
        split_parameters(parameters).into_iter().find(|(key, _)| key == "boundary").map(|(_, value)| value);
    (essence.trim().to_ascii_lowercase(), boundary.filter(|boundary| !boundary.is_empty()))
}

/// The first place of `needle` in `bytes` from `from` on.
fn find(bytes: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    let first = *needle.first()?;
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == first)?;
        if bytes[at..].starts_with(needle) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests;
