//! What the packager and isolates have to agree on.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_bundle::{Options, bundle};
use holdfast_deploy::Loaded;
use holdfast_js::{
    Effect, EventCall, EventId, IncomingBody, IncomingRequest, Isolate, IsolateKind, Limits, Now, TurnEnd,
};
use holdfast_types::Millis;

/// Above what throws: code that is longer, shorter or not there once its types are gone.
const TYPES: &str = "interface Gone {\n  a: string;\n  b: number;\n}\n\
    enum Color {\n  Red,\n  Green,\n}\n\
    type Also<T> = { [key in keyof T]: T };\n";

#[test]
fn the_packager_lets_through_the_modules_of_node_that_isolates_have() {
    let lets_through: BTreeSet<String> =
        holdfast_bundle::NODE_MODULES.iter().map(|name| format!("node:{name}")).collect();
    let has: BTreeSet<String> = holdfast_js::node_modules().map(ToOwned::to_owned).collect();
    assert_eq!(lets_through, has);
}

/// `file:line:column` of the only place in a file that has `text`.
fn place(file: &str, content: &str, text: &str) -> String {
    assert_eq!(content.matches(text).count(), 1, "{text}");
    let before = &content[..content.find(text).unwrap()];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().encode_utf16().count() + 1;
    format!("{file}:{line}:{column}")
}

/// What a project logs when its Worker is asked for a path.
fn logged(files: &[(&str, &str)], path: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let file = dir.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    let bundled = bundle(dir.path(), &Options::default()).unwrap();
    let application = Loaded::to_compile(bundled.package).application().unwrap();
    let now = Now { monotonic: Millis::new(0), wall: Millis::new(0) };
    let limits = Limits { start: std::time::Duration::from_secs(20), ..Limits::default() };
    let mut isolate = Isolate::new(&Arc::new(application), IsolateKind::Worker, limits, now).unwrap();
    let request = IncomingRequest {
        method: http::Method::GET,
        url: format!("https://test{path}"),
        headers: http::HeaderMap::new(),
        body: IncomingBody::None,
        cf: None,
    };
    let turn = isolate.dispatch(now, EventId::new(1), EventCall::Fetch(request));
    assert_eq!(turn.end, TurnEnd::Ok);
    let lines = turn.effects.iter().filter_map(|effect| match effect {
        Effect::Log { text, .. } => Some(text.clone()),
        Effect::Fail { error, .. } => Some(error.to_string()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn logged_stacks_name_the_files_lines_and_columns_of_the_project() {
    let config = r#"{ "name": "t", "main": "src/index.ts", "compatibility_date": "2026-08-01" }"#;
    let index = format!(
        "import {{ early }} from '../lib/plain.js';\nimport {{ late }} from 'old';\nimport {{ young }} from 'young';\n{TYPES}\
         function outer(color: Color): never {{\n\
         \x20 const inner = (what: Also<Gone> | undefined): never => {{\n\
         \x20   const said: string = '\u{e4}\u{1f600}'; if (what === undefined) throw new RangeError('inner');\n\
         \x20   throw what;\n  }};\n  return inner(undefined);\n}}\n\
         export default {{\n  async fetch(request: Request, env: unknown, ctx: ExecutionContext): Promise<Response> {{\n\
         \x20   switch (new URL(request.url).pathname) {{\n\
         \x20     case '/thrown': return outer(Color.Red);\n\
         \x20     case '/logged': try {{ early(1 as any); }} catch (error) {{ console.error('it failed:', {{ error }}); }} break;\n\
         \x20     case '/text': try {{ late(); }} catch (error) {{ console.log((error as Error).stack); }} break;\n\
         \x20     case '/waited': ctx.waitUntil((async () => {{ young(); }})()); break;\n\
         \x20     case '/trace': console.trace('here'); break;\n\
         \x20   }}\n    return new Response('');\n  }},\n}};\n"
    );
    let plain = "// A comment that is not shipped.\n\nexport function early(value) {\n  return value.some.thing;\n}\n";
    let old = "'use strict';\n/* Nor\n   is this. */\nexports.late = function late() {\n\n  throw new Error('late');\n};\n";
    let young = "export const young = () => {\n  // Above.\n  null.young;\n};\n";
    let files = [
        ("wrangler.json", config),
        ("src/index.ts", &index),
        ("lib/plain.js", plain),
        ("node_modules/old/package.json", r#"{ "name": "old", "main": "old.js" }"#),
        ("node_modules/old/old.js", old),
        (
            "node_modules/young/package.json",
            r#"{ "name": "young", "type": "module", "exports": "./young.js" }"#,
        ),
        ("node_modules/young/young.js", young),
    ];
    // The engine's place of a call is that of the last name before it, its arguments included.
    let has = |path: &str, frames: &[String]| {
        let text = logged(&files, path);
        let mut rest = text.as_str();
        for frame in frames {
            let at = rest.find(frame.as_str()).unwrap_or_else(|| panic!("no `{frame}` in\n{text}"));
            rest = &rest[at + frame.len()..];
        }
    };
    let in_index = |text: &str| format!("({})", place("src/index.ts", &index, text));
    has("/thrown", &[in_index("RangeError('inner"), in_index("undefined);\n"), in_index("Color.Red")]);
    let plain = format!("({})", place("lib/plain.js", plain, "value.some"));
    has("/logged", &["it failed:".into(), plain, in_index("early(1")]);
    let old = format!("({})", place("node_modules/old/old.js", old, "Error('late"));
    has("/text", &[old, in_index("late()")]);
    let young = format!("({})", place("node_modules/young/young.js", young, "null.young"));
    has("/waited", &["Uncaught".into(), young, in_index("young()")]);
    has("/trace", &["Trace: here".into(), in_index("trace('here')")]);
}
