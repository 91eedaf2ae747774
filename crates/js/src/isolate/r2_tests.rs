//! R2 buckets, over the store that keeps their objects in a fleet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use holdfast_bucket::{BucketError, ByteStream, ErrorKind, MemoryBucket};
use holdfast_r2::{Answer, AnswerBody, R2};
use http::Method;

use crate::application::Binding;
use crate::effect::{
    Effect, EventCall, EventId, IncomingBody, IncomingBodyId, IncomingRequest, JsError, Op, OpAnswer, OpId,
    OutgoingBody, OutgoingBodyId,
};
use crate::testing::application;
use crate::testing::world::World;

/// An isolate and a bucket beside it.
struct Bench {
    world: World,
    r2: R2,
    runtime: tokio::runtime::Runtime,
    /// Operations that were looked at.
    begun: usize,
    /// Effects that were looked at.
    seen: usize,
    /// Puts whose bodies are still coming, and what has come.
    puts: BTreeMap<OutgoingBodyId, (OpId, Bytes, Vec<Bytes>)>,
    /// Bodies that the isolate reads.
    reads: BTreeMap<IncomingBodyId, VecDeque<Bytes>>,
}

impl Bench {
    fn new(source: &str) -> Self {
        let code = application(source).bind("B", Binding::R2Bucket { name: "photos".to_owned() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self {
            world: World::worker(code),
            r2: R2::new(Arc::new(MemoryBucket::new())),
            runtime,
            begun: 0,
            seen: 0,
            puts: BTreeMap::new(),
            reads: BTreeMap::new(),
        }
    }

    fn ask(&mut self, op: OpId, request: &[u8], body: Vec<Result<Bytes, BucketError>>) {
        let body: ByteStream = futures::stream::iter(body).boxed();
        let answer = self.runtime.block_on(self.r2.answer("photos", request, body));
        let answer = match answer {
            Err(error) => OpAnswer::Failed(JsError::new(error.to_string())),
            Ok(Answer { head, body }) => {
                let body = match body {
                    AnswerBody::None => IncomingBody::None,
                    AnswerBody::Whole(bytes) => IncomingBody::Whole(bytes),
                    AnswerBody::Stream { stream, .. } => {
                        let id = IncomingBodyId::new(op.get());
                        let pieces = self.runtime.block_on(stream.collect::<Vec<_>>());
                        self.reads.insert(id, pieces.into_iter().map(Result::unwrap).collect());
                        IncomingBody::Stream(id)
                    }
                };
                OpAnswer::Object { head, body }
            }
        };
        self.world.complete(op, answer);
    }

    fn end_put(&mut self, body: OutgoingBodyId, error: Option<String>) {
        let Some((op, request, chunks)) = self.puts.remove(&body) else { return };
        let broken = error.map(|error| Err(BucketError::new("put", "", ErrorKind::BadBody, error)));
        self.ask(op, &request, chunks.into_iter().map(Ok).chain(broken).collect());
    }

    fn begin(&mut self, op: OpId, call: Op) {
        match call {
            Op::AskBucket { bucket, request, body } => {
                assert_eq!(bucket, "photos");
                match body {
                    OutgoingBody::None => self.ask(op, &request, Vec::new()),
                    OutgoingBody::Whole(bytes) => self.ask(op, &request, vec![Ok(bytes)]),
                    OutgoingBody::Stream(id) => drop(self.puts.insert(id, (op, request, Vec::new()))),
                }
            }
            Op::WriteBody { body, chunk } => match self.puts.get_mut(&body) {
                Some((_, _, chunks)) => {
                    chunks.push(chunk);
                    self.world.complete(op, OpAnswer::Written);
                }
                // A part of the answer.
                None => self.world.complete(op, OpAnswer::Failed(JsError::new("nobody reads"))),
            },
            Op::ReadBody { body } => {
                let chunk = self.reads.get_mut(&body).and_then(VecDeque::pop_front);
                self.world.complete(op, OpAnswer::Chunk(chunk));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Runs until nothing is asked any more.
    fn run(&mut self, event: EventId) -> String {
        loop {
            if let Some((op, call)) = self.world.ops().get(self.begun).cloned() {
                self.begun += 1;
                self.begin(op, call);
            } else if let Some(effect) = self.world.effects.get(self.seen).cloned() {
                self.seen += 1;
                match effect {
                    Effect::EndBody { body } => self.end_put(body, None),
                    Effect::AbortBody { body, error } => self.end_put(body, Some(error.to_string())),
                    _ => {}
                }
            } else {
                return self.world.text(event);
            }
        }
    }
}

fn source(body: &str) -> String {
    format!(
        "const fails = promise => promise.then(value => `no error: ${{value}}`, error => `${{error}}`);
         const large = new Uint8Array(100_000).fill(7);
         export default {{ async fetch(request, {{ B }}) {{
            try {{
                return Response.json(await (async () => {{ {body} }})() ?? null);
            }} catch (error) {{
                return new Response(`${{error}} ${{error.stack}}`);
            }}
         }} }}"
    )
}

/// What `body`, the body of an async function of `request` and `B`, returns as JSON.
fn run(body: &str) -> String {
    let mut bench = Bench::new(&source(body));
    let event = bench.world.get("http://x/");
    bench.run(event)
}

#[test]
fn an_object_has_the_properties_of_r2() {
    let body = "
        const put = await B.put('a/b', 'abc', { httpMetadata: { contentType: 'text/plain', cacheExpiry: new Date(1000) },
            customMetadata: { z: 1, a: 'é' }, sha1: 'A9993E364706816ABA3E25717850C26C9CD0D89D' });
        const got = await B.get('a/b');
        const head = await B.head('a/b');
        const shown = object => ({ ...JSON.parse(JSON.stringify(object)), uploaded: object.uploaded instanceof Date, version: object.version.length });
        return [shown(put), JSON.stringify(shown(got)) === JSON.stringify(shown(head)), got.range, await got.text(),
            [...new Uint8Array(put.checksums.sha1)].length, put.checksums.sha256, put.httpMetadata.cacheExpiry.getTime(),
            Object.prototype.toString.call(put), put.version === got.version, await B.get('absent'), await B.head('absent')]";
    assert_eq!(
        run(body),
        concat!(
            r#"[{"key":"a/b","version":32,"size":3,"etag":"900150983cd24fb0d6963f7d28e17f72","httpEtag":"\"900150983cd24fb0d6963f7d28e17f72\"","#,
            r#""checksums":{"md5":"900150983cd24fb0d6963f7d28e17f72","sha1":"a9993e364706816aba3e25717850c26c9cd0d89d"},"uploaded":true,"#,
            r#""httpMetadata":{"contentType":"text/plain","cacheExpiry":"1970-01-01T00:00:01.000Z"},"customMetadata":{"z":"1","a":"é"},"storageClass":"Standard"},"#,
            r#"true,{"offset":0,"length":3},"abc",20,null,1000,"[object HeadResult]",true,null,null]"#,
        )
    );
}

#[test]
fn a_handler_puts_nothing_above_the_class_of_an_object() {
    let body = "
        const Class = (await B.put('a', 'abc'), await B.get('a')).constructor;
        const told = [];
        const above = function (...given) { told.push(given.length); return {}; };
        const moved = await fails((async () => Object.setPrototypeOf(Class, above))());
        return [moved.split(':')[0], await (await B.get('a')).text(), told.length]";
    assert_eq!(run(body), r#"["TypeError","abc",0]"#);
}

#[test]
fn every_kind_of_value_is_put_and_every_kind_of_reading_works() {
    let body = "
        const bytes = new Uint8Array([1, 2, 3]);
        const values = { text: 'é', buffer: bytes.buffer, view: new DataView(bytes.buffer, 1), blob: new Blob(['b', 'c']), nothing: null,
            missing: undefined, large };
        const sizes = {};
        for (const key of Object.keys(values)) sizes[key] = (await B.put(key, values[key])).size;
        const got = await B.get('large');
        const before = got.bodyUsed;
        const copy = await got.bytes();
        return [sizes, (await (await B.get('view')).arrayBuffer()).byteLength, await (await B.get('text')).text(),
            await (await B.get('blob')).blob().then(blob => [blob.size, blob.type]), (await (await B.get('nothing')).text()),
            before, got.bodyUsed, copy.length, copy.every(byte => byte === 7), await fails(got.text()),
            await B.put('json', '{\"a\":1}').then(() => B.get('json')).then(object => object.json()),
            got.formData, await fails(B.put('bad', 5)), await fails(B.put('bad')), await fails(B.put('bad', {}))]";
    assert_eq!(
        run(body),
        concat!(
            r#"[{"text":2,"buffer":3,"view":2,"blob":2,"nothing":0,"missing":0,"large":100000},2,"é",[2,""],"",false,true,100000,true,"#,
            r#""TypeError: Body has already been used. It can only be used once. Use tee() first if you need to read it twice.",{"a":1},null,"#,
            r#""TypeError: Failed to execute 'put' on 'R2Bucket': parameter 2 is not of type 'ReadableStream or ArrayBuffer or ArrayBufferView or string or Blob'.","#,
            r#""TypeError: Failed to execute 'put' on 'R2Bucket': 2 arguments required, but only 1 present.","#,
            r#""TypeError: Failed to execute 'put' on 'R2Bucket': parameter 2 is not of type 'ReadableStream or ArrayBuffer or ArrayBufferView or string or Blob'."]"#,
        )
    );
}

#[test]
fn a_stream_is_put_where_its_length_is_known() {
    let body = "
        const unknown = new ReadableStream({ pull(controller) { controller.enqueue(new Uint8Array(3)); controller.close(); } });
        const fixed = (length, given) => {
            const { readable, writable } = new FixedLengthStream(length);
            const writer = writable.getWriter();
            (async () => { for (let at = 0; at < given; at += 1000) await writer.write(new Uint8Array(1000)); await writer.close(); })().catch(() => {});
            return readable;
        };
        const put = await B.put('fixed', fixed(50_000, 50_000));
        const copied = await B.put('copy', (await B.get('fixed')).body);
        const response = await B.put('response', new Response('abc').body);
        const bad = new FixedLengthStream(1);
        let cancelled;
        const source = new ReadableStream({ cancel(reason) { cancelled = `${reason}`; } });
        return [put.size, copied.size, copied.etag === put.etag, response.size, await fails(B.put('unknown', unknown)),
            await fails(B.put('short', fixed(5_000, 3_000))), await B.head('short'), (bad.readable.getReader(), await fails(B.put('locked', bad.readable))),
            await fails(B.put('source', source, { md5: '0' })), cancelled]";
    assert_eq!(
        run(body),
        concat!(
            r#"[50000,50000,true,3,"TypeError: Provided readable stream must have a known length (request/response body or readable half of FixedLengthStream)","#,
            r#""TypeError: FixedLengthStream did not see all expected bytes before close().",null,"#,
            r#""TypeError: This ReadableStream is currently locked to a reader.","TypeError: MD5 is 32 hex characters, not 1","#,
            r#""Error: Stream cancelled because the associated put operation encountered an error."]"#,
        )
    );
}

#[test]
fn the_body_of_a_request_is_put_where_its_fields_say_how_long_it_is() {
    let told = |length: Option<&'static str>| {
        let mut bench = Bench::new(&source(
            "return [await B.put('a', request.body).then(put => put.size, error => `${error}`)]",
        ));
        let id = IncomingBodyId::new(1_000);
        let chunks = ["ab", "cde"].map(|text| Bytes::from_static(text.as_bytes()));
        bench.reads.insert(id, chunks.into_iter().collect());
        let mut headers = http::HeaderMap::new();
        if let Some(length) = length {
            headers.insert("content-length", http::HeaderValue::from_static(length));
        }
        let (method, url, body) = (Method::PUT, "http://x/".to_owned(), IncomingBody::Stream(id));
        let event =
            bench.world.dispatch(EventCall::Fetch(IncomingRequest { method, url, headers, body, cf: None }));
        bench.run(event)
    };
    assert_eq!(told(Some("5")), "[5]");
    assert!(told(None).contains("must have a known length"));
    assert_eq!(told(Some("6")), r#"["TypeError: The body has 5 of the 6 bytes that it promised."]"#);
    assert_eq!(told(Some("4")), r#"["TypeError: The body has more than the 4 bytes that it promised."]"#);
}

#[test]
fn conditions_come_as_objects_and_as_fields() {
    let body = "
        const { etag, httpEtag, uploaded } = await B.put('a', 'one');
        const got = async onlyIf => (await B.get('a', { onlyIf })).body !== undefined;
        const put = async (key, onlyIf) => (await B.put(key, 'one', { onlyIf })) !== null;
        const later = new Date(uploaded.getTime() + 60_000), before = new Date(uploaded.getTime() - 60_000);
        const fields = init => new Headers(init);
        return [await got({ etagMatches: etag }), await got({ etagMatches: 'x' }), await got({ etagDoesNotMatch: etag }), await got({ etagDoesNotMatch: '*' }),
            await got({ uploadedBefore: later }), await got({ uploadedAfter: later }), await got({ uploadedAfter: before.getTime() }),
            await got(fields({ 'If-Match': `\"x\", W/\"y\",${httpEtag}` })), await got(fields({ 'If-None-Match': `W/${httpEtag}` })), await got(fields({ 'If-Match': '*' })),
            await got(fields({ 'If-Modified-Since': later.toUTCString() })), await got(fields({ 'If-Unmodified-Since': later.toUTCString() })),
            await got(fields({ 'If-Modified-Since': 'no date' })),
            await put('new', { etagDoesNotMatch: '*' }), await put('new', { etagDoesNotMatch: '*' }), await put('other', { etagMatches: '*' }),
            await put('a', fields({ 'If-Match': httpEtag })),
            await fails(got({ etagMatches: httpEtag })), await fails(got(fields({ 'If-Match': '\"a\" \"b\"' }))), await fails(got(fields({ 'If-Match': '\"a' }))),
            await fails(got({ uploadedAfter: 'x' }))]";
    assert_eq!(
        run(body),
        concat!(
            "[true,false,false,false,true,false,true,true,false,true,false,true,true,true,false,false,true,",
            r#""TypeError: Conditional ETag should not be wrapped in quotes (\"f97c5d29941bfb1b2fdab0874906ab82\").","#,
            r#""Error: Comma was expected to separate etags.","Error: Unclosed double quote for Etag","#,
            r#""TypeError: The value cannot be converted because it is not a valid date."]"#,
        )
    );
}

#[test]
fn ranges_come_as_objects_and_as_fields() {
    let body = "
        await B.put('a', '0123456789');
        const got = async range => { const object = await B.get('a', { range }); return [await object.text(), object.range]; };
        return [await got({ offset: 2, length: 3 }), await got({ offset: 7 }), await got({ length: 2 }), await got({ suffix: 2 }), await got({ offset: 5, length: Infinity }),
            await got(new Headers({ Range: 'bytes=1-2' })), await got(new Headers()),
            await fails(got({ offset: 10 })), await fails(got({ offset: -1 })), await fails(got({ length: 1.5 })), await fails(got({ suffix: -2 })),
            await fails(got({ suffix: 1, offset: 1 })), await fails(got({ suffix: 1, length: 1 }))]";
    assert_eq!(
        run(body),
        concat!(
            r#"[["234",{"offset":2,"length":3}],["789",{"offset":7,"length":3}],["01",{"offset":0,"length":2}],["89",{"offset":8,"length":2}],["56789",{"offset":5,"length":5}],"#,
            r#"["12",{"offset":1,"length":2}],["0123456789",{"offset":0,"length":10}],"#,
            r#""Error: get: The requested range is not satisfiable (10039)","#,
            r#""RangeError: Invalid range. Starting offset (-1) must be greater than or equal to 0.","#,
            r#""RangeError: Invalid range. Length (1.5) must be an integer, not floating point.","#,
            r#""RangeError: Invalid suffix. Suffix (-2) must be greater than or equal to 0.","#,
            r#""TypeError: Suffix is incompatible with offset.","TypeError: Suffix is incompatible with length."]"#,
        )
    );
}

#[test]
fn checksums_are_checked() {
    let body = "
        const sha256 = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
        const bytes = Uint8Array.from(sha256.match(/../g), byte => parseInt(byte, 16));
        return [(await B.put('a', 'abc', { sha256: bytes.buffer })).checksums.toJSON().sha256 === sha256,
            await fails(B.put('a', 'abd', { sha256: bytes })), await fails(B.put('a', 'abc', { md5: 'g'.repeat(32) })),
            await fails(B.put('a', 'abc', { sha1: new Uint8Array(3) })), await fails(B.put('a', 'abc', { md5: '0'.repeat(32), sha1: '0'.repeat(40) })),
            await (await B.get('a')).text()]";
    assert_eq!(
        run(body),
        concat!(
            r#"[true,"Error: put: The SHA-256 checksum you specified did not match what we received.\nYou provided a SHA-256 checksum with value: "#,
            r#"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\nActual SHA-256 was: a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9 (10037)","#,
            r#""TypeError: Provided MD5 wasn't a valid hex string","TypeError: SHA-1 is 20 bytes, not 3","TypeError: You cannot specify multiple hashing algorithms.","abc"]"#,
        )
    );
}

#[test]
fn metadata_for_http_go_in_and_out_of_fields() {
    let body = "
        const given = new Headers({ 'Content-Type': 'image/png', 'Content-Language': 'de', 'Content-Disposition': 'inline', 'Content-Encoding': 'gzip',
            'Cache-Control': 'no-store', Expires: 'Thu, 01 Jan 1970 00:00:05 GMT', Other: 'x' });
        await B.put('a', 'abc', { httpMetadata: given });
        const object = await B.head('a');
        const headers = new Headers();
        object.writeHttpMetadata(headers);
        const listed = (await B.list()).objects[0];
        const blob = await (await B.get('a')).blob();
        return [[...headers], object.httpMetadata.cacheExpiry.getTime(), blob.type, await fails((async () => listed.writeHttpMetadata(headers))()),
            await fails((async () => object.writeHttpMetadata({}))())]";
    assert_eq!(
        run(body),
        concat!(
            r#"[[["cache-control","no-store"],["content-disposition","inline"],["content-encoding","gzip"],["content-language","de"],["content-type","image/png"],"#,
            r#"["expires","Thu, 01 Jan 1970 00:00:05 GMT"]],5000,"image/png","#,
            r#""TypeError: HTTP metadata unknown for key `a`. Did you forget to add 'httpMetadata' to `include` when listing?","#,
            r#""TypeError: Failed to execute 'writeHttpMetadata' on 'R2Object': parameter 1 is not of type 'Headers'."]"#,
        )
    );
}

#[test]
fn listings_have_pages_prefixes_and_what_is_asked_of_each_object() {
    let body = "
        for (const key of ['a', 'b/1', 'b/2', 'c/1', 'd']) await B.put(key, key, { customMetadata: { key } });
        const names = ({ objects, ...rest }) => [objects.map(object => object.key), rest.truncated, typeof rest.cursor, rest.delimitedPrefixes];
        const first = await B.list({ limit: 2 });
        const withCustom = await B.list({ prefix: 'b/', include: ['customMetadata'] });
        return [names(await B.list()), names(first), names(await B.list({ limit: 2, cursor: first.cursor })), names(await B.list({ delimiter: '/' })),
            names(await B.list({ prefix: 'b/', startAfter: 'b/1' })), withCustom.objects.map(object => [object.customMetadata, object.httpMetadata]),
            first.objects[0].customMetadata, await fails(B.list({ limit: 0 })), await fails(B.list({ limit: 1001 })), await fails(B.list({ include: ['x'] })), await fails(B.list({ prefix: 1 }))]";
    assert_eq!(
        run(body),
        concat!(
            r#"[[["a","b/1","b/2","c/1","d"],false,"undefined",[]],[["a","b/1"],true,"string",[]],[["b/2","c/1"],true,"string",[]],[["a","d"],false,"undefined",["b/","c/"]],"#,
            r#"[["b/2"],false,"undefined",[]],[[{"key":"b/1"},null],[{"key":"b/2"},null]],null,"#,
            r#""Error: list: MaxKeys params must be positive integer <= 1000. (10022)","Error: list: MaxKeys params must be positive integer <= 1000. (10022)","#,
            r#""RangeError: Unsupported include value x","TypeError: The option prefix of a listing must be a string."]"#,
        )
    );
}

#[test]
fn keys_are_deleted_one_by_one_or_many_at_once() {
    let body = "
        for (const key of ['a', 'b', 'c']) await B.put(key, large);
        return [await B.delete('a'), await B.delete(['b', 'absent']), (await B.list()).objects.map(object => object.key), await fails(B.delete(Array(1001).fill('x')))]";
    assert_eq!(
        run(body),
        r#"[null,null,["c"],"Error: delete: A delete takes at most 1000 keys, not 1001. (10029)"]"#
    );
}

#[test]
fn errors_of_r2_are_told_with_method_and_code() {
    let body = "
        const key = 'k'.repeat(1025);
        return [await fails(B.put(key, '')), await fails(B.get(key)), await fails(B.head(key)), await fails(B.delete(key)),
            await fails(B.put('a', '', { customMetadata: { a: 'b'.repeat(2048) } })), await fails(B.createMultipartUpload(key)),
            await fails(B.resumeMultipartUpload('a', 'b').abort()), await fails(B.put('a', '', { ssecKey: 'x' })), await fails(B.get())]";
    assert_eq!(
        run(body),
        concat!(
            r#"["Error: put: The specified object name is not valid. (10020)","Error: get: The specified object name is not valid. (10020)","#,
            r#""Error: head: The specified object name is not valid. (10020)","Error: delete: The specified object name is not valid. (10020)","#,
            r#""Error: put: Your metadata headers exceed the maximum allowed metadata size. (10012)","#,
            r#""Error: createMultipartUpload: The specified object name is not valid. (10020)","#,
            r#""Error: abortMultipartUpload: The specified multipart upload does not exist. (10024)","#,
            r#""Error: ssecKey of an R2 bucket is not supported yet.","TypeError: Failed to execute 'get' on 'R2Bucket': 1 argument required, but only 0 present."]"#,
        )
    );
}

#[test]
fn a_multipart_upload_becomes_an_object() {
    let body = "
        const part = new Uint8Array(5 << 20).fill(1);
        const options = { httpMetadata: { contentType: 'text/plain' }, customMetadata: { b: 'c' } };
        const upload = await B.createMultipartUpload('a', options);
        const second = await B.resumeMultipartUpload('a', upload.uploadId).uploadPart(2, new Response('end').body);
        const first = await upload.uploadPart(1, part);
        const before = await B.head('a');
        const object = await upload.complete([second, first]);
        const got = await B.get('a', { range: { offset: part.length - 1 } });
        return [upload.key, upload.uploadId.length, Object.keys(first), first.partNumber, typeof first.etag, before, object.size,
            /^[0-9a-f]{32}-2$/.test(object.etag), object.checksums, object.customMetadata, got.httpMetadata.contentType,
            [...await got.bytes()], Object.prototype.toString.call(upload), await fails(upload.abort())]";
    assert_eq!(
        run(body),
        concat!(
            r#"["a",32,["partNumber","etag"],1,"string",null,5242883,true,{},{"b":"c"},"text/plain",[1,101,110,100],"#,
            r#""[object R2MultipartUpload]","Error: abortMultipartUpload: The specified multipart upload does not exist. (10024)"]"#,
        )
    );
}

#[test]
fn what_a_multipart_upload_is_given_is_checked() {
    let body = "
        const upload = await B.createMultipartUpload('a');
        const taken = await upload.uploadPart('3', 'x');
        const stream = new ReadableStream();
        return [taken.partNumber, await fails(upload.uploadPart(0, stream)), await fails(upload.uploadPart(10001, 'x')),
            await fails(upload.uploadPart(1)), await fails(upload.uploadPart(1, 5)), await fails(upload.complete()),
            await fails(upload.complete('x')), await fails(upload.complete([{ partNumber: 1 }])), await fails(upload.complete([])),
            await fails(upload.complete([{ partNumber: 1, etag: 'x' }])), await fails(upload.uploadPart(1, 'x', { ssecKey: 'x' })),
            await fails(B.createMultipartUpload('a', { ssecKey: 'x' })), (() => { try { new upload.constructor(); } catch (error) { return error.message; } })(),
            await upload.abort(), await fails(upload.uploadPart(1, 'x'))]";
    let range = "TypeError: Part number must be between 1 and 10000 (inclusive). Actual value was:";
    let of = "on 'R2MultipartUpload'";
    let expected = serde_json::json!([
        3,
        format!("{range} 0"),
        format!("{range} 10001"),
        format!("TypeError: Failed to execute 'uploadPart' {of}: 2 arguments required, but only 1 present."),
        format!(
            "TypeError: Failed to execute 'uploadPart' {of}: parameter 2 is not of type 'ReadableStream or ArrayBuffer or ArrayBufferView or string or Blob'."
        ),
        format!("TypeError: Failed to execute 'complete' {of}: 1 argument required, but only 0 present."),
        format!("TypeError: Failed to execute 'complete' {of}: parameter 1 is not of type 'Array'."),
        "TypeError: A part of a multipart upload has a partNumber and an etag.",
        "Error: completeMultipartUpload: There was a problem with the multipart upload. (10048)",
        "Error: completeMultipartUpload: One or more of the specified parts could not be found. (10025)",
        "Error: ssecKey of an R2 bucket is not supported yet.",
        "Error: ssecKey of an R2 bucket is not supported yet.",
        "Illegal constructor",
        null,
        "Error: uploadPart: The specified multipart upload does not exist. (10024)",
    ]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&run(body)).unwrap(), expected);
}

#[test]
fn an_object_is_answered_as_it_comes() {
    let source = "export default { async fetch(request, { B }) {
        await B.put('a', new Uint8Array(100_000));
        const object = await B.get('a');
        return new Response(object.body, { headers: { etag: object.httpEtag } });
    } }";
    let mut bench = Bench::new(source);
    let event = bench.world.get("http://x/");
    while bench.world.response(event).is_none() {
        let (op, call) = bench.world.ops()[bench.begun].clone();
        bench.begun += 1;
        bench.begin(op, call);
    }
    let response = bench.world.response(event).unwrap();
    assert!(matches!(response.body, OutgoingBody::Stream(_)), "{response:?}");
    assert_eq!(response.headers["etag"].len(), 34);
}
