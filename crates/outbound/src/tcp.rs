//! TCP connections of an application: bytes between a connection and two bodies, each way only as fast as the other end takes
//! them. It connects where `fetch` may, and nowhere else; never to port 25.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use holdfast_js::{ConnectTo, JsError, OutgoingConnection, Security};
use holdfast_rpc::{Body, whole_body};
use holdfast_telemetry::{InFlight, metrics};
use http_body_util::BodyExt as _;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use crate::connect::ConnectError;
use crate::{Inner, Outbound};

mod heard;

use heard::Heard;

/// Connections of a process at a time: with [`READ_LEN`] and a piece of what is written each, about 320 MiB.
const CONNECTIONS_MAX: usize = 4_096;
/// Bytes that are read at a time.
const READ_LEN: usize = 16 << 10;
/// Silence of a connection after which the machine asks whether the other end is there, and how often it does so: one whose
/// machine or network is gone breaks after two or three minutes, and holds its object no longer.
const ASK_AFTER: Duration = Duration::from_secs(60);
const ASK_EVERY: Duration = Duration::from_secs(10);
/// For how long a server may take nothing of what is written, once nothing is heard of it any more: such a connection has no
/// reader whose silence means anything, and would hold its place for ever.
const STALL_MAX: Duration = Duration::from_secs(30);
/// That of mail servers, which Cloudflare refuses.
const SMTP_PORT: u16 = 25;

static CONNECTIONS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(CONNECTIONS_MAX)));

/// A connection that stands.
#[derive(Debug)]
pub struct Connected {
    /// What [`ConnectTo::Upgraded`] calls it; empty where it cannot be upgraded.
    pub key: Bytes,
    /// What the server sends. It breaks where the connection does.
    pub heard: Body,
}

/// Has the machine notice when the other end is gone without a word.
fn notice_its_loss(tcp: &TcpStream) {
    let asks = TcpKeepalive::new().with_time(ASK_AFTER).with_interval(ASK_EVERY);
    if let Err(error) = SockRef::from(tcp).set_tcp_keepalive(&asks) {
        tracing::debug!(%error, "cannot set TCP keep-alive");
    }
}

/// Connections that may be upgraded, by their keys.
pub(crate) type Upgrades = Mutex<HashMap<String, oneshot::Sender<Upgrade>>>;

/// Asks for a connection once so many bytes are written to it.
pub(crate) struct Upgrade {
    written: u64,
    reply: oneshot::Sender<(TcpStream, Place)>,
}

/// A place among the connections of this process.
struct Place {
    _permit: OwnedSemaphorePermit,
    _open: InFlight,
}

impl Outbound {
    /// Opens a connection, or has one go on encrypted. `said` is what is written to it: its clean end is the end of what is
    /// written, any other end closes the connection. Dropping what is heard ends only that.
    ///
    /// # Errors
    /// A `TypeError` where it may not be made; any other error where it cannot be.
    pub async fn open_connection(
        &self,
        connection: OutgoingConnection,
        said: Body,
    ) -> Result<Connected, JsError> {
        let opened = self.open(connection, said).await;
        metrics().outbound_connection_opened(match &opened {
            Ok(_) => "ok",
            Err(error) if error.name == "TypeError" => "refused",
            Err(_) => "failed",
        });
        opened
    }

    async fn open(&self, connection: OutgoingConnection, said: Body) -> Result<Connected, JsError> {
        let OutgoingConnection { to, security, body: _ } = connection;
        let connector = &self.inner.connections;
        let (hostname, tcp, place) = match to {
            ConnectTo::Address { hostname, port } => {
                let place = Place::take(port)?;
                let tcp = connector.open_tcp(&hostname, port).await.map_err(|error| told(&error))?;
                notice_its_loss(&tcp);
                (hostname, tcp, place)
            }
            ConnectTo::Upgraded { key, written, server_name } => {
                let (tcp, place) = self.inner.take_connection(&key, written).await?;
                (server_name, tcp, place)
            }
        };
        let (heard, body) = heard::pipe();
        let key = match security {
            Security::On => {
                let tls = connector.secure(&hostname, tcp).await.map_err(|error| told(&error))?;
                spawn(tls, place, said, heard);
                Bytes::new()
            }
            Security::Off => {
                spawn(tcp, place, said, heard);
                Bytes::new()
            }
            Security::StartTls => self.carry_until_upgraded(tcp, place, said, heard),
        };
        Ok(Connected { key, heard: body })
    }

    /// Carries until the connection is asked for; gives the key by which it can be.
    fn carry_until_upgraded(
        &self,
        tcp: TcpStream,
        place: Place,
        said: Body,
        heard: mpsc::Sender<Heard>,
    ) -> Bytes {
        let key = random_key();
        let (sender, asked) = oneshot::channel();
        self.inner.upgrades().insert(key.clone(), sender);
        let listed = Listed { inner: Arc::downgrade(&self.inner), key: key.clone() };
        drop(tokio::spawn(async move {
            let _listed = listed;
            if let Some((tcp, upgrade)) = carry(tcp, said, heard, Some(asked)).await {
                // Whoever asked may have gone; then the connection is closed.
                let _ = upgrade.reply.send((tcp, place));
            }
        }));
        Bytes::from(key)
    }
}

impl Inner {
    fn upgrades(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Upgrade>>> {
        self.upgrades.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take_connection(&self, key: &str, written: u64) -> Result<(TcpStream, Place), JsError> {
        let lost = || JsError::new("the connection was lost before TLS could begin");
        let asked = self.upgrades().remove(key).ok_or_else(lost)?;
        let (reply, connection) = oneshot::channel();
        asked.send(Upgrade { written, reply }).map_err(|_| lost())?;
        connection.await.map_err(|_| lost())
    }
}

/// A connection's place among those that may be upgraded.
struct Listed {
    inner: Weak<Inner>,
    key: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.upgrades().remove(&self.key);
        }
    }
}

fn random_key() -> String {
    let mut key = [0; 16];
    getrandom::fill(&mut key).expect("the system has random bytes");
    format!("{:032x}", u128::from_ne_bytes(key))
}

impl Place {
    /// For a connection to this port.
    fn take(port: u16) -> Result<Self, JsError> {
        if port == SMTP_PORT {
            return Err(JsError::type_error("Connections to port 25 are prohibited"));
        }
        let permit = Arc::clone(&CONNECTIONS).try_acquire_owned().map_err(|_| {
            let message =
                format!("this server has {CONNECTIONS_MAX} TCP connections open, its limit: come again");
            JsError::type_error(message)
        })?;
        Ok(Self { _permit: permit, _open: metrics().outbound_connection() })
    }
}

/// Carries until both ways have ended.
fn spawn<S>(io: S, place: Place, said: Body, heard: mpsc::Sender<Heard>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    drop(tokio::spawn(async move {
        let _place = place;
        carry(io, said, heard, None).await;
    }));
}

fn told(error: &ConnectError) -> JsError {
    match error {
        ConnectError::Refused { .. } => JsError::type_error(format!(
            "proxy request failed, cannot connect to the specified address: {error}"
        )),
        _ => JsError::new(error.to_string()),
    }
}

/// Carries bytes both ways until both ways have ended, or one broke; or until somebody asks for the connection, which is then
/// given back. The directions are parts of one task, so that a slow reader of one holds back nothing of the other.
async fn carry<S>(
    io: S,
    said: Body,
    heard: mpsc::Sender<Heard>,
    asked: Option<oneshot::Receiver<Upgrade>>,
) -> Option<(S, Upgrade)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (read, write) = tokio::io::split(io);
    let mut ear = Ear { read, heard: Some(heard) };
    let (silence, is_silent) = watch::channel(false);
    let mut mouth = Mouth { write, said, piece: Bytes::new(), written: 0, is_silent };
    let upgrade = both_ways(&mut ear, &mut mouth, asked, &silence).await?;
    // What was written before comes first.
    ear.heard = None;
    silence.send_replace(true);
    if mouth.carry(upgrade.written).await != Spoken::Taken {
        return None;
    }
    Some((ear.read.unsplit(mouth.write), upgrade))
}

async fn both_ways<S: AsyncRead + AsyncWrite>(
    ear: &mut Ear<S>,
    mouth: &mut Mouth<S>,
    asked: Option<oneshot::Receiver<Upgrade>>,
    silence: &watch::Sender<bool>,
) -> Option<Upgrade> {
    let mut listening = std::pin::pin!(ear.carry());
    let mut speaking = std::pin::pin!(mouth.carry(u64::MAX));
    let mut asked = std::pin::pin!(async {
        match asked {
            Some(asked) => asked.await.ok(),
            None => None,
        }
    });
    let (mut is_asked, mut is_listening, mut is_speaking) = (true, true, true);
    while is_listening || is_speaking {
        tokio::select! {
            biased;
            upgrade = &mut asked, if is_asked => match upgrade {
                Some(upgrade) => return Some(upgrade),
                None => is_asked = false,
            },
            spoken = &mut speaking, if is_speaking => match spoken {
                Spoken::Ended | Spoken::Taken | Spoken::Lost => is_speaking = false,
                Spoken::Broken => return None,
            },
            is_sound = &mut listening, if is_listening => {
                if !is_sound {
                    return None;
                }
                is_listening = false;
                silence.send_replace(true);
            }
        }
    }
    None
}

/// Server to isolate.
struct Ear<S> {
    read: ReadHalf<S>,
    heard: Option<mpsc::Sender<Heard>>,
}

impl<S: AsyncRead> Ear<S> {
    /// Until the server has ended, nobody listens, or the connection breaks: then false. Reads only once there is room.
    async fn carry(&mut self) -> bool {
        let Some(heard) = &self.heard else { return true };
        loop {
            let Ok(room) = heard.reserve().await else { return true };
            let mut buffer = BytesMut::with_capacity(READ_LEN);
            let read = tokio::select! {
                biased;
                () = heard.closed() => return true,
                read = self.read.read_buf(&mut buffer) => read,
            };
            match read {
                Ok(0) => {
                    room.send(Heard::End);
                    return true;
                }
                Ok(_) => room.send(Heard::Bytes(buffer.freeze())),
                Err(error) => {
                    room.send(Heard::Lost(error));
                    return false;
                }
            }
        }
    }
}

/// How what is written came to its end.
#[derive(Debug, PartialEq, Eq)]
enum Spoken {
    /// Cleanly.
    Ended,
    /// As much as was asked for is written.
    Taken,
    /// The server takes nothing any more; it may have sent what is not read yet.
    Lost,
    /// The isolate broke it off.
    Broken,
}

/// Isolate to server.
struct Mouth<S> {
    write: WriteHalf<S>,
    said: Body,
    /// What is not written yet of the last piece.
    piece: Bytes,
    written: u64,
    /// Nothing is heard any more: [`STALL_MAX`] holds.
    is_silent: watch::Receiver<bool>,
}

/// Work on a connection. None: it stalled.
async fn unless_stalled<T>(
    is_silent: &mut watch::Receiver<bool>,
    work: impl Future<Output = io::Result<T>>,
) -> Option<io::Result<T>> {
    let stalled = async {
        if is_silent.wait_for(|is_silent| *is_silent).await.is_err() {
            // Nobody can say so any more: it is as it was.
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(STALL_MAX).await;
    };
    tokio::select! {
        biased;
        done = work => Some(done),
        () = stalled => None,
    }
}

impl<S: AsyncWrite> Mouth<S> {
    /// Writes what is said to its end, or until so many bytes are written in all. Dropping the future loses nothing.
    async fn carry(&mut self, until: u64) -> Spoken {
        loop {
            while !self.piece.is_empty() {
                let write = self.write.write_buf(&mut self.piece);
                match unless_stalled(&mut self.is_silent, write).await {
                    Some(Ok(len)) if len > 0 => self.written += len as u64,
                    _ => return self.lost(),
                }
            }
            let Some(Ok(())) = unless_stalled(&mut self.is_silent, self.write.flush()).await else {
                return self.lost();
            };
            if self.written >= until {
                return Spoken::Taken;
            }
            match self.said.frame().await {
                Some(Ok(frame)) => self.piece = frame.into_data().unwrap_or_default(),
                Some(Err(_)) => return Spoken::Broken,
                None => {
                    return match unless_stalled(&mut self.is_silent, self.write.shutdown()).await {
                        Some(Ok(())) => Spoken::Ended,
                        _ => self.lost(),
                    };
                }
            }
        }
    }

    /// Whoever writes more is told.
    fn lost(&mut self) -> Spoken {
        self.said = whole_body(Bytes::new());
        Spoken::Lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_asks_for_signs_of_life() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        notice_its_loss(&tcp);
        let socket = SockRef::from(&tcp);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), ASK_AFTER);
    }

    /// A server that takes 16 bytes and no more, and what is written to it.
    async fn carried(piece: &'static [u8], is_heard: bool) -> Option<Duration> {
        let (io, _server) = tokio::io::duplex(16);
        let (heard, hearing) = mpsc::channel(1);
        let hearing = is_heard.then_some(hearing);
        let began = tokio::time::Instant::now();
        let carrying = carry(io, whole_body(Bytes::from_static(piece)), heard, None);
        let ended = tokio::time::timeout(Duration::from_secs(3_600), carrying).await;
        drop(hearing);
        ended.ok().map(|_| began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_takes_nothing_is_given_up_once_nobody_listens() {
        assert_eq!(carried(&[0; 100], false).await, Some(STALL_MAX));
        assert_eq!(carried(&[0; 100], true).await, None, "a silence is no end while somebody listens");
        assert_eq!(carried(&[0; 10], false).await, Some(Duration::ZERO));
    }
}
