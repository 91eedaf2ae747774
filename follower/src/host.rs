//! A follower behind its listener: the logs of all sessions, each with the core's machine, over one journal.

mod answers;
mod garbage;
mod session;
mod stream;
mod tail;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use holdfast_bucket::Bucket;
use holdfast_core::follower::{CallId, FollowerEvent, SessionLog, StreamId};
use holdfast_core::log_record::{LogState, MemberId};
use holdfast_rpc::follower::{
    AppendAnswers, AppendMessages, FollowerDescription, FollowerError, FollowerHost, HeldLog, LogName,
    TailFrames,
};
use holdfast_telemetry::metrics;
use holdfast_types::{LogOffset, SessionId};
use tokio::sync::{Semaphore, oneshot};

use self::answers::Answers;
use self::session::Session;
use crate::journal::{Ends, Journal, Opened};
use crate::log_record;

/// Sessions at a time: each costs memory and a row in every segment.
const SESSIONS_MAX: usize = 20_000;
/// Seals that may wait for the disk at a time.
const SEALS_MAX: usize = 1_024;
/// Tails at a time: each holds a few pieces in memory.
const TAILS_MAX: usize = 32;

/// A follower. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Host {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    me: MemberId,
    session: SessionId,
    records: Arc<dyn Bucket>,
    session_bytes_max: u64,
    /// Set when the logs are in place: before that nothing can be reported.
    journal: OnceLock<Journal>,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
    ids: AtomicU64,
    streams: Arc<AtomicU64>,
    retained_bytes: AtomicU64,
    is_draining: AtomicBool,
    seals: Semaphore,
    tails: Arc<Semaphore>,
}

impl Host {
    /// Takes over what the journal holds, and starts writing it.
    pub(crate) fn start(
        (me, session): (MemberId, SessionId),
        records: Arc<dyn Bucket>,
        session_bytes_max: u64,
        opened: Opened,
    ) -> Self {
        let inner = Arc::new(Inner {
            me,
            session,
            records,
            session_bytes_max,
            journal: OnceLock::new(),
            sessions: Mutex::default(),
            ids: AtomicU64::new(1),
            streams: Arc::default(),
            retained_bytes: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
            seals: Semaphore::new(SEALS_MAX),
            tails: Arc::new(Semaphore::new(TAILS_MAX)),
        });
        let mut first = Vec::new();
        for (id, log) in &opened.logs {
            let (machine, effects) = SessionLog::reopen(inner.me.clone(), &log.replay);
            let name = LogName { node: log.node.clone(), session: *id };
            let session = Arc::new(Session::new(name, machine, log.index.clone()));
            inner.retained_changed(i64::try_from(log.index.bytes()).unwrap_or(i64::MAX));
            inner.lock().insert(*id, Arc::clone(&session));
            first.push((session, effects));
        }
        let reported = Arc::downgrade(&inner);
        let journal = opened.start(Box::new(move |completed| {
            if let Some(inner) = reported.upgrade()
                && let Some(session) = inner.session(completed.session)
            {
                session.persisted(&inner, completed);
            }
        }));
        assert!(inner.journal.set(journal).is_ok(), "set once");
        for (session, effects) in first {
            session.execute_first(&inner, effects);
        }
        Self { inner }
    }

    pub(crate) fn journal(&self) -> &Journal {
        self.inner.journal()
    }

    /// Takes no new log epochs from now on.
    pub(crate) fn drain(&self) {
        self.inner.is_draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.inner.is_draining()
    }

    /// Sessions that append now.
    pub(crate) fn streams(&self) -> u64 {
        self.inner.streams.load(Ordering::Acquire)
    }

    /// Bytes of frames that are retained.
    pub(crate) fn retained_bytes(&self) -> u64 {
        self.inner.retained_bytes.load(Ordering::Acquire)
    }

    /// Bytes that could still be taken; zero when the disk does not say.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.journal().free_bytes().unwrap_or(0)
    }

    /// Forgets sessions whose log record says that nobody needs them, until it is cancelled.
    pub(crate) async fn collect_garbage(&self) {
        garbage::run(&self.inner).await;
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> &Journal {
        self.journal.get().expect("set before anything is served")
    }

    fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    fn id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    fn session(&self, id: SessionId) -> Option<Arc<Session>> {
        self.lock().get(&id).cloned()
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }

    /// The session's log, made now when it was never seen. None when it belongs to another node, or there are too many.
    fn session_or_new(&self, log: &LogName) -> Result<Arc<Session>, FollowerError> {
        let mut sessions = self.lock();
        if let Some(session) = sessions.get(&log.session) {
            return if session.name == *log {
                Ok(Arc::clone(session))
            } else {
                Err(FollowerError::Rejected(format!("the session is not one of node `{}`", log.node)))
            };
        }
        if sessions.len() >= SESSIONS_MAX {
            return Err(FollowerError::Unavailable(format!(
                "this follower holds {SESSIONS_MAX} logs already"
            )));
        }
        let machine = SessionLog::new(self.me.clone());
        let session = Arc::new(Session::new(log.clone(), machine, Default::default()));
        sessions.insert(log.session, Arc::clone(&session));
        Ok(session)
    }

    /// Drops a log of which nothing was ever written down, unless somebody else is at it. Whoever gets it, gets it under the
    /// lock of the map, so with none but the map and the caller holding it there is nobody.
    fn forget_unused(&self, session: &Arc<Session>) {
        let mut sessions = self.lock();
        if Arc::strong_count(session) == 2 && session.is_unused() {
            sessions.remove(&session.name.session);
        }
    }

    fn forget(&self, id: SessionId) {
        self.lock().remove(&id);
    }

    fn retained_changed(&self, delta: i64) {
        if delta != 0 {
            self.retained_bytes.fetch_add(delta.cast_unsigned(), Ordering::AcqRel);
            metrics().follower_retained_changed(delta);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(journal) = self.journal.get() {
            journal.close();
        }
    }
}

#[async_trait]
impl FollowerHost for Host {
    fn append(&self, session: SessionId, messages: AppendMessages) -> AppendAnswers {
        let stream = StreamId(self.inner.id());
        let answers = Arc::new(Answers::default());
        tokio::spawn(stream::run(Arc::clone(&self.inner), (session, stream), messages, Arc::clone(&answers)));
        answers.stream()
    }

    async fn seal(&self, log: LogName) -> Result<HeldLog, FollowerError> {
        let _permit = self.inner.seals.acquire().await.expect("never closed");
        let session = self.inner.session_or_new(&log)?;
        let (answer, answered) = oneshot::channel();
        session.seal(&self.inner, CallId(self.inner.id()), answer);
        let mut ends = self.journal().ends();
        tokio::select! {
            biased;
            held = answered => {
                held.map_err(|_| FollowerError::Unavailable("the log was dropped meanwhile".into()))
            }
            _ = ends.wait_for(|ends| *ends != Ends::Running) => {
                Err(FollowerError::Unavailable("the journal has ended; ask again after the restart".into()))
            }
        }
    }

    async fn tail(
        &self,
        log: LogName,
        start: LogOffset,
        last: Option<LogOffset>,
    ) -> Result<TailFrames, FollowerError> {
        tail::read(&self.inner, &log, start, last).await
    }

    async fn release(&self, log: LogName) -> Result<(), FollowerError> {
        let Some(session) = self.inner.session(log.session).filter(|session| session.name == log) else {
            return Ok(());
        };
        match log_record::read(&*self.inner.records, &log).await {
            Ok(Some(record)) if record.state == LogState::Sealed => {
                session.on(&self.inner, FollowerEvent::RecordSealed);
                Ok(())
            }
            Ok(_) => Err(FollowerError::Rejected(format!("the log record of {log} is not sealed"))),
            Err(error) => Err(FollowerError::Unavailable(error.to_string())),
        }
    }

    async fn describe(&self) -> FollowerDescription {
        let inner = &self.inner;
        let mut logs: Vec<_> =
            inner.all().iter().map(|session| (session.name.clone(), session.held(&inner.me))).collect();
        logs.sort_by(|(a, _), (b, _)| (&a.node, a.session).cmp(&(&b.node, b.session)));
        FollowerDescription {
            follower: inner.me.follower.clone(),
            session: inner.session,
            incarnation: inner.me.incarnation,
            version: env!("CARGO_PKG_VERSION").into(),
            free_bytes: self.free_bytes(),
            retained_bytes: self.retained_bytes(),
            draining: self.is_draining(),
            logs,
        }
    }
}
