//! Objects over a bucket in memory with scripted faults: what readers see, what races come to, and what stays behind.

use bytes::Bytes;
use futures::StreamExt as _;
use holdfast_bucket::faults::{Fault, FaultBucket, Operation, Rule, RuleHandle};
use holdfast_bucket::{BucketError, ErrorKind, MemoryBucket};
use holdfast_records::{r2_bodies_prefix, r2_objects_prefix};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;

mod multipart;

/// More than lies in a record.
const LARGE: usize = 100_000;

struct Bench {
    faults: FaultBucket,
    r2: R2,
    name: R2BucketName,
}

impl Bench {
    fn new() -> Self {
        let faults = FaultBucket::new(Arc::new(MemoryBucket::new()));
        let r2 = R2::new(Arc::new(faults.clone()));
        Self { faults, r2, name: R2BucketName::parse("photos").unwrap() }
    }

    async fn ask(&self, request: Value, body: &[u8]) -> Result<(Value, Vec<u8>), String> {
        self.ask_stream(request, pieces(body)).await
    }

    async fn ask_stream(&self, request: Value, body: ByteStream) -> Result<(Value, Vec<u8>), String> {
        let answer = self.r2.answer("photos", request.to_string().as_bytes(), body).await;
        let Answer { head, body } = answer.map_err(|error| error.to_string())?;
        let body = match body {
            AnswerBody::None => Vec::new(),
            AnswerBody::Whole(bytes) => bytes.to_vec(),
            AnswerBody::Stream { len, stream } => {
                let pieces: Vec<Result<Bytes, BucketError>> = stream.collect().await;
                let whole: Vec<u8> = pieces.into_iter().flat_map(Result::unwrap).collect();
                assert_eq!(whole.len() as u64, len);
                whole
            }
        };
        Ok((serde_json::from_slice(&head).unwrap(), body))
    }

    /// Puts; tells whether it was put.
    async fn put(&self, key: &str, body: &[u8], options: Value) -> Result<bool, String> {
        let mut request = json!({ "method": "put", "key": key, "length": body.len() });
        request.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        Ok(!self.ask(request, body).await?.0["object"].is_null())
    }

    /// The bytes of an object.
    async fn bytes(&self, key: &str) -> Option<Vec<u8>> {
        let (head, body) = self.ask(json!({ "method": "get", "key": key }), b"").await.unwrap();
        (!head["object"].is_null()).then_some(body)
    }

    async fn delete(&self, keys: &[&str]) -> Result<(), String> {
        self.ask(json!({ "method": "delete", "keys": keys }), b"").await.map(drop)
    }

    /// The keys of all objects, by a listing.
    async fn keys(&self) -> Vec<String> {
        let (page, _) = self.ask(json!({ "method": "list" }), b"").await.unwrap();
        let keys = page["objects"].as_array().unwrap().iter();
        keys.map(|object| object["key"].as_str().unwrap().to_owned()).collect()
    }

    /// Keys of the store below a prefix, without a look that a fault could touch.
    async fn stored(&self, prefix: &str) -> Vec<String> {
        let listing = self.faults.inner().list(prefix, None, 1_000).await.unwrap();
        listing.objects.into_iter().map(|row| row.key).collect()
    }

    async fn bodies(&self) -> usize {
        self.stored(&r2_bodies_prefix(&self.name)).await.len()
    }
}

fn pieces(body: &[u8]) -> ByteStream {
    let pieces: Vec<_> = body.chunks(30_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    futures::stream::iter(pieces).boxed()
}

fn large(byte: u8) -> Vec<u8> {
    let mut body = vec![byte; LARGE];
    body[LARGE - 1] = b'.';
    body
}

fn matches(etag: &str) -> Value {
    json!({ "onlyIf": { "etagMatches": [{ "type": "strong", "value": etag }] } })
}

fn absent() -> Value {
    json!({ "onlyIf": { "etagDoesNotMatch": [{ "type": "wildcard" }] } })
}

/// A put of `large(2)` at `a` whose record is on its way to the bucket until it is released.
async fn held_put(bench: &Arc<Bench>) -> (RuleHandle, JoinHandle<Result<bool, String>>) {
    let held = bench.faults.add(Rule::new(Fault::Hold).on(Operation::PutIf).times(1));
    let bench = Arc::clone(bench);
    let putting = tokio::spawn(async move { bench.put("a", &large(2), json!({})).await });
    held.wait_struck(1).await;
    (held, putting)
}

#[tokio::test]
async fn an_object_comes_back_with_all_that_it_was_given() {
    let bench = Bench::new();
    for body in [b"".to_vec(), b"abc".to_vec(), vec![7; 16 << 10], vec![7; (16 << 10) + 1], large(1)] {
        let request = json!({
            "method": "put", "key": "a/b c", "length": body.len(), "httpMetadata": { "contentType": "image/png" },
            "customMetadata": [["zeta", "1"], ["alpha", "é"]], "storageClass": "InfrequentAccess",
        });
        let (put, _) = bench.ask(request, &body).await.unwrap();
        let (got, bytes) = bench.ask(json!({ "method": "get", "key": "a/b c" }), b"").await.unwrap();
        assert_eq!(bytes, body);
        let object = &got["object"];
        assert_eq!(object["size"], body.len());
        assert_eq!(object["httpMetadata"], json!({ "contentType": "image/png" }));
        assert_eq!(object["customMetadata"], json!([["zeta", "1"], ["alpha", "é"]]));
        assert_eq!(object["storageClass"], "InfrequentAccess");
        assert_eq!(object["range"], json!({ "offset": 0, "length": body.len() }));
        for name in ["key", "version", "size", "etag", "uploaded", "checksums", "customMetadata"] {
            assert_eq!(put["object"][name], object[name], "{name}");
        }
        assert_eq!(object["checksums"]["md5"], object["etag"]);
        let (head, _) = bench.ask(json!({ "method": "head", "key": "a/b c" }), b"").await.unwrap();
        assert_eq!(head["object"], *object);
    }
    assert_eq!(bench.bodies().await, 1, "those that were replaced are gone");
    assert_eq!(bench.bytes("a").await, None);
}

#[tokio::test]
async fn a_range_of_either_kind_of_object_is_exact() {
    let bench = Bench::new();
    let body: Vec<u8> = (0..LARGE).map(|at| u8::try_from(at % 251).unwrap()).collect();
    bench.put("large", &body, json!({})).await.unwrap();
    bench.put("small", &body[..100], json!({})).await.unwrap();
    for (range, large, small) in [
        (json!({ "range": { "offset": 10, "length": 5 } }), 10..15, 10..15),
        (json!({ "range": { "offset": 90 } }), 90..LARGE, 90..100),
        (json!({ "range": { "suffix": 3 } }), LARGE - 3..LARGE, 97..100),
        (json!({ "rangeHeader": "bytes=98-98" }), 98..99, 98..99),
        (json!({ "rangeHeader": "bytes=1-2,4-5" }), 0..LARGE, 0..100),
    ] {
        for (key, part) in [("large", large), ("small", small)] {
            let mut request = json!({ "method": "get", "key": key });
            request.as_object_mut().unwrap().extend(range.as_object().unwrap().clone());
            let (head, bytes) = bench.ask(request, b"").await.unwrap();
            assert_eq!(bytes, body[part.clone()], "{key} {range}");
            let told = json!({ "offset": part.start, "length": part.end - part.start });
            assert_eq!(head["object"]["range"], told, "{key} {range}");
        }
    }
    let beyond = json!({ "method": "get", "key": "small", "range": { "offset": 100 } });
    assert_eq!(
        bench.ask(beyond, b"").await.unwrap_err(),
        "get: The requested range is not satisfiable (10039)"
    );
}

#[tokio::test]
async fn a_condition_that_does_not_hold_puts_nothing_and_gives_no_bytes() {
    let bench = Bench::new();
    assert!(bench.put("a", b"one", absent()).await.unwrap());
    assert!(!bench.put("a", b"two", absent()).await.unwrap());
    let etag = "f97c5d29941bfb1b2fdab0874906ab82";
    assert!(!bench.put("a", &large(1), matches("0")).await.unwrap());
    assert!(bench.put("a", &large(1), matches(etag)).await.unwrap());
    assert_eq!(bench.bodies().await, 1);
    let request = json!({ "method": "get", "key": "a", "onlyIf": { "etagMatches": [{ "type": "strong", "value": etag }] } });
    let (head, bytes) = bench.ask(request, b"").await.unwrap();
    assert_eq!(
        (head["object"]["size"].as_u64(), bytes.len(), &head["hasBody"]),
        (Some(LARGE as u64), 0, &Value::Null)
    );
    bench.delete(&["a"]).await.unwrap();
    assert!(!bench.put("a", b"x", matches(etag)).await.unwrap(), "what was deleted matches nothing");
    assert!(bench.put("a", b"x", absent()).await.unwrap());
}

#[tokio::test]
async fn what_is_refused_leaves_nothing_behind() {
    let bench = Bench::new();
    let wrong = json!({ "checksum": { "algorithm": "sha256", "value": "00" } });
    for body in [b"abc".to_vec(), large(1)] {
        let error = bench.put("a", &body, wrong.clone()).await.unwrap_err();
        assert!(error.starts_with("put: The SHA-256 checksum you specified did not match"), "{error}");
        for length in [body.len() + 20_000, body.len() - 1] {
            let request = json!({ "method": "put", "key": "a", "length": length });
            let error = bench.ask(request, &body).await.unwrap_err();
            assert!(error.contains("promised") && error.ends_with("(10013)"), "{error}");
        }
        let broken = BucketError::new("put", "", ErrorKind::BadBody, "it broke");
        let request = json!({ "method": "put", "key": "a", "length": body.len() });
        let stream = pieces(&body[..2]).chain(futures::stream::iter([Err(broken)])).boxed();
        let error = bench.ask_stream(request, stream).await.unwrap_err();
        assert_eq!(error, "put: The body could not be read: it broke. (10013)");
    }
    assert_eq!(bench.stored("").await, Vec::<String>::new());
    for (request, code) in [
        (json!({ "method": "put", "key": "k".repeat(1_025), "length": 0 }), "(10020)"),
        (json!({ "method": "head", "key": "k".repeat(1_025) }), "(10020)"),
        (json!({ "method": "put", "key": "a", "length": 5_368_709_120_u64 }), "(100100)"),
        (
            json!({ "method": "put", "key": "a", "length": 0, "customMetadata": [["a", "b".repeat(2_048)]] }),
            "(10012)",
        ),
        (json!({ "method": "put", "key": "a", "length": 0, "storageClass": "Cold" }), "(10029)"),
        (json!({ "method": "delete", "keys": vec!["a"; 1_001] }), "(10029)"),
        (json!({ "method": "list", "limit": 0 }), "(10022)"),
        (json!({ "method": "other" }), "(10029)"),
    ] {
        let error = bench.ask(request, b"").await.unwrap_err();
        assert!(error.ends_with(code), "{error}");
    }
}

#[tokio::test]
async fn what_is_deleted_is_gone_from_reads_and_listings() {
    let bench = Bench::new();
    for key in ["a", "b", "c"] {
        bench.put(key, &large(1), json!({})).await.unwrap();
    }
    bench.delete(&["a", "c", "a", "absent"]).await.unwrap();
    assert_eq!((bench.bytes("a").await, bench.keys().await), (None, vec!["b".to_owned()]));
    assert_eq!(bench.bodies().await, 1);
    bench.delete(&["a"]).await.unwrap();
    assert_eq!(
        bench.stored(&r2_objects_prefix(&bench.name)).await.len(),
        3,
        "none was made for what never was"
    );
    assert!(bench.put("a", b"again", json!({})).await.unwrap());
    assert_eq!(bench.bytes("a").await.unwrap(), b"again");
}

#[tokio::test]
async fn buckets_of_other_names_are_apart() {
    let bench = Bench::new();
    bench.put("a", b"one", json!({})).await.unwrap();
    let other = R2::new(Arc::new(bench.faults.clone()));
    let head = json!({ "method": "head", "key": "a" }).to_string();
    let shown = |answer: Answer| serde_json::from_slice::<Value>(&answer.head).unwrap()["object"].is_null();
    assert!(!shown(other.answer("photos", head.as_bytes(), pieces(b"")).await.unwrap()));
    assert!(shown(other.answer("photos2", head.as_bytes(), pieces(b"")).await.unwrap()));
    assert_eq!(
        other.answer("../cells", head.as_bytes(), pieces(b"")).await.unwrap_err().error.code(),
        10_029
    );
    let put = json!({ "method": "put", "key": "x", "length": 0 }).to_string();
    other.answer("films", put.as_bytes(), pieces(b"")).await.unwrap();
    let names: Vec<String> = bench.r2.names().await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["films", "photos"]);
}

#[tokio::test]
async fn pages_go_over_many_objects_and_pass_what_was_deleted() {
    let bench = Bench::new();
    for number in 0..30 {
        bench.put(&format!("k/{number:02}"), b"x", json!({ "customMetadata": [["n", "1"]] })).await.unwrap();
    }
    bench.delete(&["k/03", "k/04", "k/29"]).await.unwrap();
    bench.put("z", b"", json!({})).await.unwrap();
    let (mut keys, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let mut request = json!({ "method": "list", "limit": 10, "prefix": "k/", "customMetadata": true });
        if cursor.is_string() {
            request["cursor"] = cursor;
        }
        let (page, _) = bench.ask(request, b"").await.unwrap();
        let objects = page["objects"].as_array().unwrap();
        keys.extend(objects.iter().map(|object| object["key"].as_str().unwrap().to_owned()));
        assert!(objects.iter().all(|object| object["customMetadata"] == json!([["n", "1"]])));
        assert!(objects.iter().all(|object| object.get("httpMetadata").is_none()));
        pages += 1;
        cursor = page["cursor"].clone();
        assert_eq!(page["truncated"], cursor.is_string());
        if cursor.is_null() {
            break;
        }
    }
    let expected: Vec<String> =
        (0..29).filter(|n| !matches!(n, 3 | 4)).map(|n| format!("k/{n:02}")).collect();
    assert_eq!((keys, pages), (expected, 3));
    let (page, _) = bench.ask(json!({ "method": "list", "delimiter": "/" }), b"").await.unwrap();
    assert_eq!(page["delimitedPrefixes"], json!(["k/"]));
    assert_eq!(page["objects"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_prefix_of_many_keys_is_stepped_over() {
    let bench = Bench::new();
    let inner = bench.faults.inner();
    // As a put would have it, apart from what it says.
    for number in 0..2_500 {
        let key = record_key(&bench.name, &format!("many/{number:04}"));
        inner.put(&key, Bytes::from_static(b"{}\n")).await.unwrap();
    }
    bench.put("z", b"", json!({})).await.unwrap();
    bench.faults.reset_counts();
    let (page, _) = bench.ask(json!({ "method": "list", "delimiter": "/" }), b"").await.unwrap();
    assert_eq!(page["delimitedPrefixes"], json!(["many/"]));
    assert_eq!(page["objects"][0]["key"], "z");
    assert_eq!(bench.faults.count(Operation::List, ""), 2);
}

#[tokio::test(start_paused = true)]
async fn of_many_that_create_a_key_one_succeeds() {
    let bench = Arc::new(Bench::new());
    let creates = (0..20u8).map(|number| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { (number, bench.put("lock", &large(number), absent()).await.unwrap()) })
    });
    let made = futures::future::join_all(creates).await;
    let won: Vec<u8> = made.into_iter().map(Result::unwrap).filter(|(_, won)| *won).map(|(n, _)| n).collect();
    let [winner] = won.as_slice() else { panic!("{won:?}") };
    assert_eq!(bench.bytes("lock").await.unwrap(), large(*winner));
    assert_eq!(bench.bodies().await, 1, "the others' bodies are gone");
}

#[tokio::test(start_paused = true)]
async fn racing_puts_and_deletes_leave_one_whole_object_or_none() {
    for round in 0..20u8 {
        let bench = Arc::new(Bench::new());
        let work = (0..8u8).map(|number| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move {
                match (number + round) % 4 {
                    3 => bench.delete(&["a"]).await.unwrap(),
                    _ => assert!(bench.put("a", &large(number), json!({})).await.unwrap()),
                }
                if let Some(seen) = bench.bytes("a").await {
                    assert_eq!(seen, large(seen[0]), "never a mixture");
                }
            })
        });
        futures::future::join_all(work).await.into_iter().for_each(|done| done.unwrap());
        let left = usize::from(bench.bytes("a").await.is_some());
        assert_eq!(bench.bodies().await, left);
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_whose_answer_is_lost_is_found_to_be_there() {
    let bench = Bench::new();
    bench.faults.add(Rule::new(Fault::LoseAnswer(ErrorKind::NoAnswer)).on(Operation::PutIf).times(1));
    assert!(bench.put("a", &large(1), absent()).await.unwrap());
    assert_eq!((bench.bytes("a").await.unwrap(), bench.bodies().await), (large(1), 1));
    bench.faults.add(Rule::new(Fault::LoseAnswer(ErrorKind::NoAnswer)).on(Operation::PutIf).times(1));
    bench.delete(&["a"]).await.unwrap();
    assert_eq!((bench.bytes("a").await, bench.bodies().await), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_put_that_nobody_answers_fails_and_harms_nothing_whether_or_not_it_lands() {
    let bench = Bench::new();
    bench.put("a", &large(1), json!({})).await.unwrap();
    bench.faults.add(Rule::new(Fault::Hold).on(Operation::PutIf));
    let reads = bench.faults.add(Rule::new(Fault::Fail(ErrorKind::NoAnswer)).on(Operation::Get));
    let error = bench.put("a", &large(2), json!({})).await.unwrap_err();
    assert_eq!(error, "put: We encountered an internal error. Please try again. (10001)");
    reads.release();
    bench.faults.clear();
    // It lands now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.bytes("a").await.unwrap(), large(2));
    // The body that it replaced was nobody's to delete; the sweep finds it.
    assert_eq!(bench.bodies().await, 2);
    let swept = bench.r2.sweep(&bench.name, Duration::ZERO).await.unwrap();
    assert_eq!(swept, Swept { bodies: 2, deleted: 1 });
    assert_eq!(bench.bytes("a").await.unwrap(), large(2));
}

#[tokio::test(start_paused = true)]
async fn a_put_that_only_a_sweep_overtakes_takes_place() {
    let bench = Arc::new(Bench::new());
    bench.put("a", &large(1), json!({})).await.unwrap();
    let orphan = Key::R2Body(bench.name.clone(), "a".into(), R2BodyId::new(1, 7)).to_string();
    bench.faults.inner().put(&orphan, Bytes::from_static(b"of a put that died")).await.unwrap();
    // Its record does not get to the bucket before that of the sweep.
    let (_held, putting) = held_put(&bench).await;
    let swept = bench.r2.sweep(&bench.name, Duration::from_secs(3_600)).await.unwrap();
    assert_eq!(swept.deleted, 1, "{swept:?}");
    assert!(putting.await.unwrap().unwrap());
    assert_eq!((bench.bytes("a").await.unwrap(), bench.bodies().await), (large(2), 1));
}

#[tokio::test(start_paused = true)]
async fn a_put_that_another_may_have_overtaken_says_that_nobody_knows() {
    let bench = Arc::new(Bench::new());
    bench.put("a", &large(1), json!({})).await.unwrap();
    let (_held, putting) = held_put(&bench).await;
    assert!(bench.put("a", &large(3), json!({})).await.unwrap());
    let error = putting.await.unwrap().unwrap_err();
    assert_eq!(error, "put: We encountered an internal error. Please try again. (10001)");
    assert_eq!(bench.bytes("a").await.unwrap(), large(3));
}

#[tokio::test(start_paused = true)]
async fn a_late_delete_does_not_touch_what_was_put_since() {
    let bench = Arc::new(Bench::new());
    bench.put("a", &large(1), json!({})).await.unwrap();
    let held = bench.faults.add(Rule::new(Fault::Hold).on(Operation::PutIf).times(1));
    let deleting = {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { bench.delete(&["a"]).await })
    };
    held.wait_struck(1).await;
    bench.put("a", &large(2), json!({})).await.unwrap();
    deleting.abort();
    held.release();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.bytes("a").await.unwrap(), large(2));
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_body_was_replaced_reads_the_new_one() {
    let bench = Arc::new(Bench::new());
    bench.put("a", &large(1), json!({})).await.unwrap();
    let held = bench.faults.add(Rule::new(Fault::Hold).on(Operation::GetStream).times(1));
    let reading = {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { bench.bytes("a").await })
    };
    held.wait_struck(1).await;
    bench.put("a", &large(2), json!({})).await.unwrap();
    held.release();
    assert_eq!(reading.await.unwrap().unwrap(), large(2));
}

#[tokio::test]
async fn a_body_that_is_missing_is_an_error_and_never_an_absence() {
    let bench = Bench::new();
    bench.put("a", &large(1), json!({})).await.unwrap();
    let body = bench.stored(&r2_bodies_prefix(&bench.name)).await.remove(0);
    bench.faults.inner().delete(&body).await.unwrap();
    let error = bench.ask(json!({ "method": "get", "key": "a" }), b"").await.unwrap_err();
    assert_eq!(error, "get: We encountered an internal error. Please try again. (10001)");
}

#[tokio::test]
async fn a_sweep_takes_bodies_of_puts_that_died_and_no_others() {
    let bench = Bench::new();
    bench.put("a", &large(1), json!({})).await.unwrap();
    bench.put("deleted", b"x", json!({})).await.unwrap();
    bench.delete(&["deleted"]).await.unwrap();
    for key in ["a", "never", "deleted", "a/b"] {
        let id = R2BodyId::new(now_ms(), random().unwrap());
        let body = Key::R2Body(bench.name.clone(), key.to_owned(), id).to_string();
        bench.faults.inner().put(&body, Bytes::from_static(b"dead")).await.unwrap();
    }
    let old = bench.r2.sweep(&bench.name, Duration::from_secs(3_600)).await.unwrap();
    assert_eq!(old, Swept { bodies: 5, deleted: 0 }, "they may be of puts that go on");
    let swept = bench.r2.sweep(&bench.name, Duration::ZERO).await.unwrap();
    assert_eq!(swept, Swept { bodies: 5, deleted: 4 });
    assert_eq!((bench.bytes("a").await.unwrap(), bench.bodies().await), (large(1), 1));
    assert_eq!(bench.keys().await, ["a"]);
    // No record says any more what was barred.
    for key in ["a", "never", "deleted"] {
        assert!(bench.r2.look(&record_key(&bench.name, key)).await.unwrap().barred().is_empty(), "{key}");
    }
    assert_eq!(bench.r2.sweep(&bench.name, Duration::ZERO).await.unwrap(), Swept { bodies: 1, deleted: 0 });
}

#[tokio::test(start_paused = true)]
async fn a_sweep_forgets_what_one_that_died_had_barred() {
    let bench = Arc::new(Bench::new());
    let orphan = async |random| {
        let id = Key::R2Body(bench.name.clone(), "a".into(), R2BodyId::new(1, random)).to_string();
        bench.faults.inner().put(&id, Bytes::from_static(b"of a put that died")).await.unwrap();
    };
    let barred = async || bench.r2.look(&record_key(&bench.name, "a")).await.unwrap().barred().len();
    orphan(7).await;
    // It dies between its two writes of the record.
    let held = bench.faults.add(Rule::new(Fault::Hold).on(Operation::PutIf).after(1).times(1));
    let sweeping = {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { bench.r2.sweep(&bench.name, Duration::ZERO).await })
    };
    held.wait_struck(1).await;
    sweeping.abort();
    assert_eq!((bench.bodies().await, barred().await), (0, 1));
    orphan(8).await;
    assert_eq!(bench.r2.sweep(&bench.name, Duration::ZERO).await.unwrap().deleted, 1);
    assert_eq!((bench.bodies().await, barred().await), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_put_whose_body_was_swept_fails_and_the_object_before_stays() {
    // While the write of the record is on its way, and before the second look of one that lost a race.
    for loses_race in [false, true] {
        let bench = Arc::new(Bench::new());
        bench.put("a", &large(1), json!({})).await.unwrap();
        let (held, putting) = held_put(&bench).await;
        if loses_race {
            bench.put("a", &large(3), json!({})).await.unwrap();
        }
        let swept = bench.r2.sweep(&bench.name, Duration::ZERO).await.unwrap();
        assert_eq!(swept.deleted, 1);
        held.release();
        let error = putting.await.unwrap().unwrap_err();
        assert_eq!(error, "put: We encountered an internal error. Please try again. (10001)");
        let left = if loses_race { large(3) } else { large(1) };
        assert_eq!((bench.bytes("a").await.unwrap(), bench.bodies().await), (left, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_that_looks_between_the_two_steps_of_a_sweep_gives_up() {
    let bench = Arc::new(Bench::new());
    bench.put("a", &large(1), json!({})).await.unwrap();
    let (put, putting) = held_put(&bench).await;
    // The sweep has barred the body and is about to delete it.
    let deletes = bench.faults.add(Rule::new(Fault::Hold).on(Operation::DeleteMany).times(1));
    let sweeping = {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { bench.r2.sweep(&bench.name, Duration::ZERO).await })
    };
    deletes.wait_struck(1).await;
    // Another put goes over the sweep's record, and carries on what it says.
    bench.put("a", &large(3), json!({})).await.unwrap();
    put.release();
    assert!(putting.await.unwrap().is_err());
    deletes.release();
    assert_eq!(sweeping.await.unwrap().unwrap().deleted, 1);
    assert_eq!((bench.bytes("a").await.unwrap(), bench.bodies().await), (large(3), 1));
}

#[tokio::test(start_paused = true)]
async fn uploads_wait_for_room() {
    let bench = Arc::new(Bench::new());
    let all = bench.r2.uploads.clone().acquire_many_owned(UPLOAD_ROOM_MIB).await.unwrap();
    assert!(bench.put("small", b"needs no room", json!({})).await.unwrap());
    let error = bench.put("a", &large(1), json!({})).await.unwrap_err();
    assert!(error.ends_with("(10043)"), "{error}");
    drop(all);
    assert!(bench.put("a", &large(1), json!({})).await.unwrap());
    assert_eq!(bench.r2.uploads.available_permits(), usize::try_from(UPLOAD_ROOM_MIB).unwrap());
}
