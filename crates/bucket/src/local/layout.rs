//! Where a key lies on disk. Keys map to paths one to one, no key leaves the bucket's directory, and `a` and `a/b`
//! coexist.
//!
//! A segment keeps `a-z 0-9 - _ : = + , @ ~ .`; every other byte, and a dot that would begin a file name, becomes `%XX`
//! in upper case. So names differ even where a file system does not tell upper from lower case, or one spelling of an
//! accent from another. A percent sign that no two such digits follow is free to mark what a name is: `cells%` is the
//! folder of `cells/…`, `…%+` holds the rest of a segment too long for one file name, and `%-` is the object whose last
//! segment is empty.

use std::path::{Path, PathBuf};

/// Longest fragment of a segment in one file name: file systems allow 255 bytes, the marks need two.
const FRAGMENT_LEN_MAX: usize = 200;

const FOLDER_MARK: &str = "%";
const REST_MARK: &str = "%+";
const EMPTY_OBJECT: &str = "%-";

/// What a name in a folder stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// An object whose last segment ends with these bytes.
    Object(Vec<u8>),
    /// A folder: a segment that ends with these bytes and a slash.
    Folder(Vec<u8>),
    /// A folder with the rest of segments that go on after these bytes.
    Rest(Vec<u8>),
}

/// The file of an object.
pub(super) fn object_path(root: &Path, key: &str) -> PathBuf {
    let (folder, name) = key.rsplit_once('/').map_or((None, key), |(folder, name)| (Some(folder), name));
    let mut path = folder.map_or_else(|| root.to_owned(), |folder| folder_path(root, folder));
    if name.is_empty() {
        path.push(EMPTY_OBJECT);
    } else {
        push_segment(&mut path, name, "");
    }
    path
}

/// The folder of the keys that begin with `folder` and a slash.
pub(super) fn folder_path(root: &Path, folder: &str) -> PathBuf {
    let mut path = root.to_owned();
    for segment in folder.split('/') {
        push_segment(&mut path, segment, FOLDER_MARK);
    }
    path
}

/// Reads a file name back; `None` for names that no key has.
pub(super) fn read_name(name: &str) -> Option<Entry> {
    if name == EMPTY_OBJECT {
        return Some(Entry::Object(Vec::new()));
    }
    if let Some(fragment) = name.strip_suffix(REST_MARK) {
        return decode(fragment).filter(|bytes| !bytes.is_empty()).map(Entry::Rest);
    }
    if let Some(fragment) = name.strip_suffix(FOLDER_MARK) {
        return decode(fragment).map(Entry::Folder);
    }
    decode(name).filter(|bytes| !bytes.is_empty()).map(Entry::Object)
}

fn push_segment(path: &mut PathBuf, segment: &str, mark: &str) {
    let mut fragments = encode(segment.as_bytes());
    let last = fragments.pop().expect("an encoding has at least one fragment");
    for fragment in fragments {
        path.push(fragment + REST_MARK);
    }
    path.push(last + mark);
}

/// The fragments of a segment: one, possibly empty, unless the segment is long.
fn encode(segment: &[u8]) -> Vec<String> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut done = Vec::new();
    let mut current = String::with_capacity(segment.len());
    for &byte in segment {
        // The longest unit is three bytes; cutting before it fits keeps the cut independent of what follows.
        if current.len() + 3 > FRAGMENT_LEN_MAX {
            done.push(std::mem::take(&mut current));
        }
        let is_plain = byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'-' | b'_' | b':' | b'=' | b'+' | b',' | b'@' | b'~')
            || (byte == b'.' && !current.is_empty());
        if is_plain {
            current.push(char::from(byte));
        } else {
            current.push('%');
            current.push(char::from(HEX[usize::from(byte >> 4)]));
            current.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    done.push(current);
    done
}

fn decode(fragment: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let (hex, tail) = tail.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    // Only the canonical spelling is a name of ours: `.DS_Store` and editors' leavings are not.
    match encode(&bytes).as_slice() {
        [only] if only == fragment => Some(bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_key(root: &Path, path: &Path) -> Vec<u8> {
        let mut key = Vec::new();
        for part in path.strip_prefix(root).unwrap() {
            match read_name(part.to_str().unwrap()).unwrap() {
                Entry::Object(bytes) | Entry::Rest(bytes) => key.extend(bytes),
                Entry::Folder(bytes) => {
                    key.extend(bytes);
                    key.push(b'/');
                }
            }
        }
        key
    }

    #[test]
    fn an_object_and_a_folder_of_one_name_coexist() {
        let root = Path::new("/b");
        assert_eq!(object_path(root, "a"), Path::new("/b/a"));
        assert_eq!(object_path(root, "a/b"), Path::new("/b/a%/b"));
        assert_eq!(object_path(root, "a/"), Path::new("/b/a%/%-"));
        assert_eq!(object_path(root, "../x"), Path::new("/b/%2E.%/x"));
        assert_eq!(object_path(root, "db:Aa"), Path::new("/b/db:%41a"));
    }

    #[test]
    fn foreign_names_are_not_keys() {
        for name in ["", ".", "..", ".DS_Store", "a b", "A", "%2e", "%61", "a%2", "%+", "a%%", "%zz"] {
            assert_eq!(read_name(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_key_reads_back_and_stays_inside(key in "(?s)[./%a-cA\u{0}ü ~]{1,40}|(?s).{1,60}|[.]{1,700}|[aü.]{190,400}") {
            let root = Path::new("/b");
            let path = object_path(root, &key);
            prop_assert_eq!(read_key(root, &path), key.as_bytes());
            for part in path.strip_prefix(root).unwrap() {
                let part = part.to_str().unwrap();
                prop_assert!(part != "." && part != ".." && part.len() <= 255 && !part.is_empty());
            }
        }
    }
}
