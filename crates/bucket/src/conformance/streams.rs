//! Large objects in pieces.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};

use super::{Bench, list_all, pattern};
use crate::{BucketError, ByteRange, ByteStream, ErrorKind};

/// Pieces of uneven length, so that they straddle every buffer.
const PIECE_LEN: usize = 77_777;

fn pieces(body: &Bytes) -> ByteStream {
    let pieces: Vec<_> = (0..body.len())
        .step_by(PIECE_LEN)
        .map(|start| Ok(body.slice(start..body.len().min(start + PIECE_LEN))))
        .collect();
    futures::stream::iter(pieces).boxed()
}

pub(super) async fn a_large_body_streams_in_and_out(bench: Bench) {
    let bucket = &bench.bucket;
    // Around the sizes of buffers and parts as well.
    for len in [0, 1, PIECE_LEN, 1024 * 1024, bench.scope.streamed_len] {
        let (key, body) = (bench.key(&format!("stream-{len}")), pattern(len as u64, len));
        let version = bucket.put_stream(&key, pieces(&body)).await.expect("put_stream");
        let head = bucket.head(&key).await.expect("head").expect("the object");
        assert_eq!((head.len, &head.version), (len as u64, &version));
        let read = bucket.get_stream(&key, None).await.expect("get_stream").expect("the object");
        assert_eq!((read.object_len, &read.version), (len as u64, &version));
        let mut at = 0;
        let mut stream = read.stream;
        while let Some(piece) = stream.try_next().await.expect("the stream") {
            let end = at + piece.len();
            assert!(end <= len && piece == body[at..end], "{len} bytes: the piece at {at} differs");
            at = end;
        }
        assert_eq!(at, len, "the stream ended early");
    }
    let len = bench.scope.streamed_len;
    let (key, body) = (bench.key(&format!("stream-{len}")), pattern(len as u64, len));
    let tail = bucket.get_range(&key, ByteRange::Suffix { len: 100 }).await.expect("get_range");
    assert!(tail.expect("the object").body == body[len - 100..], "the end of the streamed object differs");
}

pub(super) async fn a_body_that_fails_writes_nothing(bench: Bench) {
    let key = bench.key("broken");
    // Long enough that parts were sent before it breaks.
    let good = pattern(3, bench.scope.streamed_len);
    let broken = BucketError::new("test", &key, ErrorKind::BadBody, "the source broke");
    let body = pieces(&good).chain(futures::stream::iter([Err(broken)])).boxed();
    let error = bench.bucket.put_stream(&key, body).await.expect_err("the body failed");
    assert_eq!(error.kind, ErrorKind::BadBody);
    assert!(bench.bucket.get(&key).await.expect("get").is_none());
    assert!(list_all(&bench, &bench.prefix, 10).await.is_empty());
}

pub(super) async fn a_stream_is_a_snapshot(bench: Bench) {
    let (bucket, key) = (&bench.bucket, bench.key("object"));
    let (old, new) = (pattern(1, 2 * 1024 * 1024), pattern(2, 3 * 1024 * 1024));
    let version = bucket.put(&key, old.clone()).await.expect("put");
    let read = bucket.get_stream(&key, None).await.expect("get_stream").expect("the object");
    let mut stream = read.stream;
    let first = stream.try_next().await.expect("the stream").expect("a first piece");
    bucket.put(&key, new.clone()).await.expect("put");
    // The rest is the old object's, or the stream breaks: never a mixture that ends well.
    let rest: Result<Vec<Bytes>, _> = stream.try_collect().await;
    if let Ok(rest) = rest {
        let whole = [first.as_ref(), &rest.concat()].concat();
        assert!(whole == old, "a stream of two objects");
        assert_eq!(read.version, version);
    }
    assert!(bucket.get(&key).await.expect("get").expect("the object").body == new);
}
