//! Projects that are packaged, and run.

use holdfast_records::{Binding, ModuleKind};
use serde_json::json;

use crate::support::Project;

const ANSWER: &str = "export default { run() { return answer } };\n";

#[test]
fn types_enums_and_type_imports_go() {
    let project = Project::new(&[
        (
            "src/index.ts",
            "import { add, type Pair, Shape } from './math';\nimport type { X } from './absent';\n\
             export { Shape } from './math';\nenum Colour { Red = 1, Blue }\n\
             const pair: Pair = [1, 2] as const satisfies Pair;\nlet x: X | undefined; const s: Shape = { a: 1 };\n\
             const answer = [add(...pair), Colour.Blue, Colour[1], s.a, x ?? null];\n\
             export default { run() { return answer } };\n",
        ),
        (
            "src/math.ts",
            "export type Pair = [number, number]; export interface Shape { a: number }\nexport const add = (a: number, b: number): number => a + b;\n",
        ),
    ]);
    assert_eq!(project.run(), json!([3, 2, "Red", 1, null]));
}

#[test]
fn a_commonjs_package_gives_its_names_and_its_default() {
    let project = Project::new(&[
        (
            "index.js",
            "import whole, { one, late, inner, fromStar } from 'legacy';\nimport * as ns from 'legacy';\n\
             import interop, { named } from 'compiled';\n\
             const answer = [whole.one, one, late, inner, fromStar, ns.member, interop, named, whole.same === whole];\n\
             export default { run() { return answer } };\n",
        ),
        ("node_modules/legacy/package.json", r#"{"name":"legacy","main":"./lib"}"#),
        (
            "node_modules/legacy/lib/index.js",
            "exports.one = 1;\nfor (const key of ['late', 'member']) exports[key] = key;\n\
             Object.defineProperty(exports, 'inner', { enumerable: true, get() { return require('./inner').inner } });\n\
             __exportStar(require('./star'), exports); exports.same = module.exports;\n\
             function __exportStar(m, e) { for (const k in m) e[k] = m[k] }\n",
        ),
        (
            "node_modules/legacy/lib/inner.js",
            "const top = require('./index');\nmodule.exports = { inner: top.one + 1 };\n",
        ),
        ("node_modules/legacy/lib/star.js", "exports.fromStar = 'star'; return; throw 1;\n"),
        ("node_modules/compiled/package.json", r#"{"name":"compiled","main":"i.js"}"#),
        (
            "node_modules/compiled/i.js",
            "\"use strict\";\nObject.defineProperty(exports, '__esModule', { value: true });\nexports.default = 'd'; exports.named = 'n';\n",
        ),
    ]);
    assert_eq!(project.run(), json!([1, 1, "late", 2, "star", "member", "d", "n", true]));
}

#[test]
fn exports_and_conditions_choose_the_file_for_the_edge() {
    let project = Project::new(&[
        (
            "index.mjs",
            "import a from 'cond';\nimport b from 'cond/sub';\nimport c from '#own';\nimport off from 'cond/off';\nconst answer = [a, b, c, off];\nexport default { run() { return answer } };\n",
        ),
        ("package.json", r##"{"name":"app","imports":{"#own":"./own.js"},"type":"module"}"##),
        ("own.js", "export default 'own';\n"),
        (
            "node_modules/cond/package.json",
            r#"{"name":"cond","type":"module","browser":{"./off.js":false},"exports":{".":{"node":"./n.js","workerd":"./w.js","default":"./d.js"},"./sub":{"require":"./r.cjs","import":"./i.js"},"./off":"./off.js"}}"#,
        ),
        ("node_modules/cond/w.js", "export default 'workerd';\n"),
        ("node_modules/cond/i.js", "export default 'import';\n"),
        ("node_modules/cond/off.js", "export default 'on';\n"),
    ]);
    assert_eq!(project.run(), json!(["workerd", "import", "own", {}]));
}

#[test]
fn cycles_run_as_in_node() {
    let project = Project::new(&[
        (
            "index.js",
            "import { a } from './a.js';\nimport x from './x.cjs';\nconst answer = [a(), x];\nexport default { run() { return answer } };\n",
        ),
        (
            "a.js",
            "import { b } from './b.js';\nexport function a() { return b() + 1 }\nexport const base = 1;\n",
        ),
        ("b.js", "import { base } from './a.js';\nexport function b() { return base }\n"),
        (
            "x.cjs",
            "exports.early = 1; const y = require('./y.cjs'); exports.seen = y.seen; exports.late = 2;\n",
        ),
        ("y.cjs", "const x = require('./x.cjs'); exports.seen = Object.keys(x);\n"),
    ]);
    assert_eq!(project.run(), json!([2, { "early": 1, "seen": ["early"], "late": 2 }]));
}

#[test]
fn require_reaches_es_modules_json_builtins_and_survives_what_is_not_there() {
    let project = Project::new(&[
        ("index.js", "import c from './c.cjs';\nexport default { run() { return c } };\n"),
        (
            "c.cjs",
            "const esm = require('./e.mjs'), data = require('./d.json'), path = require('path');\n\
             let absent; try { require('not-installed') } catch (error) { absent = error.code }\n\
             module.exports = [esm.named, esm.default, esm.__esModule, data.a, path.basename('/x/y'), absent, typeof process.env.NODE_ENV, process.env.NODE_ENV, this === exports, __filename];\n",
        ),
        ("e.mjs", "export const named = 'n';\nexport default 'd';\n"),
        ("d.json", r#"{"a":1}"#),
    ]);
    let expected =
        json!(["n", "d", true, 1, "y", "MODULE_NOT_FOUND", "string", "production", true, "/c.cjs"]);
    assert_eq!(project.run(), expected);
}

#[test]
fn text_data_wasm_and_json_are_modules_by_rule_and_extension() {
    let project = Project::new(&[
        (
            "wrangler.jsonc",
            "// a project\n{ \"name\": \"app\", \"main\": \"index.js\", \"compatibility_date\": \"2026-11-01\",\n\
             \"rules\": [{ \"type\": \"Text\", \"globs\": [\"**/*.md\"], \"fallthrough\": true },], /* and */ }\n",
        ),
        (
            "index.js",
            "import md from './a.md';\nimport html from './a.html';\nimport bin from './a.bin';\nimport wasm from './a.wasm?module';\n\
             import all, { version } from './a.json' with { type: 'json' };\nconst answer = [md, html, bin.length, wasm.length, all, version];\n\
             export default { async run() { return [...answer, (await import('./late.js')).late] } };\n",
        ),
        ("late.js", "export const late = 'late';\n"),
        ("a.md", "# text"),
        ("a.html", "<p>"),
        ("a.bin", "12"),
        ("a.wasm", "\0asm"),
        ("a.json", r#"{"version":"1.2"}"#),
    ]);
    assert_eq!(project.run(), json!(["# text", "<p>", 2, 4, { "version": "1.2" }, "1.2", "late"]));
    let package = project.bundle().package;
    let kind =
        |name: &str| package.manifest().modules.iter().find(|module| module.name == name).unwrap().kind;
    assert_eq!(
        [kind("a.md"), kind("a.bin"), kind("a.wasm"), kind("a.json"), kind("index.js")],
        [ModuleKind::Text, ModuleKind::Data, ModuleKind::Wasm, ModuleKind::Json, ModuleKind::Esm]
    );
}

#[test]
fn tsconfig_gives_paths_jsx_and_decorators() {
    let project = Project::new(&[
        (
            "src/index.tsx",
            "/* with JSX */\nimport { twice } from '@lib/twice';\n\
             function mark(target: any, key: string, d: PropertyDescriptor) { const old = d.value; d.value = function () { return old.call(this) + '!' } }\n\
             class Greeter { @mark hi(): string { return 'hi' } }\n\
             export default { run() { using gone = { [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {} } as any; return [twice(2), new Greeter().hi(), <p class=\"x\">t</p>] } };\n",
        ),
        ("src/lib/twice.ts", "export const twice = (n: number) => n * 2;\n"),
        (
            "tsconfig.json",
            "{ \"compilerOptions\": { \"paths\": { \"@lib/*\": [\"./src/lib/*\"] }, \"jsx\": \"react-jsx\", // JSX\n \"jsxImportSource\": \"mini\", \"experimentalDecorators\": true, } }",
        ),
        (
            "node_modules/mini/package.json",
            r#"{"name":"mini","type":"module","exports":{"./jsx-runtime":"./j.js"}}"#,
        ),
        ("node_modules/mini/j.js", "export const jsx = (tag, props) => ({ tag, props });\n"),
    ]);
    let element = json!({ "tag": "p", "props": { "class": "x", "children": "t" } });
    assert_eq!(project.run(), json!([4, "hi!", element]));
}

#[test]
fn toml_gives_bindings_classes_and_definitions() {
    let project = Project::new(&[
        (
            "wrangler.toml",
            "name = \"chat\"\nmain = \"i.js\"\ncompatibility_date = \"2026-11-01\"\nworkers_dev = false\nminify = true\n\
             [vars]\nMODE = \"live\"\nLIMITS = { b = [1, 2.5], a = true }\n[define]\nVERSION = '\"v7\"'\n\
             [[durable_objects.bindings]]\nname = \"ROOMS\"\nclass_name = \"Room\"\n\
             [[d1_databases]]\nbinding = \"DB\"\ndatabase_name = \"shop\"\ndatabase_id = \"0\"\nmigrations_dir = \"m\"\n\
             [[r2_buckets]]\nbinding = \"PHOTOS\"\nbucket_name = \"my-photos\"\npreview_bucket_name = \"x\"\njurisdiction = \"eu\"\n\
             [triggers]\ncrons = [\"5 4 * * sun\", \"*/30 * * * *\", \"5 4 * * sun\"]\n\
             [[services]]\nbinding = \"ME\"\nservice = \"chat\"\nentrypoint = \"Admin\"\n\
             [[migrations]]\ntag = \"v1\"\nnew_sqlite_classes = [\"Hall\"]\n[[migrations]]\ntag = \"v2\"\nrenamed_classes = [{ from = \"Hall\", to = \"Room\" }]\n",
        ),
        (
            "i.js",
            "export class Room {}\nconst answer = VERSION;\nexport default { run() { return answer } };\n",
        ),
    ]);
    assert_eq!(project.run(), json!("v7"));
    let bundled = project.bundle();
    let manifest = bundled.package.manifest();
    assert_eq!((manifest.name.as_str(), manifest.classes.as_slice()), ("chat", &["Room".to_owned()][..]));
    let bindings: Vec<_> =
        manifest.bindings.iter().map(|entry| (entry.name.as_str(), &entry.binding)).collect();
    assert_eq!(bindings[0], ("DB", &Binding::D1Database { database: "shop".into() }));
    assert_eq!(bindings[2], ("ME", &Binding::SelfService { entrypoint: Some("Admin".into()) }));
    assert_eq!(bindings[1], ("LIMITS", &Binding::Json { value: "{\"b\":[1,2.5],\"a\":true}".into() }));
    assert_eq!(bindings[4], ("PHOTOS", &Binding::R2Bucket { bucket: "my-photos".into() }));
    assert_eq!(bindings[5], ("ROOMS", &Binding::DurableObject { class: "Room".into() }));
    assert_eq!(manifest.migrations[1].renamed_classes, [("Hall".to_owned(), "Room".to_owned())]);
    assert_eq!(manifest.crons, ["*/30 * * * *", "5 4 * * sun"]);
    let notes = bundled.notes.join("\n");
    assert!(
        notes.contains("wrangler.toml:4:1: `workers_dev`") && notes.contains("wrangler.toml:5:1: `minify`"),
        "{notes}"
    );
}

#[test]
fn the_same_files_elsewhere_are_the_same_version() {
    let files = [
        (
            "index.ts",
            "import b from './b.cjs';\nconst answer: number = b.x;\nexport default { run() { return answer } };\n",
        ),
        ("b.cjs", "exports.x = 1;\n"),
    ];
    let (first, second) = (Project::new(&files), Project::new(&files));
    assert_eq!(first.bundle().package, second.bundle().package);
    assert_eq!(first.bundle().package.manifest().id(), second.bundle().package.manifest().id());
    second.write("b.cjs", "exports.x = 2;\n");
    assert_ne!(first.bundle().package.manifest().id(), second.bundle().package.manifest().id());
}

#[test]
fn a_source_map_names_the_file_and_is_shifted_below_what_wraps_it() {
    let project = Project::new(&[
        ("index.ts", &format!("import './c.cjs';\nconst answer = 1;\n{ANSWER}")),
        ("c.cjs", "exports.x = 1;\n"),
    ]);
    let package = project.bundle().package;
    let map = |name: &str| {
        let module = package.manifest().modules.iter().find(|module| module.name == name).unwrap();
        let bytes = package.bytes(module.source_map.unwrap());
        serde_json::from_slice::<serde_json::Value>(bytes).unwrap()
    };
    assert_eq!((&map("index.ts")["version"], &map("index.ts")["sources"]), (&json!(3), &json!(["index.ts"])));
    assert!(map("c.cjs")["mappings"].as_str().unwrap().starts_with(";AAAA"), "{}", map("c.cjs"));
}
