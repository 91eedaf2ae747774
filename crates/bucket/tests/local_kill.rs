//! SIGKILL amid the writes of several processes on one directory: no acknowledged write is lost, no object is torn, no
//! lock and nothing half-written stays behind.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use bytes::Bytes;
use holdfast_bucket::{Bucket, Commit, Guard, LocalBucket};

const FOLDER_VARIABLE: &str = "HOLDFAST_TEST_KILL_FOLDER";
const SLOT_VARIABLE: &str = "HOLDFAST_TEST_KILL_SLOT";

const COUNTERS: u64 = 3;
const SLOTS: u64 = 4;
const LIVES: u64 = 10;

/// A body that proves itself: its seed first, then bytes and a length that follow from it.
fn blob(seed: u64) -> Bytes {
    let len = (seed * 7919 % 200_000) as usize;
    let mut bytes = seed.to_le_bytes().to_vec();
    bytes.extend((0..len as u64).map(|i| (seed.wrapping_mul(31).wrapping_add(i * i) % 251) as u8));
    Bytes::from(bytes)
}

fn count(body: &[u8]) -> u64 {
    std::str::from_utf8(body).unwrap().split(' ').next().unwrap().parse().unwrap()
}

/// The child: counts up shared counters and overwrites a blob until it is killed.
#[tokio::test]
#[ignore = "the kill test runs it as its child process"]
async fn writer() {
    let folder = std::env::var(FOLDER_VARIABLE).unwrap();
    let slot = std::env::var(SLOT_VARIABLE).unwrap();
    let bucket = LocalBucket::open(folder).await.unwrap();
    for number in 0_u64.. {
        let key = format!("counters/{}", number % COUNTERS);
        loop {
            let current = bucket.get(&key).await.unwrap().unwrap();
            let body = format!("{} {slot} {number}", count(&current.body) + 1);
            match bucket.put_if(&key, body.into(), Guard::Match(current.version), 10_000).await {
                Commit::Applied(_) => break,
                Commit::Rejected => {}
                Commit::Unknown(error) => panic!("{error}"),
            }
        }
        println!("acknowledged {key}");
        bucket.put(&format!("blobs/{slot}/x"), blob(number)).await.unwrap();
        bucket.delete(&format!("blobs/{slot}/x")).await.unwrap();
        bucket.put(&format!("blobs/{slot}"), blob(number)).await.unwrap();
    }
}

fn spawn(folder: &Path, slot: u64) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--ignored", "--nocapture"])
        .env(FOLDER_VARIABLE, folder)
        .env(SLOT_VARIABLE, slot.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

/// Lives of one slot: each is killed at some acknowledgement. Answers all acknowledgements by counter.
fn run_slot(folder: &Path, slot: u64) -> BTreeMap<String, u64> {
    let mut acknowledged = BTreeMap::new();
    for life in 0..LIVES {
        let (mut child, mut lines) = spawn(folder, slot);
        let kill_after = 3 + (slot * 13 + life * 7) % 29;
        let mut seen = 0;
        let mut take = |line: std::io::Result<String>| {
            if let Some(key) = line.unwrap().strip_prefix("acknowledged ") {
                *acknowledged.entry(key.to_owned()).or_default() += 1;
                return 1;
            }
            0
        };
        while seen < kill_after {
            seen += take(lines.next().expect("the writer ended by itself"));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(|line| {
            take(line);
        });
    }
    acknowledged
}

#[tokio::test]
async fn a_kill_at_any_point_loses_nothing_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = LocalBucket::open(folder.path()).await.unwrap();
    for counter in 0..COUNTERS {
        bucket.put(&format!("counters/{counter}"), Bytes::from_static(b"0 - 0")).await.unwrap();
    }
    let slots: Vec<_> = (0..SLOTS)
        .map(|slot| {
            let folder = folder.path().to_owned();
            std::thread::spawn(move || run_slot(&folder, slot))
        })
        .collect();
    let mut acknowledged = BTreeMap::<String, u64>::new();
    for slot in slots {
        for (key, count) in slot.join().unwrap() {
            *acknowledged.entry(key).or_default() += count;
        }
    }

    let bucket = LocalBucket::open(folder.path()).await.unwrap();
    assert_eq!(acknowledged.len() as u64, COUNTERS);
    for (key, acknowledged) in &acknowledged {
        let object = bucket.get(key).await.unwrap().unwrap();
        let counted = count(&object.body);
        // Each life may have had one write that landed unacknowledged.
        assert!(
            (*acknowledged..=*acknowledged + SLOTS * LIVES).contains(&counted),
            "`{key}`: {acknowledged} acknowledged, {counted} counted"
        );
        // The locks of the dead are free.
        let answer = bucket.put_if(key, "0 - 1".into(), Guard::Match(object.version), 1_000).await;
        assert!(answer.is_applied(), "{answer:?}");
    }
    let listing = bucket.list("", None, 1000).await.unwrap();
    let mut blobs = 0;
    for row in listing.objects.iter().filter(|row| row.key.starts_with("blobs/")) {
        let body = bucket.get(&row.key).await.unwrap().unwrap().body;
        let seed = u64::from_le_bytes(body[..8].try_into().unwrap());
        assert!(body == blob(seed) && body.len() as u64 == row.len, "`{}` is torn", row.key);
        blobs += 1;
    }
    assert!(blobs >= SLOTS);
    let known = |key: &str| key.starts_with("counters/") || key.starts_with("blobs/");
    assert!(listing.objects.iter().all(|row| known(&row.key)), "{listing:?}");
}
