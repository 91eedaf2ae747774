//! The threads that run cells. A cell is pinned to one thread while resident; SQLite never blocks the I/O runtime. The
//! queues hold at most the node's admitted requests, the operations that cells may have under way and a few control jobs
//! per cell, so they need no bound of their own.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use holdfast_core::gate::{FailCause, GateEvent};
use holdfast_js::{SocketEvent, SocketId};
use holdfast_rpc::deliver;
use holdfast_telemetry::metrics;
use holdfast_types::{CellName, Millis, Txid};
use tempfile::TempPath;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::actor::{Actor, AlarmInput, Closed, Input};
use super::watchdog::Watchdog;
use super::{Event, Resident};
use crate::clock;
use crate::past::Replacement;
use crate::runtime::{EventId, OpAnswer, OpId};

/// How long captures wait for the turns of other cells, so that what these commit is captured and sent with them: a frame
/// that is sent alone costs several times one that has company. About what a few small turns take, and little beside a sync of a disk.
const CAPTURE_WAIT_MAX: Duration = Duration::from_micros(200);

/// Cells at once that have a thread of their own.
const ALONE_MAX: usize = 16;

/// Work for a cell's thread. Jobs of one cell run in the order in which they were sent.
#[derive(Debug)]
pub(crate) enum Job {
    /// Open the cell's database.
    Open {
        /// The residency.
        resident: Arc<Resident>,
        /// The database file; created where the cell is empty.
        database: PathBuf,
        /// Where it stands.
        position: Txid,
        /// What is to take its place before anything else happens.
        replacement: Option<Replacement>,
        /// Answered with what went wrong, if anything.
        done: oneshot::Sender<Result<(), String>>,
    },
    /// Run a request.
    Event(Arc<Resident>, Box<Event>),
    /// An operation of the cell has ended.
    Completed(Arc<Resident>, OpId, OpAnswer),
    /// The caller of an open event has gone.
    Cancel(Arc<Resident>, EventId),
    /// Of the cell's alarm.
    Alarm(Arc<Resident>, AlarmInput),
    /// Something came for a socket.
    Socket(Arc<Resident>, SocketId, SocketEvent),
    /// What is deployed has changed.
    Deployed(Arc<Resident>),
    /// The state that the object wished for was read, or why it will not be had.
    Wished(Arc<Resident>, Result<TempPath, String>),
    /// Capture what is committed; asked for at this time.
    Capture(Arc<Resident>, Instant),
    /// Take no more events, and say when everything committed is covered.
    Quiesce {
        /// The residency.
        resident: Arc<Resident>,
        /// Answered once covered, or failed.
        done: oneshot::Sender<Result<(), FailCause>>,
    },
    /// Close the database in order; all of it is covered.
    Close {
        /// The residency.
        resident: Arc<Resident>,
        /// Answered with where it stands, or with what went wrong.
        done: oneshot::Sender<Result<Closed, String>>,
    },
    /// Drop the database and its files.
    Drop(Arc<Resident>),
}

/// The sending end of a thread's queue.
#[derive(Clone, Debug)]
pub(crate) struct WorkerHandle {
    jobs: Sender<Job>,
    watchdog: Watchdog,
}

impl WorkerHandle {
    pub(crate) fn send(&self, job: Job) {
        // The thread ends only when every sender is gone, or by a panic, which its own log line reports.
        if self.jobs.send(job).is_err() {
            tracing::error!("a cell's thread has ended; the process must be restarted");
        }
    }
}

/// All threads.
#[derive(Debug)]
pub(crate) struct Workers {
    handles: Vec<WorkerHandle>,
    hasher: RandomState,
    runtime: Handle,
    /// Places for threads of single cells.
    alone: Arc<Semaphore>,
}

impl Workers {
    /// Starts the threads.
    ///
    /// # Panics
    /// When the operating system has no thread to give.
    #[must_use]
    pub fn start(count: usize, node: &str, runtime: &Handle) -> Self {
        let handles = (0..count).map(|index| {
            start_thread(&format!("cells-{node}-{index}"), runtime, None).expect("a thread can be started")
        });
        Self {
            handles: handles.collect(),
            hasher: RandomState::new(),
            runtime: runtime.clone(),
            alone: Arc::new(Semaphore::new(ALONE_MAX)),
        }
    }

    /// A thread of its own, which ends when the cell has left: for one whose first work takes long, whatever its neighbours
    /// wait for. The thread of all where there are too many such.
    pub(crate) fn alone(&self, cell: &CellName) -> WorkerHandle {
        let place = Arc::clone(&self.alone).try_acquire_owned().ok();
        let started = place.and_then(|place| start_thread("cells-alone", &self.runtime, Some(place)).ok());
        started.unwrap_or_else(|| self.of(cell))
    }

    /// Tells of cells that hold their thread.
    pub(crate) fn tell_stalled(&self, now: Millis) {
        for (cell, for_ms, is_first) in self.handles.iter().filter_map(|handle| handle.watchdog.stalled(now))
        {
            if is_first {
                metrics().thread_stalled();
            }
            tracing::warn!(%cell, for_ms, "a cell holds its thread: its neighbours wait");
        }
    }

    /// The thread of a cell.
    pub(crate) fn of(&self, cell: &CellName) -> WorkerHandle {
        let hash = self.hasher.hash_one(cell);
        let count = u64::try_from(self.handles.len()).expect("a count fits 64 bits");
        let index = usize::try_from(hash % count).expect("an index is below the count");
        self.handles[index].clone()
    }
}

fn start_thread(
    name: &str,
    runtime: &Handle,
    place: Option<OwnedSemaphorePermit>,
) -> io::Result<WorkerHandle> {
    let (jobs, queue) = channel();
    let runtime = runtime.clone();
    let watchdog = Watchdog::default();
    let watched = watchdog.clone();
    std::thread::Builder::new().name(name.chars().take(15).collect()).stack_size(4 << 20).spawn(
        move || {
            // A thread that writes its answers itself takes in the calls that follow them, too.
            let _context = runtime.enter();
            run_or_abort(&queue, watched);
            drop(place);
        },
    )?;
    Ok(WorkerHandle { jobs, watchdog })
}

/// A panic on a cell's thread is a broken invariant: it ends the process, never the data.
fn run_or_abort(queue: &Receiver<Job>, watchdog: Watchdog) {
    let worker = Worker { watchdog, ..Worker::default() };
    let run = std::panic::AssertUnwindSafe(|| worker.run(queue));
    if std::panic::catch_unwind(run).is_err() {
        tracing::error!("a cell's thread panicked; the process ends so that no damaged state is served");
        std::process::abort();
    }
}

/// Names a residency by its address, which is unique while the actor holds it.
fn key(resident: &Arc<Resident>) -> usize {
    Arc::as_ptr(resident).addr()
}

#[derive(Default)]
struct Worker {
    actors: HashMap<usize, Actor>,
    timers: Timers,
    /// Cells with events, each once: they take turns, so that one with many slow events holds up the others by one of
    /// them at a time.
    turns: VecDeque<usize>,
    captures: Captures,
    watchdog: Watchdog,
}

impl Worker {
    fn run(mut self, queue: &Receiver<Job>) {
        loop {
            if !self.take_turn(queue) {
                return;
            }
            let has_turns = !self.turns.is_empty();
            if self.captures.are_due(has_turns) {
                // As with answers: with nothing else to do, the thread sends the frames itself.
                let captured = if has_turns { self.capture() } else { deliver(|| self.capture()) };
                self.after_captures(captured);
                continue;
            }
            if !self.turns.is_empty() {
                continue;
            }
            let job = match self.timers.first() {
                None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(first) => {
                    let pause = Duration::from_millis(first.since(clock::monotonic()));
                    queue.recv_timeout(pause)
                }
            };
            match job {
                Ok(job) => self.on(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Takes in what has arrived, then lets the next cell take one turn. False when nobody can send any more.
    fn take_turn(&mut self, queue: &Receiver<Job>) -> bool {
        loop {
            match queue.try_recv() {
                Ok(job) => {
                    self.on(job);
                    // Neither do what has just arrived nor the next turn hold them up for longer than they wait for company.
                    if self.captures.are_due(true) {
                        self.capture_all();
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        if let Some(key) = self.turns.pop_front()
            && let Some(actor) = self.actors.get_mut(&key)
        {
            // With nothing else to do, the thread writes the answer itself. Otherwise the connection's task does,
            // meanwhile: no answer waits for the event of another.
            let is_last = self.turns.is_empty() && actor.waiting() == 1;
            self.watchdog.begin(actor.resident(), clock::monotonic());
            let has_more = if is_last { deliver(|| actor.take_turn()) } else { actor.take_turn() };
            self.watchdog.end();
            if has_more {
                self.turns.push_back(key);
            }
            self.timers.set(key, actor.next_deadline());
        }
        self.wake_due();
        true
    }

    fn on(&mut self, job: Job) {
        match job {
            Job::Open { resident, database, position, replacement, done } => {
                let opened = Actor::open(&resident, &database, position).map(|mut actor| {
                    if let Some(replacement) = replacement {
                        actor.replace(replacement);
                    }
                    actor.look_for_wish();
                    self.actors.insert(key(&resident), actor);
                });
                // Its alarm may be due before anything else happens to it.
                self.set_timer(&resident);
                let _ = done.send(opened);
            }
            Job::Event(resident, event) => {
                if let Some(Input::Event(event)) = self.enqueue(&resident, Input::Event(event)) {
                    resident.dequeued();
                    event.refuse(super::actor::gone(&resident.cell));
                }
            }
            // Where the cell has gone, nobody waits for these any more.
            Job::Completed(resident, op, answer) => {
                drop(self.enqueue(&resident, Input::Completed(op, answer)));
            }
            Job::Cancel(resident, event) => drop(self.enqueue(&resident, Input::Cancel(event))),
            Job::Alarm(resident, input) => drop(self.enqueue(&resident, Input::Alarm(Box::new(input)))),
            Job::Socket(resident, socket, event) => {
                drop(self.enqueue(&resident, Input::Socket(socket, event)));
            }
            Job::Deployed(resident) => drop(self.enqueue(&resident, Input::Deployed)),
            Job::Wished(resident, fetched) => {
                if let Some(actor) = self.actors.get_mut(&key(&resident)) {
                    self.watchdog.begin(&resident, clock::monotonic());
                    actor.restore(fetched);
                    self.watchdog.end();
                    self.set_timer(&resident);
                }
            }
            Job::Capture(resident, since) => self.captures.add(resident, since),
            Job::Quiesce { resident, done } => {
                self.capture_all();
                match self.actors.get_mut(&key(&resident)) {
                    Some(actor) => {
                        actor.quiesce(done);
                        self.set_timer(&resident);
                    }
                    None => drop(done.send(Err(FailCause::OwnershipLost))),
                }
            }
            Job::Close { resident, done } => {
                self.capture_all();
                self.timers.remove(key(&resident));
                let closed = match self.actors.remove(&key(&resident)) {
                    Some(actor) => actor.close(),
                    None => Err("the cell was discarded".to_owned()),
                };
                let _ = done.send(closed);
            }
            Job::Drop(resident) => {
                self.capture_all();
                self.timers.remove(key(&resident));
                if let Some(actor) = self.actors.remove(&key(&resident)) {
                    actor.discard();
                }
            }
        }
    }

    fn capture_all(&mut self) {
        let captured = self.capture();
        self.after_captures(captured);
    }

    /// Captures what waits for it, and has what that gave the node log sent. What follows is for [`Self::after_captures`]: it
    /// may take long, and nobody's frames wait for it.
    fn capture(&mut self) -> Vec<Arc<Resident>> {
        let mut captured = Vec::new();
        let (mut node, mut began) = (None, Instant::now());
        for resident in self.captures.take() {
            let Some(actor) = self.actors.get_mut(&key(&resident)) else {
                // The gate waits for the answer before it can settle.
                resident.on(GateEvent::Captured { captured: None, len: 0 });
                continue;
            };
            let has_captured = actor.capture();
            node = node.or_else(|| resident.node());
            if has_captured {
                captured.push(resident);
            }
            // What was captured before a long one leaves before the next.
            if began.elapsed() >= CAPTURE_WAIT_MAX
                && let Some(node) = &node
            {
                node.log.announce();
                began = Instant::now();
            }
        }
        if let Some(node) = node {
            node.log.announce();
        }
        captured
    }

    fn after_captures(&mut self, captured: Vec<Arc<Resident>>) {
        for resident in captured {
            if let Some(actor) = self.actors.get_mut(&key(&resident)) {
                self.watchdog.begin(&resident, clock::monotonic());
                actor.after_capture();
                self.watchdog.end();
                self.set_timer(&resident);
            }
        }
    }

    /// Queues what a cell's runtime is to be told. Given back where the cell has gone.
    fn enqueue(&mut self, resident: &Arc<Resident>, input: Input) -> Option<Input> {
        let Some(actor) = self.actors.get_mut(&key(resident)) else { return Some(input) };
        if actor.enqueue(input) {
            self.turns.push_back(key(resident));
        }
        None
    }

    fn set_timer(&mut self, resident: &Arc<Resident>) {
        if let Some(actor) = self.actors.get(&key(resident)) {
            self.timers.set(key(resident), actor.next_deadline());
        }
    }

    fn wake_due(&mut self) {
        if self.timers.first().is_none() {
            return;
        }
        let now = clock::monotonic();
        while let Some(key) = self.timers.take_due(now) {
            if let Some(actor) = self.actors.get_mut(&key) {
                self.watchdog.begin(actor.resident(), now);
                actor.wake(now);
                self.watchdog.end();
                self.timers.set(key, actor.next_deadline().map(|at| at.max(now.plus(1))));
            }
        }
    }
}

/// Cells that were asked for a capture.
#[derive(Default)]
struct Captures {
    waiting: Vec<Arc<Resident>>,
    /// When the first of them was asked for.
    since: Option<Instant>,
}

impl Captures {
    fn add(&mut self, resident: Arc<Resident>, since: Instant) {
        self.since.get_or_insert(since);
        self.waiting.push(resident);
    }

    /// Whether they wait no longer: there is no turn that might join them, or the first has waited enough.
    fn are_due(&self, has_turns: bool) -> bool {
        self.since.is_some_and(|since| !has_turns || since.elapsed() >= CAPTURE_WAIT_MAX)
    }

    fn take(&mut self) -> Vec<Arc<Resident>> {
        self.since = None;
        std::mem::take(&mut self.waiting)
    }
}

/// When each actor wants to be woken: open transactions that must end, memory to give back when idle.
#[derive(Default)]
struct Timers {
    by_time: BTreeSet<(Millis, usize)>,
    by_key: HashMap<usize, Millis>,
}

impl Timers {
    fn first(&self) -> Option<Millis> {
        self.by_time.first().map(|(at, _)| *at)
    }

    fn set(&mut self, key: usize, at: Option<Millis>) {
        let before = match at {
            Some(at) => self.by_key.insert(key, at),
            None => self.by_key.remove(&key),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, key));
        }
        if let Some(at) = at {
            self.by_time.insert((at, key));
        }
    }

    fn remove(&mut self, key: usize) {
        self.set(key, None);
    }

    fn take_due(&mut self, now: Millis) -> Option<usize> {
        let (_, key) = self.by_time.first().copied().filter(|(at, _)| *at <= now)?;
        self.remove(key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_wait_for_turns_and_not_for_long() {
        let mut captures = Captures::default();
        assert!(!captures.are_due(false), "there are none");
        let now = Instant::now();
        captures.since = Some(now + Duration::from_secs(3_600));
        assert!(captures.are_due(false), "no turn could join them");
        assert!(!captures.are_due(true));
        captures.since = Some(now.checked_sub(CAPTURE_WAIT_MAX).unwrap());
        assert!(captures.are_due(true), "they have waited enough");
        captures.take();
        assert!(!captures.are_due(false));
    }
}
