//! What only the embedded bucket promises.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::LocalBucket;
use crate::{Bucket, Commit, ErrorKind, Guard};

async fn bucket() -> (tempfile::TempDir, LocalBucket) {
    let folder = tempfile::tempdir().unwrap();
    let bucket = LocalBucket::open(folder.path()).await.unwrap();
    (folder, bucket)
}

#[tokio::test]
async fn two_openers_see_one_bucket() {
    let (folder, one) = bucket().await;
    let two = LocalBucket::open(folder.path()).await.unwrap();
    let first = one.put_if("a/b", Bytes::from_static(b"1"), Guard::Absent, 1000).await;
    assert!(first.is_applied(), "{first:?}");
    assert!(matches!(two.put_if("a/b", Bytes::new(), Guard::Absent, 1000).await, Commit::Rejected));
    assert_eq!(two.get("a/b").await.unwrap().unwrap().body, "1");
}

#[tokio::test]
async fn deleting_the_last_object_leaves_no_folder() {
    let (folder, bucket) = bucket().await;
    bucket.put("a/b/c/d", Bytes::from_static(b"x")).await.unwrap();
    bucket.put("a/e", Bytes::from_static(b"x")).await.unwrap();
    bucket.delete("a/b/c/d").await.unwrap();
    assert!(folder.path().join("objects/a%").is_dir());
    assert!(!folder.path().join("objects/a%/b%").exists());
    bucket.delete_many(&["a/e".to_owned()]).await.unwrap();
    assert_eq!(fs::read_dir(folder.path().join("objects")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_and_deleters_of_one_folder_do_not_fail_each_other() {
    let (folder, bucket) = bucket().await;
    // Two openers are to each other as two processes.
    let openers = [Arc::new(bucket), Arc::new(LocalBucket::open(folder.path()).await.unwrap())];
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let bucket = Arc::clone(&openers[task % 2]);
        tasks.spawn(async move {
            let key = format!("deep/er/{task}");
            for _ in 0..50 {
                bucket.put(&key, Bytes::from_static(b"x")).await.unwrap();
                assert!(bucket.get(&key).await.unwrap().is_some());
                bucket.delete(&key).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn only_dead_writers_leavings_are_cleared() {
    let (folder, _bucket) = bucket().await;
    let temporary = folder.path().join("temporary");
    let old = SystemTime::now() - Duration::from_secs(3600);
    let make = |name: &str, modified| {
        let file = fs::File::create(temporary.join(name)).unwrap();
        file.set_modified(modified).unwrap();
        file
    };
    drop(make("dead", old));
    drop(make("young", SystemTime::now()));
    let alive = make("alive", old);
    alive.lock().unwrap();
    LocalBucket::open(folder.path()).await.unwrap();
    assert!(!temporary.join("dead").exists());
    assert!(temporary.join("young").exists());
    assert!(temporary.join("alive").exists());
}

#[tokio::test]
async fn a_newer_format_is_refused_by_name() {
    let (folder, _bucket) = bucket().await;
    fs::write(folder.path().join("format"), "holdfast bucket 2\n").unwrap();
    let error = LocalBucket::open(folder.path()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.to_string().contains("holdfast bucket 2"), "{error}");
}

#[tokio::test]
async fn a_directory_that_is_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "x").unwrap();
    let error = LocalBucket::open(&path).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Local);
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn a_damaged_object_is_an_error_and_can_be_overwritten() {
    let (folder, bucket) = bucket().await;
    bucket.put("k", Bytes::from_static(b"hello")).await.unwrap();
    fs::write(folder.path().join("objects/k"), "torn").unwrap();
    assert_eq!(bucket.get("k").await.unwrap_err().kind, ErrorKind::BadBody);
    assert_eq!(bucket.head("k").await.unwrap_err().kind, ErrorKind::BadBody);
    assert!(matches!(bucket.put_if("k", Bytes::new(), Guard::Absent, 1000).await, Commit::Rejected));
    bucket.put("k", Bytes::from_static(b"again")).await.unwrap();
    assert_eq!(bucket.get("k").await.unwrap().unwrap().body, "again");
}

#[tokio::test]
async fn a_narrow_listing_reads_only_its_folder() {
    let (folder, bucket) = bucket().await;
    bucket.put("cells/x/ltx/e1/0/1.ltx", Bytes::from_static(b"x")).await.unwrap();
    // A file where a sibling folder would be fails any walk that enters it.
    fs::write(folder.path().join("objects/cells%/y%"), "not a folder").unwrap();
    let listing = bucket.list("cells/x/ltx/e1/0/", None, 10).await.unwrap();
    assert_eq!(listing.objects.len(), 1);
    assert_eq!(bucket.list("cells/", None, 10).await.unwrap_err().kind, ErrorKind::Local);
    let after = bucket.list("cells/", Some("cells/y0"), 10).await.unwrap();
    assert!(after.objects.is_empty());
}

#[tokio::test]
async fn a_deadline_that_has_passed_writes_nothing() {
    let (_folder, bucket) = bucket().await;
    let answer = bucket.put_if("k", Bytes::from_static(b"x"), Guard::Absent, 0).await;
    assert!(matches!(answer, Commit::Unknown(ref error) if error.kind == ErrorKind::NoAnswer), "{answer:?}");
}

#[tokio::test]
async fn the_url_opens_the_same_directory() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = LocalBucket::open(folder.path().join("a b%41")).await.unwrap();
    bucket.put("k", Bytes::from_static(b"x")).await.unwrap();
    let again = crate::open(&bucket.url(), &crate::OpenOptions::default()).await.unwrap();
    assert_eq!(again.get("k").await.unwrap().unwrap().body, "x");
    assert_eq!(again.url(), bucket.url());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

    /// The embedded listing against the plain map, page by page: folders, marks, long names and their order.
    #[test]
    fn listings_equal_those_of_a_plain_map(
        names in proptest::collection::vec("[ab./%A-]{1,6}|a{198,203}[b/-]{0,3}|ü{65,68}[b/-]{0,2}", 1..20),
        prefix in "[ab/]{0,2}|a{199,201}",
        after in proptest::option::of("[ab./-]{1,3}|a{198,203}"),
        limit in 1_usize..5,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_folder, local) = bucket().await;
            let memory = crate::MemoryBucket::new();
            for name in &names {
                local.put(name, Bytes::from_static(b"x")).await.unwrap();
                memory.put(name, Bytes::from_static(b"x")).await.unwrap();
            }
            let mut after = after;
            loop {
                let page = local.list(&prefix, after.as_deref(), limit).await.unwrap();
                assert_eq!(page, memory.list(&prefix, after.as_deref(), limit).await.unwrap());
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            local.delete_many(&names).await.unwrap();
            assert_eq!(fs::read_dir(local.directory().join("objects")).unwrap().count(), 0);
        });
    }
}
