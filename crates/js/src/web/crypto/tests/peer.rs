//! Node's Web Crypto as the peer: each side checks what the other has made, for every algorithm and format.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::testing::run;

const PEER: &str = include_str!("peer.js");
/// What [`PEER`] makes: signatures, ciphertexts, derivations, agreements.
const VECTORS: usize = 91;

/// Runs `body` after [`PEER`] in Node, with `input` as the global of that name.
fn node(body: &str, input: &str) -> String {
    let mut child = Command::new("node")
        .args(["--no-warnings", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node is installed");
    let input = serde_json::to_string(input).unwrap();
    let program = format!(
        "const input = {input};{PEER}\n(async () => {{ {body} }})().then((text) => process.stdout.write(text));"
    );
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "node failed");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs node"]
fn node_accepts_what_is_made_here() {
    let vectors = run(&format!("{PEER} return await makeAll();"));
    assert_eq!(node("return await checkAll(input);", &vectors), format!("{VECTORS} checked, failed: none"));
}

#[test]
#[ignore = "needs node"]
fn what_node_makes_is_accepted_here() {
    let vectors = serde_json::to_string(&node("return await makeAll();", "")).unwrap();
    let checked = run(&format!("{PEER} return await checkAll({vectors});"));
    assert_eq!(checked, format!("{VECTORS} checked, failed: none"));
}
