use std::sync::mpsc;

use holdfast_rpc::Body;

use super::*;

/// Where a test hears which pieces were taken.
fn told(name: &'static str) -> (OnTaken, mpsc::Receiver<(&'static str, bool)>) {
    let (tell, heard) = mpsc::channel();
    (Box::new(move |taken| tell.send((name, taken)).unwrap()), heard)
}

fn quiet() -> OnTaken {
    Box::new(|_| {})
}

async fn read(reader: OutgoingReader) -> Result<Bytes, String> {
    Ok(reader.collect().await.map_err(|error| error.to_string())?.to_bytes())
}

#[tokio::test]
async fn pieces_that_are_released_out_of_order_arrive_in_order() {
    let (mut body, reader) = OutgoingBody::new();
    let (first, second) = (body.chunk(Bytes::from_static(b"a")), body.chunk(Bytes::from_static(b"b")));
    let end = body.end();
    end.enter(quiet());
    second.enter(quiet());
    first.enter(quiet());
    assert_eq!(read(reader).await.unwrap(), "ab");
}

#[tokio::test]
async fn a_slow_reader_holds_its_writer_back() {
    let (mut body, mut reader) = OutgoingBody::new();
    let large = Bytes::from(vec![7; BUFFERED_MAX]);
    let ((on_first, first), (on_second, second)) = (told("first"), told("second"));
    body.chunk(large.clone()).enter(on_first);
    body.chunk(large.clone()).enter(on_second);
    assert_eq!(first.try_recv(), Ok(("first", true)));
    assert!(second.try_recv().is_err(), "the reader has taken nothing");
    assert_eq!(reader.frame().await.unwrap().unwrap().into_data().unwrap(), large);
    assert_eq!(second.try_recv(), Ok(("second", true)));
}

#[tokio::test]
async fn a_body_without_its_end_is_broken() {
    // The writer goes away.
    let (mut body, reader) = OutgoingBody::new();
    body.chunk(Bytes::from_static(b"a")).enter(quiet());
    drop(body);
    assert!(read(reader).await.unwrap_err().contains("before the end"));
    // A piece fails at the gate; those behind it do not arrive.
    let (mut body, reader) = OutgoingBody::new();
    let (first, second) = (body.chunk(Bytes::from_static(b"a")), body.end());
    first.fail("no proof");
    let (on_second, heard) = told("second");
    second.enter(on_second);
    assert_eq!(heard.try_recv(), Ok(("second", false)));
    assert_eq!(read(reader).await.unwrap_err(), "no proof");
    // A piece is dropped.
    let (mut body, reader) = OutgoingBody::new();
    drop(body.chunk(Bytes::from_static(b"a")));
    body.end().enter(quiet());
    assert!(read(reader).await.is_err());
    // The handler breaks it.
    let (body, reader) = OutgoingBody::new();
    body.abort("the handler said so".into()).enter(quiet());
    assert_eq!(read(reader).await.unwrap_err(), "the handler said so");
}

#[tokio::test]
async fn a_reader_that_goes_away_is_told_of_unless_it_had_everything() {
    let (mut body, mut reader) = OutgoingBody::new();
    let (tell, heard) = mpsc::channel();
    reader.when_abandoned(move || tell.send(()).unwrap());
    let (on_large, large) = told("large");
    body.chunk(Bytes::from(vec![7; BUFFERED_MAX + 1])).enter(on_large);
    drop(reader);
    assert_eq!(heard.try_recv(), Ok(()));
    assert_eq!(large.try_recv(), Ok(("large", false)));
    let (on_late, late) = told("late");
    body.chunk(Bytes::from_static(b"b")).enter(on_late);
    assert_eq!(late.try_recv(), Ok(("late", false)));

    let (body, mut reader) = OutgoingBody::new();
    let (tell, heard) = mpsc::channel::<()>();
    reader.when_abandoned(move || tell.send(()).unwrap());
    body.end().enter(quiet());
    assert_eq!(read(reader).await.unwrap(), "");
    assert!(heard.try_recv().is_err());
}

#[tokio::test]
async fn a_body_that_comes_in_is_read_to_its_end_or_to_its_break() {
    let whole: Body =
        http_body_util::Full::new(Bytes::from_static(b"a")).map_err(|never| match never {}).boxed_unsync();
    let body = IncomingBody::new(whole);
    assert_eq!(body.clone().read().await, Ok(Some(Bytes::from_static(b"a"))));
    assert_eq!(body.clone().read().await, Ok(None));
    assert_eq!(body.read().await, Ok(None));

    let (pipe, reader) = OutgoingBody::new();
    pipe.abort("broken".into()).enter(quiet());
    let body = IncomingBody::new(reader.boxed_unsync());
    assert_eq!(body.clone().read().await, Err("broken".into()));
    assert_eq!(body.read().await, Ok(None), "it breaks once");
}

#[tokio::test]
async fn a_shared_backlog_knows_what_no_reader_has_taken() {
    let backlog = Arc::new(Backlog::default());
    let (mut one, mut reader) = OutgoingBody::counted(&backlog);
    let (mut other, other_reader) = OutgoingBody::counted(&backlog);
    let piece = one.chunk(Bytes::from_static(b"abc"));
    assert_eq!(backlog.bytes(), 3, "what waits at the gate counts");
    piece.enter(Box::new(|_| {}));
    other.chunk(Bytes::from_static(b"defg")).enter(Box::new(|_| {}));
    assert_eq!(backlog.bytes(), 7);
    assert_eq!(reader.frame().await.unwrap().unwrap().into_data().unwrap(), "abc");
    assert_eq!(backlog.bytes(), 4);
    drop(other_reader);
    assert_eq!(backlog.bytes(), 0, "nobody takes it any more");
    drop(other.chunk(Bytes::from_static(b"lost")));
    drop((one, reader, other));
    assert_eq!(backlog.bytes(), 0);
}
