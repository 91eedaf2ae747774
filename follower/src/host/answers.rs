//! Answers on their way to one append stream. An acknowledgement says "up to here", so a newer one takes the place of one
//! that the session has not read yet: a slow reader costs no memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use holdfast_rpc::follower::{AppendAnswer, AppendAnswers};
use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct Answers {
    waiting: Mutex<Waiting>,
    changed: Notify,
    ended: Notify,
}

#[derive(Default)]
struct Waiting {
    adopted: Option<AppendAnswer>,
    durable: Option<AppendAnswer>,
    refused: Option<AppendAnswer>,
    is_over: bool,
}

/// Ends the stream when the session does not read it any more.
struct Reader(Arc<Answers>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an answer behind those that wait. Nothing follows a refusal.
    pub(super) fn put(&self, answer: AppendAnswer) {
        let mut waiting = self.lock();
        if waiting.is_over || waiting.refused.is_some() {
            return;
        }
        match answer {
            AppendAnswer::Adopted { .. } => {
                // It says what is fsynced, too.
                waiting.durable = None;
                waiting.adopted = Some(answer);
            }
            AppendAnswer::Durable { .. } => waiting.durable = Some(answer),
            AppendAnswer::Refused { .. } => waiting.refused = Some(answer),
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// Ends the stream: what waits is dropped, but for a refusal.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_one();
        self.ended.notify_one();
    }

    /// Resolves when the stream has ended, once.
    pub(super) async fn ended(&self) {
        if !self.lock().is_over {
            self.ended.notified().await;
        }
    }

    fn take(&self) -> Result<Option<AppendAnswer>, ()> {
        let mut waiting = self.lock();
        let answer = waiting.adopted.take().or_else(|| waiting.durable.take());
        match answer.or_else(|| waiting.refused.take()) {
            Some(refused @ AppendAnswer::Refused { .. }) => {
                waiting.is_over = true;
                Ok(Some(refused))
            }
            Some(answer) => Ok(Some(answer)),
            None if waiting.is_over => Err(()),
            None => Ok(None),
        }
    }

    /// What the session reads.
    pub(super) fn stream(self: &Arc<Self>) -> AppendAnswers {
        let reader = Reader(Arc::clone(self));
        futures::stream::unfold(reader, |reader| async move {
            loop {
                match reader.0.take() {
                    Ok(Some(answer)) => return Some((answer, reader)),
                    Ok(None) => reader.0.changed.notified().await,
                    Err(()) => return None,
                }
            }
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_rpc::follower::AppendRefusal;
    use holdfast_types::{LogEpoch, LogOffset};

    fn durable(offset: u64) -> AppendAnswer {
        AppendAnswer::Durable { log_epoch: LogEpoch::new(1), offset: LogOffset::new(offset) }
    }

    #[tokio::test]
    async fn newer_acknowledgements_take_the_place_of_unread_ones() {
        let answers = Arc::new(Answers::default());
        let mut stream = answers.stream();
        let adopted = AppendAnswer::Adopted { log_epoch: LogEpoch::new(1), next: LogOffset::new(1) };
        answers.put(durable(1));
        answers.put(adopted.clone());
        answers.put(durable(2));
        answers.put(durable(3));
        let refused = AppendAnswer::Refused { reason: AppendRefusal::Sealed, detail: String::new() };
        answers.put(refused.clone());
        answers.put(durable(4));
        let all: Vec<_> = stream.by_ref().collect().await;
        assert_eq!(all, [adopted, durable(3), refused]);
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_ends_the_stream() {
        let answers = Arc::new(Answers::default());
        drop(answers.stream());
        answers.ended().await;
    }
}
