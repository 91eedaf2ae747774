//! What the S3 store makes of every kind of answer, against a scripted server: only a clean "condition not met" is a
//! rejection, only a 2xx that makes sense is a success, and nothing is sent that older stores refuse.

#![allow(clippy::unwrap_used)]

mod script;

use bytes::Bytes;
use futures::TryStreamExt;
use holdfast_bucket::{Bucket, ByteRange, Commit, ErrorKind, Guard, Version};
use script::{Answer, Request, Script};

const DEADLINE_MS: u64 = 20_000;

fn body() -> Bytes {
    Bytes::from_static(b"{\"write_id\":1}")
}

fn written() -> Answer {
    Answer::http(200, &[("etag", "\"e2\"")], "")
}

async fn put_if(guard: Guard, answers: Vec<Answer>) -> (Commit, Vec<Request>) {
    let script = Script::start(answers).await;
    let commit = script.bucket().await.put_if("own.json", body(), guard, DEADLINE_MS).await;
    (commit, script.seen())
}

fn matching() -> Guard {
    Guard::Match(Version::new("\"e1\""))
}

#[tokio::test]
async fn only_a_clean_condition_not_met_is_a_rejection() {
    for (guard, answer) in [
        (Guard::Absent, Answer::error(412, "PreconditionFailed")),
        (Guard::Absent, Answer::bare(412)),
        (Guard::Absent, Answer::bare(304)),
        (matching(), Answer::error(412, "PreconditionFailed")),
        (matching(), Answer::bare(304)),
        (matching(), Answer::error(404, "NoSuchKey")),
    ] {
        let (commit, seen) = put_if(guard.clone(), vec![answer]).await;
        assert!(matches!(commit, Commit::Rejected), "{guard:?} {commit:?}");
        assert_eq!(seen.len(), 1);
    }
}

#[tokio::test]
async fn whatever_else_is_unknown_and_sent_once() {
    let garbage = Answer::Bytes(b"this is not HTTP at all\r\n\r\n".to_vec());
    let half_head = Answer::Bytes(b"HTTP/1.1 200 OK\r\ncontent-len".to_vec());
    for (name, guard, answer, kind) in [
        ("500", Guard::Absent, Answer::error(500, "InternalError"), ErrorKind::Unavailable),
        ("bare 500", matching(), Answer::bare(500), ErrorKind::Unavailable),
        ("502", matching(), Answer::http(502, &[], "<html>bad gateway</html>"), ErrorKind::Unavailable),
        ("504", matching(), Answer::bare(504), ErrorKind::Unavailable),
        ("cut", matching(), Answer::Cut, ErrorKind::NoAnswer),
        ("half a head", matching(), half_head, ErrorKind::NoAnswer),
        ("garbage", matching(), garbage, ErrorKind::NoAnswer),
        ("200 without an etag", matching(), Answer::bare(200), ErrorKind::BadBody),
        ("301", matching(), Answer::error(301, "PermanentRedirect"), ErrorKind::Invalid),
        ("400", matching(), Answer::error(400, "InvalidRequest"), ErrorKind::Invalid),
        ("403", matching(), Answer::error(403, "AccessDenied"), ErrorKind::Denied),
        ("clock", matching(), Answer::error(403, "RequestTimeTooSkewed"), ErrorKind::ClockSkew),
        ("404 on create", Guard::Absent, Answer::error(404, "NoSuchKey"), ErrorKind::Invalid),
        ("404 of the bucket", matching(), Answer::error(404, "NoSuchBucket"), ErrorKind::Invalid),
        ("404 of a proxy", matching(), Answer::http(404, &[], "<html>"), ErrorKind::Unavailable),
        ("501", matching(), Answer::error(501, "NotImplemented"), ErrorKind::Unsupported),
    ] {
        let (commit, seen) = put_if(guard, vec![answer]).await;
        let Commit::Unknown(error) = commit else { panic!("{name}: {commit:?}") };
        assert_eq!(error.kind, kind, "{name}: {error}");
        assert_eq!(seen.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn conflicts_and_throttling_are_made_again() {
    let conflict = || Answer::error(409, "ConditionalRequestConflict");
    let (commit, seen) = put_if(Guard::Absent, vec![conflict(), conflict(), conflict(), written()]).await;
    assert!(matches!(&commit, Commit::Applied(version) if version.as_str() == "\"e2\""), "{commit:?}");
    assert_eq!(seen.len(), 4);

    let throttled = Answer::error(429, "TooManyRequests");
    let aborted = Answer::error(409, "OperationAborted");
    let lost = Answer::error(412, "PreconditionFailed");
    let (commit, seen) = put_if(matching(), vec![throttled, aborted, lost]).await;
    assert!(matches!(commit, Commit::Rejected), "{commit:?}");
    assert_eq!(seen.len(), 3);
}

#[tokio::test]
async fn a_rejection_after_a_doubtful_answer_is_unknown() {
    let busy = || Answer::error(503, "SlowDown");
    let (commit, _) = put_if(matching(), vec![busy(), Answer::bare(412)]).await;
    assert!(matches!(commit, Commit::Unknown(_)), "{commit:?}");
    let (commit, _) = put_if(matching(), vec![busy(), written()]).await;
    assert!(matches!(commit, Commit::Applied(_)), "{commit:?}");
}

#[tokio::test]
async fn conflicts_to_the_end_are_unknown_within_the_deadline() {
    let script = Script::start([Answer::error(409, "ConditionalRequestConflict")]).await;
    let begin = std::time::Instant::now();
    let commit = script.bucket().await.put_if("k", body(), Guard::Absent, 600).await;
    assert!(matches!(&commit, Commit::Unknown(e) if e.kind == ErrorKind::Unavailable), "{commit:?}");
    assert!(script.seen().len() > 1);
    assert!(begin.elapsed().as_millis() < 5_000);
}

#[tokio::test]
async fn conditions_go_out_byte_for_byte() {
    for etag in ["\"e1\"", "unquoted", "W/\"weak\"", "\"with-2\""] {
        let (_, seen) = put_if(Guard::Match(Version::new(etag)), vec![written()]).await;
        assert_eq!(seen[0].header("if-match"), Some(etag));
        assert_eq!(seen[0].header("if-none-match"), None);
    }
    let (_, seen) = put_if(Guard::Absent, vec![written()]).await;
    assert_eq!(seen[0].header("if-none-match"), Some("*"));
    assert_eq!(seen[0].body, body());
    assert!(seen[0].line.starts_with("PUT /bucket/prefix/own.json"), "{}", seen[0].line);
}

/// No checksum trailers, no chunked signing, no checksum headers: older stores answer 400 to them.
fn assert_plain(request: &Request) {
    for (name, value) in &request.headers {
        let is_checksum = name == "x-amz-trailer"
            || name == "x-amz-sdk-checksum-algorithm"
            || name.starts_with("x-amz-checksum-")
            || name == "x-amz-decoded-content-length";
        assert!(!is_checksum, "{} sends {name}: {value}", request.line);
        assert!(!value.contains("aws-chunked") && !value.contains("STREAMING-"), "{name}: {value}");
    }
    assert!(request.header("authorization").is_some_and(|value| value.contains("eu-west-1/s3")));
}

#[tokio::test]
async fn nothing_is_sent_that_older_stores_refuse() {
    let script = Script::start([written()]).await;
    let bucket = script.bucket().await;
    bucket.put("k", body()).await.unwrap();
    bucket.put_if("k", body(), Guard::Absent, DEADLINE_MS).await;
    let _ = bucket.get("k").await;
    let _ = bucket.head("k").await;
    let _ = bucket.list("", None, 10).await;
    let _ = bucket.delete("k").await;
    let _ = bucket.delete_many(&["k".to_owned()]).await;
    let seen = script.seen();
    assert!(seen.len() >= 7);
    seen.iter().for_each(assert_plain);
    let batch = seen.iter().find(|request| request.line.starts_with("POST")).unwrap();
    assert!(batch.header("content-md5").is_some(), "{batch:?}");

    // A large body goes out in parts, each of them plain.
    let begun = "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>";
    let done = "<CompleteMultipartUploadResult><ETag>&quot;e-2&quot;</ETag></CompleteMultipartUploadResult>";
    let answers = [Answer::http(200, &[], begun), written(), written(), Answer::http(200, &[], done)];
    let script = Script::start(answers).await;
    let pieces = (0..9).map(|_| Ok(Bytes::from(vec![7; 1024 * 1024])));
    let version =
        script.bucket().await.put_stream("big", Box::pin(futures::stream::iter(pieces))).await.unwrap();
    assert_eq!(version.as_str(), "\"e-2\"");
    let seen = script.seen();
    assert_eq!(seen.len(), 4);
    seen.iter().for_each(assert_plain);
    let lengths: Vec<usize> =
        seen.iter().filter(|request| request.line.starts_with("PUT")).map(|r| r.body.len()).collect();
    assert_eq!(lengths.iter().sum::<usize>(), 9 * 1024 * 1024);
    assert_eq!(lengths.iter().max(), Some(&(8 * 1024 * 1024)));
}

#[tokio::test]
async fn a_failed_upload_is_aborted() {
    let begun = "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>";
    let answers = [Answer::http(200, &[], begun), Answer::error(403, "AccessDenied")];
    let script = Script::start(answers).await;
    let pieces = (0..20).map(|_| Ok(Bytes::from(vec![7; 1024 * 1024])));
    let answer = script.bucket().await.put_stream("big", Box::pin(futures::stream::iter(pieces))).await;
    assert_eq!(answer.unwrap_err().kind, ErrorKind::Denied);
    let last = script.seen().pop().unwrap();
    assert!(
        last.line.starts_with("DELETE /bucket/prefix/big?") && last.line.contains("uploadId=u1"),
        "{}",
        last.line
    );
}

#[tokio::test]
async fn an_upload_that_is_given_up_is_aborted() {
    let begun = "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>";
    let answers = [Answer::http(200, &[], begun), Answer::Hold, Answer::Hold, Answer::bare(204)];
    let script = Script::start(answers).await;
    let bucket = script.bucket().await;
    let pieces = (0..20).map(|_| Ok(Bytes::from(vec![7; 1024 * 1024])));
    tokio::select! {
        answer = bucket.put_stream("big", Box::pin(futures::stream::iter(pieces))) => panic!("{answer:?}"),
        () = script.until("PUT") => {}
    }
    script.until("DELETE /bucket/prefix/big?").await;
}

#[tokio::test]
async fn silence_is_unknown_at_the_deadline_and_sent_once() {
    let script = Script::start([Answer::Hold]).await;
    let commit = script.bucket().await.put_if("own.json", body(), matching(), 300).await;
    assert!(matches!(&commit, Commit::Unknown(e) if e.kind == ErrorKind::NoAnswer), "{commit:?}");
    assert_eq!(script.seen().len(), 1);
}

#[tokio::test]
async fn a_200_that_hides_an_error_completes_nothing() {
    let begun = "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>";
    let hidden = "<?xml version=\"1.0\"?><Error><Code>InternalError</Code><Message>m</Message></Error>";
    let answers = [Answer::http(200, &[], begun), written(), written(), Answer::http(200, &[], hidden)];
    let script = Script::start(answers).await;
    let pieces = (0..9).map(|_| Ok(Bytes::from(vec![7; 1024 * 1024])));
    let answer = script.bucket().await.put_stream("big", Box::pin(futures::stream::iter(pieces))).await;
    assert!(answer.is_err(), "{answer:?}");
}

#[tokio::test]
async fn absence_needs_the_stores_own_word() {
    let get = |answer| async move { Script::start([answer]).await.bucket().await.get("k").await };
    assert!(get(Answer::error(404, "NoSuchKey")).await.unwrap().is_none());
    assert_eq!(get(Answer::error(404, "NoSuchBucket")).await.unwrap_err().kind, ErrorKind::Invalid);
    assert!(get(Answer::http(404, &[], "<html>not found</html>")).await.is_err());
    assert!(get(Answer::bare(404)).await.is_err());
}

#[tokio::test]
async fn reads_are_made_again_while_the_failure_may_heal() {
    let whole = || Answer::http(200, &[("etag", "\"e\"")], "12345");
    let short = || Answer::http(200, &[("etag", "\"e\""), ("content-length", "5")], "123");
    let script = Script::start([Answer::error(503, "SlowDown"), Answer::Cut, short(), whole()]).await;
    let object = script.bucket().await.get("k").await.unwrap().unwrap();
    assert_eq!((&object.body[..], object.version.as_str()), (&b"12345"[..], "\"e\""));
    assert_eq!(script.seen().len(), 4);

    let script = Script::start([short()]).await;
    assert_eq!(script.bucket().await.get("k").await.unwrap_err().kind, ErrorKind::BadBody);
    for (answer, kind) in [
        (Answer::error(403, "RequestTimeTooSkewed"), ErrorKind::ClockSkew),
        (Answer::error(403, "AccessDenied"), ErrorKind::Denied),
        (Answer::http(403, &[("date", "Sun, 06 Nov 1994 08:49:37 GMT")], ""), ErrorKind::ClockSkew),
    ] {
        let script = Script::start([answer]).await;
        assert_eq!(script.bucket().await.get("k").await.unwrap_err().kind, kind);
        assert_eq!(script.seen().len(), 1, "{kind:?} is not made again");
    }
}

#[tokio::test]
async fn a_stream_goes_on_where_it_broke_with_the_same_version() {
    let half = Answer::http(200, &[("etag", "\"e\""), ("content-length", "10")], "01234");
    let rest =
        |range: &str, body: &str| Answer::http(206, &[("etag", "\"e\""), ("content-range", range)], body);
    let script = Script::start([half.clone(), rest("bytes 5-9/10", "56789")]).await;
    let found = script.bucket().await.get_stream("k", None).await.unwrap().unwrap();
    let pieces: Vec<Bytes> = found.stream.try_collect().await.unwrap();
    assert_eq!(pieces.concat(), b"0123456789");
    let again = script.seen().pop().unwrap();
    assert_eq!((again.header("range"), again.header("if-match")), (Some("bytes=5-9"), Some("\"e\"")));

    // Overwritten meanwhile: the stream must not go on with other bytes.
    let script = Script::start([half, Answer::error(412, "PreconditionFailed")]).await;
    let found = script.bucket().await.get_stream("k", None).await.unwrap().unwrap();
    let broken: Result<Vec<Bytes>, _> = found.stream.try_collect().await;
    assert_eq!(broken.unwrap_err().kind, ErrorKind::BadBody);
}

#[tokio::test]
async fn an_ignored_or_wrong_range_is_noticed() {
    let get = |answer| async move {
        let range = ByteRange::Span { offset: 2, len: 3 };
        Script::start([answer]).await.bucket().await.get_range("k", range).await
    };
    let ignored = Answer::http(200, &[("etag", "\"e\"")], "0123456789");
    assert_eq!(get(ignored).await.unwrap_err().kind, ErrorKind::Unsupported);
    let wrong = Answer::http(206, &[("etag", "\"e\""), ("content-range", "bytes 0-2/10")], "012");
    assert_eq!(get(wrong).await.unwrap_err().kind, ErrorKind::BadBody);
    let right = Answer::http(206, &[("etag", "\"e\""), ("content-range", "bytes 2-4/10")], "234");
    assert_eq!(&get(right).await.unwrap().unwrap().body[..], b"234");
    assert_eq!(
        get(Answer::error(416, "InvalidRange")).await.unwrap_err().kind,
        ErrorKind::RangeNotSatisfiable
    );
}

#[tokio::test]
async fn a_batch_delete_accounts_for_every_key() {
    let keys = ["a".to_owned(), "b".to_owned()];
    let delete = |answers: Vec<Answer>| {
        let keys = keys.clone();
        async move {
            let script = Script::start(answers).await;
            let answer = script.bucket().await.delete_many(&keys).await;
            (answer.map_err(|error| error.kind), script.seen().len())
        }
    };
    let result = |rows: &str| Answer::http(200, &[], format!("<DeleteResult>{rows}</DeleteResult>"));
    let deleted = |key: &str| format!("<Deleted><Key>prefix/{key}</Key></Deleted>");
    let failed = |key: &str, code: &str| {
        format!("<Error><Key>prefix/{key}</Key><Code>{code}</Code><Message>m</Message></Error>")
    };
    let all = || result(&(deleted("a") + &deleted("b")));

    assert_eq!(delete(vec![all()]).await, (Ok(()), 1));
    assert_eq!(delete(vec![result(&(deleted("a") + &failed("b", "NoSuchKey")))]).await, (Ok(()), 1));
    let denied = result(&(deleted("a") + &failed("b", "AccessDenied")));
    assert_eq!(delete(vec![denied]).await, (Err(ErrorKind::Denied), 1));
    let busy = result(&(deleted("a") + &failed("b", "InternalError")));
    assert_eq!(delete(vec![busy, all()]).await, (Ok(()), 2));
    // A 200 that is cut, empty, garbled or says nothing of a key is a failure; made again it heals.
    let cut =
        Answer::http(200, &[("content-length", "500")], "<DeleteResult><Deleted><Key>prefix/a</Key></Del");
    let torn = Answer::http(200, &[], "<DeleteResult><Deleted><Key>prefix/a</Key></Deleted><Del");
    for bad in [cut, torn, Answer::bare(200), Answer::http(200, &[], "all gone!"), result(&deleted("a"))] {
        assert_eq!(delete(vec![bad, all()]).await, (Ok(()), 2));
    }
    assert_eq!(delete(vec![result(&deleted("a"))]).await.0, Err(ErrorKind::BadBody));
    // A store without batches: one by one.
    let (answer, count) = delete(vec![Answer::error(501, "NotImplemented"), Answer::bare(204)]).await;
    assert_eq!((answer, count), (Ok(()), 3));
}

#[tokio::test]
async fn keys_that_xml_cannot_carry_are_deleted_singly() {
    let script = Script::start([Answer::bare(204)]).await;
    script.bucket().await.delete_many(&["a\u{1}b".to_owned(), "c\r\nd".to_owned()]).await.unwrap();
    let seen = script.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|request| request.line.starts_with("DELETE /bucket/prefix/")), "{seen:?}");
}

#[tokio::test]
async fn a_listing_that_cannot_be_trusted_is_an_error() {
    let list = |rows: &str, rest: &str| {
        let body =
            format!("<ListBucketResult><EncodingType>url</EncodingType>{rest}{rows}</ListBucketResult>");
        async move {
            Script::start([Answer::http(200, &[], body)]).await.bucket().await.list("", Some("a"), 10).await
        }
    };
    let row = |key: &str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
    let good =
        list(&(row("prefix/b%2Bc+d") + &row("prefix/e")), "<IsTruncated>true</IsTruncated>").await.unwrap();
    let keys: Vec<&str> = good.objects.iter().map(|row| row.key.as_str()).collect();
    assert_eq!((keys, good.next.as_deref()), (vec!["b+c d", "e"], Some("e")));
    assert!(list(&(row("prefix/c") + &row("prefix/b")), "").await.is_err(), "out of order");
    assert!(list(&row("prefix/a"), "").await.is_err(), "not after the start");
    assert!(list(&row("other/b"), "").await.is_err(), "outside the prefix");
    assert!(list("", "<IsTruncated>true</IsTruncated>").await.is_err(), "more without rows");
}

#[tokio::test]
async fn an_unconditional_write_is_made_again() {
    let script = Script::start([Answer::error(500, "InternalError"), Answer::Cut, written()]).await;
    assert_eq!(script.bucket().await.put("k", body()).await.unwrap().as_str(), "\"e2\"");
    assert_eq!(script.seen().len(), 3);
}
