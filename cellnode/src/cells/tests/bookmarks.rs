//! Bookmarks of an object: exactly their states, the way to them and back, and what fails on the way.

use std::sync::atomic::Ordering;
use std::time::Duration;

use holdfast_bucket::Bucket as _;
use holdfast_core::lineage::Bookmark;
use holdfast_js::Limits;
use holdfast_types::{Epoch, Position, Txid};

use super::js::Js;
use super::support::{Client, PATIENCE};
use crate::clock;

/// Numbers, and the storage's methods by path; `b` is what they are given.
const NUMBERS: &str = r"
    import { DurableObject } from 'cloudflare:workers';
    export default {};
    export class Rows extends DurableObject {
        constructor(ctx, env) {
            super(ctx, env);
            this.sql = ctx.storage.sql;
            this.sql.exec('CREATE TABLE IF NOT EXISTS t(a)');
        }
        add(a) { this.sql.exec('INSERT INTO t VALUES (?)', a); }
        async answer(request) {
            const { pathname, searchParams } = new URL(request.url), { storage } = this.ctx, given = searchParams.get('b');
            switch (pathname) {
                case '/rows': return this.sql.exec('SELECT a FROM t ORDER BY a').toArray().map(({ a }) => a).join();
                case '/add': return this.add(Number(given));
                case '/between': {
                    this.add(1);
                    const bookmark = await storage.getCurrentBookmark();
                    this.add(2);
                    return bookmark;
                }
                case '/bookmark': return storage.getCurrentBookmark();
                case '/at': return storage.getBookmarkForTime(Number(given));
                case '/wish': return storage.onNextSessionRestoreBookmark(given);
                case '/alarm': return storage.setAlarm(Number(given));
                case '/alarm-at': return storage.getAlarm();
                case '/delete-all': return storage.deleteAll();
                case '/abort': return this.ctx.abort(new Error('again'));
                case '/sync': {
                    this.add(1);
                    const late = new Promise(resolve => setTimeout(resolve, 1, 'the timer came first'));
                    return Promise.race([storage.sync().then(() => 'synced'), late]);
                }
            }
        }
        alarm() {}
        async fetch(request) { return new Response(await this.answer(request).catch(error => `${error}`)); }
    }
";

async fn numbers() -> Js {
    Js::limited(NUMBERS, Limits { turn: PATIENCE, start: PATIENCE, ..Limits::default() }).await
}

impl Js {
    async fn with(&self, path: &str, given: &str) -> String {
        self.text(&format!("{path}?b={given}")).await
    }

    /// Ends the session.
    async fn abort(&self) {
        let thrown = self.bench.call("/abort").await.unwrap().reply.thrown.expect("it is aborted");
        assert!(thrown.message.contains("again"), "{}", thrown.message);
    }
}

/// Wishes for a state, and ends the session. Answers the bookmark that undoes it.
async fn restore(js: &Js, bookmark: &str) -> String {
    let undo = js.with("/wish", bookmark).await;
    assert!(!undo.starts_with("Error"), "{undo}");
    js.abort().await;
    undo
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bookmark_between_two_writes_leads_back_to_the_first_and_again_to_what_was() {
    let js = numbers().await;
    let bookmark = js.text("/between").await;
    assert_eq!(js.text("/rows").await, "1,2");
    let undo = js.with("/wish", &bookmark).await;
    assert!(bookmark < undo, "bookmarks sort: {bookmark}, {undo}");
    // The session goes on as it was; what it writes is part of the state that is undone to.
    assert_eq!(js.text("/rows").await, "1,2");
    js.with("/add", "3").await;
    let pending = js.with("/wish", &undo).await;
    assert!(pending.contains("has not taken place yet"), "{pending}");
    js.abort().await;
    assert_eq!(js.text("/rows").await, "1");
    // Once: the next session goes on from there.
    js.with("/add", "4").await;
    js.abort().await;
    assert_eq!(js.text("/rows").await, "1,4");
    let redo = restore(&js, &undo).await;
    assert_eq!(js.text("/rows").await, "1,2,3");
    restore(&js, &redo).await;
    assert_eq!(js.text("/rows").await, "1,4");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bookmark_holds_nothing_of_what_others_wrote_before_it_was_captured() {
    let js = numbers().await;
    assert_eq!(js.text("/rows").await, "");
    // While an upload is under way nothing is captured.
    let held = js.bench.hold_uploads();
    let first = js.bench.spawn("/add?b=0", Client::empty());
    js.bench.upload_is_held(&held).await;
    let between = js.bench.spawn("/between", Client::empty());
    js.bench.quiet_thread().await;
    let other = js.bench.spawn("/add?b=9", Client::empty());
    js.bench.quiet_thread().await;
    held.release();
    let bookmark = between.await.unwrap().unwrap().text().await;
    first.await.unwrap().unwrap();
    other.await.unwrap().unwrap();
    assert_eq!(js.text("/rows").await, "0,1,2,9");
    restore(&js, &bookmark).await;
    assert_eq!(js.text("/rows").await, "0,1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wish_is_carried_out_by_whoever_opens_the_object_next() {
    let js = numbers().await;
    let bookmark = js.text("/between").await;
    let undo = js.with("/wish", &bookmark).await;
    js.bench.release().await.unwrap().unwrap();
    js.bench.forget_local_files();
    assert_eq!(js.text("/rows").await, "1");
    js.with("/add", "3").await;
    js.bench.release().await.unwrap().unwrap();
    assert_eq!(js.text("/rows").await, "1,3");
    restore(&js, &undo).await;
    assert_eq!(js.text("/rows").await, "1,2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_comes_back_to_what_it_was_when_it_had_deleted_everything() {
    let js = numbers().await;
    js.text("/delete-all").await;
    let empty = js.text("/bookmark").await;
    assert_eq!(js.text("/bookmark").await, empty, "nothing was written meanwhile");
    js.abort().await;
    js.with("/add", "1").await;
    assert_eq!(js.text("/rows").await, "1");
    restore(&js, &empty).await;
    assert_eq!(js.text("/rows").await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_has_gone_ends_the_wish_and_the_object_goes_on() {
    let js = numbers().await;
    assert_eq!(js.text("/rows").await, "");
    let bookmark = js.text("/between").await;
    js.with("/wish", &bookmark).await;
    let Position { epoch, txid } = Bookmark::parse(&bookmark, &js.bench.cell()).unwrap().position;
    let ends = format!("{}.ltx", txid.to_hex());
    let keys = js.bench.keys("cells/").await;
    let gone: Vec<String> = keys.into_iter().filter(|key| key.ends_with(&ends)).collect();
    assert_eq!(gone.len(), 1, "epoch {epoch}: {gone:?}");
    js.bench.bucket().delete_many(&gone).await.unwrap();
    js.abort().await;
    assert_eq!(js.text("/rows").await, "1,2");
    js.abort().await;
    assert_eq!(js.text("/rows").await, "1,2");
    let said = js.with("/wish", &bookmark).await;
    let nearest = Position { epoch, txid: txid.previous().unwrap() };
    let nearest = Bookmark::at(nearest).text(&js.bench.cell());
    assert!(said.contains("is not kept by itself any more") && said.contains(&nearest), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_for_a_time_holds_events_back_and_loses_no_wish() {
    let js = numbers().await;
    let bookmark = js.text("/between").await;
    js.with("/wish", &bookmark).await;
    let failing = js.bench.fail_listings();
    js.abort().await;
    let rows = js.bench.spawn("/rows", Client::empty());
    // One look tries four times.
    failing.wait_struck(5).await;
    assert!(!rows.is_finished());
    failing.release();
    assert_eq!(rows.await.unwrap().unwrap().text().await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_is_what_it_was_then() {
    let js = numbers().await;
    let then = clock::wall().get() + 3_600_000;
    js.with("/alarm", &then.to_string()).await;
    let bookmark = js.text("/bookmark").await;
    js.with("/alarm", &(then + 5).to_string()).await;
    let undo = restore(&js, &bookmark).await;
    assert_eq!(js.text("/alarm-at").await, then.to_string());
    restore(&js, &undo).await;
    assert_eq!(js.text("/alarm-at").await, (then + 5).to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_has_the_bookmark_of_the_newest_state_before_it() {
    let js = numbers().await;
    let before = clock::wall();
    tokio::time::sleep(Duration::from_millis(5)).await;
    js.with("/add", "1").await;
    let between = clock::wall();
    tokio::time::sleep(Duration::from_millis(5)).await;
    js.with("/add", "2").await;
    let bookmark = js.with("/at", &between.get().to_string()).await;
    assert_eq!(js.with("/at", &between.get().to_string()).await, bookmark);
    let none = js.with("/at", &before.get().to_string()).await;
    assert!(none.contains("the cell had no transaction yet"), "{none}");
    let future = js.with("/at", &clock::wall().plus(60_000).get().to_string()).await;
    assert_eq!(future, "Error: getBookmarkForTime() cannot be called with a time in the future");
    restore(&js, &bookmark).await;
    assert_eq!(js.text("/rows").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_bookmark_of_the_object_is_an_error_that_says_why() {
    let js = numbers().await;
    let cell = js.bench.cell();
    js.text("/between").await;
    let other = holdfast_types::CellName::parse("Rows:other").unwrap();
    let at = |epoch, txid| Position { epoch: Epoch::new(epoch), txid: Txid::new(txid) };
    let never = Bookmark { position: at(1, 2), restore: 7 };
    for (bookmark, why) in [
        ("nonsense".to_owned(), "Error: this is not a bookmark"),
        (Bookmark::at(at(1, 2)).text(&other), "Error: this is a bookmark of another object"),
        (Bookmark::at(at(9, 99)).text(&cell), "is not part of the cell's history"),
        (never.text(&cell), "never took place"),
    ] {
        let said = js.with("/wish", &bookmark).await;
        assert!(said.contains(why), "{bookmark}: {said}");
    }
    js.abort().await;
    assert_eq!(js.text("/rows").await, "1,2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sync_waits_for_the_proof_of_what_was_written() {
    let js = numbers().await;
    assert_eq!(js.text("/rows").await, "");
    let held = js.bench.hold_uploads();
    let race = js.bench.spawn("/sync", Client::empty());
    // The operation at the gate, and the answer behind it.
    let waits = async {
        while js.bench.node.waiting.load(Ordering::Relaxed) < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waits).await.expect("the event is over");
    held.release();
    assert_eq!(race.await.unwrap().unwrap().text().await, "the timer came first");
    assert_eq!(js.text("/rows").await, "1");
}
