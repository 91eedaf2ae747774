//! What a call carries in both directions, and what becomes of the request when there is no answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body::Body as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::support::*;
use crate::{Access, CallError, CellCall, ForwardError, MoveCall, NodeCallError, OwnerHint, limits};

#[tokio::test]
async fn a_whole_request_and_its_answer_arrive_as_they_were_sent() {
    let fleet = fleet(|call| async move {
        assert_eq!(call.cell.as_str(), "db:users");
        assert_eq!(call.access, Access::ReadWrite);
        assert_eq!(call.request.method(), "POST");
        assert_eq!(call.request.uri(), "/v2/pipeline?x=%2F");
        assert_eq!(call.request.headers()["x-a"], "1");
        let left = call.deadline.duration_since(Instant::now());
        assert!(left > Duration::from_secs(10) && left <= Duration::from_secs(20), "{left:?}");
        Ok(reply(whole(collect(call.request.into_body()).await)))
    })
    .await;
    let answer = fleet.client.call(&fleet.peer, call(whole("hello"))).await.unwrap();
    assert_eq!(answer.position, POSITION);
    assert_eq!(answer.response.status(), 201);
    assert_eq!(answer.response.headers()["x-b"], "2");
    let body = answer.response.into_body();
    assert_eq!(body.size_hint().exact(), Some(5), "a small answer is one message");
    assert_eq!(collect(body).await, "hello");
}

#[tokio::test]
async fn an_answer_of_any_size_arrives_whole() {
    let sizes =
        [0, 1, limits::CHUNK_LEN_MAX, limits::WHOLE_BODY_LEN_MAX, limits::WHOLE_BODY_LEN_MAX + 1, 5_000_001];
    let fleet = fleet(|call| async move { Ok(reply(whole(collect(call.request.into_body()).await))) }).await;
    for size in sizes {
        let sent: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        let answer = fleet.client.call(&fleet.peer, call(whole(sent.clone()))).await.unwrap();
        assert!(collect(answer.response.into_body()).await == sent, "{size} bytes");
    }
}

#[tokio::test]
async fn every_refusal_arrives_with_the_request_to_be_sent_elsewhere() {
    let hint = OwnerHint { node: "n2".parse().unwrap(), session: SESSION };
    let refusals = [
        CallError::NotOwner(Some(hint)),
        CallError::Draining,
        CallError::Overloaded { reason: "full".into(), retry_after_ms: 7 },
        CallError::Unavailable { reason: "restoring".into() },
        CallError::Rejected { status: http::StatusCode::NOT_FOUND, reason: "no".into() },
    ];
    for refusal in refusals {
        let answer = refusal.clone();
        let fleet = fleet(move |_| std::future::ready(Err(answer.clone()))).await;
        let (sender, streamed) = pieces();
        for body in [whole("hello"), whole(vec![7; limits::WHOLE_BODY_LEN_MAX + 1]), streamed] {
            let failed = fleet.client.call(&fleet.peer, call(body)).await.unwrap_err();
            let ForwardError::Refused { error, call: Some(call) } = failed else { panic!("{failed:?}") };
            assert_eq!(error, refusal);
            assert_eq!(call.request.uri(), "/v2/pipeline?x=%2F");
            if call.request.body().size_hint().exact() == Some(5) {
                assert_eq!(collect(call.request.into_body()).await, "hello");
            }
        }
        drop(sender);
    }
}

#[tokio::test]
async fn an_unknown_outcome_is_no_refusal() {
    let unknown = || CallError::OutcomeUnknown { reason: "lease lost".into() };
    let fleet = fleet(move |_| std::future::ready(Err(unknown()))).await;
    let failed = fleet.client.call(&fleet.peer, call(whole("x"))).await.unwrap_err();
    assert!(matches!(&failed, ForwardError::MayHaveRun { reason } if reason == "lease lost"), "{failed:?}");
}

#[tokio::test]
async fn a_refusal_after_the_body_was_read_does_not_give_the_request_back() {
    let fleet = fleet(|call| async move {
        collect(call.request.into_body()).await;
        Err(CallError::Draining)
    })
    .await;
    let (sender, body) = pieces();
    tokio::spawn(async move { sender.send(Ok("abc".into())).await });
    let failed = fleet.client.call(&fleet.peer, call(body)).await.unwrap_err();
    assert!(matches!(failed, ForwardError::Refused { error: CallError::Draining, call: None }), "{failed:?}");
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_the_handler() {
    struct Tell(Option<oneshot::Sender<()>>);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.take().unwrap().send(()).unwrap();
        }
    }
    for large in [false, true] {
        let (cancelled, told) = oneshot::channel();
        let (running, started) = oneshot::channel();
        let tools = Arc::new(Mutex::new(Some((Tell(Some(cancelled)), running))));
        let fleet = fleet(move |_: CellCall| {
            let (tell, running) = tools.lock().unwrap().take().unwrap();
            async move {
                let _tell = tell;
                running.send(()).unwrap();
                std::future::pending().await
            }
        })
        .await;
        let (_sender, streamed) = pieces();
        let body = if large { streamed } else { whole("x") };
        let sending = fleet.client.call(&fleet.peer, call(body));
        tokio::select! {
            biased;
            answer = sending => panic!("{answer:?}"),
            started = started => started.unwrap(),
        }
        // Well before the call's own deadline, which would end the handler, too.
        tokio::time::timeout(Duration::from_secs(5), told).await.expect("cancelled").unwrap();
    }
}

#[tokio::test]
async fn a_deadline_ends_the_wait_as_an_unknown_outcome() {
    for large in [false, true] {
        let fleet = fleet(|_| std::future::pending()).await;
        let (_sender, streamed) = pieces();
        let body = if large { streamed } else { whole("x") };
        let call = call_for(body, Duration::from_millis(200));
        let failed = fleet.client.call(&fleet.peer, call).await.unwrap_err();
        assert!(matches!(failed, ForwardError::MayHaveRun { .. }), "{failed:?}");
    }
}

#[tokio::test]
async fn a_server_that_stops_answers_what_is_in_flight_first() {
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let fleet = fleet(move |_| {
        let (go, gone) = oneshot::channel();
        arrived.send(go).unwrap();
        async move {
            gone.await.unwrap();
            Ok(reply(whole("done")))
        }
    })
    .await;
    let (client, peer) = (fleet.client.clone(), fleet.peer.clone());
    let calling = tokio::spawn(async move { client.call(&peer, call(whole("x"))).await });
    let go: oneshot::Sender<()> = arrivals.recv().await.unwrap();
    fleet.stop.send(()).unwrap();
    go.send(()).unwrap();
    let answer = calling.await.unwrap().unwrap();
    assert_eq!(collect(answer.response.into_body()).await, "done");
    fleet.server.await.unwrap();
    let failed = fleet.client.call(&fleet.peer, call(whole("x"))).await.unwrap_err();
    assert!(matches!(failed, ForwardError::NeverSent { call: Some(_), .. }), "{failed:?}");
}

#[tokio::test]
async fn a_node_answers_its_operators() {
    let mut fleet = fleet(|_| std::future::pending()).await;
    let (client, peer) = (&fleet.client, &fleet.peer);
    let description = client.describe(peer).await.unwrap();
    assert_eq!((description.session, description.cells, description.draining), (SESSION, 3, true));
    assert_eq!(description.protocol.max, 2);
    client.drain(peer).await.unwrap();
    fleet.drained.recv().await.unwrap();
    client.release_cell(peer, &"db:mine".parse().unwrap()).await.unwrap();
    let failed = client.release_cell(peer, &"db:other".parse().unwrap()).await.unwrap_err();
    assert_eq!(failed, NodeCallError::Refused(CallError::NotOwner(None)));
    assert_eq!(client.adopt_cell(peer, &"db:mine".parse().unwrap(), true).await, Ok(POSITION.epoch));
    let failed = client.adopt_cell(peer, &"db:mine".parse().unwrap(), false).await.unwrap_err();
    assert_eq!(failed, NodeCallError::Refused(CallError::NotOwner(None)));
    let to = peer_at("there:1".into());
    let moves = MoveCall { to, weight: 300, cells: 64, keep: 7 };
    assert_eq!(client.move_cells(peer, &moves).await, Ok(57));
    let failed = client.move_cells(peer, &MoveCall { weight: 1, ..moves }).await.unwrap_err();
    assert_eq!(failed, NodeCallError::Refused(CallError::Draining));
    let first = client.list_cells(peer, None, 2).await.unwrap();
    assert_eq!(first.cells.len(), 2);
    assert_eq!(first.cells[1].position, POSITION);
    let rest = client.list_cells(peer, first.next.as_ref(), 2).await.unwrap();
    assert_eq!((rest.cells.len(), rest.next), (1, None));
}
