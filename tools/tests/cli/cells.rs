//! `cell`: list, show, sql, export, delete, as one life of some cells.

use std::path::Path;

use bytes::Bytes;
use holdfast_bucket::{Bucket as _, LocalBucket};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::Dev;

fn rows(file: &Path) -> Vec<(i64, String)> {
    let connection = Connection::open(file).unwrap();
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let mut statement = connection.prepare("SELECT id, text FROM notes ORDER BY id").unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

#[test]
fn an_export_is_the_writers_database_and_replaces_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("dev"), &[]);
    dev.sql("db:notes", "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)");
    for number in 1..=20 {
        let text = format!("note {number}");
        let insert = ["cell", "sql", "db:notes", "INSERT INTO notes (text) VALUES (?)", "--arg", &text];
        let said = dev.run(&insert);
        assert_eq!(said.text(), format!("1 row written, last row id {number}\n"));
    }
    let file = dir.path().join("notes.db");
    let export = ["cell", "export", "db:notes", file.to_str().unwrap()];
    let exported = dev.run(&[&export[..], &["--json"]].concat()).json();
    assert_eq!(exported["integrity"], "ok");
    assert_eq!(exported["position"], json!({ "epoch": 1, "txid": 21 }));
    let expected: Vec<(i64, String)> = (1..=20).map(|number| (number, format!("note {number}"))).collect();
    assert_eq!(rows(&file), expected);
    // Nothing beside it, and the owner goes on in its epoch.
    let beside: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside.len(), 2, "{beside:?}");
    assert_eq!(dev.sql("db:notes", "DELETE FROM notes WHERE id > 1")["position"]["epoch"], 1);

    let refused = dev.run(&export);
    assert!(refused.failure().contains("exists") && refused.err.contains("--force"), "{refused:?}");
    assert_eq!(rows(&file), expected, "the file is as it was");
    dev.run(&[&export[..], &["--force"]].concat()).text();
    assert_eq!(rows(&file), expected[..1]);

    let absent = dev.run(&["cell", "export", "db:absent", dir.path().join("absent.db").to_str().unwrap()]);
    assert!(absent.failure().contains("there is no cell `db:absent`"), "{absent:?}");
    assert!(!dir.path().join("absent.db").exists());
}

#[test]
fn an_export_shows_the_cell_as_it_was_at_a_position_or_a_time() {
    let dir = tempfile::tempdir().unwrap();
    // Without followers each statement is an object of its own.
    let dev = Dev::start(&dir.path().join("dev"), &["--followers", "0"]);
    dev.sql("db:notes", "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)");
    let insert =
        |number: i64| dev.sql("db:notes", &format!("INSERT INTO notes (text) VALUES ('note {number}')"));
    for number in 1..=6 {
        insert(number);
    }
    let between = humantime::format_rfc3339_millis(std::time::SystemTime::now()).to_string();
    std::thread::sleep(std::time::Duration::from_millis(5));
    for number in 7..=9 {
        insert(number);
    }
    dev.sql("db:notes", "DELETE FROM notes");
    let file = dir.path().join("then.db");
    let export = |at: &str| {
        let command = ["cell", "export", "db:notes", file.to_str().unwrap(), "--force", "--json", "--at", at];
        dev.run(&command)
    };
    let expected: Vec<(i64, String)> = (1..=9).map(|number| (number, format!("note {number}"))).collect();
    for (at, txid, len) in
        [("1/10", 10, 9), (between.as_str(), 7, 6), ("1/2", 2, 1), ("2100-01-01T00:00:00Z", 11, 0)]
    {
        let exported = export(at).json();
        assert_eq!(exported["position"], json!({ "epoch": 1, "txid": txid }), "{at}");
        assert_eq!(rows(&file), expected[..len], "{at}");
    }
    for (at, why) in [
        ("1/12", "transaction 1/12 is not part of the cell's history"),
        ("7/1", "transaction 7/1 is not part of the cell's history"),
        ("2001-01-01T00:00:00Z", "the cell had no transaction yet"),
    ] {
        assert!(export(at).failure().contains(why), "{at}: {:?}", export(at));
    }
    let refused = export("yesterday").err;
    assert!(
        refused
            .contains("neither a time in UTC such as `2026-12-01T09:30:00Z` nor a position such as `3/41`"),
        "{refused}"
    );
    assert_eq!(rows(&file), [], "a refusal leaves the file as it was");
}

#[test]
fn cells_are_listed_in_pages_and_shown_with_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), &["--followers", "0"]);
    for name in ["a", "tenant-1", "tenant-2", "tenant/3 ü"] {
        dev.sql(&format!("db:{name}"), "CREATE TABLE t (v)");
    }
    let list = |more: &[&str]| dev.run(&[&["cell", "list", "--json"], more].concat()).json();
    let names = |listed: &Value| -> Vec<String> {
        let cells = listed["cells"].as_array().unwrap();
        cells.iter().map(|cell| cell["cell"].as_str().unwrap().to_owned()).collect()
    };
    let all = list(&[]);
    assert_eq!(names(&all), ["db:a", "db:tenant/3 ü", "db:tenant-1", "db:tenant-2"]);
    assert_eq!(all["next"], Value::Null);
    assert_eq!((&all["cells"][0]["state"], &all["cells"][0]["epoch"]), (&json!("owned"), &json!(1)));
    assert_eq!(names(&list(&["--prefix", "db:tenant-"])), ["db:tenant-1", "db:tenant-2"]);
    assert_eq!(names(&list(&["--prefix", "db:tenant/3 "])), ["db:tenant/3 ü"]);
    let first = list(&["--limit", "2"]);
    assert_eq!((names(&first).len(), &first["next"]), (2, &json!("db:tenant/3 ü")));
    assert_eq!(names(&list(&["--after", "db:tenant/3 ü"])), ["db:tenant-1", "db:tenant-2"]);

    dev.sql("db:a", "INSERT INTO t VALUES (1)");
    let shown = dev.run(&["cell", "show", "db:a", "--json"]).json();
    assert_eq!((&shown["position"]["epoch"], &shown["position"]["txid"]), (&json!(1), &json!(2)));
    assert_eq!(shown["epochs"][0]["reason"], "created");
    assert_eq!(shown["epochs"][0]["levels"][0]["files"], 2);
    assert_eq!(shown["owner"]["node"], "node-1");
    let text = dev.run(&["cell", "show", "db:a"]);
    assert!(text.text().contains("state     owned") && text.out.contains("0 transactions"), "{text:?}");
}

#[test]
fn sql_errors_and_a_missing_ingress_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), &[]);
    let wrong = dev.run(&["cell", "sql", "db:a", "SELECT * FROM absent"]);
    assert!(wrong.failure().contains("no such table: absent"), "{wrong:?}");
    let nowhere = dev.run(&["cell", "sql", "db:a", "SELECT 1", "--url", "http://127.0.0.1:1"]);
    assert!(nowhere.failure().contains("cannot be reached") && nowhere.err.contains("--url"), "{nowhere:?}");
    let class = dev.run(&["cell", "sql", "Room:a", "SELECT 1"]);
    assert!(class.failure().contains("class `db`"), "{class:?}");
    let select = dev.run(&["cell", "sql", "db:a", "SELECT 1 AS one, 'x' || char(27) AS text"]);
    assert_eq!(select.text(), "one  text\n  1  x\\u{1b}\n(1 row)\n");
}

#[tokio::test]
async fn a_deleted_cell_is_gone_whatever_a_late_uploader_does() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), &["--nodes", "2", "--followers", "0"]);
    dev.sql("db:a", "CREATE TABLE t (v); INSERT INTO t VALUES ('secret')");
    dev.sql("db:b", "CREATE TABLE t (v); INSERT INTO t VALUES ('kept')");
    let unsure = dev.run(&["cell", "delete", "db:a"]);
    assert!(unsure.failure().contains("--yes"), "{unsure:?}");
    assert_eq!(dev.sql("db:a", "SELECT v FROM t")["rows"], json!([["secret"]]));

    // What an upload of the old epoch, held back on its way, writes after the delete.
    let bucket = LocalBucket::open(dir.path().join("bucket")).await.unwrap();
    let base = "cells/db:a/ltx/e0000000000000001";
    let late: Vec<String> =
        ["opener.json", "0/0000000000000001-0000000000000001.ltx"].map(|end| format!("{base}/{end}")).into();
    let mut bodies: Vec<Bytes> = Vec::new();
    for key in &late {
        bodies.push(bucket.get(key).await.unwrap().unwrap().body);
    }

    let deleted = dev.run(&["cell", "delete", "db:a", "--yes", "--json"]).json();
    assert_eq!(deleted["epoch"], 2);
    assert_eq!(deleted["objects"], 2, "{deleted}");
    assert!(bucket.list("cells/db:a/ltx/", None, 10).await.unwrap().objects.is_empty());
    let names = dev.run(&["cell", "list"]);
    assert!(!names.text().contains("db:a") && names.out.contains("db:b"), "{names:?}");
    assert!(dev.run(&["cell", "list", "--all"]).text().contains("purged"));
    let export = dev.run(&["cell", "export", "db:a", dir.path().join("a.db").to_str().unwrap()]);
    assert!(export.failure().contains("was deleted"), "{export:?}");

    for (key, body) in late.iter().zip(bodies) {
        bucket.put(key, body).await.unwrap();
    }
    let read = dev.run(&["cell", "sql", "db:a", "SELECT v FROM t"]);
    assert!(read.failure().contains("no such table"), "the cell begins anew: {read:?}");
    let again = dev.run(&["cell", "delete", "db:a", "--yes"]);
    assert!(again.text().contains("Backups are unaffected"), "{again:?}");
    assert!(bucket.list("cells/db:a/ltx/", None, 10).await.unwrap().objects.is_empty());
    assert_eq!(dev.sql("db:b", "SELECT v FROM t")["rows"], json!([["kept"]]));

    let absent = dev.run(&["cell", "delete", "db:absent", "--yes"]);
    assert!(absent.failure().contains("there is no cell"), "{absent:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_is_deleted_under_clients_that_want_it() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), &[]);
    let create = "CREATE TABLE IF NOT EXISTS t (v); INSERT INTO t VALUES (1)";
    dev.sql("db:busy", create);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let (url, body) = (format!("{}/-/db/busy/query", dev.ready("url")), json!({ "sql": create }).to_string());
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let (client, url, body) = (client.clone(), url.clone(), body.clone());
            tokio::spawn(async move {
                loop {
                    let response = client.post(&url).body(body.clone()).send().await.unwrap();
                    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
                }
            })
        })
        .collect();
    let mut epochs = Vec::new();
    for _ in 0..3 {
        let deleted =
            tokio::task::block_in_place(|| dev.run(&["cell", "delete", "db:busy", "--yes", "--json"]).json());
        epochs.push(deleted["epoch"].as_u64().unwrap());
    }
    assert!(epochs.is_sorted() && epochs[0] >= 2, "{epochs:?}");
    for client in clients {
        assert!(!client.is_finished(), "no client was told a failure");
        client.abort();
    }
}

#[test]
fn a_restore_brings_the_past_back_and_can_be_undone() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), &["--followers", "0"]);
    dev.sql("db:notes", "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)");
    for number in 1..=5 {
        dev.sql("db:notes", &format!("INSERT INTO notes (text) VALUES ('note {number}')"));
    }
    dev.sql("db:notes", "DROP TABLE notes");
    let restore = |at: &str| dev.run(&["cell", "restore", "db:notes", "--yes", "--json", "--at", at]);
    let count = || dev.sql("db:notes", "SELECT count(*) FROM notes")["rows"].clone();
    let restored = restore("1/4").json();
    assert_eq!(restored["found"], json!({ "epoch": 1, "txid": 4 }));
    assert_eq!(restored["before"], json!({ "epoch": 1, "txid": 7 }));
    assert_eq!(restored["now"], json!({ "epoch": 2, "txid": 8 }));
    assert_eq!(count(), json!([[3]]));
    // It goes on from there, and what was undone is history as well.
    dev.sql("db:notes", "INSERT INTO notes (text) VALUES ('after')");
    assert_eq!(restore("1/6").json()["before"], json!({ "epoch": 2, "txid": 9 }));
    assert_eq!(count(), json!([[5]]));
    let said = dev.run(&["cell", "restore", "db:notes", "--yes", "--at", "2/9"]);
    assert_eq!(
        said.text(),
        "`db:notes` is again what it was at 2/9, by transaction 4/11.\n\
         To undo it: holdfast cell restore db:notes --at 3/10 --yes\n"
    );
    assert_eq!(dev.sql("db:notes", "SELECT text FROM notes")["rows"].as_array().unwrap().len(), 4);

    for (at, why) in
        [("3/99", "transaction 3/99 is not part of the cell's history"), ("2001-01-01", "neither a time")]
    {
        assert!(restore(at).err.contains(why), "{:?}", restore(at));
    }
    let unsure = dev.run(&["cell", "restore", "db:notes", "--at", "1/4"]);
    assert!(unsure.failure().contains("add --yes"), "{unsure:?}");
    let absent = dev.run(&["cell", "restore", "db:absent", "--yes", "--at", "1/4"]);
    assert!(absent.failure().contains("there is no cell `db:absent`"), "{absent:?}");
}
