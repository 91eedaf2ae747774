//! The stateless Worker of the deployed application: JavaScript on threads of its own, requests in and answers out. It
//! must never run JavaScript on a thread that does I/O, nor end a broken answer cleanly.

mod body;
mod caller;
mod error;
mod event;
mod log;
mod message;
mod ops;
mod request;
mod slot;
mod thread;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use holdfast_deploy::Running;
use holdfast_js::{Application, EventId, IncomingRequest, Limits, StartError};
use holdfast_outbound::Outbound;
use holdfast_rpc::Body;
use http::Response;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tracing::Span;

pub(crate) use error::WorkerError;
pub(crate) use request::{incoming, origin};

use caller::Caller;
use message::{Message, NewEvent, Post};

/// What a Worker may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerOptions {
    /// Threads that run JavaScript.
    pub(crate) threads: usize,
    /// Of each isolate.
    pub(crate) limits: Limits,
    /// Until the head of an answer. A call of an object may take three quarters of it.
    pub(crate) request_timeout: Duration,
    /// What `waitUntil` may take once the answer is out. 30 s, as on Cloudflare.
    pub(crate) afterwards: Duration,
    /// Events under way on one thread; beyond it requests are refused.
    pub(crate) events_max: usize,
}

/// What is deployed, as this process sees it.
#[derive(Clone, Debug, Default)]
pub(crate) enum Deployed {
    /// Nothing.
    #[default]
    Nothing,
    /// The only version so far does not start.
    Broken(Arc<StartError>),
    /// An application that has started here.
    Runs(Arc<Application>),
}

/// The Worker. A cheap clone.
#[derive(Clone)]
pub(crate) struct Worker {
    pool: Arc<Pool>,
}

struct Pool {
    threads: Vec<Thread>,
    deployed: RwLock<Deployed>,
    events: AtomicU64,
    options: WorkerOptions,
    idle: Arc<Notify>,
}

struct Thread {
    post: Post,
    load: Arc<event::Load>,
}

impl Drop for Pool {
    fn drop(&mut self) {
        for thread in &self.threads {
            thread.post.send(Message::Stop);
        }
    }
}

impl Worker {
    /// Starts the threads. What they ask of the outside is done on the runtime that this is called on.
    ///
    /// # Errors
    /// The machine has no thread left.
    pub(crate) fn start(options: WorkerOptions, outbound: &Outbound) -> io::Result<Self> {
        let idle = Arc::new(Notify::new());
        let threads = (0..options.threads.max(1)).map(|number| {
            let load = Arc::new(event::Load::default());
            let context = thread::Context { outbound: outbound.clone(), runtime: Handle::current(), options };
            let post = thread::start(number, context)?;
            Ok(Thread { post, load })
        });
        let threads = threads.collect::<io::Result<Vec<Thread>>>()?;
        let (deployed, events) = (RwLock::default(), AtomicU64::new(0));
        Ok(Self { pool: Arc::new(Pool { threads, deployed, events, options, idle }) })
    }

    /// What is deployed.
    pub(crate) fn deployed(&self) -> Deployed {
        self.pool.deployed.read().expect("nothing panics with it").clone()
    }

    /// Runs this application from now on, once it has started on one thread. Events that are under way finish on theirs.
    ///
    /// # Errors
    /// It does not start; what ran before goes on.
    pub(crate) async fn adopt(&self, code: Arc<Application>) -> Result<(), StartError> {
        let (reply, started) = oneshot::channel();
        self.least_loaded().post.send(Message::Try { code: Arc::clone(&code), reply });
        let started = started.await.unwrap_or_else(|_| {
            Err(StartError::Exceeded(holdfast_js::BrokenCause::Internal("the thread has ended".into())))
        });
        let mut deployed = self.pool.deployed.write().expect("nothing panics with it");
        if let Err(error) = started {
            if !matches!(*deployed, Deployed::Runs(_)) {
                *deployed = Deployed::Broken(Arc::new(error.clone()));
            }
            return Err(error);
        }
        *deployed = Deployed::Runs(Arc::clone(&code));
        for thread in &self.pool.threads {
            thread.post.send(Message::Adopted(Arc::clone(&code)));
        }
        Ok(())
    }

    /// Adopts each application that comes, for ever.
    pub(crate) async fn follow(self, mut running: Running) {
        loop {
            self.adopt_latest(&mut running).await;
            if running.changed().await.is_err() {
                return;
            }
        }
    }

    /// Adopts the application that runs now, if one does.
    pub(crate) async fn adopt_latest(&self, running: &mut Running) {
        let Some(code) = running.borrow_and_update().clone() else { return };
        if matches!(self.deployed(), Deployed::Runs(runs) if Arc::ptr_eq(&runs, &code)) {
            return;
        }
        let version = code.version().to_owned();
        match self.adopt(code).await {
            Ok(()) => tracing::info!(version, "runs a version of the application"),
            Err(error) => {
                tracing::error!(version, %error, "a version of the application does not start; what ran before goes on");
            }
        }
    }

    /// Answers a request with the application. `request` has no body; `body` is it. Dropping the future, or the answer's
    /// body, tells the handler that nobody waits any more. `socket` is what the client sends on the WebSocket that it asks
    /// for; where the answer has status 101, its body is what the client is sent.
    ///
    /// # Errors
    /// [`WorkerError`].
    pub(crate) async fn fetch(
        &self,
        request: IncomingRequest,
        (body, socket): (Body, Option<Body>),
        span: Span,
    ) -> Result<Response<Body>, WorkerError> {
        let code = match self.deployed() {
            Deployed::Runs(code) => code,
            Deployed::Nothing => return Err(WorkerError::NotDeployed),
            Deployed::Broken(error) => return Err(WorkerError::NotStarted(error)),
        };
        let thread = self.least_loaded();
        if thread.load.events() >= self.pool.options.events_max {
            return Err(WorkerError::Overloaded);
        }
        let number = EventId::new(self.pool.events.fetch_add(1, Ordering::Relaxed) + 1);
        let (answer, answered) = oneshot::channel();
        let place = event::Place::take(&thread.load, &self.pool.idle);
        let event = NewEvent { code, number, request, body, socket, span, answer, place };
        let caller = Caller::new(thread.post.clone(), number);
        thread.post.send(Message::Begin(Box::new(event)));
        match tokio::time::timeout(self.pool.options.request_timeout, answered).await {
            Ok(Ok(Ok(answer))) => Ok(caller.attend(answer)),
            Ok(Ok(Err(error))) => {
                caller.end();
                Err(error)
            }
            Ok(Err(_)) => {
                caller.end();
                Err(WorkerError::Ended)
            }
            // Dropping the caller ends the event.
            Err(_) => Err(WorkerError::Late(self.pool.options.request_timeout)),
        }
    }

    /// Waits until no event is under way, not even one that only waits for what it gave to `waitUntil`.
    pub(crate) async fn idle(&self) {
        loop {
            let waited = self.pool.idle.notified();
            tokio::pin!(waited);
            // From here on a notification is not missed.
            waited.as_mut().enable();
            if self.pool.threads.iter().all(|thread| thread.load.is_idle()) {
                return;
            }
            waited.await;
        }
    }

    fn least_loaded(&self) -> &Thread {
        let all = self.pool.threads.iter();
        all.min_by_key(|thread| thread.load.events()).expect("there is at least one")
    }
}

#[cfg(test)]
mod tests;
