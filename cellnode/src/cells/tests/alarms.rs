//! Alarms of a deployed application: what waits for the alarm index, when handlers run, and what becomes of runs that fail.

use std::time::Duration;

use futures::poll;
use holdfast_js::Limits;
use holdfast_records::Key;

use super::js::Js;
use super::support::{Client, PATIENCE};
use crate::clock;
use crate::release::{sleep_idle, wake_due};

/// `/set?in=MS` sets the alarm, with `then=NAME` for what the handler does; `/seen` tells what handlers noted.
const ALARMS: &str = r"
    import { DurableObject } from 'cloudflare:workers';
    export default {};
    export class Rows extends DurableObject {
        async fetch(request) {
            const { pathname, searchParams } = new URL(request.url);
            const { storage } = this.ctx;
            switch (pathname) {
                case '/set':
                    storage.kv.put('then', searchParams.get('then') ?? '');
                    await storage.setAlarm(Date.now() + Number(searchParams.get('in')));
                    return new Response('set');
                case '/delete':
                    await storage.deleteAlarm();
                    return new Response('deleted');
                case '/seen':
                    return new Response(JSON.stringify([storage.kv.get('seen') ?? [], (await storage.getAlarm()) !== null]));
            }
        }
        async alarm({ retryCount }) {
            const { storage } = this.ctx;
            const seen = [...storage.kv.get('seen') ?? [], retryCount];
            storage.kv.put('seen', seen);
            const then = storage.kv.get('then');
            // What is durable is not undone when the turn that follows breaks.
            if (then !== 'loop') await storage.sync();
            switch (then) {
                case 'throw': if (retryCount < 1) throw new Error('not yet'); break;
                case 'loop': if (retryCount < 1) for (;;); break;
                case 'again': if (seen.length < 3) await storage.setAlarm(Date.now()); break;
                case 'deleteAll': await storage.deleteAll(); break;
            }
        }
    }
";

impl Js {
    /// Waits until `/seen` says this.
    async fn seen(&self, wanted: &str) {
        let mut last = String::new();
        let see = async {
            loop {
                last = self.text("/seen").await;
                if last == wanted {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let seen = tokio::time::timeout(PATIENCE, see).await;
        assert!(seen.is_ok(), "`{wanted}` was not seen, but `{last}`");
    }

    /// Waits until the alarm index has so many entries, which it answers.
    async fn entries(&self, count: usize) -> Vec<String> {
        let mut found = Vec::new();
        let see = async {
            loop {
                found = self.bench.keys("wake/entries/").await;
                if found.len() == count {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let seen = tokio::time::timeout(PATIENCE, see).await;
        assert!(seen.is_ok(), "{count} wake entries were not seen, but {found:?}");
        found
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_runs_by_itself_and_its_entry_is_retired() {
    let js = Js::new(ALARMS).await;
    assert_eq!(js.text("/set?in=50").await, "set");
    js.seen("[[0],false]").await;
    js.entries(0).await;
    let [retired] = &js.bench.keys("wake/retired/").await[..] else { panic!("there is one record") };
    assert!(matches!(Key::parse(retired), Ok(Key::WakeRetired(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_reveals_an_alarm_waits_for_its_entry() {
    let js = Js::new(ALARMS).await;
    assert_eq!(js.text("/seen").await, "[[],false]");
    let held = js.bench.hold_puts("wake/entries/");
    let mut setting = js.bench.spawn("/set?in=86400000", Client::empty());
    js.bench.upload_is_held(&held).await;
    let mut reading = js.bench.spawn("/seen", Client::empty());
    // Its writes are proved by the next one's owner read at the latest.
    js.bench.uploads_reach(1).await;
    js.bench.quiet_thread().await;
    assert!(poll!(&mut setting).is_pending() && poll!(&mut reading).is_pending());
    held.release();
    assert_eq!(setting.await.unwrap().unwrap().text().await, "set");
    assert_eq!(reading.await.unwrap().unwrap().text().await, "[[],true]");
    assert_eq!(js.entries(1).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_that_left_is_woken_by_its_entry_and_runs_what_is_overdue() {
    let js = Js::new(ALARMS).await;
    assert_eq!(js.text("/set?in=100").await, "set");
    js.bench.release().await.unwrap().unwrap();
    let [entry] = &js.bench.keys("wake/entries/").await[..] else { panic!("there is one entry") };
    tokio::time::sleep(Duration::from_millis(100)).await;
    let woken = js.bench.wake(entry).await;
    assert_eq!(woken.epoch.get(), 2);
    js.seen("[[0],false]").await;
    js.entries(0).await;
    // A hint that comes late finds nothing, and harms nothing.
    assert_eq!(js.bench.wake(entry).await.armed, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_that_was_moved_or_deleted_does_not_run() {
    let js = Js::new(ALARMS).await;
    js.text("/set?in=86400000").await;
    js.text("/set?in=86400001").await;
    let [.., last] = &js.entries(2).await[..] else { panic!("each has its entry") };
    let armed = js.bench.wake(last).await.armed.expect("it is armed");
    assert_eq!(armed.id.seq.get(), 2);
    js.text("/set?in=0").await;
    js.seen("[[0],false]").await;
    js.text("/set?in=200").await;
    js.text("/delete").await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    js.seen("[[0],false]").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_may_set_the_next_alarm_or_delete_everything() {
    let js = Js::new(ALARMS).await;
    js.text("/set?in=0&then=again").await;
    js.seen("[[0,0,0],false]").await;
    js.text("/set?in=0&then=deleteAll").await;
    js.seen("[[],false]").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_throws_or_breaks_a_limit_is_counted_and_repeated() {
    let limits = Limits { turn: Duration::from_millis(300), start: PATIENCE, ..Limits::default() };
    // What a broken turn wrote is gone; the number of runs is kept outside of it.
    for (then, seen) in [("throw", "[[0,1],false]"), ("loop", "[[1],false]")] {
        let js = Js::limited(ALARMS, limits).await;
        js.text(&format!("/set?in=0&then={then}")).await;
        js.seen(seen).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sleeping_cell_is_woken_for_its_alarm_and_one_whose_alarm_comes_soon_does_not_sleep() {
    let js = Js::new(ALARMS).await;
    assert_eq!(js.text("/set?in=3600000").await, "set");
    js.bench.sleep().await;
    wake_due(&js.bench.node, clock::wall_time_in(3_000_000));
    assert!(js.bench.node.cells.is_empty(), "not yet");
    wake_due(&js.bench.node, clock::wall_time_in(4_000_000));
    let wakes = async {
        while js.bench.node.cells.residents().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wakes).await.expect("it wakes");
    assert_eq!(js.text("/seen").await, "[[],true]", "nothing runs early");
    assert_eq!(js.text("/set?in=30000").await, "set");
    sleep_idle(&js.bench.node).await;
    assert_eq!(js.bench.node.cells.residents().len(), 1);
}
