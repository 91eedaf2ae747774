//! One version's static files, and what a path means there. Pure.

use holdfast_records::{AssetFile, Assets, HtmlHandling, NotFoundHandling};
use http::StatusCode;

use crate::paths::{self, Files, Found};
use crate::pattern::Glob;
use crate::rules::{Headers, Redirected, Redirects};

/// Ways to write the path of a page, one leading to the next.
const MOVES_MAX: usize = 3;

/// One version's static files.
#[derive(Debug, Default)]
pub struct Site {
    files: Files,
    html_handling: HtmlHandling,
    not_found_handling: NotFoundHandling,
    worker_first: Vec<Glob>,
    never_worker_first: Vec<Glob>,
    is_alone: bool,
    /// Where nobody else answers a page that a person goes to, the files do.
    takes_navigation: bool,
    pub(crate) headers: Headers,
    redirects: Redirects,
}

/// What is asked for, as far as files are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) host: &'a str,
    /// As it was sent.
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    /// A person goes there (`Sec-Fetch-Mode: navigate`).
    pub(crate) is_navigation: bool,
}

/// What a path means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meant<'s> {
    /// A file, and the status that it is answered with.
    File(&'s AssetFile, StatusCode),
    /// Another address.
    Moved(StatusCode, String),
    /// Nothing.
    Nothing,
}

/// The pattern of `run_worker_first`, without its `!`, and whether it had one.
fn split(pattern: &str) -> (&str, bool) {
    pattern.strip_prefix('!').map_or((pattern, false), |rest| (rest, true))
}

impl Site {
    /// A version's files with its rules. A pattern that is none stands for nothing: the packager has refused it.
    #[must_use]
    pub fn new(assets: &Assets, (headers, redirects): (Headers, Redirects), takes_navigation: bool) -> Self {
        let (not, yes): (Vec<_>, Vec<_>) =
            assets.run_worker_first.iter().map(|pattern| split(pattern)).partition(|(_, is_not)| *is_not);
        let globs = |patterns: Vec<(&str, bool)>| {
            patterns.into_iter().filter_map(|(pattern, _)| Glob::parse(pattern).ok()).collect()
        };
        Self {
            files: assets.files.iter().map(|file| (file.path.clone(), file.clone())).collect(),
            html_handling: assets.html_handling,
            not_found_handling: assets.not_found_handling,
            worker_first: globs(yes),
            never_worker_first: globs(not),
            is_alone: assets.is_alone,
            takes_navigation,
            headers,
            redirects,
        }
    }

    /// What is wrong with a pattern of `run_worker_first`, if anything.
    #[must_use]
    pub fn check_worker_first(pattern: &str) -> Option<String> {
        Glob::parse(split(pattern).0).err()
    }

    /// Whether the files leave it to the Worker.
    pub(crate) fn leaves(&self, asked: Asked<'_>) -> bool {
        if self.is_alone {
            return false;
        }
        if self.never_worker_first.iter().any(|glob| glob.is_match(asked.path)) {
            return false;
        }
        if self.worker_first.iter().any(|glob| glob.is_match(asked.path)) {
            return true;
        }
        let has_page = self.not_found_handling != NotFoundHandling::None;
        // A list says what is the Worker's: the rest is the files', whoever asks.
        let takes_page = has_page
            && (!self.worker_first.is_empty() || (self.takes_navigation && asked.is_navigation))
            && self.instead(asked.path) != Meant::Nothing;
        !takes_page && self.look(asked) == Meant::Nothing
    }

    /// What is answered where the files are asked.
    pub(crate) fn meant(&self, asked: Asked<'_>) -> Meant<'_> {
        match self.look(asked) {
            Meant::Nothing => self.instead(asked.path),
            meant => meant,
        }
    }

    /// What is there.
    fn look(&self, asked: Asked<'_>) -> Meant<'_> {
        let path = asked.path;
        match self.redirects.of(asked.host, path, asked.query) {
            Some(Redirected::To(status, to)) => return Meant::Moved(status, to),
            Some(Redirected::As(to)) => return self.instead_of(&to),
            None => {}
        }
        let moved = |to: &str| {
            let to = paths::encode(to);
            // What begins with two slashes would lead to another host.
            let to = format!("/{}", to.trim_start_matches('/'));
            let query = asked.query.map(|query| format!("?{query}")).unwrap_or_default();
            Meant::Moved(StatusCode::TEMPORARY_REDIRECT, format!("{to}{query}"))
        };
        let Some(decoded) = paths::decode(path) else { return Meant::Nothing };
        match paths::find(&self.files, self.html_handling, &decoded) {
            Found::Nothing => Meant::Nothing,
            Found::Moved(to) => moved(&to),
            Found::File(_) if paths::encode(&decoded) != path => moved(&decoded),
            Found::File(file) => Meant::File(&self.files[&file], StatusCode::OK),
        }
    }

    /// The file of another path, in whichever way that is written: the client stays where it is.
    fn instead_of(&self, to: &str) -> Meant<'_> {
        let path = to.split(['?', '#']).next().unwrap_or_default();
        let Some(mut path) = paths::decode(path) else { return Meant::Nothing };
        for _ in 0..MOVES_MAX {
            match paths::find(&self.files, self.html_handling, &path) {
                Found::File(file) => return Meant::File(&self.files[&file], StatusCode::OK),
                Found::Moved(to) => path = to,
                Found::Nothing => return Meant::Nothing,
            }
        }
        Meant::Nothing
    }

    fn instead(&self, path: &str) -> Meant<'_> {
        let file = |path: Option<String>| path.and_then(|path| self.files.get(&path));
        let (found, status) = match self.not_found_handling {
            NotFoundHandling::None => return Meant::Nothing,
            NotFoundHandling::Page => {
                let path = paths::decode(path).unwrap_or_default();
                (file(paths::not_found_page(&self.files, &path)), StatusCode::NOT_FOUND)
            }
            NotFoundHandling::SinglePageApplication => (self.files.get("/index.html"), StatusCode::OK),
        };
        found.map_or(Meant::Nothing, |file| Meant::File(file, status))
    }
}

#[cfg(test)]
mod tests {
    use holdfast_records::BlobEntry;
    use holdfast_types::ContentHash;

    use super::*;

    fn assets(paths: &[&str]) -> Assets {
        let content = BlobEntry { sha256: ContentHash::from_digest([0; 32]), bytes: 0 };
        Assets {
            files: paths.iter().map(|path| AssetFile { path: (*path).to_owned(), content }).collect(),
            html_handling: HtmlHandling::default(),
            not_found_handling: NotFoundHandling::default(),
            run_worker_first: vec![],
            is_alone: false,
            headers: None,
            redirects: None,
        }
    }

    fn site(assets: &Assets, redirects: &str) -> Site {
        Site::new(assets, (Headers::default(), Redirects::parse(redirects).unwrap()), true)
    }

    fn asked(path: &str) -> Asked<'_> {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        Asked { host: "h", path, query, is_navigation: false }
    }

    fn shown(meant: Meant<'_>) -> String {
        match meant {
            Meant::File(file, status) => format!("{} {}", status.as_u16(), file.path),
            Meant::Moved(status, to) => format!("{} -> {to}", status.as_u16()),
            Meant::Nothing => "404".into(),
        }
    }

    #[test]
    fn a_path_is_written_as_its_file_is_named() {
        let site = site(
            &assets(&["/a b.txt", "/x/index.html", "//evil/index.html"]),
            "/old /a%20b.txt\n/as/* /x/ 200\n/app/* /x/index.html?q 200",
        );
        for (path, wanted) in [
            ("/a%20b.txt", "200 /a b.txt"),
            ("/%61%20b.txt?q=1", "307 -> /a%20b.txt?q=1"),
            ("/x?q=1", "307 -> /x/?q=1"),
            ("/old", "302 -> /a%20b.txt"),
            ("/as/any", "200 /x/index.html"),
            ("/app/any", "200 /x/index.html"),
            ("/%FF", "404"),
            ("//evil", "307 -> /evil/"),
        ] {
            assert_eq!(shown(site.meant(asked(path))), wanted, "{path}");
        }
    }

    #[test]
    fn what_is_not_there_is_answered_as_the_project_says() {
        let files = assets(&["/index.html", "/404.html"]);
        let with = |not_found_handling| site(&Assets { not_found_handling, ..files.clone() }, "");
        assert_eq!(shown(with(NotFoundHandling::None).meant(asked("/a"))), "404");
        assert_eq!(shown(with(NotFoundHandling::Page).meant(asked("/a"))), "404 /404.html");
        assert_eq!(
            shown(with(NotFoundHandling::SinglePageApplication).meant(asked("/a"))),
            "200 /index.html"
        );
    }

    #[test]
    fn the_worker_is_asked_for_what_no_file_answers() {
        let files = assets(&["/index.html", "/api/doc.html"]);
        let plain = site(&files, "/moved /");
        let navigation = |path| Asked { is_navigation: true, ..asked(path) };
        for (path, for_worker) in [("/", false), ("/moved", false), ("/other", true), ("/index", false)] {
            assert_eq!(plain.leaves(asked(path)), for_worker, "{path}");
        }
        assert!(plain.leaves(navigation("/other")));
        let app = Assets { not_found_handling: NotFoundHandling::SinglePageApplication, ..files.clone() };
        assert!(!site(&app, "").leaves(navigation("/other")), "a person goes to a page of the application");
        assert!(site(&app, "").leaves(asked("/other")));
        let first = Assets { run_worker_first: vec!["/api/*".into(), "!/api/doc*".into()], ..files.clone() };
        let first = site(&first, "");
        assert!(!first.leaves(asked("/api/doc.html")) && first.leaves(asked("/api/x")));
        assert!(!first.leaves(asked("/")));
        assert!(first.leaves(asked("/other")), "there is no page for it");
        let listed = Assets { run_worker_first: vec!["/api/*".into()], ..app.clone() };
        assert!(!site(&listed, "").leaves(asked("/other")), "what a list leaves out is the files'");
        let pageless = Assets { files: vec![], ..app.clone() };
        assert!(site(&pageless, "").leaves(navigation("/other")), "the Worker makes the page");
        let all = site(&files, "/* /index.html 200");
        assert_eq!(shown(all.meant(asked("/any/path"))), "200 /index.html");
        let always = site(&Assets { run_worker_first: vec!["/*".into()], ..files.clone() }, "");
        assert!(always.leaves(asked("/")));
        let alone = site(&Assets { is_alone: true, ..files }, "");
        assert!(!alone.leaves(asked("/other")));
        assert!(Site::check_worker_first("!api").is_some_and(|problem| problem.contains("begin with `/`")));
        assert_eq!(Site::check_worker_first("!/api/*"), None);
    }
}
