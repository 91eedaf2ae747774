//! Node as the peer: what `v8.serialize` writes is read, and ours is read by `v8.deserialize`. Run with
//! `cargo nextest run -p holdfast-js --run-ignored all`.

use std::process::Command;

use super::{checked, serialized};

/// Each is an expression, and a function that says of a value whether it is that value.
const VALUES: &[(&str, &str)] = &[
    (
        "[1, -1, 0.5, 2**31, -(2**31), NaN, true, false, null, undefined]",
        "v => v.length === 10 && v[3] === 2**31 && Number.isNaN(v[5]) && v[9] === undefined",
    ),
    (
        "['', 'ascii', '\\xe9', '\\u20ac', '\\ud83d\\ude00', '\\ud800']",
        "v => v.join('|') === '|ascii|\\xe9|\\u20ac|\\ud83d\\ude00|\\ud800'",
    ),
    ("[0n, 5n, -(2n ** 100n), 2n ** 64n - 1n]", "v => v[2] === -(2n ** 100n) && v[3] === 2n ** 64n - 1n"),
    (
        "({ a: { b: [1, , 3] }, 7: 'x', '4294967295': 1 })",
        "v => v.a.b.length === 3 && !(1 in v.a.b) && v[7] === 'x' && v['4294967295'] === 1",
    ),
    ("new Map([['k', new Set([1, 'a'])]])", "v => v.get('k').has('a')"),
    (
        "[new Date(123), /a\\/b/giu, Object(1), Object('s'), Object(false), Object(9n)]",
        "v => +v[0] === 123 && v[1].source === 'a\\\\/b' && v[1].flags === 'giu' && v[3].length === 1 && v[4].valueOf() === false && v[5].valueOf() === 9n",
    ),
    ("(() => { const o = {}; o.o = o; return [o, o]; })()", "v => v[0] === v[1] && v[0].o === v[0]"),
    (
        "(() => { const e = new RangeError('m', { cause: new TypeError('c') }); return e; })()",
        "v => v instanceof RangeError && v.message === 'm' && v.cause instanceof TypeError && typeof v.stack === 'string'",
    ),
    (
        "[new Uint8Array([1, 2, 3]), new Float64Array([1.5]), new BigInt64Array([-5n]), new Int16Array([-2]), new DataView(new Uint8Array([9]).buffer)]",
        "v => v[0].join() === '1,2,3' && v[1][0] === 1.5 && v[2][0] === -5n && v[3][0] === -2 && v[4].getUint8(0) === 9",
    ),
    (
        "(() => { const b = new Uint8Array([1, 2, 3]).buffer; return { b }; })()",
        "v => new Uint8Array(v.b)[2] === 3",
    ),
    (
        "(() => { let d = 0; for (let i = 0; i < 500; i++) d = { d }; return d; })()",
        "v => { let n = 0; while (typeof v === 'object') { v = v.d; n++; } return n === 500; }",
    ),
];

fn node(program: &str) -> String {
    let output = Command::new("node").arg("-e").arg(program).output().expect("this test needs node");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn from_hex(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
#[ignore = "needs node"]
fn what_node_writes_is_read() {
    for (expression, check) in VALUES {
        let hex =
            node(&format!("process.stdout.write(require('v8').serialize({expression}).toString('hex'))"));
        assert!(checked(&from_hex(&hex), check), "{expression}: {hex}");
    }
}

#[test]
#[ignore = "needs node"]
fn what_we_write_is_read_by_node() {
    for (expression, check) in VALUES {
        let hex: String = serialized(expression).iter().map(|byte| format!("{byte:02x}")).collect();
        let answer =
            node(&format!("console.log(({check})(require('v8').deserialize(Buffer.from('{hex}', 'hex'))))"));
        assert_eq!(answer, "true", "{expression}: {hex}");
    }
}
