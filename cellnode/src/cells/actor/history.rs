//! Questions of an object about its history, taken up with the turn that asked: what a bookmark names is the state with which
//! that turn ended, whatever is committed before it is captured.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use holdfast_core::gate::GateEvent;
use holdfast_core::lineage::Bookmark;
use holdfast_js::{HistoryAsk, JsError};
use holdfast_sql::RestoreFate;
use holdfast_types::{Position, Txid};

use super::Actor;
use crate::past;
use crate::runtime::{HistoryAnswer, Operation};

/// Bookmarks whose transactions wait to be captured. Without followers each waits for the upload of the one before: more of
/// them than have been uploaded when the proof time-out has passed would have the object discarded.
const CUTS_WAITING_MAX: usize = 16;

impl Actor {
    /// What answers the question, once the turn is proved.
    pub(super) fn take_up(&mut self, ask: HistoryAsk) -> Operation {
        let (node, resident) = (Arc::clone(&self.node), Arc::clone(&self.resident));
        Operation::Answer(HistoryAnswer(match ask {
            HistoryAsk::Sync => std::future::ready(Ok(Bytes::new())).boxed(),
            HistoryAsk::Bookmark { restore } => {
                if self.engine.borrow().cuts_waiting() >= CUTS_WAITING_MAX {
                    let reason = "too many bookmarks are on their way: each is an object of its own in the bucket; take fewer, or try again";
                    return Operation::Failed(Box::new(JsError::new(reason.to_owned())));
                }
                let at = self.cut();
                past::answer_bookmark(node, resident, (at, restore)).boxed()
            }
            HistoryAsk::At(time) => past::answer_time(node, resident, time).boxed(),
            HistoryAsk::Find(text) => match self.named(&text) {
                Ok(position) => past::answer_find(node, resident, position).boxed(),
                Err(reason) => return Operation::Failed(Box::new(JsError::new(reason))),
            },
        }))
    }

    /// Has an object end with what is committed now, and answers the transaction.
    pub(super) fn cut(&mut self) -> Txid {
        let at = self.engine.borrow_mut().cut();
        self.resident.on(GateEvent::Cut { at });
        at
    }

    /// The position of the state that a bookmark names.
    fn named(&self, text: &str) -> Result<Position, String> {
        let bookmark = Bookmark::parse(text, &self.resident.cell).map_err(|error| error.to_string())?;
        if bookmark.restore == 0 {
            return Ok(bookmark.position);
        }
        match self.engine.borrow_mut().restore_fate(bookmark.restore) {
            Ok(RestoreFate::Replaced(position)) => Ok(position),
            Ok(RestoreFate::Pending) => {
                Err("this bookmark is of the state before a restore that has not taken place yet".to_owned())
            }
            Ok(RestoreFate::Unknown) => Err(
                "this bookmark is of the state before a restore that never took place, or that is not remembered any more"
                    .to_owned(),
            ),
            Err(failure) => Err(failure.to_string()),
        }
    }
}
