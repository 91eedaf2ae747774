//! Multipart uploads: what becomes an object and what does not, and what stays behind.

use holdfast_records::{r2_parts_prefix, r2_uploads_prefix};

use super::*;

/// Of parts that are not the last.
const PART: usize = 5 << 20;

fn part(byte: u8, len: usize) -> Vec<u8> {
    vec![byte; len]
}

impl Bench {
    async fn create(&self, key: &str) -> String {
        let request = json!({ "method": "createMultipartUpload", "key": key });
        self.ask(request, b"").await.unwrap().0["uploadId"].as_str().unwrap().to_owned()
    }

    /// Uploads a part; gives it as completing wants it.
    async fn part(&self, (key, upload): (&str, &str), number: u32, body: &[u8]) -> Result<Value, String> {
        let request = json!({
            "method": "uploadPart", "key": key, "uploadId": upload, "partNumber": number, "length": body.len(),
        });
        self.ask(request, body).await.map(|answer| answer.0)
    }

    async fn complete(&self, (key, upload): (&str, &str), parts: &[Value]) -> Result<Value, String> {
        let request =
            json!({ "method": "completeMultipartUpload", "key": key, "uploadId": upload, "parts": parts });
        self.ask(request, b"").await.map(|answer| answer.0["object"].clone())
    }

    async fn abort(&self, (key, upload): (&str, &str)) -> Result<(), String> {
        let request = json!({ "method": "abortMultipartUpload", "key": key, "uploadId": upload });
        self.ask(request, b"").await.map(drop)
    }

    /// An object of two parts, the second of one byte; gives its upload and the parts.
    async fn uploaded(&self, key: &str) -> (String, Vec<Value>) {
        let upload = self.create(key).await;
        let first = self.part((key, &upload), 1, &part(1, PART)).await.unwrap();
        let second = self.part((key, &upload), 2, b"2").await.unwrap();
        (upload, vec![first, second])
    }

    /// How many parts and how many uploads the store has.
    async fn left(&self) -> (usize, usize) {
        let parts = self.stored(&r2_parts_prefix(&self.name)).await.len();
        (parts, self.stored(&r2_uploads_prefix(&self.name)).await.len())
    }

    async fn range(&self, key: &str, offset: u64, length: u64) -> Vec<u8> {
        let range = json!({ "offset": offset, "length": length });
        self.ask(json!({ "method": "get", "key": key, "range": range }), b"").await.unwrap().1
    }
}

fn code<T: std::fmt::Debug>(failed: Result<T, String>) -> u32 {
    let error = failed.unwrap_err();
    error.rsplit_once('(').unwrap().1.trim_end_matches(')').parse().unwrap()
}

#[tokio::test]
async fn parts_become_the_object_in_the_order_of_their_numbers() {
    let bench = Bench::new();
    bench.put("a/b", &large(9), json!({})).await.unwrap();
    let request = json!({
        "method": "createMultipartUpload", "key": "a/b", "httpMetadata": { "contentType": "video/mp4" },
        "customMetadata": [["zeta", "1"]], "storageClass": "InfrequentAccess",
    });
    let upload = bench.ask(request, b"").await.unwrap().0["uploadId"].as_str().unwrap().to_owned();
    let of = ("a/b", upload.as_str());
    let last = bench.part(of, 9, b"last").await.unwrap();
    let stray = bench.part(of, 2, b"not taken").await.unwrap();
    let second = bench.part(of, 2, &part(2, PART)).await.unwrap();
    let first = bench.part(of, 1, &part(1, PART)).await.unwrap();
    assert_ne!(stray["etag"], second["etag"]);
    assert_eq!(bench.bytes("a/b").await.unwrap(), large(9), "nothing of it is seen yet");
    assert_eq!(bench.keys().await, ["a/b"]);

    let object = bench.complete(of, &[last, first, second]).await.unwrap();
    let whole = [part(1, PART), part(2, PART), b"last".to_vec()].concat();
    assert!(bench.bytes("a/b").await.unwrap() == whole);
    let etag = object["etag"].as_str().unwrap();
    assert!(etag.len() == 34 && etag.ends_with("-3"), "{etag}");
    assert_eq!((&object["size"], &object["checksums"]), (&json!(whole.len()), &json!({})));
    assert_eq!(object["httpMetadata"], json!({ "contentType": "video/mp4" }));
    assert_eq!(object["customMetadata"], json!([["zeta", "1"]]));
    assert_eq!(object["storageClass"], "InfrequentAccess");
    let (head, _) = bench.ask(json!({ "method": "head", "key": "a/b" }), b"").await.unwrap();
    assert_eq!(head["object"]["etag"], object["etag"]);
    assert_eq!(bench.left().await, (3, 0), "what was not taken is gone");
    assert_eq!(bench.bodies().await, 0, "and what was replaced");

    let mebi = PART as u64;
    assert_eq!(bench.range("a/b", mebi - 2, 4).await, [1, 1, 2, 2]);
    assert_eq!(bench.range("a/b", 2 * mebi - 1, 3).await, [2, b'l', b'a']);
    assert_eq!(bench.range("a/b", 2 * mebi + 3, 9).await, b"t");
    assert!(bench.range("a/b", 1, 2 * mebi + 2).await == whole[1..2 * PART + 3]);
    let (got, body) =
        bench.ask(json!({ "method": "get", "key": "a/b", "range": { "suffix": 2 } }), b"").await.unwrap();
    assert_eq!((body.as_slice(), &got["object"]["range"]["length"]), (&b"st"[..], &json!(2)));
}

#[tokio::test]
async fn an_object_that_is_replaced_or_deleted_takes_its_parts_along() {
    let bench = Bench::new();
    for is_replaced in [true, false] {
        let (upload, parts) = bench.uploaded("a").await;
        bench.complete(("a", &upload), &parts).await.unwrap();
        assert_eq!(bench.left().await, (2, 0));
        if is_replaced {
            bench.put("a", b"small", json!({})).await.unwrap();
            assert_eq!(bench.bytes("a").await.unwrap(), b"small");
        } else {
            bench.delete(&["a"]).await.unwrap();
            assert_eq!(bench.bytes("a").await, None);
        }
        assert_eq!(bench.left().await, (0, 0));
        assert_eq!(code(bench.complete(("a", &upload), &parts).await), 10_024);
    }
}

#[tokio::test]
async fn what_is_no_upload_or_no_part_of_it_is_refused() {
    let bench = Bench::new();
    let (upload, parts) = bench.uploaded("a").await;
    let of = ("a", upload.as_str());
    assert_eq!(code(bench.part(of, 0, b"x").await), 10_029);
    assert_eq!(code(bench.part(of, 10_001, b"x").await), 10_029);
    for bad in ["", "x", "00000000000000000000000000000000"] {
        assert_eq!(code(bench.part(("a", bad), 1, b"x").await), 10_024);
        assert_eq!(code(bench.complete(("a", bad), &parts).await), 10_024);
        assert_eq!(code(bench.abort(("a", bad)).await), 10_024);
    }
    assert_eq!(code(bench.part(("b", &upload), 1, b"x").await), 10_024, "it is one of another key");

    let (other, others) = bench.uploaded("a").await;
    assert_eq!(code(bench.complete(of, &others).await), 10_025);
    let moved = json!({ "partNumber": 3, "etag": parts[0]["etag"] });
    assert_eq!(code(bench.complete(of, &[moved]).await), 10_025);
    assert_eq!(code(bench.complete(of, &[json!({ "partNumber": 1, "etag": "x" })]).await), 10_025);
    assert_eq!(code(bench.complete(of, &[]).await), 10_048);
    assert_eq!(code(bench.complete(of, &[parts[0].clone(), parts[0].clone()]).await), 10_048);
    let third = bench.part(of, 3, b"3").await.unwrap();
    assert_eq!(code(bench.complete(of, &[parts[0].clone(), parts[1].clone(), third]).await), 10_011);
    let long = bench.part(of, 3, &part(3, PART + 1)).await.unwrap();
    assert_eq!(code(bench.complete(of, &[parts[0].clone(), long]).await), 10_048);
    let short =
        json!({ "method": "uploadPart", "key": "a", "uploadId": upload, "partNumber": 4, "length": 9 });
    assert_eq!(code(bench.ask(short, b"12345678").await), 10_013);
    assert_eq!(bench.left().await, (6, 2), "the part that broke is gone");
    assert_eq!(bench.bytes("a").await, None);

    bench.complete(("a", &other), &others).await.unwrap();
    bench.complete(of, &parts).await.unwrap();
    assert_eq!(bench.left().await, (2, 0));
}

#[tokio::test]
async fn an_upload_that_is_given_up_leaves_nothing() {
    let bench = Bench::new();
    let (upload, parts) = bench.uploaded("a").await;
    let of = ("a", upload.as_str());
    bench.abort(of).await.unwrap();
    assert_eq!((bench.left().await, bench.keys().await.len()), ((0, 0), 0));
    assert_eq!(code(bench.complete(of, &parts).await), 10_024);
    assert_eq!(code(bench.part(of, 3, b"x").await), 10_024);
    assert_eq!(code(bench.abort(of).await), 10_024);
    assert_eq!(bench.left().await, (0, 0));
    // Nothing is barred any more: the record says in 64 bytes that there is no object.
    let records = bench.faults.inner().list(&r2_objects_prefix(&bench.name), None, 9).await.unwrap();
    assert_eq!(records.objects.iter().map(|row| row.len).collect::<Vec<_>>(), [R2Record::DELETED_LEN]);
}

#[tokio::test]
async fn completing_again_gives_the_object_that_is_there() {
    let bench = Bench::new();
    let (upload, parts) = bench.uploaded("a").await;
    let first = bench.complete(("a", &upload), &parts).await.unwrap();
    assert_eq!(bench.complete(("a", &upload), &parts).await.unwrap(), first);
    assert_eq!(code(bench.abort(("a", &upload)).await), 10_024);
    assert_eq!(bench.bytes("a").await.unwrap().len(), PART + 1);
}

#[tokio::test]
async fn an_upload_whose_process_died_is_swept_and_one_that_became_the_object_is_not() {
    let bench = Bench::new();
    let (whole, parts) = bench.uploaded("a").await;
    bench.complete(("a", &whole), &parts).await.unwrap();
    // Of a part that came after its upload was the object.
    let whole = R2BodyId::parse(&whole).unwrap();
    let stray = Key::R2Part(bench.name.clone(), "a".into(), whole, R2BodyId::new(1, 7)).to_string();
    bench.faults.inner().put(&stray, Bytes::from_static(b"late")).await.unwrap();
    let (died, died_parts) = bench.uploaded("a").await;
    bench.create("b").await;
    assert_eq!(bench.left().await, (5, 2));

    let young = bench.r2.sweep(&bench.name, Duration::from_secs(86_400)).await.unwrap();
    assert_eq!((young, bench.left().await), (Swept { bodies: 5, deleted: 0 }, (5, 2)));
    let swept = bench.r2.sweep(&bench.name, Duration::ZERO).await.unwrap();
    assert_eq!((swept, bench.left().await), (Swept { bodies: 5, deleted: 3 }, (2, 0)));
    assert_eq!(bench.bytes("a").await.unwrap().len(), PART + 1);
    assert_eq!(code(bench.complete(("a", &died), &died_parts).await), 10_024);
    assert_eq!(bench.keys().await, ["a"]);
}

/// Completes an upload whose write of the record waits until it is released.
async fn held_complete(
    bench: &Arc<Bench>,
    upload: &str,
    parts: &[Value],
) -> (RuleHandle, JoinHandle<Result<Value, String>>) {
    let held = bench.faults.add(Rule::new(Fault::Hold).on(Operation::PutIf).times(1));
    let (bench, upload, parts) = (Arc::clone(bench), upload.to_owned(), parts.to_vec());
    let completing = tokio::spawn(async move { bench.complete(("a", &upload), &parts).await });
    held.wait_struck(1).await;
    (held, completing)
}

#[tokio::test]
async fn an_upload_that_is_given_up_while_it_is_completed_becomes_no_object() {
    let bench = Arc::new(Bench::new());
    let (upload, parts) = bench.uploaded("a").await;
    let (held, completing) = held_complete(&bench, &upload, &parts).await;
    bench.abort(("a", &upload)).await.unwrap();
    held.release();
    assert_eq!(code(completing.await.unwrap()), 10_024);
    assert_eq!((bench.bytes("a").await, bench.left().await), (None, (0, 0)));
}

#[tokio::test]
async fn an_upload_is_not_made_the_object_again_by_a_late_try() {
    let bench = Arc::new(Bench::new());
    let (upload, parts) = bench.uploaded("a").await;
    let (held, late) = held_complete(&bench, &upload, &parts).await;
    bench.complete(("a", &upload), &parts).await.unwrap();
    bench.put("a", b"newer", json!({})).await.unwrap();
    held.release();
    assert_eq!(code(late.await.unwrap()), 10_024);
    assert_eq!((bench.bytes("a").await.unwrap(), bench.left().await), (b"newer".to_vec(), (0, 0)));
}

#[tokio::test]
async fn a_late_try_with_other_parts_takes_none_of_the_object_away() {
    let bench = Arc::new(Bench::new());
    let (upload, parts) = bench.uploaded("a").await;
    let (held, late) = held_complete(&bench, &upload, &parts[1..]).await;
    bench.complete(("a", &upload), &parts).await.unwrap();
    held.release();
    assert_eq!(code(late.await.unwrap()), 10_024);
    assert_eq!((bench.bytes("a").await.unwrap().len(), bench.left().await), (PART + 1, (2, 0)));
}

#[tokio::test]
async fn an_upload_that_died_as_the_object_is_over_before_the_object_is_replaced() {
    let bench = Bench::new();
    let (upload, parts) = bench.uploaded("a").await;
    let id = R2BodyId::parse(&upload).unwrap();
    let place = Key::R2Upload(bench.name.clone(), "a".into(), id).to_string();
    let record = bench.faults.inner().get(&place).await.unwrap().unwrap().body;
    bench.complete(("a", &upload), &parts).await.unwrap();
    // As if its process had died before it ended the upload; then one dies that has replaced the object, and not yet deleted its
    // parts.
    bench.faults.inner().put(&place, record).await.unwrap();
    bench.faults.add(Rule::new(Fault::Fail(ErrorKind::Unavailable)).on(Operation::DeleteMany));
    bench.put("a", b"newer", json!({})).await.unwrap();
    bench.faults.clear();
    assert_eq!(bench.left().await, (2, 0), "its parts are there, and nobody can complete it");
    assert_eq!(code(bench.complete(("a", &upload), &parts).await), 10_024);
    let swept = bench.r2.sweep(&bench.name, Duration::ZERO).await.unwrap();
    assert_eq!((swept.deleted, bench.left().await), (2, (0, 0)));
    assert_eq!(bench.bytes("a").await.unwrap(), b"newer");
}
