//! The protocol as ordinary tools speak it: the AWS SDK with its own defaults (checksums, trailers), and raw requests.

use std::sync::Arc;

use crate::server::{self, ACCESS_KEY, BUCKET, SECRET_KEY, Server};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use holdfast_bucket::{Bucket, MemoryBucket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn serve() -> (Server, Client) {
    let server = server::start(Arc::new(MemoryBucket::new())).await;
    let client = client(&server, SECRET_KEY);
    (server, client)
}

fn client(server: &Server, secret: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(&server.endpoint)
        .region(Region::new("us-east-1"))
        .force_path_style(true)
        .credentials_provider(Credentials::new(ACCESS_KEY, secret, None, None, "test"))
        .build();
    Client::from_conf(config)
}

/// Status and code of a failed call.
fn failure<T: std::fmt::Debug, E: ProvideErrorMetadata + std::fmt::Debug>(
    answer: Result<T, SdkError<E, aws_sdk_s3::config::http::HttpResponse>>,
) -> (u16, String) {
    let error = answer.unwrap_err();
    let status = error.raw_response().map_or(0, |response| response.status().as_u16());
    (status, error.code().unwrap_or_default().to_owned())
}

fn expect(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

fn text(text: &'static str) -> ByteStream {
    ByteStream::from_static(text.as_bytes())
}

#[tokio::test]
async fn an_etag_is_the_same_everywhere() {
    let (_server, client) = serve().await;
    let put = client.put_object().bucket(BUCKET).key("k").body(text("hello")).send().await.unwrap();
    let etag = put.e_tag().unwrap();
    assert_eq!(etag, "\"5d41402abc4b2a76b9719d911017c592\"");
    let head = client.head_object().bucket(BUCKET).key("k").send().await.unwrap();
    let get = client.get_object().bucket(BUCKET).key("k").send().await.unwrap();
    let list = client.list_objects_v2().bucket(BUCKET).send().await.unwrap();
    assert_eq!(head.e_tag(), Some(etag));
    assert_eq!(get.e_tag(), Some(etag));
    assert_eq!(list.contents()[0].e_tag(), Some(etag));
    assert_eq!((head.content_length(), list.contents()[0].size()), (Some(5), Some(5)));
    assert_eq!(get.body.collect().await.unwrap().into_bytes(), "hello");
}

#[tokio::test]
async fn conditions_have_the_answers_of_s3() {
    let (_server, client) = serve().await;
    let put = || client.put_object().bucket(BUCKET).key("k");
    let get = || client.get_object().bucket(BUCKET).key("k");
    let missing = put().if_match("\"x\"").body(text("1")).send().await;
    assert_eq!(failure(missing), expect(404, "NoSuchKey"));
    let etag = put().if_none_match("*").body(text("1")).send().await.unwrap().e_tag.unwrap();
    assert_eq!(
        failure(put().if_none_match("*").body(text("2")).send().await),
        expect(412, "PreconditionFailed")
    );
    assert_eq!(
        failure(put().if_match("\"x\"").body(text("2")).send().await),
        expect(412, "PreconditionFailed")
    );
    assert_eq!(failure(get().if_match("\"x\"").send().await), expect(412, "PreconditionFailed"));
    assert_eq!(failure(get().if_none_match(&etag).send().await).0, 304);
    assert_eq!(
        failure(client.head_object().bucket(BUCKET).key("k").if_none_match(&etag).send().await).0,
        304
    );
    assert_eq!(failure(put().if_match("*").body(text("2")).send().await).0, 501);
    get().if_match(&etag).send().await.unwrap();
    get().if_none_match("\"x\"").send().await.unwrap();
    put().if_match(&etag).body(text("2")).send().await.unwrap();
    assert_eq!(failure(put().if_match(&etag).body(text("3")).send().await).0, 412);
    assert_eq!(
        failure(client.get_object().bucket(BUCKET).key("absent").send().await),
        expect(404, "NoSuchKey")
    );
}

#[tokio::test]
async fn ranges_have_the_answers_of_s3() {
    let (_server, client) = serve().await;
    client.put_object().bucket(BUCKET).key("k").body(text("0123456789")).send().await.unwrap();
    for (range, body, content_range) in [
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=8-100", "89", "bytes 8-9/10"),
        ("bytes=-100", "0123456789", "bytes 0-9/10"),
    ] {
        let got = client.get_object().bucket(BUCKET).key("k").range(range).send().await.unwrap();
        assert_eq!(got.content_range(), Some(content_range), "{range}");
        assert_eq!(got.body.collect().await.unwrap().into_bytes(), body, "{range}");
    }
    for range in ["bytes=10-", "bytes=-0"] {
        let answer = client.get_object().bucket(BUCKET).key("k").range(range).send().await;
        assert_eq!(failure(answer), expect(416, "InvalidRange"), "{range}");
    }
}

#[tokio::test]
async fn a_wrong_checksum_writes_nothing() {
    let (_server, client) = serve().await;
    let put = || client.put_object().bucket(BUCKET).key("k").body(text("123456789"));
    put().checksum_crc32("y/Q5Jg==").send().await.unwrap();
    put().checksum_sha256("FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=").send().await.unwrap();
    let before = client.head_object().bucket(BUCKET).key("k").send().await.unwrap();
    let wrong = client.put_object().bucket(BUCKET).key("k").body(text("other")).checksum_crc32("y/Q5Jg==");
    assert_eq!(failure(wrong.send().await), expect(400, "BadDigest"));
    let wrong = client
        .put_object()
        .bucket(BUCKET)
        .key("k")
        .body(text("other"))
        .content_md5("XUFAKrxLKna5cZ2REBfFkg==");
    assert_eq!(failure(wrong.send().await), expect(400, "BadDigest"));
    let after = client.head_object().bucket(BUCKET).key("k").send().await.unwrap();
    assert_eq!(before.e_tag(), after.e_tag());
}

#[tokio::test]
async fn bodies_in_chunks_with_a_trailer_are_taken() {
    // From a file the SDK sends `aws-chunked` with the checksum behind the body.
    let (_server, client) = serve().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    for len in [0, 1, 300_000, 3_000_000] {
        let bytes: Vec<u8> = (0..len).map(|at: u32| at.to_le_bytes()[0]).collect();
        std::fs::write(file.path(), &bytes).unwrap();
        let body = ByteStream::from_path(file.path()).await.unwrap();
        client.put_object().bucket(BUCKET).key("k").body(body).send().await.unwrap();
        let got = client.get_object().bucket(BUCKET).key("k").send().await.unwrap();
        assert!(got.body.collect().await.unwrap().into_bytes() == bytes, "{len}");
        let body = ByteStream::from_path(file.path()).await.unwrap();
        client
            .put_object()
            .bucket(BUCKET)
            .key(format!("c{len}"))
            .if_none_match("*")
            .body(body)
            .send()
            .await
            .unwrap();
    }
    let begin = client.create_multipart_upload().bucket(BUCKET).key("m").send().await.unwrap();
    let part =
        client.upload_part().bucket(BUCKET).key("m").upload_id(begin.upload_id().unwrap()).part_number(1);
    part.body(ByteStream::from_path(file.path()).await.unwrap()).send().await.unwrap();
}

#[tokio::test]
async fn a_conditional_write_that_is_too_large_is_refused() {
    let (_server, client) = serve().await;
    let body = ByteStream::from(vec![7; 17 * 1024 * 1024]);
    let answer = client.put_object().bucket(BUCKET).key("k").if_none_match("*").body(body).send().await;
    assert_eq!(failure(answer), expect(400, "EntityTooLarge"));
}

#[tokio::test]
async fn a_multipart_upload_appears_at_completion() {
    let (_server, client) = serve().await;
    let begin = client.create_multipart_upload().bucket(BUCKET).key("big").send().await.unwrap();
    let id = begin.upload_id().unwrap().to_owned();
    let part = |number, body| {
        client.upload_part().bucket(BUCKET).key("big").upload_id(&id).part_number(number).body(text(body))
    };
    let second = part(2, "world").send().await.unwrap().e_tag.unwrap();
    let first = part(1, "hello ").send().await.unwrap().e_tag.unwrap();
    let parts = client.list_parts().bucket(BUCKET).key("big").upload_id(&id).send().await.unwrap();
    let numbers: Vec<_> = parts.parts().iter().map(|part| (part.part_number(), part.size())).collect();
    assert_eq!(numbers, [(Some(1), Some(6)), (Some(2), Some(5))]);

    // Nothing is seen of it before.
    assert_eq!(failure(client.get_object().bucket(BUCKET).key("big").send().await), expect(404, "NoSuchKey"));
    assert!(client.list_objects_v2().bucket(BUCKET).send().await.unwrap().contents().is_empty());
    let hidden = format!(".holdfast-uploads/{id}/upload");
    assert_eq!(
        failure(client.get_object().bucket(BUCKET).key(&hidden).send().await),
        expect(403, "AccessDenied")
    );
    assert_eq!(
        failure(client.delete_object().bucket(BUCKET).key(&hidden).send().await),
        expect(403, "AccessDenied")
    );

    let complete = |parts: &[(i32, &str)]| {
        let parts = parts
            .iter()
            .map(|(number, etag)| CompletedPart::builder().part_number(*number).e_tag(*etag).build());
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts.collect())).build();
        client
            .complete_multipart_upload()
            .bucket(BUCKET)
            .key("big")
            .upload_id(&id)
            .multipart_upload(parts)
            .send()
    };
    assert_eq!(failure(complete(&[(1, "\"x\"")]).await), expect(400, "InvalidPart"));
    assert_eq!(failure(complete(&[(1, &first), (3, &second)]).await), expect(400, "InvalidPart"));
    assert_eq!(failure(complete(&[(2, &second), (1, &first)]).await), expect(400, "InvalidPartOrder"));
    let done = complete(&[(1, &first), (2, &second)]).await.unwrap();
    let got = client.get_object().bucket(BUCKET).key("big").send().await.unwrap();
    assert_eq!(got.e_tag(), done.e_tag());
    assert_eq!(got.body.collect().await.unwrap().into_bytes(), "hello world");
    assert_eq!(failure(complete(&[(1, &first), (2, &second)]).await), expect(404, "NoSuchUpload"));
    assert_eq!(failure(part(3, "late").send().await), expect(404, "NoSuchUpload"));
}

#[tokio::test]
async fn an_aborted_upload_leaves_nothing_behind() {
    let store = Arc::new(MemoryBucket::new());
    let server = server::start(Arc::clone(&store) as Arc<dyn Bucket>).await;
    let client = client(&server, SECRET_KEY);
    let begin = client.create_multipart_upload().bucket(BUCKET).key("big").send().await.unwrap();
    let id = begin.upload_id().unwrap();
    let part = client.upload_part().bucket(BUCKET).key("big").upload_id(id).part_number(1).body(text("x"));
    part.send().await.unwrap();
    assert_eq!(store.list("", None, 10).await.unwrap().objects.len(), 2);
    client.abort_multipart_upload().bucket(BUCKET).key("big").upload_id(id).send().await.unwrap();
    assert!(store.list("", None, 10).await.unwrap().objects.is_empty());
}

#[tokio::test]
async fn folders_can_be_browsed() {
    let (_server, client) = serve().await;
    for key in ["a", "b/1", "b/2", "c/d/3", "e f+é"] {
        client.put_object().bucket(BUCKET).key(key).body(text("x")).send().await.unwrap();
    }
    let top = client.list_objects_v2().bucket(BUCKET).delimiter("/").send().await.unwrap();
    let folders: Vec<_> = top.common_prefixes().iter().filter_map(|prefix| prefix.prefix()).collect();
    let files: Vec<_> = top.contents().iter().filter_map(|row| row.key()).collect();
    assert_eq!((folders, files, top.key_count()), (vec!["b/", "c/"], vec!["a", "e f+é"], Some(4)));

    let (mut rows, mut token) = (Vec::new(), None);
    loop {
        let page = client
            .list_objects_v2()
            .bucket(BUCKET)
            .max_keys(2)
            .set_continuation_token(token)
            .send()
            .await
            .unwrap();
        rows.extend(page.contents().iter().filter_map(|row| row.key().map(str::to_owned)));
        token = page.next_continuation_token().map(str::to_owned);
        assert_eq!(page.is_truncated(), Some(token.is_some()));
        if token.is_none() {
            break;
        }
    }
    assert_eq!(rows, ["a", "b/1", "b/2", "c/d/3", "e f+é"]);

    let (mut rows, mut marker) = (Vec::new(), None);
    loop {
        let page = client
            .list_objects()
            .bucket(BUCKET)
            .delimiter("/")
            .max_keys(1)
            .set_marker(marker)
            .send()
            .await
            .unwrap();
        rows.extend(page.contents().iter().filter_map(|row| row.key().map(str::to_owned)));
        rows.extend(page.common_prefixes().iter().filter_map(|prefix| prefix.prefix().map(str::to_owned)));
        marker = page.next_marker().map(str::to_owned);
        if marker.is_none() {
            break;
        }
    }
    assert_eq!(rows, ["a", "b/", "c/", "e f+é"]);
}

#[tokio::test]
async fn objects_are_copied_and_deleted() {
    let (_server, client) = serve().await;
    client.put_object().bucket(BUCKET).key("from here").body(text("x")).send().await.unwrap();
    let source = format!("{BUCKET}/from%20here");
    client.copy_object().bucket(BUCKET).key("to").copy_source(source).send().await.unwrap();
    let copy = client.get_object().bucket(BUCKET).key("to").send().await.unwrap();
    assert_eq!(copy.body.collect().await.unwrap().into_bytes(), "x");
    for _ in 0..2 {
        client.delete_object().bucket(BUCKET).key("to").send().await.unwrap();
    }
    assert_eq!(failure(client.head_object().bucket(BUCKET).key("to").send().await).0, 404);
}

#[tokio::test]
async fn strangers_are_refused() {
    let (server, client) = serve().await;
    let other = client.get_object().bucket("another").key("k").send().await;
    assert_eq!(failure(other), expect(404, "NoSuchBucket"));
    assert_eq!(failure(client.head_bucket().bucket("another").send().await).0, 404);
    client.head_bucket().bucket(BUCKET).send().await.unwrap();
    let buckets = client.list_buckets().send().await.unwrap();
    assert_eq!(buckets.buckets()[0].name(), Some(BUCKET));

    let liar = self::client(&server, "guess");
    let answer = liar.get_object().bucket(BUCKET).key("k").send().await;
    assert_eq!(failure(answer), expect(403, "SignatureDoesNotMatch"));
    for request in [format!("GET /{BUCKET}/k"), format!("DELETE /{BUCKET}/k"), "GET /".to_owned()] {
        let answer =
            raw(&server, &format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{request}: {answer}");
    }
}

/// Sends bytes, and reads the answer to the end of the connection.
async fn raw(server: &Server, request: &str) -> String {
    let address = server.endpoint.trim_start_matches("http://");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn requests_in_progress_are_finished_at_shutdown() {
    const LEN: usize = 32 * 1024 * 1024;
    let store = Arc::new(MemoryBucket::new());
    store.put("big", Bytes::from(vec![7; LEN])).await.unwrap();
    let server = server::start(store).await;
    let client = client(&server, SECRET_KEY);
    let mut got = client.get_object().bucket(BUCKET).key("big").send().await.unwrap();
    let first = got.body.next().await.unwrap().unwrap();
    server.stop.send(()).unwrap();
    let rest = got.body.collect().await.unwrap().into_bytes();
    assert_eq!(first.len() + rest.len(), LEN);
    server.task.await.unwrap().unwrap();
    assert!(client.head_object().bucket(BUCKET).key("big").send().await.is_err());
}
