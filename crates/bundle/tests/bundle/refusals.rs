//! What stops a deploy: file, line, column, and words that say what to do.

use holdfast_bundle::{LATER_KEYS, Limits, Options, bundle};

use crate::support::Project;

const WORKER: &str = "export default { fetch() {} };\n";

/// The refusal of a configuration that has one more member, on line 2.
fn of_member(member: &str) -> String {
    let head = "\"name\": \"a\", \"main\": \"i.js\", \"compatibility_date\": \"2026-11-01\"";
    Project::new(&[("i.js", WORKER), ("wrangler.jsonc", &format!("{{ {head},\n  {member}\n}}"))]).refusal()
}

#[test]
fn each_key_that_has_no_meaning_yet_is_named() {
    for key in LATER_KEYS {
        let text = of_member(&format!("\"{key}\": []"));
        let expected = format!("wrangler.jsonc:2:3: `{key}` is not supported yet\n  2 |   \"{key}\"");
        assert!(text.starts_with(&expected), "{text}");
    }
}

#[test]
fn a_wrong_configuration_is_told_with_its_place() {
    for (member, expected) in [
        ("\"durable_object\": {}", "2:3: unknown key `durable_object`; did you mean `durable_objects`?"),
        ("\"zebra\": 1", "2:3: unknown key `zebra`\n"),
        ("\"vars\": []", "2:11: `vars` must be an object, not a list"),
        ("\"vars\": {\"a-b\": 1}", "2:12: `vars`: `a-b` is not a name"),
        ("\"name\": \"b\"", "2:3: `name` stands here for the second time"),
        ("\"rules\": [{\"type\": \"ESModule\", \"globs\": []}]", "`ESModule` is not supported yet"),
        ("\"rules\": [{\"globs\": []}]", "2:13: `rules.type` is missing"),
        ("\"define\": {\"A\": \"1 +\"}", "2:14: `define.A`: `1 +` is not a name and a JavaScript expression"),
        (
            "\"durable_objects\": {\"bindings\": [{\"name\": \"A\", \"class_name\": \"B\", \"script_name\": \"c\"}]}",
            "`durable_objects.bindings.script_name` is not supported yet",
        ),
        (
            "\"durable_objects\": {\"bindings\": [{\"name\": \"A\", \"class_name\": \"Room\"}]}",
            "the class `Room` is not exported by `i.js`, which exports `default`",
        ),
        ("\"migrations\": [{\"tag\": \"a\"}, {\"tag\": \"a\"}]", "is the tag of an earlier migration, too"),
        ("\"d1_databases\": [{\"binding\": \"DB\"}]", "`d1_databases.database_name` is missing"),
        ("\"d1_databases\": [{\"database_name\": \"a\"}]", "`d1_databases.binding` is missing"),
        (
            "\"d1_databases\": [{\"binding\": \"DB\", \"database_name\": \"\"}]",
            "`d1_databases.database_name`: `` names no cell",
        ),
        (
            "\"d1_databases\": [{\"binding\": \"DB\", \"database\": \"a\"}]",
            "unknown key `d1_databases.database`",
        ),
        ("\"r2_buckets\": [{\"binding\": \"B\"}]", "`r2_buckets.bucket_name` is missing"),
        ("\"r2_buckets\": [{\"bucket_name\": \"abc\"}]", "`r2_buckets.binding` is missing"),
        (
            "\"r2_buckets\": [{\"binding\": \"B\", \"bucket_name\": \"A/b\"}]",
            "`r2_buckets.bucket_name`: `A/b` is not 3 to 63 of `a-z 0-9 -`",
        ),
        ("\"r2_buckets\": [{\"name\": \"abc\"}]", "unknown key `r2_buckets.name`"),
        (
            "\"services\": [{\"binding\": \"S\", \"service\": \"b\"}]",
            "`services.service`: `b` is another application",
        ),
        ("\"services\": [{\"service\": \"a\"}]", "`services.binding` is missing"),
        ("\"assets\": {}", "`assets.directory` is missing"),
        ("\"assets\": {\"directory\": \"none\"}", "2:27: `assets.directory`: `none` is not a folder"),
        (
            "\"assets\": {\"directory\": \".\", \"bindings\": \"A\"}",
            "unknown key `assets.bindings`; did you mean `binding`?",
        ),
        (
            "\"assets\": {\"directory\": \".\", \"html_handling\": \"auto\"}",
            "`auto` is not one of auto-trailing-slash, force-trailing-slash, drop-trailing-slash, none",
        ),
        (
            "\"assets\": {\"directory\": \".\", \"run_worker_first\": [\"api/*\"]}",
            "`assets.run_worker_first`: `api/*` does not begin with `/`",
        ),
        (
            "\"assets\": {\"directory\": \".\", \"run_worker_first\": [\"!/a\"]}",
            "only says where the Worker is not first",
        ),
        ("\"triggers\": {\"cron\": []}", "unknown key `triggers.cron`; did you mean `crons`?"),
        (
            "\"triggers\": {\"crons\": [\"* * * *\"]}",
            "2:26: `triggers.crons`: `* * * *` has 4 fields; write five: minute, hour",
        ),
        ("\"triggers\": {\"crons\": [\"0 0 30 2 *\"]}", "`0 0 30 2 *` never comes"),
        ("\"triggers\": {\"crons\": [\"61 * * * *\"]}", "`61 * * * *` is not a cron expression: "),
        ("\"x\" 1", "not JSON"),
    ] {
        let text = of_member(member);
        assert!(text.starts_with("wrangler.jsonc:") && text.contains(expected), "{member}: {text}");
    }
}

#[test]
fn what_a_project_must_say_is_asked_for() {
    let of = |config: &str| Project::new(&[("i.js", WORKER), ("wrangler.json", config)]).refusal();
    assert!(of("{}").contains("`main` is missing"));
    assert!(of(r#"{"main":"i.js"}"#).contains("`compatibility_date` is missing"));
    let dated = |date: &str| of(&format!(r#"{{"main":"i.js","name":"a","compatibility_date":"{date}"}}"#));
    assert!(dated("2026-13-01").contains("write YYYY-MM-DD"));
    assert!(
        of(r#"{"main":"no.js","name":"a","compatibility_date":"2026-11-01"}"#)
            .contains("`no.js` is not a file")
    );
    let toml = Project::new(&[("i.js", WORKER), ("wrangler.toml", "name = \"a\"\nmain = ")]).refusal();
    assert!(toml.starts_with("wrangler.toml:2:") && toml.contains("not TOML"), "{toml}");
    let empty = tempfile::tempdir().unwrap();
    let text = bundle(empty.path(), &Options::default()).unwrap_err().to_string();
    assert!(text.contains("holds no wrangler.jsonc"), "{text}");
}

#[test]
fn a_wrong_program_is_told_with_its_line() {
    for (source, expected) in [
        ("const x = ;\n", "i.js:1:11: Unexpected token\n  1 | const x = ;\n    |           ^"),
        (
            "\nimport x from './absent';\n",
            "i.js:2:15: cannot find `./absent`, imported by `i.js`: there is no such file",
        ),
        ("import x from 'absent';\n", "is it installed?"),
        (
            "import fs from 'fs';\n",
            "`fs`, imported by `i.js`, is a module of Node that Holdfast does not have",
        ),
        (
            "import fs from 'node:fs';\n",
            "`node:fs`, imported by `i.js`, is a module of Node that Holdfast does not have",
        ),
        (
            "import {} from 'cloudflare:email';\n",
            "`cloudflare:email`, imported by `i.js`, is not supported yet",
        ),
        (
            "import { absent } from './m.js';\n",
            "i.js:1:10: `m.js` has no export `absent`, which `i.js` imports",
        ),
        ("import png from './a.png';\n", "is the file `a.png`, which is no module: add a rule for it"),
        ("import bad from './bad.json';\n", "bad.json:2:"),
        (
            "addEventListener('fetch', () => {});\nexport {};\n",
            "`i.js` has no default export, which is the Worker",
        ),
        (
            "@a class B {}\nexport default {};\n",
            "i.js:1:1: decorators are supported as TypeScript's \"experimentalDecorators\" alone",
        ),
        ("import s from './sloppy.cjs';\n", "sloppy.cjs:1:"),
    ] {
        let project = Project::new(&[
            ("i.js", source),
            ("m.js", "export const present = 1;\n"),
            ("a.png", ""),
            ("bad.json", "{\n x }"),
            ("sloppy.cjs", "exports.x = 010;\n"),
        ]);
        let text = project.refusal();
        assert!(text.contains(expected), "{source}: {text}");
    }
}

#[test]
fn a_module_of_node_that_may_never_be_reached_is_a_note() {
    let source = format!("export const lookup = async () => (await import('dns')).lookup;\n{WORKER}");
    let bundled = Project::new(&[("i.js", &source)]).bundle();
    let code = bundled.package.manifest().modules[0].content;
    let code = String::from_utf8(bundled.package.bytes(code).to_vec()).unwrap();
    assert!(code.contains("import(\"node:dns\")"), "{code}");
    assert!(
        bundled.notes.iter().any(|note| note.starts_with("i.js:1:") && note.contains("`dns`")),
        "{:?}",
        bundled.notes
    );
    let stopped = Project::new(&[("i.js", &format!("import 'node:dns';\n{WORKER}"))]).refusal();
    assert!(stopped.starts_with("i.js:1:") && stopped.contains("`node:dns`"), "{stopped}");
}

#[test]
fn a_module_of_node_without_the_flag_says_which_flag() {
    for specifier in ["path", "node:path"] {
        let config = r#"{"name":"a","main":"i.js","compatibility_date":"2026-08-03"}"#;
        let source = format!("import path from '{specifier}';\n{WORKER}");
        let text = Project::new(&[("i.js", &source), ("wrangler.json", config)]).refusal();
        assert!(text.starts_with("i.js:1:18: `") && text.contains("add \"nodejs_compat\""), "{text}");
        let flagged = Project::new(&[("i.js", &source)]).bundle();
        let code = flagged.package.manifest().modules[0].content;
        let code = String::from_utf8(flagged.package.bytes(code).to_vec()).unwrap();
        assert!(code.contains("from \"node:path\""), "{code}");
    }
}

#[test]
fn an_application_has_bounds() {
    let project = Project::new(&[
        ("i.js", &format!("import './j.js';\n{WORKER}")),
        ("j.js", "export const a = 'aaaaaaaaaa';\n"),
    ]);
    let refusal =
        |limits| bundle(project.path(), &Options { limits, ..Options::default() }).unwrap_err().to_string();
    let limits = Limits::default();
    assert!(
        refusal(Limits { modules_max: 1, ..limits }).contains("more than 1 modules; the last was `j.js`")
    );
    assert!(refusal(Limits { file_bytes_max: 10, ..limits }).contains("`i.js` has"));
    let large = refusal(Limits { total_bytes_max: 30, ..limits });
    assert!(large.contains("an application may have 30. The largest: `i.js`"), "{large}");
}
