//! Paths, methods, bodies.

use serde_json::{Value, json};

use super::cell;

#[test]
fn versions_are_answered() {
    let mut cell = cell();
    for path in ["/v2", "/v3", "/v2/", "/v3?x=1"] {
        assert_eq!(cell.reply("GET", path, b"").status, 200, "{path}");
        assert_eq!(cell.reply("HEAD", path, b"").status, 200, "{path}");
    }
    // A client that asks for Protobuf falls back to JSON on this.
    assert_eq!(cell.reply("GET", "/v3-protobuf", b"").status, 404);
}

#[test]
fn unknown_paths_and_wrong_methods_are_told_apart() {
    let mut cell = cell();
    for (method, path, status, allow) in [
        ("GET", "/v2/pipeline", 405, Some("POST")),
        ("PUT", "/query", 405, Some("POST")),
        ("GET", "/v3/cursor", 405, Some("POST")),
        ("POST", "/", 405, Some("GET, HEAD")),
        ("DELETE", "/v3", 405, Some("GET, HEAD")),
        ("GET", "/nothing", 404, None),
        ("POST", "/v1/pipeline", 404, None),
        ("GET", "/v1/batch", 405, Some("POST")),
        ("POST", "/../query", 404, None),
    ] {
        let reply = cell.reply(method, path, b"{}");
        assert_eq!((reply.status, reply.allow), (status, allow), "{method} {path}");
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        assert!(body["error"]["message"].as_str().unwrap().contains(path), "{body}");
        assert_eq!((&body["message"], &body["code"]), (&body["error"]["message"], &body["error"]["code"]));
    }
}

#[test]
fn a_malformed_body_is_refused_with_its_position() {
    let mut cell = cell();
    for (path, body, says) in [
        ("/query", "{\"sql\": }", "line 1 column 9"),
        ("/query", "", "line 1 column 0"),
        ("/query", "{\"sql\":\"SELECT 1\",\"params\":[]}", "unknown field `params`"),
        ("/query", "{\"args\":[]}", "missing field `sql`"),
        ("/query", "{\"sql\":\"SELECT ?\",\"args\":[[1]]}", "line 1"),
        ("/query", "[1", "line 1 column 2"),
        ("/query", "{\"sql\":\"\u{1}\"}", "control character"),
        ("/v2/pipeline", "{\"requests\":[{\"type\":\"jump\"}]}", "unknown variant `jump`"),
        ("/v3/pipeline", "{\"requests\":[{\"sql\":\"x\"}]}", "missing field `type`"),
        ("/v3/pipeline", "{", "line 1 column 1"),
        ("/v3/cursor", "{}", "missing field `batch`"),
    ] {
        let reply = cell.reply("POST", path, body.as_bytes());
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        assert_eq!(reply.status, 400, "{path} {body}: {text}");
        assert!(text.contains(says) && text.contains("MALFORMED_REQUEST"), "{path} {body}: {text}");
    }
    assert_eq!(cell.reply("POST", "/query", b"{\"sql\":\"\xff\"}").status, 400);
    let deep = format!(
        "{{\"requests\":[{{\"type\":\"batch\",\"batch\":{{\"steps\":[{{\"condition\":{}",
        "{\"type\":\"not\",\"cond\":".repeat(100_000)
    );
    assert_eq!(cell.reply("POST", "/v3/pipeline", deep.as_bytes()).status, 400);
    assert_eq!(cell.runtime.stream_count(), 0);
}

#[test]
fn a_cell_describes_itself() {
    let mut cell = cell();
    cell.query("CREATE TABLE t(a); CREATE TABLE u(b); CREATE INDEX i ON t(a)");
    let reply = cell.reply("GET", "/", b"");
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(
        body,
        json!({
            "class": "db", "name": "users", "position": { "epoch": 3, "txid": 1 },
            "size_bytes": 16384, "page_size": 4096, "tables": 2, "streams": 0
        })
    );
    assert_eq!(cell.reply("HEAD", "", b"").status, 200);
}
