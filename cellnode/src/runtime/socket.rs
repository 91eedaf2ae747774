//! Reads a socket for its cell: one message at a time, the next once the handler has begun with the one before. That is the
//! back-pressure: what is not read waits with the client.

use holdfast_js::{SocketEvent, SocketMessage};
use holdfast_rpc::{SocketFrame, SocketReader};
use tokio::sync::mpsc;

use super::Wanted;

/// Reads until the other end closes or is lost, or nobody wants more. `tell` is called with each event in order.
pub(crate) async fn read_socket(
    mut reader: SocketReader,
    mut wants: mpsc::Receiver<Wanted>,
    tell: impl Fn(SocketEvent) + Send,
) {
    loop {
        let event = tokio::select! {
            biased;
            // Nothing is wanted before something was told, so this is the end.
            wanted = wants.recv() => return given_up(wanted, tell),
            said = reader.next() => said.map_or_else(|_| lost(), heard),
        };
        let is_last = matches!(event, SocketEvent::Close { .. });
        tell(event);
        if is_last {
            return;
        }
        match wants.recv().await {
            Some(Wanted::Next) => {}
            wanted => return given_up(wanted, tell),
        }
    }
}

fn given_up(wanted: Option<Wanted>, tell: impl Fn(SocketEvent)) {
    if wanted.is_some() {
        tell(SocketEvent::Error("the other end of the WebSocket takes nothing any more".to_owned()));
        tell(lost());
    }
}

fn heard(said: Option<SocketFrame>) -> SocketEvent {
    match said {
        Some(SocketFrame::Text(text)) => {
            let text = String::from_utf8(text.into()).expect("the reader has looked at it");
            SocketEvent::Message(SocketMessage::Text(text))
        }
        Some(SocketFrame::Binary(bytes)) => SocketEvent::Message(SocketMessage::Binary(bytes)),
        Some(SocketFrame::Close { code, reason }) => SocketEvent::Close { code, reason, was_clean: true },
        None => lost(),
    }
}

pub(crate) fn lost() -> SocketEvent {
    let reason = "WebSocket disconnected without sending Close frame.".to_owned();
    SocketEvent::Close { code: 1006, reason, was_clean: false }
}
