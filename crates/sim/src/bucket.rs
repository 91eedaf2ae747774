//! A linearizable key/value store with numeric versions. What a call costs, and whether its answer arrives, is the
//! weather's business; here is only what the store holds and what each call does to it at its one instant.

use std::collections::BTreeMap;
use std::rc::Rc;

use holdfast_core::alarm::{EntryName, Mark};
use holdfast_core::ensemble::FollowerView;
use holdfast_core::lease::LeaseRecord;
use holdfast_core::lineage::OpenerView;
use holdfast_core::log_record::LogRecord;
use holdfast_core::ownership::{OwnerView, Protocol};
use holdfast_core::retire::Mark as RetireMark;
use holdfast_core::store::Guard;
use holdfast_types::{Epoch, FollowerName, LogOffset, NodeName, SessionId, Txid, WriteId};

use crate::frame::Frame;

/// A cell of the simulated fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(pub u8);

/// A write that a client sent once; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u32);

/// Level of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// An aligned block of transactions.
    Zero,
    /// A range of transactions.
    One,
    /// The whole database.
    Snapshot,
}

/// An object's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A node's lease.
    Lease(NodeName),
    /// A follower's lease.
    FollowerLease(FollowerName),
    /// A session's node-log record.
    Log(NodeName, SessionId),
    /// A loss that a person declared.
    Loss(SessionId),
    /// A bundle of a session's log, by the frame that it begins with.
    Bundle(SessionId, LogOffset),
    /// A cell's owner record.
    Owner(Cell),
    /// An epoch's opener.
    Opener(Cell, Epoch),
    /// A file of an epoch.
    File(Cell, Epoch, Level, Txid, Txid),
    /// What is retired of a cell's history.
    Retired(Cell),
    /// A wake entry.
    WakeEntry(Cell, EntryName),
    /// What is obsolete of a cell's wake entries.
    WakeRetired(Cell),
}

/// An object's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A lease and what its session speaks.
    Lease(LeaseRecord, Protocol),
    /// A follower's lease.
    FollowerLease(FollowerView),
    /// A node-log record.
    Log(LogRecord),
    /// A declared loss.
    Loss,
    /// The frames that were not covered, and the frame after the last that the bundle speaks of.
    Bundle(Rc<[Rc<Frame>]>, LogOffset),
    /// An owner record.
    Owner(OwnerView),
    /// What should be an owner record, and is none.
    Unreadable,
    /// An opener.
    Opener(OpenerView),
    /// The operations of each transaction of a file of level 0 or 1.
    Transactions(Rc<[(Txid, Vec<OpId>)]>),
    /// All operations up to a snapshot's transaction, in order.
    Snapshot(Rc<[OpId]>),
    /// What is retired of a cell's history.
    Retired(RetireMark),
    /// A wake entry: its name says it all.
    WakeEntry,
    /// What is obsolete of a cell's wake entries.
    WakeRetired(Mark),
}

impl Body {
    /// The write id of a record; none of a file or an opener.
    #[must_use]
    pub fn write_id(&self) -> Option<WriteId> {
        match self {
            Self::Lease(lease, _) => Some(lease.write_id),
            Self::Owner(owner) => Some(owner.write_id),
            Self::Log(record) => Some(record.write_id),
            Self::FollowerLease(_)
            | Self::Loss
            | Self::Unreadable
            | Self::Bundle(..)
            | Self::Opener(_)
            | Self::Transactions(_)
            | Self::Snapshot(_)
            | Self::Retired(_)
            | Self::WakeEntry
            | Self::WakeRetired(_) => None,
        }
    }
}

/// A call.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Read one object.
    Get(Key),
    /// Read several objects.
    GetAll(Vec<Key>),
    /// All followers' leases.
    ReadFollowers,
    /// All node-log records.
    ReadLogs,
    /// Names of an epoch's files; may miss what was written lately.
    List(Cell, Epoch),
    /// Names of everything of a cell below an epoch.
    ListBelow(Cell, Epoch),
    /// Write without a condition.
    Put(Key, Body),
    /// Write under a condition.
    PutIf(Key, Body, Guard<u64>),
    /// Delete some objects.
    Delete(Vec<Key>),
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The object, if there.
    Object(Option<(Body, u64)>),
    /// The objects, in the order asked.
    Objects(Vec<Option<Body>>),
    /// Names, in order.
    Keys(Vec<Key>),
    /// Written or deleted.
    Done,
    /// Written under the condition, at this version.
    Applied(u64),
    /// The condition did not hold.
    Rejected,
    /// An ambiguous status or no answer in time.
    Failed,
}

/// A write that took place.
#[derive(Clone, Debug)]
pub struct Change {
    /// Number of the change; grows.
    pub serial: u64,
    /// The key.
    pub key: Key,
    /// What was there.
    pub before: Option<Body>,
    /// What is there now.
    pub after: Body,
}

#[derive(Clone, Debug)]
struct Stored {
    body: Body,
    version: u64,
    written_ms: u64,
}

/// The store.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    objects: BTreeMap<Key, Stored>,
    version_last: u64,
}

impl Bucket {
    /// What is there now; for checkers, never for nodes.
    #[must_use]
    pub fn peek(&self, key: &Key) -> Option<&Body> {
        self.objects.get(key).map(|stored| &stored.body)
    }

    /// Whether some file of the epoch holds the transaction; for checkers, never for nodes.
    #[must_use]
    pub fn has_transaction(&self, cell: Cell, epoch: Epoch, txid: Txid) -> bool {
        self.objects.keys().any(|key| match key {
            Key::File(of, at, _, min, max) => *of == cell && *at == epoch && *min <= txid && txid <= *max,
            _ => false,
        })
    }

    /// Does a call. A listing misses objects younger than `list_stale_ms`.
    pub fn apply(&mut self, operation: &Operation, now: u64, list_stale_ms: u64) -> (Reply, Option<Change>) {
        match operation {
            Operation::Get(key) => {
                let found = self.objects.get(key).map(|stored| (stored.body.clone(), stored.version));
                (Reply::Object(found), None)
            }
            Operation::GetAll(keys) => {
                let bodies = keys.iter().map(|key| self.peek(key).cloned()).collect();
                (Reply::Objects(bodies), None)
            }
            Operation::ReadFollowers => (self.all(|key| matches!(key, Key::FollowerLease(_))), None),
            Operation::ReadLogs => (self.all(|key| matches!(key, Key::Log(..))), None),
            Operation::List(cell, epoch) => {
                let first = Key::File(*cell, *epoch, Level::Zero, Txid::ZERO, Txid::ZERO);
                let last = Key::File(*cell, epoch.next(), Level::Zero, Txid::ZERO, Txid::ZERO);
                let listed = self.objects.range(first..last);
                let listed = listed.filter(|(_, stored)| stored.written_ms + list_stale_ms <= now);
                (Reply::Keys(listed.map(|(key, _)| key.clone()).collect()), None)
            }
            Operation::ListBelow(cell, below) => {
                let is_below = |key: &&Key| match key {
                    Key::Opener(of, epoch) | Key::File(of, epoch, ..) => of == cell && epoch < below,
                    _ => false,
                };
                (Reply::Keys(self.objects.keys().filter(is_below).cloned().collect()), None)
            }
            Operation::Put(key, body) => {
                let change = self.write(key, body, now);
                (Reply::Done, Some(change))
            }
            Operation::PutIf(key, body, guard) => {
                let version = self.objects.get(key).map(|stored| stored.version);
                let holds = match guard {
                    Guard::Absent => version.is_none(),
                    Guard::Match(expected) => version == Some(*expected),
                };
                if !holds {
                    return (Reply::Rejected, None);
                }
                let change = self.write(key, body, now);
                (Reply::Applied(self.version_last), Some(change))
            }
            Operation::Delete(keys) => {
                for key in keys {
                    self.objects.remove(key);
                }
                (Reply::Done, None)
            }
        }
    }

    /// The names of an epoch's files, all of them; for checkers, never for nodes.
    #[must_use]
    pub fn listing(&self, cell: Cell, epoch: Epoch) -> Vec<Key> {
        let is_of = |key: &&Key| matches!(key, Key::File(of, at, ..) if *of == cell && *at == epoch);
        self.objects.keys().filter(is_of).cloned().collect()
    }

    fn all(&self, is_asked: impl Fn(&Key) -> bool) -> Reply {
        let asked = self.objects.iter().filter(|(key, _)| is_asked(key));
        Reply::Objects(asked.map(|(_, stored)| Some(stored.body.clone())).collect())
    }

    /// Every object; for checkers, never for nodes.
    pub fn objects(&self) -> impl Iterator<Item = (&Key, &Body)> {
        self.objects.iter().map(|(key, stored)| (key, &stored.body))
    }

    fn write(&mut self, key: &Key, body: &Body, now: u64) -> Change {
        self.version_last += 1;
        let stored = Stored { body: body.clone(), version: self.version_last, written_ms: now };
        let before = self.objects.insert(key.clone(), stored).map(|stored| stored.body);
        Change { serial: self.version_last, key: key.clone(), before, after: body.clone() }
    }
}
