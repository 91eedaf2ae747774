//! A cell with a scripted runtime, over a bucket whose uploads can be held: what leaves, when, and in which order.

mod alarms;
mod bookmarks;
mod js;
mod paged;
mod past;
mod r2;
mod retire;
mod sessions;
mod sleep;
mod sockets;
mod support;
mod tcp;

use std::time::Duration;

use bytes::Bytes;
use futures::poll;
use holdfast_core::gate::GateEvent;
use holdfast_rpc::CallError;

use self::support::{Bench, Client, piece};
use super::watchdog::Watchdog;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_stays_open_lets_others_through() {
    let bench = Bench::new().await;
    let (body, client) = Client::body();
    let mut slow = bench.spawn("/wait", body);
    bench.heard("begun 1").await;
    assert_eq!(bench.call("/insert").await.unwrap().text().await, "1 rows");
    assert!(poll!(&mut slow).is_pending());
    client.send("x").await;
    assert_eq!(slow.await.unwrap().unwrap().text().await, "x");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaves_while_proofs_are_blocked() {
    let bench = Bench::new().await;
    assert_eq!(bench.call("/rows").await.unwrap().text().await, "0 rows");
    let held = bench.hold_uploads();
    // An error after a write; an answer without one; a read of a body, which its sender would see.
    let mut thrown = bench.spawn("/insert-throw", Client::empty());
    bench.heard("begun 2").await;
    bench.upload_is_held(&held).await;
    let mut read = bench.spawn("/rows", Client::empty());
    bench.heard("begun 3").await;
    let (body, client) = Client::body();
    let mut pulled = bench.spawn("/wait", body);
    bench.heard("begun 4").await;
    assert!(
        poll!(&mut thrown).is_pending() && poll!(&mut read).is_pending() && poll!(&mut pulled).is_pending()
    );
    assert!(!client.is_read(), "a read is an output too");
    held.release();
    let thrown = thrown.await.unwrap().unwrap();
    assert_eq!(thrown.reply.thrown.unwrap().message, "after the write");
    assert_eq!(read.await.unwrap().unwrap().text().await, "1 rows");
    client.send("y").await;
    assert_eq!(pulled.await.unwrap().unwrap().text().await, "y");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_piece_of_a_stream_waits_for_its_own_proof() {
    let bench = Bench::new().await;
    let (body, client) = Client::body();
    let mut reply = bench.spawn("/echo", body).await.unwrap().unwrap();
    client.send("a").await;
    assert_eq!(reply.frame().await.unwrap(), "a");
    let held = bench.hold_uploads();
    client.send("insert").await;
    bench.upload_is_held(&held).await;
    // The turn that wrote has put its piece before the gate.
    bench.heard("piece insert").await;
    assert!(poll!(std::pin::pin!(reply.frame())).is_pending());
    held.release();
    assert_eq!(reply.frame().await.unwrap(), "insert");
    client.end();
    assert_eq!(reply.text().await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_client_holds_the_handler_back() {
    let bench = Bench::new().await;
    let mut reply = bench.call("/flood").await.unwrap();
    bench.heard("flood 2").await;
    // Whatever the thread had to do is done.
    assert_eq!(bench.call("/rows").await.unwrap().text().await, "0 rows");
    assert_eq!(bench.last_flood(), 2, "two pieces fill the pipe");
    for _ in 0..10 {
        assert_eq!(reply.frame().await.unwrap().len(), piece().len());
    }
    // It goes away: the handler hears of it twice, by its piece and by its signal.
    drop(reply);
    bench.heard("cancelled 1").await;
    bench.heard("abandoned").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_is_told_to_the_handler() {
    let bench = Bench::new().await;
    let (body, _client) = Client::body();
    let caller = bench.spawn("/wait", body);
    bench.heard("begun 1").await;
    caller.abort();
    bench.heard("cancelled 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discarded_cell_fails_what_is_open_and_breaks_streams() {
    let bench = Bench::new().await;
    let (body, client) = Client::body();
    let mut streaming = bench.spawn("/echo", body).await.unwrap().unwrap();
    client.send("a").await;
    assert_eq!(streaming.frame().await.unwrap(), "a");
    let (late_body, late) = Client::body();
    let open = bench.spawn("/wait", late_body);
    bench.heard("begun 2").await;
    bench.resident().on(GateEvent::DatabaseFailed);
    assert!(matches!(open.await.unwrap(), Err(CallError::OutcomeUnknown { .. })));
    assert!(streaming.frame().await.unwrap_err().contains("before the end"));
    // Late answers meet nobody; the cell is whole again.
    late.send("x").await;
    client.end();
    assert_eq!(bench.call("/rows").await.unwrap().text().await, "0 rows");
    assert!(bench.never_heard("completed"), "no turn of the discarded cell");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_sessions_authority_no_turn_begins() {
    let bench = Bench::new().await;
    let (body, client) = Client::body();
    let open = bench.spawn("/wait", body);
    bench.heard("begun 1").await;
    let resident = bench.resident();
    bench.node.authority.end();
    client.send("x").await;
    assert!(matches!(bench.call("/rows").await, Err(CallError::Unavailable { .. })));
    bench.quiet_thread().await;
    resident.on(GateEvent::Fenced);
    assert!(matches!(open.await.unwrap(), Err(CallError::OutcomeUnknown { .. })));
    assert!(bench.never_heard("completed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_waits_for_open_events() {
    let bench = Bench::new().await;
    let (body, client) = Client::body();
    let open = bench.spawn("/wait-insert", body);
    bench.heard("begun 1").await;
    let mut release = bench.release();
    // Refused meanwhile, or it waits for the release and activates the cell again: it never joins the old one.
    bench.leaving().await;
    assert!(poll!(&mut release).is_pending());
    client.send("x").await;
    assert_eq!(open.await.unwrap().unwrap().text().await, "1 rows");
    release.await.unwrap().unwrap();
    assert_eq!(bench.call("/rows").await.unwrap().text().await, "1 rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_does_not_wait_for_ever() {
    let bench = Bench::finishing_within(Duration::from_millis(50)).await;
    let (body, client) = Client::body();
    let open = bench.spawn("/wait", body);
    bench.heard("begun 1").await;
    bench.release().await.unwrap().unwrap();
    let error = open.await.unwrap().unwrap_err();
    assert!(matches!(&error, CallError::OutcomeUnknown { reason } if reason.contains("moved")), "{error}");
    drop(client);
    assert_eq!(bench.call("/rows").await.unwrap().text().await, "0 rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_waits_for_is_captured_and_proved_too() {
    let bench = Bench::new().await;
    assert_eq!(bench.call("/answer-then-insert").await.unwrap().text().await, "soon");
    // The table, then the row.
    bench.uploads_reach(2).await;
    assert_eq!(bench.call("/rows").await.unwrap().text().await, "1 rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_beyond_the_bound_are_refused_and_nothing_else_is_lost() {
    let bench = Bench::new().await;
    let (body, client) = Client::body();
    let open = bench.spawn("/many-reads", body);
    bench.heard("refused: 1024 operations of this cell are under way").await;
    client.send(Bytes::from_static(b"x")).await;
    assert_eq!(open.await.unwrap().unwrap().text().await, "x");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_that_is_cancelled_before_it_left_does_nothing() {
    let bench = Bench::new().await;
    let (body, client) = Client::body();
    let open = bench.spawn("/change-of-mind", body);
    client.send("x").await;
    assert_eq!(open.await.unwrap().unwrap().text().await, "x", "the cancelled read took no piece");
    assert!(bench.never_heard("completed though cancelled"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_is_told_the_objects_name_and_the_method() {
    let bench = Bench::new().await;
    assert_eq!(bench.call_method("/named", "Ada", "greet").await.unwrap().text().await, "Ada greet");
    assert_eq!(bench.call("/named").await.unwrap().text().await, "- -");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_that_holds_its_thread_is_named() {
    let bench = Bench::new().await;
    assert_eq!(bench.call("/rows").await.unwrap().text().await, "0 rows");
    let resident = bench.resident();
    let watchdog = Watchdog::default();
    let at = |ms| holdfast_types::Millis::new(ms);
    watchdog.begin(&resident, at(1_000));
    assert_eq!(watchdog.stalled(at(2_999)), None);
    assert_eq!(watchdog.stalled(at(3_000)), Some((resident.cell.clone(), 2_000, true)));
    assert_eq!(watchdog.stalled(at(32_999)), None, "told of a moment ago");
    assert_eq!(watchdog.stalled(at(33_000)), Some((resident.cell.clone(), 32_000, false)));
    watchdog.end();
    assert_eq!(watchdog.stalled(at(99_000)), None);
}
