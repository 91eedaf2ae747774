//! TCP connections of objects: what is written, and the connection itself, waits for what the object wrote.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use futures::poll;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::js::Js;
use super::support::{Client, PATIENCE};

const DIALS: &str = r"
    import { DurableObject } from 'cloudflare:workers';
    import { connect } from 'cloudflare:sockets';
    export default {};
    export class Rows extends DurableObject {
        constructor(ctx, env) {
            super(ctx, env);
            ctx.storage.sql.exec('CREATE TABLE IF NOT EXISTS t(a)');
        }
        insert() { this.ctx.storage.sql.exec('INSERT INTO t VALUES (1)'); }
        async fetch(request) {
            const [, what, more] = new URL(request.url).pathname.split('/');
            switch (what) {
                case 'rows': return new Response(`${this.ctx.storage.sql.exec('SELECT count(*) AS n FROM t').one().n}`);
                case 'insert': this.insert(); return new Response('inserted');
                case 'open': {
                    this.socket = connect(`127.0.0.1:${more}`);
                    this.reader = this.socket.readable.getReader();
                    this.writer = this.socket.writable.getWriter();
                    await this.socket.opened;
                    return new Response('open');
                }
                case 'insert-open': this.insert(); connect(`127.0.0.1:${more}`); return new Response('opening');
                case 'insert-say': this.insert(); await this.writer.write(more); return new Response('said');
                case 'say': await this.writer.write(more); return new Response('said');
                case 'hear': return new Response((await this.reader.read()).value);
                case 'insert-end': this.insert(); await this.writer.close(); return new Response('ended');
                case 'insert-close': this.insert(); await this.socket.close(); return new Response('closed');
            }
        }
    }
";

/// An object with a connection, and the server's end of it.
async fn connected() -> (Js, TcpStream, TcpListener) {
    let js = Js::new(DIALS).await;
    assert_eq!(js.text("/rows").await, "0");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let opening = js.bench.spawn(&path("open", listener.local_addr().unwrap()), Client::empty());
    let (server, _) = listener.accept().await.unwrap();
    assert_eq!(opening.await.unwrap().unwrap().text().await, "open");
    (js, server, listener)
}

fn path(what: &str, address: SocketAddr) -> String {
    format!("/{what}/{}", address.port())
}

/// Nothing has come, not even an end, in time enough for it.
async fn nothing_comes(server: &TcpStream) {
    tokio::time::sleep(Duration::from_millis(100)).await;
    let read = server.try_read(&mut [0; 8]);
    assert_eq!(read.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
}

async fn heard(server: &mut TcpStream, text: &str) {
    let mut buffer = vec![0; text.len()];
    tokio::time::timeout(PATIENCE, server.read_exact(&mut buffer)).await.expect(text).unwrap();
    assert_eq!(String::from_utf8_lossy(&buffer), text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_said_on_a_connection_while_proofs_are_blocked() {
    let (js, mut server, _listener) = connected().await;
    assert_eq!(js.text("/say/before").await, "said");
    heard(&mut server, "before").await;
    let held = js.bench.hold_uploads();
    let mut saying = js.bench.spawn("/insert-say/after", Client::empty());
    js.bench.upload_is_held(&held).await;
    // What another event says is behind it.
    let mut more = js.bench.spawn("/say/more", Client::empty());
    js.bench.quiet_thread().await;
    nothing_comes(&server).await;
    assert!(poll!(&mut saying).is_pending() && poll!(&mut more).is_pending());
    held.release();
    heard(&mut server, "aftermore").await;
    assert_eq!(saying.await.unwrap().unwrap().text().await, "said");
    assert_eq!(more.await.unwrap().unwrap().text().await, "said");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_connection_is_opened_or_ended_while_proofs_are_blocked() {
    for (what, answer) in [("/insert-end", "ended"), ("/insert-close", "closed")] {
        let (js, mut server, listener) = connected().await;
        let held = js.bench.hold_uploads();
        let ending = js.bench.spawn(what, Client::empty());
        js.bench.upload_is_held(&held).await;
        let opening = js.bench.spawn(&path("insert-open", listener.local_addr().unwrap()), Client::empty());
        js.bench.quiet_thread().await;
        nothing_comes(&server).await;
        assert!(poll!(std::pin::pin!(listener.accept())).is_pending(), "{what}");
        held.release();
        assert_eq!(ending.await.unwrap().unwrap().text().await, answer);
        let read = tokio::time::timeout(PATIENCE, server.read(&mut [0; 8])).await.expect("it ends");
        assert_eq!(read.unwrap(), 0, "{what}");
        assert_eq!(opening.await.unwrap().unwrap().text().await, "opening");
        tokio::time::timeout(PATIENCE, listener.accept()).await.expect("it opens").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_heard_across_events_and_ends_with_its_isolate() {
    let (js, mut server, _listener) = connected().await;
    server.write_all(b"hello").await.unwrap();
    assert_eq!(js.text("/hear").await, "hello");
    // A read that waits does not hold others up.
    let hearing = js.bench.spawn("/hear", Client::empty());
    assert_eq!(js.text("/insert").await, "inserted");
    server.write_all(b"again").await.unwrap();
    assert_eq!(hearing.await.unwrap().unwrap().text().await, "again");
    js.bench.release().await.unwrap().unwrap();
    let mut rest = Vec::new();
    // A reset tells it, too.
    let _ = tokio::time::timeout(PATIENCE, server.read_to_end(&mut rest)).await.expect("it ends");
    assert!(rest.is_empty());
    assert_eq!(js.text("/rows").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_with_an_open_connection_does_not_fall_asleep_and_one_that_closed_it_does() {
    let (js, mut server, _listener) = connected().await;
    js.bench.quiet_thread().await;
    crate::release::sleep_idle(&js.bench.node).await;
    assert!(!js.bench.node.cells.is_empty(), "its connection is open");
    assert_eq!(js.text("/say/awake").await, "said");
    heard(&mut server, "awake").await;
    assert_eq!(js.text("/insert-close").await, "closed");
    js.bench.sleep().await;
    assert_eq!(js.text("/rows").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_whose_server_is_gone_falls_asleep() {
    let (js, server, _listener) = connected().await;
    let hearing = js.bench.spawn("/hear", Client::empty());
    js.bench.quiet_thread().await;
    drop(server);
    // Its end is the end of what is written, too.
    let _ = hearing.await.unwrap();
    js.bench.sleep().await;
}
