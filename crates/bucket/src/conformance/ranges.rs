//! Ranged reads: exactly the bytes asked for, or a clear refusal.

use bytes::Bytes;
use futures::TryStreamExt;

use super::{Bench, pattern};
use crate::{ByteRange, ErrorKind, Version};

const LEN: usize = 1000;

/// Ranges of an object of [`LEN`] bytes and what they mean.
const RANGES: [(ByteRange, usize, usize); 9] = [
    (ByteRange::Span { offset: 0, len: 1 }, 0, 1),
    (ByteRange::Span { offset: 129, len: 71 }, 129, 200),
    (ByteRange::Span { offset: 990, len: 100 }, 990, LEN),
    (ByteRange::Span { offset: 0, len: 1000 }, 0, LEN),
    (ByteRange::From { offset: 0 }, 0, LEN),
    (ByteRange::From { offset: 999 }, 999, LEN),
    (ByteRange::Suffix { len: 1 }, 999, LEN),
    (ByteRange::Suffix { len: 57 }, 943, LEN),
    (ByteRange::Suffix { len: 5000 }, 0, LEN),
];

async fn object(bench: &Bench) -> (String, Bytes, Version) {
    let (key, body) = (bench.key("object"), pattern(7, LEN));
    let version = bench.bucket.put(&key, body.clone()).await.expect("put");
    (key, body, version)
}

pub(super) async fn ranges_are_exact(bench: Bench) {
    let (key, body, version) = object(&bench).await;
    for (range, start, end) in RANGES {
        let part = bench.bucket.get_range(&key, range).await.expect("get_range").expect("the object");
        assert!(part.body == body[start..end], "{range:?} returned {} other bytes", part.body.len());
        assert_eq!(part.version, version, "{range:?}");
    }
}

pub(super) async fn a_range_past_the_end_is_not_satisfiable(bench: Bench) {
    let (key, ..) = object(&bench).await;
    let past = [
        ByteRange::Span { offset: 1000, len: 1 },
        ByteRange::Span { offset: 5000, len: 10 },
        ByteRange::From { offset: 1000 },
    ];
    for range in past {
        let error = bench.bucket.get_range(&key, range).await.expect_err("a range past the end");
        assert_eq!(error.kind, ErrorKind::RangeNotSatisfiable, "{range:?}: {error}");
        let streamed = bench.bucket.get_stream(&key, Some(range)).await;
        let error = streamed.map(|_| ()).expect_err("a streamed range past the end");
        assert_eq!(error.kind, ErrorKind::RangeNotSatisfiable, "{range:?}: {error}");
    }
    let empty = bench.key("empty");
    bench.bucket.put(&empty, Bytes::new()).await.expect("put");
    for range in [ByteRange::From { offset: 0 }, ByteRange::Span { offset: 0, len: 1 }] {
        let error = bench.bucket.get_range(&empty, range).await.expect_err("a range of an empty object");
        assert_eq!(error.kind, ErrorKind::RangeNotSatisfiable, "{range:?}: {error}");
    }
}

pub(super) async fn streamed_ranges_are_exact(bench: Bench) {
    let (key, body, version) = object(&bench).await;
    for (range, start, end) in RANGES {
        let part = bench.bucket.get_stream(&key, Some(range)).await.expect("get_stream").expect("the object");
        assert_eq!(part.object_len, LEN as u64, "{range:?}");
        assert_eq!(part.version, version, "{range:?}");
        let pieces: Vec<Bytes> = part.stream.try_collect().await.expect("the stream");
        assert!(pieces.concat() == body[start..end], "{range:?} streamed other bytes");
    }
}
