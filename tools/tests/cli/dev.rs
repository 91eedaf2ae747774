//! `dev`: what it prints works, what it keeps is there again, and it ends as it says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Dev, said};

/// The URL and the body of a printed `curl` line.
fn parse_curl(line: &str) -> (String, String) {
    let rest = line.trim().strip_prefix("curl ").unwrap();
    let (url, rest) = rest.split_once(" -d '").unwrap();
    (url.to_owned(), rest.strip_suffix('\'').unwrap().to_owned())
}

#[tokio::test]
async fn the_printed_lines_create_a_table_insert_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Dev::command(dir.path(), "0").stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut lines = Vec::new();
    for line in out.lines() {
        lines.push(line.unwrap());
        if lines.last().unwrap().starts_with("Ctrl-C") {
            break;
        }
    }
    let printed = lines.join("\n");
    assert!(printed.contains("nothing here survives the machine"), "{printed}");
    let client = reqwest_client();
    let mut answers = Vec::new();
    for line in lines.iter().filter(|line| line.trim().starts_with("curl ")) {
        let (url, body) = parse_curl(line);
        let response = client.post(url).body(body).send().await.unwrap();
        assert_eq!(response.status(), 200, "{line}");
        answers.push(response.text().await.unwrap());
    }
    assert_eq!(answers.len(), 3, "{printed}");
    assert!(answers[2].contains(r#"[[1,"remember the milk"]]"#), "{answers:?}");
    let bucket = lines.iter().find_map(|line| line.trim().strip_prefix("export HOLDFAST_BUCKET=")).unwrap();
    let listed = said(crate::support::holdfast().args(["cell", "list", "--bucket", bucket]));
    assert!(listed.text().contains("db:demo"), "{listed:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn reqwest_client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

#[test]
fn a_restart_has_everything_and_waits_for_no_lease() {
    let dir = tempfile::tempdir().unwrap();
    // So long that a wait for a lease could not be missed.
    let more = ["--nodes", "3", "--lease-ttl", "5min"];
    let begun = Instant::now();
    let mut dev = Dev::start(dir.path(), &more);
    for number in 0..6 {
        dev.sql(&format!("db:{number}"), &format!("CREATE TABLE t (v); INSERT INTO t VALUES ({number})"));
    }
    for signal in [Signal::KILL, Signal::TERM, Signal::INT] {
        dev.signal(signal);
        let (status, err) = dev.ended();
        if signal == Signal::KILL {
            assert_eq!(status.code(), None);
        } else {
            assert_eq!(status.code(), Some(0), "{err}");
            // Nothing else is worth a word: nobody waits in vain for somebody who is gone.
            assert_eq!(err, "holdfast: draining; press Ctrl-C again to stop at once\n");
        }
        dev = Dev::start(dir.path(), &more);
        for number in 0..6 {
            let rows = &dev.sql(&format!("db:{number}"), "SELECT v FROM t")["rows"];
            assert_eq!(rows, &json!([[number]]), "after {signal:?}");
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
}

#[test]
fn a_port_and_a_directory_in_use_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let dir_unused = dir.path().join("unused");
    let failed = said(&mut Dev::command(&dir_unused, &port));
    assert!(failed.failure().contains(&format!("port {port} is in use")), "{failed:?}");
    assert!(failed.err.contains("--port"), "{failed:?}");
    assert!(!dir_unused.exists(), "nothing is made before the port is known to be free");

    let _dev = Dev::start(dir.path(), &[]);
    let failed = said(&mut Dev::command(dir.path(), "0"));
    assert!(failed.failure().contains("another `holdfast dev` uses"), "{failed:?}");
    assert!(failed.err.contains("--dir"), "{failed:?}");
}

#[test]
fn a_drained_node_leaves_and_its_cells_are_served_by_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut dev = Dev::start(dir.path(), &["--nodes", "2"]);
    for number in 0..8 {
        dev.sql(&format!("db:{number}"), "CREATE TABLE t (v); INSERT INTO t VALUES ('kept')");
    }
    let drained = dev.run(&["node", "drain", "node-1", "--wait", "--json"]).json();
    assert_eq!(drained, json!({ "node": "node-1", "state": "stopped", "left": 0 }));
    let line = dev.next_error_line();
    assert!(line.contains("`node-1` has drained and stopped"), "{line}");
    for number in 0..8 {
        assert_eq!(dev.sql(&format!("db:{number}"), "SELECT v FROM t")["rows"], json!([["kept"]]));
    }
    let nodes = dev.run(&["node", "list", "--json"]).json();
    let states: Vec<_> = nodes["nodes"].as_array().unwrap().iter().map(|node| &node["state"]).collect();
    assert_eq!(states, ["stopped", "live"]);
    let owners = dev.run(&["cell", "list", "--json"]).json();
    assert!(owners["cells"].as_array().unwrap().iter().all(|cell| cell["node"] == "node-2"), "{owners}");
    let again = dev.run(&["node", "drain", "node-1"]);
    assert!(again.failure().contains("does not run"), "{again:?}");
}

#[test]
fn a_second_interrupt_ends_it_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut dev = Dev::start(dir.path(), &[]);
    dev.sql("db:a", "CREATE TABLE t (v)");
    // A request whose body never comes keeps the ingress draining; `100 Continue` tells that it is in flight.
    let mut stream = TcpStream::connect(dev.ready("public")).unwrap();
    let head =
        "POST /-/db/a/query HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100");
    dev.signal(Signal::INT);
    let line = dev.next_error_line();
    assert!(line.contains("draining"), "{line}");
    dev.signal(Signal::INT);
    let (status, err) = dev.ended();
    assert_eq!(status.code(), Some(130), "{err}");
}

#[test]
fn a_page_that_is_left_open_does_not_keep_it() {
    let dir = tempfile::tempdir().unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/sse-feed");
    let dev = Dev::start(dir.path(), &[example]);
    let mut stream = TcpStream::connect(dev.ready("public")).unwrap();
    stream.write_all(b"GET /feeds/a HTTP/1.1\r\nhost: h\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains(": welcome") {
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&bytes[..count]);
    }
    let begun = Instant::now();
    dev.signal(Signal::TERM);
    let (status, err) = dev.ended();
    assert_eq!(status.code(), Some(0), "{err}");
    // Far below the thirty seconds that an ingress of a fleet gives what is in flight.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
