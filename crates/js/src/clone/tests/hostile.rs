//! Whatever the bytes, reading ends with a value or an error, and a value that was read can be written.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::serialized;
use crate::testing::within;

const SEEDS: &[&str] = &[
    "{ a: 1, b: [1, , 3], c: 'é€', 7: -5n }",
    "[new Map([[{}, new Set([1])]]), /x/g, new Date(1), Object('s'), Object(1n)]",
    "(() => { const e = new TypeError('m', { cause: [1] }); e.cause.push(e); return { e, o: new DOMException('a', 'b') }; })()",
    "(() => { const b = new ArrayBuffer(8); return [new Float64Array(b), new DataView(b, 2), new ArrayBuffer(1, { maxByteLength: 2 }), b]; })()",
];

#[test]
fn bytes_with_random_changes_never_panic() {
    let seeds: Vec<Vec<u8>> = SEEDS.iter().map(|seed| serialized(seed)).collect();
    let change = (any::<prop::sample::Index>(), 0..4u8, any::<u8>());
    let strategy = (0..seeds.len(), prop::collection::vec(change, 1..6));
    let read = Cell::new(0);
    within(|ctx| {
        let mut runner =
            TestRunner::new(Config { cases: 3000, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&strategy, |(seed, changes)| {
            let mut bytes = seeds[seed].clone();
            for (at, kind, byte) in changes {
                let at = at.index(bytes.len());
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    2 if bytes.len() > 3 => drop(bytes.remove(at)),
                    _ => bytes.truncate(at.max(2)),
                }
            }
            match super::super::deserialize(ctx, &bytes) {
                Ok(value) => {
                    read.set(read.get() + 1);
                    prop_assert!(super::super::serialize(ctx, &value).is_ok());
                }
                Err(_) => drop(ctx.catch()),
            }
            Ok(())
        });
        outcome.unwrap();
    });
    assert!(read.get() > 0, "some changes leave a value");
}

#[test]
fn random_values_are_the_same_after_a_round() {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("JSON has it", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
        "\\PC{0,8}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just("null".to_owned()),
        Just("true".to_owned()),
    ];
    let value = leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|list| format!("[{}]", list.join(","))),
            prop::collection::btree_map("[a-z0-9]{0,3}", inner, 0..5).prop_map(|map| {
                let members: Vec<_> = map.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    });
    within(|ctx| {
        let mut runner =
            TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&value, |json| {
            let value = ctx.json_parse(json).unwrap();
            let bytes = super::super::serialize(ctx, &value).unwrap();
            let again = super::super::deserialize(ctx, &bytes).unwrap();
            let text = |value| ctx.json_stringify(value).unwrap().unwrap().to_string().unwrap();
            prop_assert_eq!(text(value), text(again.clone()));
            prop_assert_eq!(super::super::serialize(ctx, &again).unwrap(), bytes);
            Ok(())
        });
        outcome.unwrap();
    });
}
