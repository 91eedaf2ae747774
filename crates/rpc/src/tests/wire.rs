//! What any gRPC client sees of the listener, frame by frame.

use std::sync::Mutex;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use prost::Message as _;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::support::*;
use crate::{Access, Body, CallError, Role, convert, grpc, identity, proto};

async fn open(fleet: &Fleet) -> SendRequest<Bytes> {
    let tcp = TcpStream::connect(&fleet.peer.address).await.unwrap();
    let config = process(&fleet.identity, Role::Ingress, 1).client_config();
    let name = ServerName::try_from(identity::server_name(Role::Cellnode, SESSION)).unwrap();
    let tls = tokio_rustls::TlsConnector::from(config).connect(name, tcp).await.unwrap();
    let (sender, connection) = h2::client::handshake(tls).await.unwrap();
    tokio::spawn(connection);
    sender.ready().await.unwrap()
}

fn request(path: &str) -> Request<()> {
    Request::post(format!("https://any.name{path}")).header("te", "trailers").body(()).unwrap()
}

fn message() -> Bytes {
    let (parts, ()) = Request::post("/query").body(()).unwrap().into_parts();
    let head = convert::head_to_wire(
        &"db:users".parse().unwrap(),
        Access::ReadOnly,
        &crate::ObjectCall::default(),
        &parts,
    );
    grpc::encode(&proto::CallRequest { head: Some(head), body: "hello".into() })
}

async fn answer(
    sender: &mut SendRequest<Bytes>,
    path: &str,
    message: Bytes,
) -> (Response<()>, Bytes, http::HeaderMap) {
    let (answer, mut stream) = sender.send_request(request(path), false).unwrap();
    stream.send_data(message, true).unwrap();
    let (parts, mut body) = answer.await.unwrap().into_parts();
    let mut all = Vec::new();
    while let Some(piece) = body.data().await {
        all.extend_from_slice(&piece.unwrap());
    }
    let trailers = body.trailers().await.unwrap().unwrap_or_default();
    (Response::from_parts(parts, ()), all.into(), trailers)
}

const CALL: &str = "/holdfast.v1.CellService/Call";

#[tokio::test]
async fn a_small_answer_is_a_unary_call_on_the_wire() {
    let fleet = fleet(|call| async move { Ok(reply(whole(collect(call.request.into_body()).await))) }).await;
    let (head, body, trailers) = answer(&mut open(&fleet).await, CALL, message()).await;
    assert_eq!(head.headers()["content-type"], "application/grpc");
    assert_eq!(trailers["grpc-status"], "0");
    let len = usize::try_from(u32::from_be_bytes(body[1..5].try_into().unwrap())).unwrap();
    assert_eq!((body[0], body.len()), (0, 5 + len), "one message, not compressed");
    let reply = proto::CallReply::decode(&body[5..]).unwrap();
    assert_eq!((reply.chunk.as_ref(), reply.end), (&b"hello"[..], true));
}

#[tokio::test]
async fn what_is_no_call_is_answered_by_its_status() {
    let fleet = fleet(|call| async move { panic!("{call:?} arrived") }).await;
    let mut sender = open(&fleet).await;
    let unimplemented = "12";
    for path in ["/holdfast.v1.CellService/Other", "/holdfast.v1.CellServices/Call", "/"] {
        let (head, _, _) = answer(&mut sender, path, message()).await;
        assert_eq!(head.headers()["grpc-status"], unimplemented, "{path}");
    }
    for (message, code) in [(&b"\x01\0\0\0\0"[..], "12"), (b"\0\0\0\0\x02\xff\xff", "13"), (b"", "3")] {
        let (head, _, _) = answer(&mut sender, CALL, Bytes::from_static(message)).await;
        assert_eq!(head.headers()["grpc-status"], code, "{message:?}");
    }
    // A message without a head makes sense to gRPC and not to us: that is a refusal, not a failed call.
    let (_, body, trailers) = answer(&mut sender, CALL, grpc::encode(&proto::CallRequest::default())).await;
    assert_eq!(trailers["grpc-status"], "0");
    let refusal = proto::CallReply::decode(&body[5..]).unwrap().refusal.unwrap();
    assert!(matches!(convert::refusal_from_wire(refusal), CallError::Rejected { .. }));
}

#[tokio::test]
async fn a_small_call_does_not_wait_behind_a_large_body() {
    let fleet = fleet(|call| async move {
        if call.request.uri().path() == "/slow" {
            let (sender, body) = pieces();
            tokio::spawn(async move { while sender.send(Ok(vec![0; 256 * 1024].into())).await.is_ok() {} });
            return Ok(reply(body));
        }
        Ok(reply(whole("small")))
    })
    .await;
    let (_upload, streamed) = pieces();
    let mut large = call(streamed);
    *large.request.uri_mut() = "/slow".parse().unwrap();
    // Its answer fills every window of its connection, and nobody reads it.
    let large = fleet.client.call(&fleet.peer, large).await.unwrap();
    for _ in 0..10 {
        let small = fleet.client.call(&fleet.peer, call(whole("x"))).await.unwrap();
        assert_eq!(collect(small.response.into_body()).await, "small");
    }
    drop(large);
}

#[tokio::test]
async fn a_socket_is_heard_beside_many_that_flood_an_object_which_takes_nothing() {
    const FLOODS: usize = 80;
    let kept = Mutex::new(Vec::new());
    let fleet = fleet(move |mut call| {
        let is_flood = call.request.uri().path() == "/flood";
        if is_flood {
            kept.lock().unwrap().push(std::mem::replace(call.request.body_mut(), whole("")));
        }
        async move {
            if is_flood {
                return Ok(reply(whole("")));
            }
            let heard = call.request.into_body().frame().await.unwrap().unwrap().into_data().unwrap();
            Ok(reply(whole(heard)))
        }
    })
    .await;
    let open = |path: &str, body: Body| {
        let mut call = call(body);
        call.object.is_socket = true;
        *call.request.uri_mut() = path.parse().unwrap();
        fleet.client.call(&fleet.peer, call)
    };
    let mut floods = Vec::new();
    for _ in 0..FLOODS {
        let (sender, body) = pieces();
        floods.push(open("/flood", body).await.unwrap());
        // More than the windows of all other connections hold.
        tokio::spawn(async move {
            for _ in 0..4 {
                if sender.send(Ok(vec![0; 256 << 10].into())).await.is_err() {
                    return;
                }
            }
            sender.closed().await;
        });
    }
    for n in 0..3 {
        let (sender, body) = pieces();
        let (answer, sent) =
            tokio::join!(open("/live", body), sender.send(Ok(format!("message {n}").into())));
        sent.unwrap();
        assert_eq!(collect(answer.unwrap().response.into_body()).await, format!("message {n}"));
    }
    drop(floods);
}

#[tokio::test]
async fn calls_of_one_connection_do_not_wait_for_each_other() {
    let (tell, told) = oneshot::channel::<()>();
    let (tell, told) = (Mutex::new(Some(tell)), Mutex::new(Some(told)));
    let fleet = fleet(move |_| {
        // The call that comes first answers only after the one that comes second.
        let told = told.lock().unwrap().take();
        let tell = if told.is_none() { tell.lock().unwrap().take() } else { None };
        async move {
            if let Some(told) = told {
                told.await.unwrap();
            }
            if let Some(tell) = tell {
                tell.send(()).unwrap();
            }
            Ok(reply(whole("done")))
        }
    })
    .await;
    let one = fleet.client.call(&fleet.peer, call(whole("1")));
    let other = fleet.client.call(&fleet.peer, call(whole("2")));
    let (one, other) = tokio::join!(one, other);
    for answered in [one, other] {
        assert_eq!(collect(answered.unwrap().response.into_body()).await, "done");
    }
}
