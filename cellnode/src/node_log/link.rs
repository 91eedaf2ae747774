//! The link to one follower: adopts, sends frames from the log's memory as fast as the follower takes them, and reports what
//! it answers. One stream, whose connection the link polls itself: what it sends is written by whoever polls the link, which
//! is its task or the cell's thread that appended. A link that broke is not mended but reported, and the machine decides what
//! follows.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::ensemble::{MemberFailure, NodeLogEvent};
use holdfast_core::log_record::MemberId;
use holdfast_rpc::follower::{AppendAnswer, AppendMessage, AppendRefusal, LogFrame, LogName};
use holdfast_rpc::{AppendReceiver, AppendSender, AppendStream, FollowerPeer};
use holdfast_types::{LogEpoch, LogOffset};
use tokio::sync::{mpsc, watch};

use super::NodeLog;
use crate::node::Node;

/// Frames in one message.
const MESSAGE_FRAMES_MAX: usize = 1_024;
/// Bytes of bodies in one message: beyond it no further frame is added.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// How long a connection may take to end in order.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What the machine wants of a link.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    Adopt { log_epoch: LogEpoch, start: LogOffset },
    Stream { log_epoch: LogEpoch, from: LogOffset },
    Release { start: LogOffset },
}

/// Where a link that sends frames is.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    log_epoch: LogEpoch,
    next: LogOffset,
}

/// A link that is about to run.
pub(super) struct Link {
    log: Arc<NodeLog>,
    member: MemberId,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Tells when frames are appended.
    appended: watch::Receiver<LogOffset>,
}

/// Why a link ended.
enum End {
    /// The machine dropped it.
    Closed,
    /// The follower cannot be used.
    Failed(MemberFailure),
}

impl Link {
    pub(super) fn new(
        log: Arc<NodeLog>,
        member: MemberId,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        let appended = log.next.subscribe();
        Self { log, member, commands, appended }
    }

    pub(super) async fn run(mut self, node: Arc<Node>, peer: Option<FollowerPeer>) {
        let end = self.serve(&node, peer).await;
        if let End::Failed(failure) = end {
            // A link that was replaced meanwhile speaks for nobody.
            if !self.commands.is_closed() {
                self.log.failed(&self.member, failure);
            }
        }
    }

    async fn serve(&mut self, node: &Node, peer: Option<FollowerPeer>) -> End {
        let Some(peer) = peer else {
            tracing::warn!(follower = %self.member.follower, "a follower has no lease any more");
            return End::Failed(MemberFailure::Unreachable);
        };
        let AppendStream { sender, receiver, mut connection } =
            match node.followers.append_stream(&peer).await {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%peer, %error, "a follower cannot be reached");
                    return End::Failed(MemberFailure::Unreachable);
                }
            };
        let mut is_over = false;
        let end = {
            let mut talk = std::pin::pin!(self.talk(node, sender, receiver));
            // First what is to be sent, then the connection, so that one poll writes it. A connection that ended is told by
            // the answers.
            std::future::poll_fn(|cx| {
                let end = talk.as_mut().poll(cx);
                is_over = is_over || Pin::new(&mut connection).poll(cx).is_ready();
                if end.is_pending() && is_over { talk.as_mut().poll(cx) } else { end }
            })
            .await
        };
        if !is_over {
            // What was sent still leaves, and the stream ends in order.
            node.runtime.spawn(tokio::time::timeout(CLOSE_TIMEOUT, connection));
        }
        end
    }

    /// Sends and hears until the link ends.
    async fn talk(&mut self, node: &Node, mut sender: AppendSender, mut answers: AppendReceiver) -> End {
        let log = LogName { node: node.name.clone(), session: node.session };
        let mut cursor: Option<Cursor> = None;
        // Commands that came while a message waited for the follower.
        let mut commands: VecDeque<Command> = VecDeque::new();
        loop {
            let message = tokio::select! {
                biased;
                answer = answers.next() => match self.on_answer(answer) {
                    Ok(()) => continue,
                    Err(end) => return end,
                },
                command = next_command(&mut commands, &mut self.commands) => match command {
                    None => return End::Closed,
                    Some(Command::Adopt { log_epoch, start }) => {
                        cursor = None;
                        AppendMessage::Adopt { log: log.clone(), log_epoch, start }
                    }
                    Some(Command::Stream { log_epoch, from }) => {
                        cursor = Some(Cursor { log_epoch, next: from });
                        continue;
                    }
                    Some(Command::Release { start }) => AppendMessage::Release { start },
                },
                frames = next_frames((&self.log, &self.member), &mut self.appended, &mut cursor) => frames,
            };
            // Answers are read, and a close is seen, while a message waits for a follower whose disk is behind.
            let sending = sender.send(message);
            tokio::pin!(sending);
            loop {
                tokio::select! {
                    biased;
                    answer = answers.next() => {
                        if let Err(end) = self.on_answer(answer) {
                            return end;
                        }
                    }
                    command = self.commands.recv() => match command {
                        None => return End::Closed,
                        Some(command) => commands.push_back(command),
                    },
                    sent = &mut sending => {
                        if sent.is_err() {
                            return self.why(&mut answers).await;
                        }
                        break;
                    }
                }
            }
        }
    }

    /// The stream takes no more: the answer that ended it says why.
    async fn why(&mut self, answers: &mut AppendReceiver) -> End {
        loop {
            tokio::select! {
                biased;
                answer = answers.next() => {
                    if let Err(end) = self.on_answer(answer) {
                        return end;
                    }
                }
                command = self.commands.recv() => {
                    if command.is_none() {
                        return End::Closed;
                    }
                }
            }
        }
    }

    fn on_answer(
        &self,
        answer: Result<Option<AppendAnswer>, holdfast_rpc::FollowerCallError>,
    ) -> Result<(), End> {
        let member = self.member.clone();
        match answer {
            Ok(Some(AppendAnswer::Adopted { log_epoch, next })) => {
                self.log.on(NodeLogEvent::Adopted { member, log_epoch, next });
                Ok(())
            }
            Ok(Some(AppendAnswer::Durable { log_epoch: _, offset })) => {
                self.log.on(NodeLogEvent::Durable { member, offset });
                Ok(())
            }
            Ok(Some(AppendAnswer::Refused {
                reason: reason @ AppendRefusal::StaleEpoch { found }, ..
            })) => {
                tracing::debug!(follower = %member.follower, %found, "a follower has seen a newer log record");
                Err(End::Failed(failure(reason)))
            }
            Ok(Some(AppendAnswer::Refused { reason, detail })) => {
                tracing::warn!(follower = %member.follower, ?reason, detail, "a follower refused");
                Err(End::Failed(failure(reason)))
            }
            Ok(None) => Err(End::Failed(MemberFailure::Unreachable)),
            Err(error) => {
                tracing::warn!(follower = %member.follower, %error, "the link to a follower broke");
                Err(End::Failed(MemberFailure::Unreachable))
            }
        }
    }
}

/// The next command, those that waited first.
async fn next_command(
    waiting: &mut VecDeque<Command>,
    commands: &mut mpsc::UnboundedReceiver<Command>,
) -> Option<Command> {
    match waiting.pop_front() {
        Some(command) => Some(command),
        None => commands.recv().await,
    }
}

/// The next message of frames, once there are any to send.
async fn next_frames(
    (log, member): (&Arc<NodeLog>, &MemberId),
    appended: &mut watch::Receiver<LogOffset>,
    cursor: &mut Option<Cursor>,
) -> AppendMessage {
    loop {
        let Some(at) = cursor else { return std::future::pending().await };
        appended.borrow_and_update();
        match log.frames(at.next) {
            Some(frames) if !frames.is_empty() => {
                let log_epoch = at.log_epoch;
                at.next = frames.last().expect("not empty").offset.next();
                return AppendMessage::Frames { log_epoch, frames };
            }
            Some(_) => {}
            None => {
                *cursor = None;
                log.on(NodeLogEvent::MemberFellBehind { member: member.clone() });
                continue;
            }
        }
        if appended.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

const fn failure(reason: AppendRefusal) -> MemberFailure {
    match reason {
        AppendRefusal::Sealed => MemberFailure::Sealed,
        AppendRefusal::Damaged => MemberFailure::Damaged,
        AppendRefusal::Full => MemberFailure::Full,
        AppendRefusal::Draining => MemberFailure::Draining,
        AppendRefusal::StaleEpoch { found } => MemberFailure::StaleEpoch { found },
        AppendRefusal::NotAMember
        | AppendRefusal::RecordUnreadable
        | AppendRefusal::Gap
        | AppendRefusal::Corrupt
        | AppendRefusal::Other => MemberFailure::Refused,
    }
}

impl NodeLog {
    /// The retained frames from an offset on, as many as fit a message; none where some of them are covered and gone.
    fn frames(&self, from: LogOffset) -> Option<Vec<LogFrame>> {
        let state = self.lock();
        let mut bytes = 0;
        let frames = state.frames.from(from)?.take(MESSAGE_FRAMES_MAX).take_while(|frame| {
            let fits = bytes < MESSAGE_BYTES_MAX;
            bytes += frame.frame.body.len();
            fits
        });
        Some(frames.map(|retained| retained.frame.clone()).collect())
    }
}
