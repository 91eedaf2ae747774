//! Lets the thread that makes an answer, or frames of a node log, write it. A connection's future is polled by its task, as any
//! other is, and also by a thread that has just answered one of its calls and has nothing else to do: the answer then leaves
//! without another thread having to wake up first, which costs more than the rest of a small read.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// Times that a thread polls connections before it leaves them to their tasks. The second finds nothing, as a rule: a
/// connection wakes itself when its calls answer. More would let a peer that never stops sending keep the thread.
const ROUNDS_MAX: usize = 3;

/// Polls for the sake of others that met the lock, before they are left to the task.
const POLLS_MAX: usize = 2;

thread_local! {
    /// Connections to poll at the end of [`deliver`], where this thread is inside it.
    static WOKEN: RefCell<Option<Vec<Arc<Shared>>>> = const { RefCell::new(None) };
}

/// Runs `work`, then writes the answers that it gave, on this thread. Only for a thread that has nothing else to do
/// afterwards, that holds no lock, and that is inside the runtime's context.
pub fn deliver<R>(work: impl FnOnce() -> R) -> R {
    WOKEN.with_borrow_mut(|woken| *woken = Some(Vec::new()));
    let result = work();
    for _ in 0..ROUNDS_MAX {
        let woken = WOKEN.with_borrow_mut(|woken| woken.as_mut().map(std::mem::take)).unwrap_or_default();
        if woken.is_empty() {
            break;
        }
        for connection in woken {
            let _ = connection.run();
        }
    }
    for connection in WOKEN.with_borrow_mut(Option::take).unwrap_or_default() {
        connection.task.wake();
    }
    result
}

/// A future that more than one thread may poll, one at a time.
struct Shared {
    /// None once it has resolved.
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    /// Somebody wanted to poll it while somebody else did.
    again: AtomicBool,
    task: AtomicWaker,
}

impl Shared {
    fn run(self: &Arc<Self>) -> Poll<()> {
        self.again.store(true, Ordering::SeqCst);
        for _ in 0..POLLS_MAX {
            let mut future = match self.future.try_lock() {
                Ok(future) => future,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // Whoever holds it looks at `again` after letting go of it.
                Err(TryLockError::WouldBlock) => return Poll::Pending,
            };
            self.again.store(false, Ordering::SeqCst);
            let was_there = future.is_some();
            let polled = self.poll(&mut future);
            drop(future);
            if polled.is_ready() {
                if was_there {
                    // Not before: the task could meet the lock, and nobody would wake it again.
                    self.task.wake();
                }
                return Poll::Ready(());
            }
            if !self.again.load(Ordering::SeqCst) {
                return Poll::Pending;
            }
        }
        // Others want it polled all the time: whoever does so here has other things to do, its task has not.
        self.task.wake();
        Poll::Pending
    }

    fn poll(self: &Arc<Self>, slot: &mut Option<Pin<Box<dyn Future<Output = ()> + Send>>>) -> Poll<()> {
        let Some(future) = slot else { return Poll::Ready(()) };
        let waker = Waker::from(Arc::clone(self));
        // A panic ends its connection and nothing else, on whichever thread it happens.
        let polled =
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        if polled.is_err() {
            tracing::error!("an internal connection ended by a bug");
        }
        if let Ok(Poll::Pending) = polled {
            return Poll::Pending;
        }
        *slot = None;
        Poll::Ready(())
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let is_delivered = WOKEN.with_borrow_mut(|woken| match woken {
            Some(woken) => {
                if !woken.iter().any(|other| Arc::ptr_eq(other, self)) {
                    woken.push(Arc::clone(self));
                }
                true
            }
            None => false,
        });
        if !is_delivered {
            self.task.wake();
        }
    }
}

/// The task's end of a shared future.
pub struct Delivered(Arc<Shared>);

impl std::fmt::Debug for Delivered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivered").finish_non_exhaustive()
    }
}

impl Delivered {
    /// Lets a future be polled by threads in [`deliver`], too. A panic in it ends it and is logged.
    #[must_use = "it is polled by whoever awaits it"]
    pub fn new(future: impl Future<Output = ()> + Send + 'static) -> Self {
        let future = Mutex::new(Some(Box::pin(future) as Pin<Box<dyn Future<Output = ()> + Send>>));
        Self(Arc::new(Shared { future, again: AtomicBool::new(false), task: AtomicWaker::new() }))
    }
}

impl Future for Delivered {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.task.register(cx.waker());
        self.0.run()
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        // What the future waits for holds its waker, and with it the future.
        let future = self.0.future.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(future);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::thread::ThreadId;

    use tokio::sync::{mpsc, oneshot};

    use super::*;

    #[tokio::test]
    async fn whoever_answers_inside_deliver_polls_the_connection() {
        let (ask, mut asked) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
        let polled_by = Arc::new(Mutex::new(Vec::<ThreadId>::new()));
        let seen = Arc::clone(&polled_by);
        let connection = tokio::spawn(Delivered::new(async move {
            let (answer, mut answered) = oneshot::channel();
            ask.send(answer).unwrap();
            poll_fn(|cx| {
                seen.lock().unwrap().push(std::thread::current().id());
                Pin::new(&mut answered).poll(cx)
            })
            .await
            .unwrap();
        }));
        let answer = asked.recv().await.unwrap();
        let thread = std::thread::spawn(move || {
            deliver(|| answer.send(()).unwrap());
            std::thread::current().id()
        });
        connection.await.unwrap();
        let thread = thread.join().unwrap();
        assert_eq!(polled_by.lock().unwrap().last(), Some(&thread), "its own task was not needed");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_is_lost_between_threads() {
        const MESSAGES: usize = 20_000;
        let (sender, mut receiver) = mpsc::unbounded_channel::<usize>();
        let sum = Arc::new(AtomicUsize::new(0));
        let total = Arc::clone(&sum);
        let connection = tokio::spawn(Delivered::new(async move {
            while let Some(number) = receiver.recv().await {
                total.fetch_add(number, Ordering::Relaxed);
            }
        }));
        let threads: Vec<_> = [true, false]
            .map(|is_inside| {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    for _ in 0..MESSAGES {
                        if is_inside {
                            deliver(|| sender.send(1).unwrap());
                        } else {
                            sender.send(1).unwrap();
                        }
                    }
                })
            })
            .into();
        drop(sender);
        connection.await.unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(sum.load(Ordering::Relaxed), 2 * MESSAGES);
    }

    /// A task that polls its connection at the very moment at which it is woken.
    struct Eager {
        connection: Mutex<Pin<Box<Delivered>>>,
        is_done: AtomicBool,
    }

    impl Wake for Eager {
        fn wake(self: Arc<Self>) {
            let waker = Waker::from(Arc::clone(&self));
            let mut connection = self.connection.lock().unwrap();
            if connection.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                self.is_done.store(true, Ordering::SeqCst);
            }
        }
    }

    #[test]
    fn a_task_that_is_woken_by_the_end_sees_it() {
        let (answer, answered) = oneshot::channel::<()>();
        let connection = Delivered::new(async move { answered.await.unwrap() });
        let task =
            Arc::new(Eager { connection: Mutex::new(Box::pin(connection)), is_done: AtomicBool::new(false) });
        Arc::clone(&task).wake();
        assert!(!task.is_done.load(Ordering::SeqCst));
        deliver(|| answer.send(()).unwrap());
        assert!(task.is_done.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn a_dropped_connection_drops_what_it_holds() {
        let (held, mut dropped) = oneshot::channel::<()>();
        let (_never, wait) = oneshot::channel::<()>();
        let mut connection = Delivered::new(async move {
            let _held = held;
            let _ = wait.await;
        });
        assert!(futures::poll!(&mut connection).is_pending());
        assert!(dropped.try_recv().is_err());
        drop(connection);
        assert_eq!(dropped.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[tokio::test]
    async fn a_panic_ends_one_connection_and_not_its_thread() {
        let (answer, answered) = oneshot::channel::<()>();
        let (ready, is_ready) = oneshot::channel();
        let connection = tokio::spawn(Delivered::new(async move {
            ready.send(()).unwrap();
            answered.await.unwrap();
            panic!("a bug");
        }));
        is_ready.await.unwrap();
        tokio::task::yield_now().await;
        std::thread::spawn(move || deliver(|| answer.send(()).unwrap())).join().unwrap();
        connection.await.unwrap();
    }
}
