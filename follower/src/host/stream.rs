//! One append stream: reads messages while there is room for what they bring, and ends with its session, its reader, or a
//! newer stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt as _;
use holdfast_core::follower::{FollowerEvent, FramesCheck, StreamId};
use holdfast_rpc::follower::{AppendAnswer, AppendMessage, AppendMessages, AppendRefusal, LogFrame, LogName};
use holdfast_telemetry::metrics;
use holdfast_types::{LogEpoch, LogOffset, SessionId};

use super::Inner;
use super::answers::Answers;
use super::session::{Delivery, Session};
use crate::log_record;

pub(super) async fn run(
    inner: Arc<Inner>,
    (session, stream): (SessionId, StreamId),
    messages: AppendMessages,
    answers: Arc<Answers>,
) {
    inner.streams.fetch_add(1, Ordering::AcqRel);
    metrics().follower_streams_changed(1);
    let mut stream = Stream { inner, id: stream, session, answers, log: None };
    stream.serve(messages).await;
    if let Some(log) = stream.log.take() {
        log.end_stream(&stream.inner, stream.id);
        stream.inner.forget_unused(&log);
    }
    stream.answers.end();
    metrics().follower_streams_changed(-1);
    stream.inner.streams.fetch_sub(1, Ordering::AcqRel);
}

struct Stream {
    inner: Arc<Inner>,
    id: StreamId,
    session: SessionId,
    answers: Arc<Answers>,
    /// Known from the first adoption on.
    log: Option<Arc<Session>>,
}

impl Stream {
    async fn serve(&mut self, mut messages: AppendMessages) {
        let answers = Arc::clone(&self.answers);
        let mut ended = std::pin::pin!(answers.ended());
        loop {
            let message = tokio::select! {
                biased;
                () = ended.as_mut() => return,
                message = messages.next() => message,
            };
            let Some(message) = message else { return };
            let taken = match message {
                Ok(message) => {
                    tokio::select! {
                        biased;
                        () = ended.as_mut() => return,
                        taken = self.take(message) => taken,
                    }
                }
                Err(detail) => Err((AppendRefusal::NotAMember, detail)),
            };
            if let Err((reason, detail)) = taken {
                tracing::debug!(session = %self.session, %detail, "an append stream broke");
                self.answers.put(AppendAnswer::Refused { reason, detail });
                return;
            }
        }
    }

    async fn take(&mut self, message: AppendMessage) -> Result<(), (AppendRefusal, String)> {
        match message {
            AppendMessage::Adopt { log, log_epoch, start } => self.adopt(&log, log_epoch, start).await,
            AppendMessage::Frames { log_epoch, frames } => {
                let log = self.log()?;
                self.append(&log, log_epoch, frames).await;
                Ok(())
            }
            AppendMessage::Release { start } => {
                self.log()?.on(&self.inner, FollowerEvent::ReleaseAsked { stream: self.id, start });
                Ok(())
            }
        }
    }

    fn log(&self) -> Result<Arc<Session>, (AppendRefusal, String)> {
        let first = "an adoption comes first";
        self.log.clone().ok_or_else(|| (AppendRefusal::NotAMember, first.to_owned()))
    }

    async fn adopt(
        &mut self,
        log: &LogName,
        log_epoch: LogEpoch,
        start: LogOffset,
    ) -> Result<(), (AppendRefusal, String)> {
        let session =
            self.inner.session_or_new(log).map_err(|error| (AppendRefusal::Full, error.to_string()))?;
        self.log = Some(Arc::clone(&session));
        let stream = self.id;
        if !session.adopt(&self.inner, (stream, &self.answers), log_epoch, start) {
            return Ok(());
        }
        let event = match log_record::read(&*self.inner.records, log).await {
            Ok(record) => FollowerEvent::RecordRead { stream, record },
            Err(error) => {
                tracing::warn!(%error, "cannot adopt a log epoch");
                FollowerEvent::RecordUnreadable { stream }
            }
        };
        session.on(&self.inner, event);
        Ok(())
    }

    /// Waits for room before anything is decided, so that the decision and the queue have one order.
    async fn append(&self, log: &Session, log_epoch: LogEpoch, frames: Vec<LogFrame>) {
        let check = check(self.session, &frames);
        let first = frames.first().expect("the border refuses empty messages").offset;
        let last = frames.last().expect("the border refuses empty messages").offset;
        let room = Some(self.inner.journal().room(&frames).await);
        let stream = self.id;
        log.append(&self.inner, Delivery { frames, room }, |has_room| FollowerEvent::FramesArrived {
            stream,
            log_epoch,
            first,
            last,
            check,
            has_room,
        });
    }
}

fn check(session: SessionId, frames: &[LogFrame]) -> FramesCheck {
    let follows = frames.windows(2).all(|pair| pair[0].offset.next() == pair[1].offset);
    if !follows {
        FramesCheck::Scattered
    } else if frames.iter().any(|frame| !frame.is_intact(session)) {
        FramesCheck::Corrupt
    } else {
        FramesCheck::Sound
    }
}
