//! Peers that fail at every point of a call, and the one question about each: may the handler have run?

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::server::{Connection, SendResponse};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use super::support::*;
use crate::{CallError, CellClient, ForwardError, ObjectCall, Peer, ProcessIdentity, Role, identity};

type H2 = Connection<TlsStream<TcpStream>, Bytes>;

/// A peer of the fleet that handles each connection by a script.
async fn scripted<F, R>(script: F) -> (CellClient, Peer)
where
    F: Fn(TcpStream, ProcessIdentity) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let fleet = identity::create().unwrap();
    let node = ProcessIdentity::new(fleet.clone(), Role::Cellnode, "n1", SESSION).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = peer_at(listener.local_addr().unwrap().to_string());
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            tokio::spawn(script(tcp, node.clone()));
        }
    });
    (CellClient::new(process(&fleet, Role::Ingress, 1)), peer)
}

async fn h2(tcp: TcpStream, node: ProcessIdentity) -> H2 {
    let tls = tokio_rustls::TlsAcceptor::from(node.server_config()).accept(tcp).await.unwrap();
    h2::server::handshake(tls).await.unwrap()
}

async fn request(connection: &mut H2) -> SendResponse<Bytes> {
    connection.accept().await.unwrap().unwrap().1
}

/// Lets the connection write what it holds, until the peer closes it.
async fn flush(mut connection: H2) {
    while connection.accept().await.is_some() {}
}

async fn failure(client: &CellClient, peer: &Peer) -> ForwardError {
    client.call(peer, call_for(whole("hello"), Duration::from_secs(10))).await.unwrap_err()
}

async fn assert_never_sent(client: &CellClient, peer: &Peer) {
    let failed = failure(client, peer).await;
    let ForwardError::NeverSent { call: Some(call), .. } = failed else { panic!("{failed:?}") };
    assert_eq!(collect(call.request.into_body()).await, "hello");
    // A body that streams comes back as well.
    let (sender, body) = pieces();
    let failed = client.call(peer, call_for(body, Duration::from_secs(10))).await.unwrap_err();
    let ForwardError::NeverSent { call: Some(call), .. } = failed else { panic!("{failed:?}") };
    tokio::spawn(async move { sender.send(Ok("streamed".into())).await });
    assert_eq!(collect(call.request.into_body()).await, "streamed");
}

async fn assert_may_have_run(client: &CellClient, peer: &Peer) {
    let failed = failure(client, peer).await;
    assert!(matches!(failed, ForwardError::MayHaveRun { .. }), "{failed:?}");
    assert!(failed.to_string().contains(&format!("asked of {peer}")), "{failed}");
}

#[tokio::test]
async fn nobody_listening_means_never_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let fleet = identity::create().unwrap();
    let client = CellClient::new(process(&fleet, Role::Ingress, 1));
    assert_never_sent(&client, &peer_at(address)).await;
}

#[tokio::test]
async fn a_peer_that_hangs_up_before_its_handshake_means_never_sent() {
    let (client, peer) = scripted(|tcp, _| async move { drop(tcp) }).await;
    assert_never_sent(&client, &peer).await;
}

#[tokio::test]
async fn a_frozen_peer_that_never_shakes_hands_means_never_sent() {
    let (client, peer) = scripted(|tcp, _| async move {
        let _tcp = tcp;
        std::future::pending().await
    })
    .await;
    // Two at once share one attempt: together they take one connect timeout, not two.
    let started = tokio::time::Instant::now();
    let (a, b) = tokio::join!(failure(&client, &peer), failure(&client, &peer));
    assert!(matches!(a, ForwardError::NeverSent { call: Some(_), .. }), "{a:?}");
    assert!(matches!(b, ForwardError::NeverSent { call: Some(_), .. }), "{b:?}");
    assert!(started.elapsed() < 2 * crate::limits::CONNECT_TIMEOUT, "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_refused_stream_means_never_sent() {
    let (client, peer) = scripted(|tcp, node| async move {
        let mut connection = h2(tcp, node).await;
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            respond.send_reset(Reason::REFUSED_STREAM);
        }
    })
    .await;
    assert_never_sent(&client, &peer).await;
}

#[tokio::test]
async fn a_goaway_before_the_request_means_never_sent() {
    let (client, peer) = scripted(|tcp, node| async move {
        let mut connection = h2(tcp, node).await;
        connection.abrupt_shutdown(Reason::NO_ERROR);
        flush(connection).await;
    })
    .await;
    assert_never_sent(&client, &peer).await;
}

#[tokio::test]
async fn a_goaway_after_the_request_means_that_it_may_have_run() {
    for reason in [Reason::NO_ERROR, Reason::INTERNAL_ERROR] {
        let (client, peer) = scripted(move |tcp, node| async move {
            let mut connection = h2(tcp, node).await;
            let _respond = request(&mut connection).await;
            connection.abrupt_shutdown(reason);
            flush(connection).await;
        })
        .await;
        assert_may_have_run(&client, &peer).await;
    }
}

#[tokio::test]
async fn any_other_reset_means_that_it_may_have_run() {
    for reason in [Reason::INTERNAL_ERROR, Reason::CANCEL, Reason::ENHANCE_YOUR_CALM] {
        let (client, peer) = scripted(move |tcp, node| async move {
            let mut connection = h2(tcp, node).await;
            request(&mut connection).await.send_reset(reason);
            flush(connection).await;
        })
        .await;
        assert_may_have_run(&client, &peer).await;
    }
}

#[tokio::test]
async fn a_connection_cut_after_the_request_means_that_it_may_have_run() {
    let (client, peer) = scripted(|tcp, node| async move {
        let mut connection = h2(tcp, node).await;
        let _respond = request(&mut connection).await;
    })
    .await;
    assert_may_have_run(&client, &peer).await;
}

#[tokio::test]
async fn silence_until_the_deadline_means_that_it_may_have_run() {
    let (client, peer) = scripted(|tcp, node| async move {
        let mut connection = h2(tcp, node).await;
        let _respond = request(&mut connection).await;
        flush(connection).await;
    })
    .await;
    let call = call_for(whole("x"), Duration::from_millis(300));
    let failed = client.call(&peer, call).await.unwrap_err();
    assert!(matches!(failed, ForwardError::MayHaveRun { .. }), "{failed:?}");
}

#[tokio::test]
async fn a_bare_status_means_that_it_may_have_run() {
    let (client, peer) = scripted(|tcp, node| async move {
        let mut connection = h2(tcp, node).await;
        let mut respond = request(&mut connection).await;
        let head = http::Response::builder()
            .header("content-type", "application/grpc")
            .header("grpc-status", "14")
            .body(())
            .unwrap();
        respond.send_response(head, true).unwrap();
        flush(connection).await;
    })
    .await;
    assert_may_have_run(&client, &peer).await;
}

#[tokio::test]
async fn an_answer_without_a_message_means_that_it_may_have_run() {
    let (client, peer) = scripted(|tcp, node| async move {
        let mut connection = h2(tcp, node).await;
        let mut respond = request(&mut connection).await;
        let head = http::Response::builder().header("content-type", "application/grpc").body(()).unwrap();
        let mut stream = respond.send_response(head, false).unwrap();
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        stream.send_trailers(trailers).unwrap();
        flush(connection).await;
    })
    .await;
    assert_may_have_run(&client, &peer).await;
}

#[tokio::test]
async fn a_connection_closed_between_calls_is_made_anew() {
    let served = fleet(|call| async move { Ok(reply(call.request.into_body())) }).await;
    served.client.call(&served.peer, call(whole("x"))).await.unwrap();
    // The process goes; its session with it. Until the bucket says so, calls to it are never sent.
    served.stop.send(()).unwrap();
    served.server.await.unwrap();
    let failed = failure(&served.client, &served.peer).await;
    assert!(matches!(failed, ForwardError::NeverSent { call: Some(_), .. }), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_order_leaves_no_outcome_unknown() {
    let served = fleet(|call| async move { Ok(reply(call.request.into_body())) }).await;
    let answered = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (client, peer, answered) = (served.client.clone(), served.peer.clone(), answered.clone());
            tokio::spawn(async move {
                loop {
                    match client.call(&peer, call(whole("x"))).await {
                        Ok(reply) => assert_eq!(collect(reply.response.into_body()).await, "x"),
                        Err(ForwardError::NeverSent { call: Some(_), .. }) => return,
                        Err(other) => panic!("{other:?}"),
                    }
                    answered.add_permits(1);
                }
            })
        })
        .collect();
    // In the middle of their work.
    answered.acquire_many(200).await.unwrap().forget();
    served.stop.send(()).unwrap();
    for caller in callers {
        caller.await.unwrap();
    }
    served.server.await.unwrap();
}

#[tokio::test]
async fn a_node_of_a_release_without_sessions_is_named_and_the_call_did_not_run() {
    let (client, peer) = scripted(|tcp, node| async move {
        let mut connection = h2(tcp, node).await;
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            assert_eq!(request.uri().path(), "/holdfast.v1.CellService/Session");
            // As a gRPC service answers that does not have the call.
            let head = http::Response::builder().header("content-type", "application/grpc");
            respond.send_response(head.header("grpc-status", "12").body(()).unwrap(), true).unwrap();
        }
    })
    .await;
    let (_says, said) = pieces();
    let mut call = call_for(said, Duration::from_secs(10));
    let first = Some(Bytes::from_static(b"first"));
    call.object = ObjectCall { is_socket: true, session: first, ..ObjectCall::default() };
    let failed = client.call(&peer, call).await.unwrap_err();
    let ForwardError::Refused { error: CallError::Rejected { status, reason }, call: None } = failed else {
        panic!("{failed:?}")
    };
    assert_eq!(status, 501);
    assert_eq!(reason, format!("{peer} runs a release that has no sessions of RPC: upgrade it"));
}
