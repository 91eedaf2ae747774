//! WebSockets that are opened and kept, written by hand: of the protocol (RFC 6455) they need a head and short frames.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::counters::path;

/// Handshakes at once.
const OPENING_MAX: usize = 64;
/// Longest head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// What is sent and must come back.
const MESSAGE: &[u8] = b"still here";

/// WebSockets to open.
#[derive(Clone, Debug)]
pub struct Sockets {
    /// Who serves them.
    pub address: SocketAddr,
    /// What the names of their objects begin with.
    pub prefix: String,
    /// Objects, to which they are dealt in turn.
    pub objects: usize,
    /// Sockets.
    pub sockets: usize,
}

/// Opens the sockets and prints `{"opened":N}`. Then prints `{"echoed":N}` once for each line of its input, when every
/// 100th socket has had a message echoed; at the end of its input it closes them.
///
/// # Errors
/// When a socket cannot be opened, or does not echo.
pub async fn hold(load: &Sockets) -> Result<()> {
    let opening =
        (0..load.sockets).map(|number| open(load.address, path(&load.prefix, number % load.objects)));
    let mut sockets: Vec<TcpStream> =
        stream::iter(opening).buffer_unordered(OPENING_MAX).try_collect().await?;
    println!("{}", serde_json::json!({ "opened": sockets.len() }));
    while next_line().await? {
        let mut echoed = 0;
        for socket in sockets.iter_mut().step_by(100) {
            echo(socket).await?;
            echoed += 1;
        }
        println!("{}", serde_json::json!({ "echoed": echoed }));
    }
    Ok(())
}

/// Waits for a line of the input; false at its end.
async fn next_line() -> Result<bool> {
    let read = || std::io::stdin().read_line(&mut String::new());
    Ok(tokio::task::spawn_blocking(read).await?? > 0)
}

async fn open(address: SocketAddr, path: String) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await.context("connecting")?;
    stream.set_nodelay(true)?;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        ensure!(answer.len() < HEAD_BYTES_MAX, "the head of the answer of `{path}` does not end");
        answer.push(stream.read_u8().await.with_context(|| format!("`{path}` hung up"))?);
    }
    let head = String::from_utf8_lossy(&answer);
    ensure!(head.starts_with("HTTP/1.1 101 "), "`{path}` does not upgrade: {head}");
    Ok(stream)
}

async fn echo(socket: &mut TcpStream) -> Result<()> {
    // A text frame that is all of its message, masked with zeros; lengths below 126 are one byte.
    let len = u8::try_from(MESSAGE.len())?;
    let mut frame = vec![0x81, 0x80 | len, 0, 0, 0, 0];
    frame.extend_from_slice(MESSAGE);
    socket.write_all(&frame).await?;
    loop {
        let (kind, len) = (socket.read_u8().await?, socket.read_u8().await?);
        ensure!(len < 126, "a frame of {len} that nobody has sent");
        let mut payload = vec![0; usize::from(len)];
        socket.read_exact(&mut payload).await?;
        match kind {
            0x81 => {
                ensure!(payload == MESSAGE, "{payload:?} came back");
                return Ok(());
            }
            // A ping: answered, though the server would wait for a while.
            0x89 => socket.write_all(&[&[0x8a, 0x80 | len, 0, 0, 0, 0], &payload[..]].concat()).await?,
            kind => anyhow::bail!("a frame of kind {kind:#x} came, {payload:?}"),
        }
    }
}
