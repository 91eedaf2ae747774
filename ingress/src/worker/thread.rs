//! A thread that runs JavaScript: it takes one message after another, and enters the isolate that it is for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{io, mem};

use holdfast_js::{Application, BrokenCause, Now, StartError};
use holdfast_outbound::Outbound;
use holdfast_telemetry::{WorkerOutcome, metrics};
use holdfast_types::Millis;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;

use super::event::Event;
use super::message::{Message, NewEvent, Post};
use super::slot::Slot;
use super::{WorkerError, WorkerOptions};

/// Stack of a thread: that of isolates, and room for Rust below and above it.
const STACK_LEN: usize = 8 << 20;

/// What a thread works with.
pub(super) struct Context {
    pub(super) outbound: Outbound,
    pub(super) runtime: Handle,
    pub(super) options: WorkerOptions,
}

impl WorkerOptions {
    /// What a call of an object may take: a handler that calls at once still has time to answer when it fails.
    pub(super) fn call_timeout(&self) -> Duration {
        self.request_timeout * 3 / 4
    }

    pub(super) fn afterwards_ms(&self) -> u64 {
        u64::try_from(self.afterwards.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The clocks of a thread.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    began: Instant,
}

impl Clock {
    pub(super) fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { monotonic: millis(self.began.elapsed()), wall: millis(wall) }
    }
}

fn millis(time: Duration) -> Millis {
    Millis::new(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// What the isolates of a thread share.
#[derive(Clone)]
pub(super) struct Thread {
    pub(super) context: Arc<Context>,
    pub(super) post: Post,
    pub(super) clock: Clock,
}

/// Starts a thread.
///
/// # Errors
/// The machine has no thread left.
pub(super) fn start(number: usize, context: Context) -> io::Result<Post> {
    let (sender, inbox) = mpsc::channel();
    let post = Post::new(sender);
    let thread =
        Thread { context: Arc::new(context), post: post.clone(), clock: Clock { began: Instant::now() } };
    std::thread::Builder::new()
        .name(format!("worker-{number}"))
        .stack_size(STACK_LEN)
        .spawn(move || serve(&thread, &inbox))?;
    Ok(post)
}

/// Runs until it is told to stop. A panic is a fault of ours: the events of this thread fail, and it begins anew.
fn serve(thread: &Thread, inbox: &Receiver<Message>) {
    let mut started = 0;
    loop {
        let mut run = Loop { thread, inbox, slots: Vec::new(), started, current: None };
        match catch_unwind(AssertUnwindSafe(|| run.run())) {
            Ok(()) => return,
            // The message of the panic is in the log already.
            Err(_) => tracing::error!("a thread of the Worker panicked: its events fail, and it begins anew"),
        }
        // Answers to operations of the isolates before must not reach the new ones.
        started = run.started;
    }
}

struct Loop<'a> {
    thread: &'a Thread,
    inbox: &'a Receiver<Message>,
    slots: Vec<Slot>,
    /// Isolates so far.
    started: u64,
    /// What new events run.
    current: Option<Arc<Application>>,
}

impl Loop<'_> {
    fn run(&mut self) {
        let mut used = cpu_time();
        loop {
            let message = match self.next() {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => Message::Wake,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if !self.take(message) {
                return;
            }
            self.each(Slot::wake);
            self.sweep();
            let now = cpu_time();
            metrics().worker_turn(now.saturating_sub(mem::replace(&mut used, now)));
        }
    }

    fn next(&self) -> Result<Message, RecvTimeoutError> {
        let Some(due) = self.slots.iter().filter_map(Slot::next_deadline).min() else {
            return self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected);
        };
        let left = due.since(self.thread.clock.now().monotonic);
        self.inbox.recv_timeout(Duration::from_millis(left))
    }

    /// Gives false when the thread is to end.
    fn take(&mut self, message: Message) -> bool {
        match message {
            Message::Begin(event) => self.begin(*event),
            Message::Try { code, reply } => {
                let started = self.slot_of(&code).map(|_| ());
                if started.is_ok() {
                    // About to be adopted: not to be swept away before.
                    self.current = Some(code);
                }
                // Whoever asked may have gone.
                let _ = reply.send(started);
            }
            Message::Adopted(code) => self.current = Some(code),
            Message::Done { slot, op, outcome } => {
                self.in_slot(|candidate| candidate.number() == slot, |slot| slot.done(op, outcome));
            }
            Message::Socket { slot, socket, event } => {
                self.in_slot(|candidate| candidate.number() == slot, |slot| slot.socket_event(socket, event));
            }
            Message::Gone(event) => {
                self.in_slot(|slot| slot.has_event(event), |slot| slot.gone(event));
            }
            Message::Wake => {}
            Message::Stop => return false,
        }
        true
    }

    fn begin(&mut self, event: NewEvent) {
        if event.answer.is_closed() {
            // Its caller left while it waited for the thread.
            metrics().worker_event(WorkerOutcome::Cancelled);
            return;
        }
        let code = Arc::clone(&event.code);
        match self.slot_of(&code) {
            Ok(index) => {
                let result = self.slots[index].begin(event);
                self.settle(index, result);
            }
            Err(error) => {
                tracing::error!(version = code.version(), %error, "an isolate of the Worker does not start");
                metrics().worker_event(WorkerOutcome::Broken);
                let NewEvent { answer, span, place, .. } = event;
                let mut event = Event::new(answer, span, None, place);
                event.answer(Err(WorkerError::NotStarted(Arc::new(error))), WorkerOutcome::Broken);
            }
        }
    }

    /// The isolate of an application; started where there is none.
    fn slot_of(&mut self, code: &Arc<Application>) -> Result<usize, StartError> {
        if let Some(index) = self.slots.iter().position(|slot| Arc::ptr_eq(&slot.code, code)) {
            return Ok(index);
        }
        self.started += 1;
        self.slots.push(Slot::start(self.started, Arc::clone(code), self.thread)?);
        Ok(self.slots.len() - 1)
    }

    fn in_slot(
        &mut self,
        is_it: impl Fn(&Slot) -> bool,
        enter: impl FnOnce(&mut Slot) -> Result<(), BrokenCause>,
    ) {
        if let Some(index) = self.slots.iter().position(is_it) {
            let result = enter(&mut self.slots[index]);
            self.settle(index, result);
        }
    }

    fn each(&mut self, enter: impl Fn(&mut Slot) -> Result<(), BrokenCause>) {
        for index in (0..self.slots.len()).rev() {
            let result = enter(&mut self.slots[index]);
            self.settle(index, result);
        }
    }

    /// Drops an isolate that broke.
    fn settle(&mut self, index: usize, result: Result<(), BrokenCause>) {
        if let Err(cause) = result {
            self.slots.swap_remove(index).fail(&cause);
        }
    }

    /// Drops isolates of applications that new events do not run, once nothing is under way in them.
    fn sweep(&mut self) {
        let Some(current) = &self.current else { return };
        self.slots.retain(|slot| Arc::ptr_eq(&slot.code, current) || !slot.is_idle());
    }
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
