//! The streamed bodies of an isolate, by the numbers under which the two sides know them.

use std::collections::HashMap;

use bytes::Bytes;
use holdfast_js::{IncomingBody as JsIncoming, IncomingBodyId, OutgoingBody as JsOutgoing, OutgoingBodyId};
use holdfast_rpc::{Body, whole_body};
use http_body_util::BodyExt as _;

use crate::runtime::{IncomingBody, OutgoingBody, OutgoingReader, Piece, ReplyBody, RequestBody};

/// Bodies under way.
#[derive(Default)]
pub(super) struct Bodies {
    made: u64,
    incoming: HashMap<IncomingBodyId, IncomingBody>,
    outgoing: HashMap<OutgoingBodyId, OutgoingBody>,
}

impl Bodies {
    /// A body that comes in, as the isolate is told of it.
    pub(super) fn take_in(&mut self, body: RequestBody) -> JsIncoming {
        match body {
            RequestBody::Whole(bytes) if bytes.is_empty() => JsIncoming::None,
            RequestBody::Whole(bytes) => JsIncoming::Whole(bytes),
            RequestBody::Stream(body) => {
                self.made += 1;
                let id = IncomingBodyId::new(self.made);
                self.incoming.insert(id, IncomingBody::new(body));
                JsIncoming::Stream(id)
            }
        }
    }

    /// A body that the isolate reads.
    pub(super) fn incoming(&self, id: IncomingBodyId) -> Option<IncomingBody> {
        self.incoming.get(&id).cloned()
    }

    /// Lets go of bodies that have ended: the isolate asks for nothing more of them.
    pub(super) fn forget_ended(&mut self) {
        self.incoming.retain(|_, body| !body.is_over());
    }

    /// Nobody reads the rest of a body.
    pub(super) fn cancel(&mut self, id: IncomingBodyId) {
        self.incoming.remove(&id);
    }

    fn pipe(&mut self, id: OutgoingBodyId) -> OutgoingReader {
        let (body, reader) = OutgoingBody::new();
        self.outgoing.insert(id, body);
        reader
    }

    /// The body of an answer.
    pub(super) fn reply(&mut self, body: JsOutgoing) -> ReplyBody {
        match body {
            JsOutgoing::None => ReplyBody::Whole(Bytes::new()),
            JsOutgoing::Whole(bytes) => ReplyBody::Whole(bytes),
            JsOutgoing::Stream(id) => ReplyBody::Stream(self.pipe(id)),
        }
    }

    /// The body of a request of the isolate.
    pub(super) fn request(&mut self, body: JsOutgoing) -> Body {
        match body {
            JsOutgoing::None => whole_body(Bytes::new()),
            JsOutgoing::Whole(bytes) => whole_body(bytes),
            JsOutgoing::Stream(id) => self.pipe(id).boxed_unsync(),
        }
    }

    /// A chunk of a body of the isolate; none when the body has ended.
    pub(super) fn chunk(&mut self, id: OutgoingBodyId, chunk: Bytes) -> Option<Piece> {
        self.outgoing.get_mut(&id).map(|body| body.chunk(chunk))
    }

    /// The clean end of a body.
    pub(super) fn end(&mut self, id: OutgoingBodyId) -> Option<Piece> {
        self.outgoing.remove(&id).map(OutgoingBody::end)
    }

    /// The end of a body that breaks.
    pub(super) fn abort(&mut self, id: OutgoingBodyId, reason: String) -> Option<Piece> {
        self.outgoing.remove(&id).map(|body| body.abort(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_kept_of_a_body_that_has_ended() {
        let mut bodies = Bodies::default();
        let mut stream = |text| match bodies.take_in(RequestBody::Stream(whole_body(text))) {
            JsIncoming::Stream(id) => id,
            other => panic!("{other:?}"),
        };
        let (ended, begun) = (stream("a"), stream("b"));
        for (id, times) in [(ended, 2), (begun, 1)] {
            for _ in 0..times {
                bodies.incoming(id).unwrap().read().await.unwrap();
            }
        }
        bodies.forget_ended();
        assert!(bodies.incoming(ended).is_none());
        let rest = bodies.incoming(begun).unwrap();
        assert_eq!(rest.read().await.unwrap(), None);
    }
}
