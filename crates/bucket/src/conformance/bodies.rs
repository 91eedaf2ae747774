//! Whole objects: what was written is what is read, never half of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::TryStreamExt;

use super::{Bench, list_all, pattern, put_all};
use crate::ByteRange;

pub(super) async fn an_absent_key_is_none_everywhere(bench: Bench) {
    let (bucket, key) = (&bench.bucket, bench.key("absent"));
    assert!(bucket.get(&key).await.expect("get").is_none());
    assert!(bucket.head(&key).await.expect("head").is_none());
    let range = ByteRange::Span { offset: 0, len: 1 };
    assert!(bucket.get_range(&key, range).await.expect("get_range").is_none());
    assert!(bucket.get_stream(&key, None).await.expect("get_stream").is_none());
    assert!(bucket.get_stream(&key, Some(range)).await.expect("get_stream of a range").is_none());
    assert_eq!(bucket.list(&key, None, 10).await.expect("list").objects, []);
}

pub(super) async fn a_body_reads_back_with_its_version(bench: Bench) {
    let (bucket, key) = (&bench.bucket, bench.key("object"));
    for len in [1, 55, 56, 57, 4096, 300_000] {
        let body = pattern(len as u64, len);
        let version = bucket.put(&key, body.clone()).await.expect("put");
        let object = bucket.get(&key).await.expect("get").expect("the object");
        assert!(object.body == body, "the body of {len} bytes differs");
        assert_eq!(object.version, version);
        let head = bucket.head(&key).await.expect("head").expect("the object");
        assert_eq!((head.len, head.version), (len as u64, version));
        let page = bucket.list(&key, None, 10).await.expect("list");
        assert_eq!(page.objects.iter().map(|row| row.len).collect::<Vec<_>>(), [len as u64]);
    }
}

pub(super) async fn an_empty_object_is_an_object(bench: Bench) {
    let (bucket, key) = (&bench.bucket, bench.key("empty"));
    let version = bucket.put(&key, Bytes::new()).await.expect("put");
    let object = bucket.get(&key).await.expect("get").expect("the object");
    assert!(object.body.is_empty());
    assert_eq!(object.version, version);
    assert_eq!(bucket.head(&key).await.expect("head").expect("the object").len, 0);
    let streamed = bucket.get_stream(&key, None).await.expect("get_stream").expect("the object");
    let pieces: Vec<Bytes> = streamed.stream.try_collect().await.expect("the stream");
    assert_eq!(pieces.concat(), b"");
}

pub(super) async fn every_write_of_other_bytes_has_another_version(bench: Bench) {
    let (bucket, key) = (&bench.bucket, bench.key("object"));
    let mut versions = std::collections::HashSet::new();
    for seed in 0..20 {
        let version = bucket.put(&key, pattern(seed, 100)).await.expect("put");
        assert!(versions.insert(version), "write {seed} repeats a version of other bytes");
    }
}

pub(super) async fn delete_is_idempotent(bench: Bench) {
    let (bucket, key) = (&bench.bucket, bench.key("object"));
    bucket.put(&key, pattern(1, 10)).await.expect("put");
    for _ in 0..3 {
        bucket.delete(&key).await.expect("delete");
        assert!(bucket.get(&key).await.expect("get").is_none());
    }
    bucket.delete_many(std::slice::from_ref(&key)).await.expect("delete_many of an absent key");
    bucket.delete_many(&[]).await.expect("delete_many of nothing");
}

pub(super) async fn more_than_a_thousand_keys_are_deleted_at_once(bench: Bench) {
    let bucket = &bench.bucket;
    let keys: Vec<String> = (0..bench.scope.listed).map(|i| bench.key(&format!("x/{i:05}"))).collect();
    // Every other key exists.
    put_all(&bench, keys.iter().step_by(2).cloned().collect()).await;
    let kept = bench.key("y");
    bucket.put(&kept, Bytes::from_static(b"y")).await.expect("put");
    bucket.delete_many(&keys).await.expect("delete_many");
    assert_eq!(list_all(&bench, &bench.prefix, 1000).await, ["y"]);
}

pub(super) async fn readers_never_see_a_torn_body(bench: Bench) {
    let key = bench.key("torn");
    let is_over = Arc::new(AtomicBool::new(false));
    // Each body says its seed first, and its length follows from the seed.
    let body = |seed: u64| {
        let mut bytes = seed.to_le_bytes().to_vec();
        bytes.extend_from_slice(&pattern(seed, (seed % 37 * 1_003) as usize));
        Bytes::from(bytes)
    };
    bench.bucket.put(&key, body(0)).await.expect("put");
    let mut readers = tokio::task::JoinSet::new();
    for reader in 0..4 {
        let (bucket, key, is_over) = (Arc::clone(&bench.bucket), key.clone(), Arc::clone(&is_over));
        readers.spawn(async move {
            let mut reads = 0_u32;
            while reads < 20 || !is_over.load(Ordering::Relaxed) {
                let (bytes, version) = if reader % 2 == 0 {
                    let object = bucket.get(&key).await.expect("get").expect("the object");
                    (object.body, object.version)
                } else {
                    let object =
                        bucket.get_stream(&key, None).await.expect("get_stream").expect("the object");
                    let pieces: Vec<Bytes> = object.stream.try_collect().await.expect("the stream");
                    (Bytes::from(pieces.concat()), object.version)
                };
                let seed = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
                assert!(bytes == body(seed), "a torn body that begins with seed {seed}");
                let version_of_seed = (seed, version);
                reads += 1;
                tokio::task::yield_now().await;
                // The same bytes must always have the same version, whoever reads them.
                let again = bucket.get(&key).await.expect("get").expect("the object");
                if again.body == bytes {
                    assert_eq!(again.version, version_of_seed.1, "one content, two versions");
                } else {
                    assert_ne!(again.version, version_of_seed.1, "two contents, one version");
                }
            }
        });
    }
    for seed in 1..=100 {
        bench.bucket.put(&key, body(seed)).await.expect("put");
    }
    is_over.store(true, Ordering::Relaxed);
    while let Some(reader) = readers.join_next().await {
        if let Err(error) = reader {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
