//! A scripted follower on loopback: who may call what, and that nothing is lost or invented on the way.

use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use holdfast_types::{CellName, Epoch, FollowerName, Incarnation, LogEpoch, NodeName, SessionId, Txid};
use tokio::sync::oneshot;

use super::*;
use crate::follower::{
    AppendAnswer, AppendAnswers, AppendMessages, AppendRefusal, FollowerDescription, HeldLog, LogFrame,
    TailFrames,
};
use crate::identity;
use crate::{
    AppendReceiver, AppendSender, AppendStream, FollowerCallError, FollowerClient, FollowerLink, FollowerPeer,
};

const FOLLOWER: SessionId = SessionId::from_bits(0xf);
const OWNER: SessionId = SessionId::from_bits(7);

fn log() -> LogName {
    LogName { node: NodeName::parse("n").unwrap(), session: OWNER }
}

fn frame(offset: u64) -> LogFrame {
    let body = Bytes::from(vec![u8::try_from(offset).unwrap(); 1000]);
    let cell = CellName::parse("db:a").unwrap();
    LogFrame::new(OWNER, LogOffset::new(offset), cell, Epoch::new(1), Txid::new(offset), body)
}

/// Acknowledges every message, refuses a release, and tails what it is given.
#[derive(Default)]
struct Scripted {
    tail: Vec<Result<Vec<LogFrame>, FollowerError>>,
    asked: Mutex<Vec<(LogOffset, Option<LogOffset>)>>,
}

fn answer(message: Result<AppendMessage, String>) -> AppendAnswer {
    match message {
        Ok(AppendMessage::Adopt { log_epoch, start, .. }) => AppendAnswer::Adopted { log_epoch, next: start },
        Ok(AppendMessage::Frames { log_epoch, frames }) => {
            AppendAnswer::Durable { log_epoch, offset: frames.last().unwrap().offset }
        }
        Ok(AppendMessage::Release { .. }) => {
            AppendAnswer::Refused { reason: AppendRefusal::Full, detail: "scripted".into() }
        }
        Err(detail) => AppendAnswer::Refused { reason: AppendRefusal::Corrupt, detail },
    }
}

#[async_trait]
impl FollowerHost for Scripted {
    fn append(&self, _session: SessionId, messages: AppendMessages) -> AppendAnswers {
        messages.map(answer).boxed()
    }

    async fn seal(&self, log: LogName) -> Result<HeldLog, FollowerError> {
        if log.session != OWNER {
            return Err(FollowerError::Unavailable("poisoned".into()));
        }
        Ok(HeldLog {
            incarnation: Incarnation::from_bits(1),
            log_epoch: LogEpoch::new(2),
            start: LogOffset::new(3),
            end: LogOffset::new(5),
            complete: true,
            sealed: true,
            bytes: 2000,
        })
    }

    async fn tail(
        &self,
        _log: LogName,
        start: LogOffset,
        last: Option<LogOffset>,
    ) -> Result<TailFrames, FollowerError> {
        self.asked.lock().unwrap().push((start, last));
        Ok(stream::iter(self.tail.clone()).boxed())
    }

    async fn release(&self, _log: LogName) -> Result<(), FollowerError> {
        Err(FollowerError::Rejected("the record is open".into()))
    }

    async fn describe(&self) -> FollowerDescription {
        FollowerDescription {
            follower: FollowerName::parse("f").unwrap(),
            session: FOLLOWER,
            incarnation: Incarnation::from_bits(1),
            version: "0".into(),
            free_bytes: 1,
            retained_bytes: 2,
            draining: false,
            logs: vec![],
        }
    }
}

struct Served {
    fleet: holdfast_records::FleetIdentity,
    peer: FollowerPeer,
    host: Arc<Scripted>,
    _stop: oneshot::Sender<()>,
}

impl Served {
    async fn start(host: Scripted) -> Self {
        let fleet = identity::create().unwrap();
        let me = ProcessIdentity::new(fleet.clone(), Role::Follower, "f", FOLLOWER).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let host = Arc::new(host);
        let served: Arc<dyn FollowerHost> = host.clone();
        tokio::spawn(async move {
            let shutdown = async {
                let _ = stopped.await;
            };
            serve_follower(listener, served, &me, shutdown).await.unwrap();
        });
        let follower = FollowerName::parse("f").unwrap();
        Self { fleet, peer: FollowerPeer { follower, session: FOLLOWER, address }, host, _stop: stop }
    }

    fn client(&self, role: Role, session: SessionId) -> FollowerClient {
        FollowerClient::new(ProcessIdentity::new(self.fleet.clone(), role, "p", session).unwrap())
    }

    async fn link(&self, role: Role, session: SessionId) -> FollowerLink {
        self.client(role, session).connect(&self.peer).await.unwrap()
    }

    /// An append stream whose bytes move.
    async fn append_stream(
        &self,
        role: Role,
        session: SessionId,
    ) -> Result<(AppendSender, AppendReceiver), FollowerCallError> {
        let AppendStream { sender, receiver, connection } =
            self.client(role, session).append_stream(&self.peer).await?;
        tokio::spawn(connection);
        Ok((sender, receiver))
    }
}

fn adopt(log: LogName) -> AppendMessage {
    AppendMessage::Adopt { log, log_epoch: LogEpoch::new(2), start: LogOffset::new(3) }
}

#[tokio::test]
async fn a_session_appends_to_its_own_log() {
    let served = Served::start(Scripted::default()).await;
    let (mut sender, mut receiver) = served.append_stream(Role::Cellnode, OWNER).await.unwrap();
    let log_epoch = LogEpoch::new(2);
    sender.send(adopt(log())).await.unwrap();
    let adopted = AppendAnswer::Adopted { log_epoch, next: LogOffset::new(3) };
    assert_eq!(receiver.next().await, Ok(Some(adopted)));
    sender.send(AppendMessage::Frames { log_epoch, frames: vec![frame(3), frame(4)] }).await.unwrap();
    let durable = AppendAnswer::Durable { log_epoch, offset: LogOffset::new(4) };
    assert_eq!(receiver.next().await, Ok(Some(durable)));
    sender.send(AppendMessage::Release { start: LogOffset::new(4) }).await.unwrap();
    let refused = AppendAnswer::Refused { reason: AppendRefusal::Full, detail: "scripted".into() };
    assert_eq!(receiver.next().await, Ok(Some(refused)));
    drop(sender);
    assert_eq!(receiver.next().await, Ok(None), "ended in order");
}

#[tokio::test]
async fn nobody_appends_to_the_log_of_another_session() {
    let served = Served::start(Scripted::default()).await;
    let other = SessionId::from_bits(8);
    let (mut sender, mut receiver) = served.append_stream(Role::Cellnode, other).await.unwrap();
    sender.send(adopt(log())).await.unwrap();
    let Ok(Some(AppendAnswer::Refused { detail, .. })) = receiver.next().await else { panic!() };
    assert!(detail.contains("asks for the log"), "{detail}");
    for role in [Role::Ingress, Role::Follower, Role::Waker, Role::Tools] {
        let refused = served.append_stream(role, OWNER).await.unwrap_err();
        assert!(matches!(refused, FollowerCallError::Refused(_)), "{role:?}: {refused}");
    }
}

#[tokio::test]
async fn logs_are_sealed_and_read_by_those_that_recover_them() {
    for (role, may) in [
        (Role::Cellnode, true),
        (Role::Waker, true),
        (Role::Tools, true),
        (Role::Ingress, false),
        (Role::Follower, false),
    ] {
        let served = Served::start(Scripted::default()).await;
        let link = served.link(role, SessionId::from_bits(3)).await;
        assert_eq!(link.seal(&log()).await.is_ok(), may, "{role:?}");
        assert_eq!(link.tail(&log(), LogOffset::new(1), None).await.is_ok(), may, "{role:?}");
        let released = link.release(&log()).await.unwrap_err();
        assert_eq!(released.to_string().contains("record is open"), may, "{role:?}: {released}");
        assert!(link.describe().await.is_ok(), "{role:?}");
    }
}

#[tokio::test]
async fn a_tail_is_whole_or_says_that_it_is_not() {
    let whole = vec![Ok(vec![frame(3), frame(4)]), Ok(vec![frame(5)])];
    let served = Served::start(Scripted { tail: whole, ..Scripted::default() }).await;
    let link = served.link(Role::Tools, SessionId::from_bits(3)).await;
    let tail = link.tail(&log(), LogOffset::new(3), Some(LogOffset::new(9))).await.unwrap();
    let pieces: Vec<_> = tail.collect().await;
    assert_eq!(pieces, vec![Ok(vec![frame(3), frame(4)]), Ok(vec![frame(5)])]);
    assert_eq!(*served.host.asked.lock().unwrap(), [(LogOffset::new(3), Some(LogOffset::new(9)))]);

    let broken = vec![Ok(vec![frame(3)]), Err(FollowerError::Unavailable("disk".into()))];
    let served = Served::start(Scripted { tail: broken, ..Scripted::default() }).await;
    let link = served.link(Role::Tools, SessionId::from_bits(3)).await;
    let tail = link.tail(&log(), LogOffset::new(3), None).await.unwrap();
    let pieces: Vec<_> = tail.collect().await;
    assert!(matches!(pieces[..], [Ok(_), Err(FollowerCallError::Failed(_))]), "{pieces:?}");

    let altered = vec![Ok(vec![LogFrame { body: Bytes::from_static(b"x"), ..frame(3) }])];
    let served = Served::start(Scripted { tail: altered, ..Scripted::default() }).await;
    let link = served.link(Role::Tools, SessionId::from_bits(3)).await;
    let tail = link.tail(&log(), LogOffset::new(3), None).await.unwrap();
    let pieces: Vec<_> = tail.collect().await;
    assert!(matches!(pieces[..], [Err(FollowerCallError::Failed(_))]), "{pieces:?}");
}

#[tokio::test]
async fn a_failing_follower_is_no_witness() {
    let served = Served::start(Scripted::default()).await;
    let link = served.link(Role::Tools, SessionId::from_bits(3)).await;
    let other = LogName { session: SessionId::from_bits(99), ..log() };
    let failed = link.seal(&other).await.unwrap_err();
    assert!(matches!(failed, FollowerCallError::Failed(_)), "{failed}");
    let FollowerPeer { session, address, .. } = &served.peer;
    for part in
        [format!("the seal of the log of {other}"), format!("follower `f` session {session} at {address}")]
    {
        assert!(failed.to_string().contains(&part), "{failed}");
    }
}

#[tokio::test]
async fn another_process_at_the_same_address_gets_nothing() {
    let served = Served::start(Scripted::default()).await;
    let me = ProcessIdentity::new(served.fleet.clone(), Role::Tools, "p", SessionId::from_bits(3)).unwrap();
    let stale = FollowerPeer { session: SessionId::from_bits(0xe), ..served.peer.clone() };
    let unreachable = FollowerClient::new(me).connect(&stale).await.unwrap_err();
    assert!(matches!(unreachable, FollowerCallError::Unreachable(_)), "{unreachable}");
}

#[tokio::test]
async fn the_largest_frame_travels_both_ways() {
    let body = Bytes::from(vec![7; limits::FRAME_LEN_MAX]);
    let cell = CellName::parse("db:a").unwrap();
    let frame = LogFrame::new(OWNER, LogOffset::new(3), cell, Epoch::new(1), Txid::new(1), body);
    let served = Served::start(Scripted { tail: vec![Ok(vec![frame.clone()])], ..Scripted::default() }).await;
    let link = served.link(Role::Cellnode, OWNER).await;
    let (mut sender, mut receiver) = served.append_stream(Role::Cellnode, OWNER).await.unwrap();
    let log_epoch = LogEpoch::new(1);
    sender.send(AppendMessage::Frames { log_epoch, frames: vec![frame.clone()] }).await.unwrap();
    assert!(matches!(receiver.next().await, Ok(Some(AppendAnswer::Durable { .. }))));
    let pieces: Vec<_> = link.tail(&log(), LogOffset::new(3), None).await.unwrap().collect().await;
    assert!(pieces == vec![Ok(vec![frame])]);
}
