//! `dev` with a project: it is deployed at the start and as it changes; what is broken is told, and what ran goes on.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::deploy::Site;
use crate::support::{Dev, said};

fn worker(text: &str) -> String {
    format!(
        "import {{ suffix }} from './part.js';\nexport default {{ fetch() {{ return new Response('{text}' + suffix); }} }};\n"
    )
}

/// Reads its stderr up to a line with this text; the line.
fn line_with(dev: &mut Dev, text: &str) -> String {
    loop {
        let line = dev.next_error_line();
        assert!(!line.is_empty(), "it ended without `{text}`");
        if line.contains(text) {
            return line;
        }
    }
}

fn running(dev: &Dev) -> Value {
    dev.run(&["deploy", "show", "--json"]).json()["version"].clone()
}

/// What the application answers.
async fn answer(dev: &Dev) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let response = reqwest::get(format!("{}/", dev.ready("url"))).await.unwrap();
    assert_eq!(response.status(), 200);
    response.text().await.unwrap()
}

/// Asks until the answer is this; each before it is `before`.
async fn answers(dev: &Dev, before: &str, text: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let found = answer(dev).await;
        if found == text {
            return;
        }
        assert_eq!(found, before);
        assert!(Instant::now() < until, "`{found}` stays");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_is_deployed_and_again_as_it_changes() {
    let site = Site::new();
    site.write("index.js", &worker("one"));
    site.write("part.js", "export const suffix = '!';\n");
    let project = site.project();
    let dir = site.project().join(".holdfast");
    let mut dev = Dev::start(&dir, &[project.to_str().unwrap()]);
    let first = dev.application()["version"].clone();
    assert_eq!(dev.application()["name"], json!("app"));
    assert_eq!(running(&dev), first);
    line_with(&mut dev, "bundled `app`: 2 modules");
    // Whoever is told that it is ready finds the application.
    assert_eq!(answer(&dev).await, "one!");

    // A file that the entry imports.
    site.write("part.js", "export const suffix = '?';\n");
    let line = line_with(&mut dev, "reloaded");
    let second = running(&dev);
    assert!(line.contains(second.as_str().unwrap()) && line.contains("part.js changed"), "{line}");
    assert_ne!(second, first);
    answers(&dev, "one!", "one?").await;

    site.write("part.js", "export const suffix = ;\n");
    line_with(&mut dev, "part.js:1:23");
    line_with(&mut dev, "what ran before goes on");
    assert_eq!(running(&dev), second);
    assert_eq!(answer(&dev).await, "one?");

    // A fault in a file that no version had yet, and its end.
    site.write("more.js", "export const suffix = (;\n");
    site.write("part.js", "export { suffix } from './more.js';\n");
    line_with(&mut dev, "more.js:1:");
    site.write("more.js", "export const suffix = '.';\n");
    line_with(&mut dev, "reloaded");
    let third = running(&dev);

    // The configuration is part of it.
    site.write(
        "wrangler.jsonc",
        r#"{ "name": "app", "main": "index.js", "compatibility_date": "2026-11-01", "vars": { "MODE": "test" } }"#,
    );
    line_with(&mut dev, "wrangler.jsonc changed");
    assert_ne!(running(&dev), third);
    assert_eq!(dev.run(&["deploy", "show", "--json"]).json()["bindings"][0]["value"], json!("test"));
}

#[test]
fn a_broken_project_is_waited_for_and_none_at_all_is_refused() {
    let site = Site::new();
    site.write("index.js", "export default {\n");
    let project = site.project();
    let project = project.to_str().unwrap();
    let mut dev = Dev::start(&site.project().join(".holdfast"), &[project]);
    assert_eq!(dev.application(), &Value::Null);
    line_with(&mut dev, "index.js:2:1");
    site.write("index.js", "export default {};\n");
    line_with(&mut dev, "reloaded");
    running(&dev);

    let empty = tempfile::tempdir().unwrap();
    let dir = empty.path().join("state");
    let refused = said(Dev::command(&dir, "0").arg(empty.path()));
    assert!(refused.failure().contains("holds no wrangler.jsonc"), "{refused:?}");
    let absent = said(Dev::command(&dir, "0").arg(empty.path().join("absent")));
    assert!(absent.failure().contains("is not a folder"), "{absent:?}");
}
