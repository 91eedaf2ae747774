//! Static files: which of a folder are shipped, and what stops a deploy.

use holdfast_bundle::{Limits, Options, bundle};
use holdfast_records::{Binding, HtmlHandling, NotFoundHandling, sha256};

use crate::support::Project;

const WORKER: &str = "export default { fetch() {} };\n";

fn config(assets: &str, main: &str) -> String {
    format!(
        "{{ \"name\": \"a\", {main} \"compatibility_date\": \"2026-11-01\",\n  \"assets\": {{ {assets} }} }}"
    )
}

#[test]
fn the_files_of_the_folder_are_shipped_but_for_those_that_are_not_to_be() {
    let assets = r#""directory": "public", "binding": "FILES", "html_handling": "drop-trailing-slash",
        "not_found_handling": "404-page", "run_worker_first": ["/api/*", "!/api/doc"]"#;
    let project = Project::new(&[
        ("i.js", WORKER),
        ("wrangler.jsonc", &config(assets, "\"main\": \"i.js\",")),
        ("public/index.html", "<p>"),
        ("public/a b/ü.txt", "text"),
        ("public/.well-known/x", "x"),
        ("public/drafts/new.html", "draft"),
        ("public/a.map", "{}"),
        ("public/.assetsignore", "Drafts/\n*.map\n"),
        ("public/_headers", "/*\n  X-A: b\n"),
        ("public/_redirects", "/old /new\n"),
        ("public/.git/config", "secret"),
        ("public/.env.local", "secret"),
        ("public/node_modules/x/index.js", "x"),
    ]);
    std::os::unix::fs::symlink("/etc/passwd", project.path().join("public/link")).unwrap();
    let bundled = project.bundle();
    let manifest = bundled.package.manifest();
    let assets = manifest.assets.as_ref().unwrap();
    let paths: Vec<&str> = assets.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["/.well-known/x", "/a b/ü.txt", "/index.html"]);
    assert_eq!(assets.files[1].content.sha256, sha256(b"text"));
    assert_eq!(std::fs::read(&bundled.package.files()[&sha256(b"text")]).unwrap(), b"text");
    assert_eq!(assets.html_handling, HtmlHandling::DropTrailingSlash);
    assert_eq!(assets.not_found_handling, NotFoundHandling::Page);
    assert_eq!(assets.run_worker_first, ["/api/*", "!/api/doc"]);
    assert_eq!(bundled.package.bytes(assets.headers.unwrap()), "/*\n  X-A: b\n");
    assert_eq!(bundled.package.bytes(assets.redirects.unwrap()), "/old /new\n");
    assert_eq!(manifest.bindings[0].binding, Binding::Assets);
    assert!(bundled.notes.iter().any(|note| note.contains("link` is a link")), "{:?}", bundled.notes);
    let watched = |name: &str| bundled.files.iter().any(|file| file.ends_with(name));
    assert!(watched("public") && watched("public/_headers") && watched("public/index.html"));
    assert!(!watched("public/.git/config"));
}

#[test]
fn a_project_may_have_files_alone() {
    let project =
        Project::new(&[("wrangler.jsonc", &config("\"directory\": \".\"", "")), ("index.html", "<p>")]);
    let bundled = project.bundle();
    let assets = bundled.package.manifest().assets.clone().unwrap();
    assert!(assets.is_alone);
    assert_eq!(bundled.package.manifest().entry, "no-worker.js");
    let text = Project::new(&[("wrangler.jsonc", &config("\"directory\": \".\", \"binding\": \"A\"", ""))])
        .refusal();
    assert!(text.contains("`assets.binding`: `A` is for a Worker, and there is none"), "{text}");
}

#[test]
fn what_cannot_be_shipped_is_named() {
    let with = |files: &[(&str, &str)]| {
        let config = config("\"directory\": \"public\"", "\"main\": \"i.js\",");
        let mut all = vec![("i.js", WORKER), ("wrangler.jsonc", config.as_str())];
        all.extend(files);
        Project::new(&all)
    };
    let text = with(&[("public/_headers", "/a\n  X-A: b\n  nothing\n")]).refusal();
    assert!(text.contains("_headers:3:1: `nothing` is no field"), "{text}");
    let text = with(&[("public/_redirects", "/a\n")]).refusal();
    assert!(text.contains("_redirects:1:1: `/a` is no redirect"), "{text}");
    let text = with(&[("public/.assetsignore", "[z-a]\n")]).refusal();
    assert!(text.contains(".assetsignore") && text.contains("[z-a]"), "{text}");
    for worker in ["public/_worker.js", "public/_worker.js/index.js"] {
        let text = with(&[(worker, "")]).refusal();
        assert!(text.contains("write `_worker.js` into `.assetsignore`"), "{text}");
    }
    let project = with(&[("public/large", "123456"), ("public/small", "1")]);
    let limits =
        |limits| bundle(project.path(), &Options { limits, ..Options::default() }).unwrap_err().to_string();
    let text = limits(Limits { asset_bytes_max: 5, ..Limits::default() });
    assert!(text.contains("public/large") && text.contains("6 bytes") && text.contains('5'), "{text}");
    let text = limits(Limits { asset_files_max: 1, ..Limits::default() });
    assert!(
        text.contains("holds more than 1 files: write what is not to be shipped into `.assetsignore`"),
        "{text}"
    );
}
