//! Clients that speak frames, against a side that stands for the object.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_rpc::{SocketFrame, SocketReader, SocketWriter, socket_pipe};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::pump::{Cause, Ends, run};

const PING: Duration = Duration::from_secs(30);

/// A socket: the client's connection, and the object's two ends.
struct Case {
    client: DuplexStream,
    heard: SocketReader,
    says: Option<SocketWriter>,
    ended: CancellationToken,
    run: JoinHandle<Cause>,
}

impl Case {
    fn new() -> Self {
        let (client, server) = duplex(1 << 20);
        let (uplink, up) = socket_pipe();
        let (says, down) = socket_pipe();
        let ended = CancellationToken::new();
        let ends =
            Ends { uplink, downlink: SocketReader::new(down), memory: Arc::new(Semaphore::new(1_024)) };
        let run = tokio::spawn(run(server, ends, PING, ended.clone()));
        Self { client, heard: SocketReader::new(up), says: Some(says), ended, run }
    }

    /// Sends a frame with a mask: its first byte, and its payload.
    async fn send(&mut self, first: u8, payload: &[u8]) {
        let mut frame = vec![first];
        match payload.len() {
            len @ ..126 => frame.push(0x80 | u8::try_from(len).unwrap()),
            len => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(len).unwrap().to_be_bytes());
            }
        }
        let mask = [1, 2, 3, 4];
        frame.extend(mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.client.write_all(&frame).await.unwrap();
    }

    /// Closes from the client, as `send` does.
    async fn close(&mut self, code: u16, reason: &str) {
        self.send(0x88, &[&code.to_be_bytes(), reason.as_bytes()].concat()).await;
    }

    fn says(&self, frame: &SocketFrame) {
        self.says.as_ref().unwrap().push(frame).unwrap();
    }

    /// All that the client is sent until the connection ends.
    async fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        self.client.read_to_end(&mut all).await.unwrap();
        all
    }
}

fn text(text: &'static str) -> SocketFrame {
    SocketFrame::Text(Bytes::from_static(text.as_bytes()))
}

fn close(code: u16, reason: &str) -> SocketFrame {
    SocketFrame::Close { code, reason: reason.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn messages_go_both_ways_and_fragments_are_put_together() {
    let mut case = Case::new();
    case.send(0x01, "hé".as_bytes().split_at(2).0).await;
    case.send(0x89, b"ping").await;
    case.send(0x80, &"hé".as_bytes()[2..]).await;
    assert_eq!(case.heard.next().await.unwrap(), Some(text("hé")));
    case.send(0x82, &[0; 300]).await;
    assert_eq!(case.heard.next().await.unwrap(), Some(SocketFrame::Binary(Bytes::from(vec![0; 300]))));
    case.says(&text("answer"));
    let mut seen = [0; 14];
    case.client.read_exact(&mut seen).await.unwrap();
    assert_eq!(&seen, b"\x8a\x04ping\x81\x06answer");
}

#[tokio::test(start_paused = true)]
async fn a_close_of_the_client_is_answered_by_the_object_alone() {
    let mut case = Case::new();
    case.close(3000, "bye").await;
    assert_eq!(case.heard.next().await.unwrap(), Some(close(3000, "bye")));
    assert_eq!(case.heard.next().await.unwrap(), None);
    case.says(&text("last"));
    case.says(&close(4001, "own"));
    assert_eq!(case.rest().await, b"\x81\x04last\x88\x05\x0f\xa1own");
    assert_eq!(case.run.await.unwrap(), Cause::Client);
}

#[tokio::test(start_paused = true)]
async fn a_close_that_nobody_answers_is_echoed_once() {
    for (code, bytes) in [(Some(1001), &b"\x88\x02\x03\xe9"[..]), (None, b"\x88\0")] {
        for ends_in_order in [true, false] {
            let mut case = Case::new();
            match code {
                Some(code) => case.close(code, "").await,
                None => case.send(0x88, b"").await,
            }
            case.heard.next().await.unwrap();
            if ends_in_order {
                case.says.take().unwrap().end();
            }
            assert_eq!(case.rest().await, bytes);
            assert_eq!(case.run.await.unwrap(), Cause::Client);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_of_the_object_waits_for_the_clients_answer_and_the_object_hears_it() {
    let mut case = Case::new();
    case.says(&close(4000, "over"));
    let mut seen = [0; 8];
    case.client.read_exact(&mut seen).await.unwrap();
    assert_eq!(&seen, b"\x88\x06\x0f\xa0over");
    case.close(4000, "over").await;
    assert_eq!(case.heard.next().await.unwrap(), Some(close(4000, "over")));
    assert!(case.rest().await.is_empty());
    assert_eq!(case.run.await.unwrap(), Cause::Object);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_closes_with_1012_once() {
    let mut case = Case::new();
    case.says(&text("a"));
    drop(case.says.take());
    let seen = case.rest().await;
    assert!(seen.starts_with(b"\x81\x01a\x88") && seen[5..7] == 1012_u16.to_be_bytes(), "{seen:?}");
    assert_eq!(seen.len(), 5 + usize::from(seen[4]));
    assert_eq!(case.run.await.unwrap(), Cause::Restart);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_ingress_closes_with_1012_once() {
    let mut case = Case::new();
    case.ended.cancel();
    let seen = case.rest().await;
    assert!(seen[0] == 0x88 && seen[2..4] == 1012_u16.to_be_bytes(), "{seen:?}");
    assert_eq!(case.run.await.unwrap(), Cause::Drain);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_breaks_off_or_falls_silent_is_lost_to_the_object() {
    let mut case = Case::new();
    drop(case.client);
    assert!(case.heard.next().await.is_err());
    drop(case.says.take());
    assert_eq!(case.run.await.unwrap(), Cause::Lost);

    let mut case = Case::new();
    assert!(case.heard.next().await.is_err());
    drop(case.says.take());
    assert_eq!(case.rest().await, b"\x89\0");
    assert_eq!(case.run.await.unwrap(), Cause::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_pings_stays() {
    let mut case = Case::new();
    for _ in 0..10 {
        let mut ping = [0; 2];
        case.client.read_exact(&mut ping).await.unwrap();
        assert_eq!(&ping, b"\x89\0");
        case.send(0x8a, b"").await;
    }
    assert!(!case.run.is_finished());
}

#[tokio::test(start_paused = true)]
async fn what_breaks_the_protocol_is_closed_with_its_code() {
    for (first, payload, code) in [
        (0xc1, &b"rsv"[..], 1002_u16),
        (0x83, b"kind", 1002),
        (0x80, b"nothing to continue", 1002),
        (0x09, b"a ping in pieces", 1002),
        (0x89, &[0; 126], 1002),
        (0x88, b"x", 1002),
        (0x88, &1005_u16.to_be_bytes(), 1002),
        (0x88, &1006_u16.to_be_bytes(), 1002),
        (0x81, b"\xff", 1007),
        (0x88, b"\x03\xe8\xff", 1007),
    ] {
        let mut case = Case::new();
        case.send(first, payload).await;
        assert!(case.heard.next().await.is_err(), "{first:x}");
        let seen = case.rest().await;
        assert!(seen[0] == 0x88 && seen[2..4] == code.to_be_bytes(), "{first:x}: {seen:?}");
        assert_eq!(case.run.await.unwrap(), Cause::Invalid);
    }
    // Without a mask; and a message that is announced to be too long.
    for (bytes, code) in [(&b"\x81\x01a"[..], 1002_u16), (b"\x82\xff\0\0\0\0\x02\0\0\x01\0\0\0\0", 1009)] {
        let mut case = Case::new();
        case.client.write_all(bytes).await.unwrap();
        assert_eq!(case.rest().await[2..4], code.to_be_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_object_holds_its_client_back_and_does_not_lose_it() {
    let mut case = Case::new();
    let (mut sent, payload) = (0, [7; 60_000]);
    while tokio::time::timeout(Duration::from_secs(1), case.send(0x82, &payload)).await.is_ok() {
        sent += 1;
        assert!(sent < 100, "nothing holds the client back");
    }
    tokio::time::sleep(10 * PING).await;
    assert!(!case.run.is_finished());
    for _ in 0..sent {
        let frame = case.heard.next().await.unwrap();
        assert_eq!(frame, Some(SocketFrame::Binary(Bytes::copy_from_slice(&payload))));
    }
}

#[tokio::test(start_paused = true)]
async fn messages_that_never_end_find_no_more_memory_than_there_is_for_all() {
    let mut case = Case::new();
    let piece = vec![0; 60_000];
    case.send(0x02, &piece).await;
    let mut flood = 0;
    // The pool of a test has 1 MiB.
    while flood < 2 << 20 && !case.run.is_finished() {
        case.send(0x00, &piece).await;
        flood += piece.len();
    }
    let mut told = [0; 4];
    case.client.read_exact(&mut told).await.unwrap();
    assert_eq!((told[0], u16::from_be_bytes([told[2], told[3]])), (0x88, 1013));
    drop(case.client);
    assert_eq!(case.run.await.unwrap(), Cause::Invalid);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_in_the_middle_of_a_frame_is_not_silent() {
    let mut case = Case::new();
    let mut frame = vec![0x82, 0x80 | 126];
    frame.extend(400_u16.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend([7; 400]);
    for byte in frame {
        case.client.write_all(&[byte]).await.unwrap();
        tokio::time::sleep(PING / 2).await;
    }
    assert_eq!(case.heard.next().await.unwrap(), Some(SocketFrame::Binary(Bytes::from(vec![7; 400]))));
}
