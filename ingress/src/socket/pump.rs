//! One open socket: what the client says goes up, what the object says comes down, until one close was said to the client.
//! Both directions are parts of one task, so that a slow reader of one holds back nothing of the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use holdfast_outbound::frames::{
    Ear, Said, Speaker, Stalled, Unheard, close_frame, message_frame, pass_on, say,
};
use holdfast_rpc::{SocketFrame, SocketReader, SocketWriter};
use holdfast_telemetry::{SocketDirection, metrics};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tungstenite::protocol::frame::Frame;

/// The object is gone: the client may come again (RFC 6455's registry: service restart).
const RESTART: u16 = 1012;
const RESTART_REASON: &str = "the object moved or was restarted; connect again";
/// How long each side has to answer a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the object's side is read on once the client is gone, so that a handler hears of it before its caller leaves.
const LINGER: Duration = Duration::from_secs(5);
/// Notes between the two directions. Pongs beyond it are left out.
const NOTES_MAX: usize = 16;

/// The object's side of a socket.
pub(super) struct Ends {
    pub(super) uplink: SocketWriter,
    pub(super) downlink: SocketReader,
    /// For messages of clients that are not whole yet, in KiB: shared by all sockets.
    pub(super) memory: Arc<Semaphore>,
}

/// What ended a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its client closed it.
    Client,
    /// Its object did.
    Object,
    /// Its object is gone.
    Restart,
    /// Its client is gone.
    Lost,
    /// Its client broke the protocol or a bound.
    Invalid,
    /// This ingress ends.
    Drain,
}

impl Cause {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Object => "object",
            Self::Restart => "restart",
            Self::Lost => "lost",
            Self::Invalid => "invalid",
            Self::Drain => "drain",
        }
    }
}

/// What the direction up tells the direction down.
enum Note {
    Ping(Bytes),
    Closed { code: u16, reason: String },
    Invalid { code: u16, reason: &'static str },
    Lost,
}

/// Runs a socket to its end.
pub(super) async fn run<S>(io: S, ends: Ends, ping_interval: Duration, ended: CancellationToken) -> Cause
where
    S: AsyncRead + AsyncWrite + Send,
{
    let (read, write) = tokio::io::split(io);
    let (notes, noted) = mpsc::channel(NOTES_MAX);
    let is_heard = AtomicBool::new(true);
    let Ends { uplink, downlink, memory } = ends;
    let up = up(read, (uplink, memory), notes, &is_heard);
    let mut down = Down { write, downlink, noted, is_heard: &is_heard, ping_interval, ended };
    let mut up = std::pin::pin!(up);
    let mut is_up_over = false;
    let mut down = std::pin::pin!(down.run());
    loop {
        tokio::select! {
            biased;
            () = &mut up, if !is_up_over => is_up_over = true,
            cause = &mut down => return cause,
        }
    }
}

/// Client to object, until the client closes or is gone.
async fn up<S: AsyncRead>(
    mut read: ReadHalf<S>,
    (uplink, memory): (SocketWriter, Arc<Semaphore>),
    notes: mpsc::Sender<Note>,
    is_heard: &AtomicBool,
) {
    let mut ear = Ear::new(Speaker::Client, memory);
    let (last, uplink) = loop {
        let said = ear.hear(&mut read, is_heard).await;
        let frame = match said {
            Ok(Said::Text(text)) => SocketFrame::Text(text),
            Ok(Said::Binary(bytes)) => SocketFrame::Binary(bytes),
            Ok(Said::Ping(payload)) => {
                // A client that pings faster than it takes the answers gets fewer of them.
                let _ = notes.try_send(Note::Ping(payload));
                continue;
            }
            Ok(Said::Pong) => continue,
            Ok(Said::Close { code, reason }) => {
                uplink.push(&SocketFrame::Close { code, reason: reason.clone() });
                uplink.end();
                break (Note::Closed { code, reason }, None);
            }
            Err(Unheard::Lost) => break (Note::Lost, Some(uplink)),
            Err(Unheard::Invalid { code, reason }) => break (Note::Invalid { code, reason }, Some(uplink)),
        };
        metrics().socket_message(SocketDirection::In);
        pass_on(&uplink, &frame, ear.give_room(), is_heard).await;
    };
    let is_invalid = matches!(last, Note::Invalid { .. });
    // Nobody may be there to hear it.
    let _ = notes.send(last).await;
    if is_invalid {
        drop(uplink);
        // Read on, and away: an end with unread bytes would cut off the close that says why. The notes end with it.
        ear.discard(&mut read).await;
    }
}

struct Down<'a, S> {
    write: WriteHalf<S>,
    downlink: SocketReader,
    noted: mpsc::Receiver<Note>,
    is_heard: &'a AtomicBool,
    ping_interval: Duration,
    ended: CancellationToken,
}

impl<S: AsyncWrite> Down<'_, S> {
    async fn run(&mut self) -> Cause {
        let cause = match self.carry().await {
            Ok(cause) => cause,
            Err(Stalled) => Cause::Lost,
        };
        if cause == Cause::Lost {
            self.linger().await;
        }
        // The end of the connection says the rest.
        let _ = timeout(CLOSE_TIMEOUT, self.write.shutdown()).await;
        // What the client said last is on its way to the object: who leaves now would take it along.
        if matches!(cause, Cause::Client | Cause::Object) {
            self.linger().await;
        }
        cause
    }

    /// Waits until the object has nothing more to say.
    async fn linger(&mut self) {
        let _ = timeout(LINGER, async { while let Ok(Some(_)) = self.downlink.next().await {} }).await;
    }

    /// Object to client, until one close is said, or the client is gone.
    async fn carry(&mut self) -> Result<Cause, Stalled> {
        let mut closed: Option<(u16, String, Instant)> = None;
        let mut ping_at = Instant::now() + self.ping_interval;
        let ended = self.ended.clone();
        let mut is_up = true;
        loop {
            let wake_at = closed.as_ref().map_or(ping_at, |(.., until)| *until);
            tokio::select! {
                biased;
                note = self.noted.recv(), if is_up => match note {
                    Some(Note::Ping(payload)) => self.send(Frame::pong(payload)).await?,
                    Some(Note::Closed { code, reason }) => {
                        closed = Some((code, reason, Instant::now() + CLOSE_TIMEOUT));
                    }
                    Some(Note::Invalid { code, reason }) => {
                        self.send(close_frame(code, reason)).await?;
                        let _ = timeout(CLOSE_TIMEOUT, self.write.shutdown()).await;
                        self.answered().await;
                        return Ok(Cause::Invalid);
                    }
                    Some(Note::Lost) => return Ok(Cause::Lost),
                    // The direction up is over, and has said what there was to say.
                    None => is_up = false,
                },
                () = ended.cancelled() => {
                    return self.close(RESTART, "this server ends; connect again", Cause::Drain).await;
                }
                () = sleep_until(wake_at) => {
                    if closed.is_some() {
                        return self.echo(closed).await;
                    }
                    if !self.is_heard.swap(false, Ordering::Relaxed) {
                        return Ok(Cause::Lost);
                    }
                    ping_at = Instant::now() + self.ping_interval;
                    self.send(Frame::ping(Bytes::new())).await?;
                }
                // Last: an object that always has something to say starves nothing above.
                frame = self.downlink.next() => match frame {
                    Ok(Some(SocketFrame::Text(text))) => self.message(true, text).await?,
                    Ok(Some(SocketFrame::Binary(bytes))) => self.message(false, bytes).await?,
                    Ok(Some(SocketFrame::Close { code, reason })) => {
                        self.send(close_frame(code, &reason)).await?;
                        if closed.is_some() {
                            return Ok(Cause::Client);
                        }
                        self.answered().await;
                        return Ok(Cause::Object);
                    }
                    // It has nothing more to say: the client's own close is answered as the standard asks.
                    Ok(None) if closed.is_some() => return self.echo(closed).await,
                    Ok(None) | Err(_) => return self.close(RESTART, RESTART_REASON, Cause::Restart).await,
                },
            }
        }
    }

    async fn echo(&mut self, closed: Option<(u16, String, Instant)>) -> Result<Cause, Stalled> {
        let (code, reason, _) = closed.expect("the client has closed");
        self.send(close_frame(code, &reason)).await?;
        Ok(Cause::Client)
    }

    async fn close(&mut self, code: u16, reason: &str, cause: Cause) -> Result<Cause, Stalled> {
        self.send(close_frame(code, reason)).await?;
        self.answered().await;
        Ok(cause)
    }

    /// Waits until the client has answered a close, so that what it still sends does not cut the close off.
    async fn answered(&mut self) {
        let answer = async {
            while let Some(note) = self.noted.recv().await {
                if !matches!(note, Note::Ping(_)) {
                    return;
                }
            }
        };
        let _ = timeout(CLOSE_TIMEOUT, answer).await;
    }

    async fn message(&mut self, is_text: bool, content: Bytes) -> Result<(), Stalled> {
        self.send(message_frame(is_text, content)).await?;
        metrics().socket_message(SocketDirection::Out);
        Ok(())
    }

    async fn send(&mut self, frame: Frame) -> Result<(), Stalled> {
        say(&mut self.write, frame, Speaker::Server).await
    }
}
