//! R2 buckets of objects: what is put, and what is read, waits for what the object wrote.

use futures::poll;

use super::js::Js;
use super::support::Client;

const FILES: &str = r"
    import { DurableObject } from 'cloudflare:workers';
    export default {};
    export class Rows extends DurableObject {
        constructor(ctx, env) {
            super(ctx, env);
            ctx.storage.sql.exec('CREATE TABLE IF NOT EXISTS t(a)');
        }
        insert() { this.ctx.storage.sql.exec('INSERT INTO t VALUES (1)'); }
        async fetch(request) {
            const { FILES } = this.env;
            switch (new URL(request.url).pathname) {
                case '/rows': return new Response(`${this.ctx.storage.sql.exec('SELECT count(*) AS n FROM t').one().n}`);
                case '/put': this.insert(); await FILES.put('a', 'small'); return new Response('put');
                case '/put-large': this.insert(); await FILES.put('b', new Uint8Array(100_000)); return new Response('put');
                case '/delete': this.insert(); await FILES.delete('a'); return new Response('deleted');
                case '/get': this.insert(); return new Response(await (await FILES.get('a')).text());
                case '/put-then-throw': {
                    await FILES.put('c', 'before');
                    this.insert();
                    throw new Error('after');
                }
                case '/stream': {
                    const { readable, writable } = new FixedLengthStream(60_000);
                    const put = FILES.put('s', readable);
                    const writer = writable.getWriter();
                    await writer.write(new Uint8Array(30_000));
                    this.insert();
                    await writer.write(new Uint8Array(30_000));
                    await writer.close();
                    return new Response(`${(await put).size}`);
                }
                case '/read': return (await FILES.get('b')) === null ? new Response('none') : new Response((await FILES.get('b')).body);
            }
        }
    }
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_put_or_deleted_while_proofs_are_blocked() {
    let js = Js::new(FILES).await;
    assert_eq!(js.text("/rows").await, "0");
    for (path, answer, keys) in [("/put", "put", 1), ("/put-large", "put", 3), ("/delete", "deleted", 3)] {
        let before = js.bench.keys("r2/").await;
        let held = js.bench.hold_uploads();
        let mut asking = js.bench.spawn(path, Client::empty());
        js.bench.upload_is_held(&held).await;
        js.bench.quiet_thread().await;
        assert_eq!(js.bench.keys("r2/").await, before, "{path}");
        assert!(poll!(&mut asking).is_pending(), "{path}");
        held.release();
        assert_eq!(asking.await.unwrap().unwrap().text().await, answer);
        assert_eq!(js.bench.keys("r2/").await.len(), keys, "{path}");
    }
    assert_eq!(js.text("/rows").await, "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_after_a_write_waits_for_it_too() {
    let js = Js::new(FILES).await;
    assert_eq!(js.text("/put").await, "put");
    let held = js.bench.hold_uploads();
    let mut getting = js.bench.spawn("/get", Client::empty());
    js.bench.upload_is_held(&held).await;
    js.bench.quiet_thread().await;
    assert!(poll!(&mut getting).is_pending());
    held.release();
    assert_eq!(getting.await.unwrap().unwrap().text().await, "small");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_put_waits_in_the_middle() {
    let js = Js::new(FILES).await;
    assert_eq!(js.text("/rows").await, "0");
    let held = js.bench.hold_uploads();
    let mut putting = js.bench.spawn("/stream", Client::empty());
    js.bench.upload_is_held(&held).await;
    js.bench.quiet_thread().await;
    assert!(js.bench.keys("r2/").await.is_empty());
    assert!(poll!(&mut putting).is_pending());
    held.release();
    assert_eq!(putting.await.unwrap().unwrap().text().await, "60000");
    assert_eq!(js.bench.keys("r2/").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_object_streams_through_an_object_of_the_application() {
    let js = Js::new(FILES).await;
    assert_eq!(js.text("/read").await, "none");
    assert_eq!(js.text("/put-large").await, "put");
    assert_eq!(js.text("/read").await.len(), 100_000);
}
