//! From a path to a file: how paths of HTML pages look. Pure.

use std::collections::BTreeMap;

use holdfast_records::{AssetFile, HtmlHandling};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What `encodeURIComponent` leaves as it is.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// Files by their paths.
pub(crate) type Files = BTreeMap<String, AssetFile>;

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// To this file.
    File(String),
    /// To another path, under which the file is.
    Moved(String),
    /// Nowhere.
    Nothing,
}

/// A path, decoded part by part. None where it is not UTF-8.
pub(crate) fn decode(path: &str) -> Option<String> {
    let parts: Option<Vec<_>> =
        path.split('/').map(|part| percent_decode_str(part).decode_utf8().ok()).collect();
    Some(parts?.join("/"))
}

/// A decoded path as it is written.
pub(crate) fn encode(path: &str) -> String {
    let parts: Vec<String> =
        path.split('/').map(|part| utf8_percent_encode(part, COMPONENT).to_string()).collect();
    parts.join("/")
}

/// Where a decoded path leads.
pub(crate) fn find(files: &Files, handling: HtmlHandling, path: &str) -> Found {
    let pages = Pages { files, handling };
    match pages.page_of(path) {
        Some(page) => pages.under_its_own(path, page),
        None if files.contains_key(path) => Found::File(path.to_owned()),
        None => Found::Nothing,
    }
}

struct Pages<'f> {
    files: &'f Files,
    handling: HtmlHandling,
}

impl Pages<'_> {
    fn is_there(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// The HTML file that a path means, in any of the ways to say it.
    fn page_of(&self, path: &str) -> Option<String> {
        if self.handling == HtmlHandling::None {
            return None;
        }
        // A file that is no page, or lies beside one, is itself.
        if self.is_there(path) && !is_page(path) {
            return None;
        }
        let there = |path: String| Some(path).filter(|path| self.is_there(path));
        if is_page(path) {
            let other = match path.strip_suffix("/index.html") {
                Some(folder) => format!("{folder}.html"),
                None => format!("{}/index.html", path.trim_end_matches(".html")),
            };
            return there(path.to_owned()).or_else(|| there(other));
        }
        if let Some(folder) = path.strip_suffix("/index") {
            let index = there(format!("{folder}/index.html"));
            return index.or_else(|| if folder.is_empty() { None } else { there(format!("{folder}.html")) });
        }
        match path.strip_suffix('/') {
            Some(folder) => there(format!("{folder}/index.html"))
                .or_else(|| if folder.is_empty() { None } else { there(format!("{folder}.html")) }),
            None => there(format!("{path}.html")).or_else(|| there(format!("{path}/index.html"))),
        }
    }

    /// The page, where this is the path that it has; otherwise that path.
    fn under_its_own(&self, path: &str, page: String) -> Found {
        let own = self.own_path(&page);
        // Another page may have the path: `a.html` and `a/index.html` cannot both be `/a`.
        let is_taken = || self.page_of(&own).is_none_or(|other| other != page);
        if own == path || is_taken() { Found::File(page) } else { Found::Moved(own) }
    }

    fn own_path(&self, page: &str) -> String {
        let bare = page.strip_suffix(".html").unwrap_or(page);
        let folder = if bare == "/index" { Some("") } else { bare.strip_suffix("/index") };
        let (name, is_index) = folder.map_or((bare, false), |folder| (folder, true));
        let has_slash = match self.handling {
            HtmlHandling::AutoTrailingSlash => is_index,
            HtmlHandling::ForceTrailingSlash => true,
            HtmlHandling::DropTrailingSlash => name.is_empty(),
            HtmlHandling::None => return page.to_owned(),
        };
        if has_slash { format!("{name}/") } else { name.to_owned() }
    }
}

fn is_page(path: &str) -> bool {
    path.ends_with(".html")
}

/// The page that says that there is nothing, nearest above a path.
pub(crate) fn not_found_page(files: &Files, path: &str) -> Option<String> {
    let mut folder = path;
    while let Some(at) = folder.rfind('/') {
        folder = &folder[..at];
        let page = format!("{folder}/404.html");
        if files.contains_key(&page) {
            return Some(page);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use holdfast_records::BlobEntry;
    use holdfast_types::ContentHash;

    use super::*;

    fn files(paths: &[&str]) -> Files {
        let content = BlobEntry { sha256: ContentHash::from_digest([0; 32]), bytes: 0 };
        let file = |path: &&str| ((*path).to_owned(), AssetFile { path: (*path).to_owned(), content });
        paths.iter().map(file).collect()
    }

    fn shown(found: Found) -> String {
        match found {
            Found::File(path) => path,
            Found::Moved(path) => format!("-> {path}"),
            Found::Nothing => "-".into(),
        }
    }

    /// The site of Cloudflare's own documentation of `html_handling`.
    const SITE: &[&str] =
        &["/file.html", "/folder/index.html", "/index.html", "/a.txt", "/both.html", "/both/index.html"];

    fn check(handling: HtmlHandling, rows: &[(&str, &str)]) {
        for (path, wanted) in rows {
            assert_eq!(shown(find(&files(SITE), handling, path)), *wanted, "{handling:?} {path}");
        }
    }

    #[test]
    fn pages_have_a_slash_where_they_are_folders() {
        check(
            HtmlHandling::AutoTrailingSlash,
            &[
                ("/", "/index.html"),
                ("/index.html", "-> /"),
                ("/index", "-> /"),
                ("/file", "/file.html"),
                ("/file.html", "-> /file"),
                ("/file/", "-> /file"),
                ("/file/index", "-> /file"),
                ("/file/index.html", "-> /file"),
                ("/folder", "-> /folder/"),
                ("/folder/", "/folder/index.html"),
                ("/folder/index", "-> /folder/"),
                ("/folder/index.html", "-> /folder/"),
                ("/folder.html", "-> /folder/"),
                ("/both", "/both.html"),
                ("/both/", "/both/index.html"),
                ("/a.txt", "/a.txt"),
                ("/a.txt/", "-"),
                ("/nothing", "-"),
            ],
        );
    }

    #[test]
    fn pages_have_a_slash_always_or_never() {
        check(
            HtmlHandling::ForceTrailingSlash,
            &[
                ("/", "/index.html"),
                ("/file", "-> /file/"),
                ("/file/", "/file.html"),
                ("/file.html", "-> /file/"),
                ("/folder", "-> /folder/"),
                ("/folder/", "/folder/index.html"),
                ("/folder/index.html", "-> /folder/"),
                ("/a.txt", "/a.txt"),
            ],
        );
        check(
            HtmlHandling::DropTrailingSlash,
            &[
                ("/", "/index.html"),
                ("/index.html", "-> /"),
                ("/file", "/file.html"),
                ("/file/", "-> /file"),
                ("/folder", "/folder/index.html"),
                ("/folder/", "-> /folder"),
                ("/folder/index", "-> /folder"),
            ],
        );
    }

    #[test]
    fn or_they_are_files_like_others() {
        check(
            HtmlHandling::None,
            &[
                ("/", "-"),
                ("/file", "-"),
                ("/file.html", "/file.html"),
                ("/folder/", "-"),
                ("/index.html", "/index.html"),
            ],
        );
    }

    #[test]
    fn no_page_leads_round_in_a_circle() {
        for handling in [
            HtmlHandling::AutoTrailingSlash,
            HtmlHandling::ForceTrailingSlash,
            HtmlHandling::DropTrailingSlash,
        ] {
            let files = files(SITE);
            for start in SITE {
                let mut path = (*start).to_owned();
                let mut steps = 0;
                while let Found::Moved(to) = find(&files, handling, &path) {
                    path = to;
                    steps += 1;
                    assert!(steps < 3, "{handling:?} {start}");
                }
                assert!(
                    matches!(find(&files, handling, &path), Found::File(_)),
                    "{handling:?} {start} -> {path}"
                );
            }
        }
    }

    #[test]
    fn the_nearest_page_says_that_there_is_nothing() {
        let files = files(&["/404.html", "/blog/404.html"]);
        assert_eq!(not_found_page(&files, "/blog/a/b").as_deref(), Some("/blog/404.html"));
        assert_eq!(not_found_page(&files, "/blog").as_deref(), Some("/404.html"));
        assert_eq!(not_found_page(&files, "/").as_deref(), Some("/404.html"));
        assert_eq!(not_found_page(&Files::new(), "/a"), None);
    }

    #[test]
    fn paths_are_written_in_one_way() {
        assert_eq!(decode("/a%20b/%C3%BC").as_deref(), Some("/a b/ü"));
        assert_eq!(decode("/%FF"), None);
        assert_eq!(encode("/a b/ü(1)'!*.txt"), "/a%20b/%C3%BC(1)'!*.txt");
        assert_eq!(decode("/a%2Fb").map(|path| encode(&path)).as_deref(), Some("/a/b"));
    }
}
