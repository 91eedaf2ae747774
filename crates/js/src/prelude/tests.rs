//! Parts load once, lazily, and in the face of handlers that replace their globals.

use super::{Bytecode, Part, Parts, compile, core_part, install_parts, no_natives};
use rquickjs::{CatchResultExt, Context, Runtime};

const EAGER: Part = Part {
    name: "eager",
    source: "export default function (native, internals) { internals.shared = 'shared'; return { eager: 1 }; }",
    natives: no_natives,
    globals: &[],
};

const LAZY: Part = Part {
    name: "lazy",
    source: "let runs = 0; export default function (native, internals) {
        runs += 1;
        return { Lazy: class Lazy { get seen() { return internals.shared + runs; } }, Other: 2 };
    }",
    natives: no_natives,
    globals: &["Lazy", "Other"],
};

/// As the part that makes `env` does for some bindings.
const HASTY: Part = Part {
    name: "hasty",
    source: "export default function (native, internals) { internals.load('needed'); }",
    natives: no_natives,
    globals: &[],
};

const NEEDED: Part = Part {
    name: "needed",
    source: "export default function () { return { Needed: class Needed {} }; }",
    natives: no_natives,
    globals: &["Needed"],
};

static PARTS: &[&Part] = &[&core_part::PART, &EAGER, &LAZY, &HASTY, &NEEDED];

fn evaluate(source: &str) -> String {
    let compiled: &'static [Bytecode] = Vec::leak(compile(PARTS.iter().copied()));
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    context.with(|ctx| {
        install_parts(&ctx, Parts { listed: PARTS, on_demand: &[], of_node: &[], compiled })
            .catch(&ctx)
            .unwrap();
        ctx.eval(source).catch(&ctx).unwrap()
    })
}

#[test]
fn a_lazy_part_runs_once_at_the_first_touch_of_one_of_its_globals() {
    assert_eq!(evaluate("Other; new Lazy().seen + new Lazy().seen"), "shared1shared1");
}

#[test]
fn a_lazy_part_that_an_eager_one_loads_has_its_globals() {
    assert_eq!(evaluate("new Needed().constructor.name"), "Needed");
}

#[test]
fn globals_of_parts_are_not_enumerable_and_may_be_replaced() {
    assert_eq!(
        evaluate("JSON.stringify(Object.keys(globalThis).filter(k => /eager|Lazy|Other/.test(k)))"),
        "[]"
    );
    assert_eq!(evaluate("Lazy = 'mine'; Other; Lazy"), "mine");
    assert_eq!(evaluate("Object.defineProperty(globalThis, 'Lazy', { value: 'mine' }); Other; Lazy"), "mine");
    assert_eq!(evaluate("delete globalThis.Lazy; Other; typeof Lazy"), "undefined");
}

#[test]
fn handlers_do_not_see_what_parts_share() {
    assert_eq!(evaluate("String(typeof internals + typeof native)"), "undefinedundefined");
    assert_eq!(evaluate("Lazy.toString()"), "function Lazy() {\n    [native code]\n}");
}

#[test]
fn all_parts_of_this_crate_have_names_of_their_own_and_compile() {
    let mut names: Vec<_> = super::PARTS
        .iter()
        .chain(super::ON_DEMAND)
        .chain(crate::node::GLOBALS)
        .map(|part| part.name)
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), super::bytecode().len());
}
