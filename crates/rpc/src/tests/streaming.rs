//! Bodies in pieces: both directions at once, with back-pressure, and never a clean end for a broken one.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::sync::oneshot;

use super::support::*;
use crate::{Body, ForwardError};

async fn next(body: &mut Body) -> Option<Result<Bytes, String>> {
    let frame = body.frame().await?;
    Some(frame.map(|frame| frame.into_data().unwrap()).map_err(|e| e.to_string()))
}

#[tokio::test]
async fn both_directions_stream_at_once() {
    let fleet = fleet(|call| async move { Ok(reply(call.request.into_body())) }).await;
    let (sender, body) = pieces();
    let answer = fleet.client.call(&fleet.peer, call(body)).await.unwrap();
    let mut echo = answer.response.into_body();
    for piece in ["one", "two", "three"] {
        sender.send(Ok(piece.into())).await.unwrap();
        assert_eq!(next(&mut echo).await.unwrap().unwrap(), piece);
    }
    drop(sender);
    assert!(next(&mut echo).await.is_none());
}

#[tokio::test]
async fn a_body_is_not_read_before_the_handler_reads_it() {
    let fleet = fleet(|_| async move { Ok(reply(whole("unread"))) }).await;
    let (sender, body) = pieces();
    let answer = fleet.client.call(&fleet.peer, call(body)).await.unwrap();
    assert_eq!(collect(answer.response.into_body()).await, "unread");
    // The connection is as good as before.
    let answer = fleet.client.call(&fleet.peer, call(whole("x"))).await.unwrap();
    assert_eq!(collect(answer.response.into_body()).await, "unread");
    sender.closed().await;
}

#[tokio::test]
async fn a_slow_reader_holds_the_writer_back() {
    let (written, mut count) = tokio::sync::watch::channel(0_usize);
    let fleet = fleet(move |_| {
        let (sender, body) = pieces();
        let written = written.clone();
        tokio::spawn(async move {
            let piece = Bytes::from(vec![1; 128 * 1024]);
            while sender.send(Ok(piece.clone())).await.is_ok() {
                written.send_modify(|count| *count += piece.len());
            }
        });
        async move { Ok(reply(body)) }
    })
    .await;
    let answer = fleet.client.call(&fleet.peer, call(whole("x"))).await.unwrap();
    let mut body = answer.response.into_body();
    let mut read = 0;
    for _ in 0..200 {
        read += next(&mut body).await.unwrap().unwrap().len();
        // Windows and buffers hold a few MiB; an unbounded queue would hold everything that was written meanwhile.
        let ahead = count.borrow_and_update().saturating_sub(read);
        assert!(ahead < 16 * 1024 * 1024, "{ahead} bytes ahead of the reader");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_is_broken_for_the_caller() {
    let fleet = fleet(|_| {
        let (sender, body) = pieces();
        tokio::spawn(async move {
            sender.send(Ok("first".into())).await.unwrap();
            sender.send(Err("disk on fire".into())).await.unwrap();
        });
        async move { Ok(reply(body)) }
    })
    .await;
    let answer = fleet.client.call(&fleet.peer, call(whole("x"))).await.unwrap();
    let mut body = answer.response.into_body();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), "first");
    let broken = next(&mut body).await.unwrap().unwrap_err();
    assert!(broken.contains("disk on fire"), "{broken}");
    assert!(next(&mut body).await.is_none());
}

#[tokio::test]
async fn a_request_that_breaks_is_broken_for_the_handler() {
    let (seen, told) = oneshot::channel();
    let seen = std::sync::Mutex::new(Some(seen));
    let fleet = fleet(move |call| {
        let seen = seen.lock().unwrap().take().unwrap();
        async move {
            let mut body = call.request.into_body();
            let first = next(&mut body).await;
            let second = next(&mut body).await;
            seen.send((first, second)).unwrap();
            Ok(reply(whole("")))
        }
    })
    .await;
    let (sender, body) = pieces();
    tokio::spawn(async move {
        sender.send(Ok("first".into())).await.unwrap();
        sender.send(Err("the client hung up".into())).await.unwrap();
    });
    let _ = fleet.client.call(&fleet.peer, call(body)).await;
    let (first, second) = told.await.unwrap();
    assert_eq!(first.unwrap().unwrap(), "first");
    assert!(second.unwrap().unwrap_err().contains("broke"), "never a clean end");
}

#[tokio::test]
async fn a_small_body_that_breaks_never_leaves() {
    let fleet = fleet(|call| async move { panic!("{call:?} arrived") }).await;
    struct Broken;
    impl http_body::Body for Broken {
        type Data = Bytes;
        type Error = crate::BodyError;
        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, crate::BodyError>>> {
            std::task::Poll::Ready(Some(Err("gone".into())))
        }
        fn size_hint(&self) -> http_body::SizeHint {
            http_body::SizeHint::with_exact(5)
        }
    }
    let failed = fleet.client.call(&fleet.peer, call(Broken.boxed_unsync())).await.unwrap_err();
    assert!(matches!(failed, ForwardError::BodyBroken { .. }), "{failed:?}");
}
