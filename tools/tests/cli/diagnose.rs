//! `diagnose`: says that a good fleet is good, and names what is wrong with a bad one.

use bytes::Bytes;
use holdfast_bucket::{Bucket as _, LocalBucket};
use holdfast_records::{NodeLease, Record as _};
use holdfast_types::{Millis, NodeName, SessionId};
use serde_json::{Value, json};

use crate::support::{Dev, holdfast, said};

fn statuses<'a>(diagnosis: &'a Value, check: &str) -> Vec<&'a str> {
    let checks = diagnosis["checks"].as_array().unwrap().iter();
    let named = checks.filter(|found| found["check"].as_str().unwrap().contains(check));
    named.map(|found| found["status"].as_str().unwrap()).collect()
}

#[test]
fn a_good_fleet_is_good_in_every_part() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), &["--nodes", "2"]);
    let good = dev.run(&["diagnose", "--json"]).json();
    assert_eq!(good["ok"], json!(true), "{good}");
    assert_eq!(statuses(&good, "conditional write"), ["ok"; 5]);
    assert_eq!(statuses(&good, "ranged read"), ["ok"; 2]);
    assert_eq!(statuses(&good, "fleet identity"), ["ok"]);
    assert_eq!(statuses(&good, "call"), ["ok"; 2]);
    assert_eq!(statuses(&good, "alarm index"), ["ok"]);
    assert_eq!(statuses(&good, "waker `waker`"), ["ok"]);
    assert_eq!(good["nodes"].as_array().unwrap().len(), 2);
    let read_only = dev.run(&["diagnose", "--read-only"]);
    assert!(read_only.text().contains("not checked with --read-only"), "{read_only:?}");
    assert!(!read_only.out.contains("reject-create"), "{read_only:?}");
}

#[tokio::test]
async fn faults_are_named_and_told_by_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), &[]);
    let bucket = LocalBucket::open(dir.path().join("bucket")).await.unwrap();
    bucket.put("nodes/broken.json", Bytes::from_static(b"{")).await.unwrap();
    let lease = bucket.get("nodes/node-1.json").await.unwrap().unwrap();
    let mut gone = NodeLease::decode(&lease.body).unwrap();
    gone.node = NodeName::parse("gone").unwrap();
    gone.session = SessionId::from_bits(7);
    gone.expires_ms = Millis::new(u64::MAX / 2);
    bucket.put("nodes/gone.json", gone.encode().into()).await.unwrap();

    let wrong = dev.run(&["diagnose"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.err.contains("node `broken` lease: node lease record is malformed"), "{wrong:?}");
    // Something else answers at its address, and is not the session that it must be.
    assert!(wrong.err.contains("node `gone` call"), "{wrong:?}");
    assert!(!wrong.err.contains("node-1"), "{wrong:?}");
    assert!(wrong.out.contains("ok     node `node-1` call"), "{wrong:?}");
    let listed = dev.run(&["node", "list"]);
    assert!(listed.text().contains("unreadable"), "{listed:?}");
}

#[test]
fn a_bucket_that_is_not_there_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent");
    let url = format!("file://{}", absent.display());
    for command in
        [&["diagnose"][..], &["cell", "list"], &["node", "list"], &["token", "create", "--cell", "db:*"]]
    {
        let failed = said(holdfast().args(command).args(["--bucket", &url]));
        assert!(failed.failure().contains("there is no bucket at"), "{failed:?}");
    }
    assert!(!absent.exists());
    let wrong = said(holdfast().args(["diagnose", "--bucket", "ftp://x"]));
    assert!(wrong.failure().contains("`ftp` is unknown"), "{wrong:?}");
}
