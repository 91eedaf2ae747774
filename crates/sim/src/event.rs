//! What the world has in store: everything that happens does so as one of these, at a time and in an order that the
//! seed decides.

use holdfast_core::alarm::{Armed, EntryName};
use holdfast_core::ensemble::EnsembleProof;
use holdfast_types::{AlarmId, AlarmTime, Epoch, NodeName, SessionId};

use crate::bucket::{Cell, OpId};
use crate::follower::{FollowerInput, Told};
use crate::forcing::ForcingInput;
use crate::network::Way;
use crate::waker::WakerInput;

/// Names a call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// Names one stay of a cell in a process, from the claim to its end; what belongs to an earlier stay is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay(pub u64);

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A client, by its index.
    Client(usize),
    /// An operator, who purges.
    Operator,
    /// An operator, who purges a cell whose owner record cannot be read.
    Forcer,
    /// The last reads of a run.
    Probe,
    /// A handler that writes at the worst moment.
    Adversary,
    /// A waker, by its index.
    Waker(usize),
    /// A node that has given the cell up, or says so.
    Giver,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The list of operations.
    Read,
    /// To add an operation.
    Write(OpId),
    /// A write that changes nothing.
    Touch,
    /// To purge the cell.
    Purge,
    /// To give the cell up, and to say so once it is.
    LetGo,
    /// To look at its alarm: somebody saw this entry.
    Hint(EntryName),
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Unique.
    pub id: u64,
    /// Who asked.
    pub asker: Asker,
    /// Of which cell.
    pub cell: Cell,
    /// For what.
    pub ask: Ask,
    /// When, true time.
    pub began_ms: u64,
}

/// A response.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It ran in this epoch; the cell's list after it.
    Ran(Epoch, Vec<OpId>),
    /// The cell is purged.
    Purged,
    /// The session has the cell no more.
    LetGo,
    /// The owner has looked at the cell's alarm.
    Looked {
        /// Who.
        session: SessionId,
        /// In this epoch.
        epoch: Epoch,
        /// What is armed, and when it is to run.
        armed: Option<(AlarmId, AlarmTime)>,
    },
    /// It did not run; ask that node.
    NotOwner(NodeName),
    /// It did not run.
    Refused,
    /// It may have run, and may be lost.
    Unknown,
}

/// A timer of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The lease asked for it.
    LeaseWake,
    /// Authority ends unless it was renewed.
    AuthorityEnd,
    /// An output's deadline.
    OutputDeadline(Cell, Stay),
    /// A drain takes too long.
    DrainPatience,
    /// The node log wants to know that time passes.
    LogTick,
    /// A round of uploads begins.
    LogRound,
    /// Dead sessions are looked for.
    Sweep,
    /// A cell's history is to be looked after.
    Retire(Cell, Stay),
    /// A cell's alarm wants to know the time.
    Alarm(Cell, Stay),
    /// A run of an alarm has its turn.
    AlarmRun(Cell, Stay, Armed),
    /// An alarm's handler comes to its end.
    AlarmEnd(Cell, Stay, AlarmId),
}

/// What a process gets to see.
#[derive(Clone, Debug)]
pub(crate) enum NodeEvent {
    /// The store's answer.
    Answer {
        /// To this call.
        call: CallId,
        /// An ambiguous failure instead of what the store did.
        is_ambiguous: bool,
    },
    /// No answer in time.
    GiveUp(CallId),
    /// A timer.
    Timer(Timer),
    /// A request.
    Request(Request),
    /// The node log proved frames.
    Proved(EnsembleProof),
    /// What gates may wait for has changed.
    Pace,
    /// A follower answered a recoverer.
    Told(u64, Told),
    /// It did not in time.
    AskGiveUp(u64),
}

/// Something that happens.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The store applies a call.
    Apply(CallId),
    /// A process sees something; requests reach whichever session is there.
    Node(usize, Option<SessionId>, NodeEvent),
    /// A follower sees something; what recoverers ask reaches whichever process is there.
    Follower(usize, Option<u64>, FollowerInput),
    /// The next message of a link arrives.
    Deliver(u64, Way),
    /// A follower's process is started.
    StartFollower(usize),
    /// A stopped follower is continued.
    ContinueFollower(usize),
    /// A response reaches its asker.
    Response(Request, Outcome),
    /// A client sends its next request.
    Think(usize),
    /// A client stops waiting for a request.
    Impatience(usize, u64),
    /// The next fault strikes.
    Fault,
    /// A stopped process is continued.
    Continue(usize),
    /// A process is started.
    Start(usize),
    /// Faults stop for good.
    FaultsEnd,
    /// Cells that have not answered since are asked again.
    Probe,
    /// Something happens to a forced purge, by its run.
    Forcing(Cell, u64, ForcingInput),
    /// Something happens to a waker's process, by its life.
    Waker(usize, u64, WakerInput),
}
