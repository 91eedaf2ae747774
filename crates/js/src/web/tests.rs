//! Behaviours of the standards, each by its name, in a context with the prelude.

mod cost;
mod encoding;
mod events;
mod exchange;
mod fetch;
mod http;
mod url;

/// Asserts that each snippet (the body of an async function) returns true.
fn holds(snippets: &[&str]) {
    for snippet in snippets {
        let body =
            if snippet.contains("return") { (*snippet).to_owned() } else { format!("return {snippet}") };
        assert_eq!(crate::testing::run(&body), "true", "{snippet}");
    }
}
