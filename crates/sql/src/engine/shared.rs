//! What SQLite's callbacks and the engine tell each other. The callbacks run inside calls on the engine's own
//! connection, so that nothing here is ever contended; atomics only satisfy `Send`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::paged::PageFailure;

/// State between the engine and its callbacks.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Committed frames in the WAL, as the WAL hook counted them.
    wal_frames: AtomicU32,
    /// A commit whose frames the WAL hook has not counted yet.
    is_commit_uncounted: AtomicBool,
    /// The engine itself speaks: everything is allowed.
    is_system: AtomicBool,
    /// Between the first step of a statement and its end: nested statements are SQLite's own.
    is_stepping: AtomicBool,
    /// A VACUUM runs and copies every table, reserved ones too.
    is_vacuuming: AtomicBool,
    /// The caller may only read.
    is_read_only: AtomicBool,
    /// The caller is a Durable Object.
    is_object: AtomicBool,
    /// The text of the statement names the reserved prefix somewhere.
    is_reserved_named: AtomicBool,
    /// Nothing was ever written: the page size may still be chosen.
    is_fresh: AtomicBool,
    /// The open transaction was begun as READONLY.
    is_read_transaction: AtomicBool,
    /// The prepared statement has named tables or functions...
    is_plain: AtomicBool,
    /// ...or something else.
    is_other: AtomicBool,
    /// The prepared statement is a BEGIN.
    is_begin: AtomicBool,
    /// The prepared statement is a COMMIT or END.
    is_commit: AtomicBool,
    /// The prepared statement is a RELEASE.
    is_release: AtomicBool,
    /// The page size that the prepared statement asks for; zero without.
    page_size_request: AtomicU32,
    /// Bit n: the n-th of [`super::pragma::SESSION_PRAGMAS`] was set.
    touched_pragmas: AtomicU32,
    /// When the running statement must end, in nanoseconds since `base`; `u64::MAX` without.
    deadline_ns: AtomicU64,
    /// The progress handler ended the statement.
    is_budget_spent: AtomicBool,
    base: Instant,
    /// Why the authorizer refused.
    denial: Mutex<Option<String>>,
    /// Why a page of the file could not be had, since that was last asked.
    page_failure: Mutex<Option<String>>,
    /// A page cannot be had at all.
    are_pages_lost: AtomicBool,
}

macro_rules! flag {
    ($(#[$doc:meta] $get:ident, $set:ident, $field:ident;)*) => {$(
        #[$doc]
        pub(crate) fn $get(&self) -> bool {
            self.$field.load(Relaxed)
        }
        #[allow(missing_docs, dead_code)]
        pub(crate) fn $set(&self, value: bool) {
            self.$field.store(value, Relaxed);
        }
    )*};
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            wal_frames: AtomicU32::new(0),
            is_commit_uncounted: AtomicBool::new(false),
            is_system: AtomicBool::new(true),
            is_stepping: AtomicBool::new(false),
            is_vacuuming: AtomicBool::new(false),
            is_read_only: AtomicBool::new(false),
            is_object: AtomicBool::new(false),
            is_reserved_named: AtomicBool::new(false),
            is_fresh: AtomicBool::new(false),
            is_read_transaction: AtomicBool::new(false),
            is_plain: AtomicBool::new(false),
            is_other: AtomicBool::new(false),
            is_begin: AtomicBool::new(false),
            is_commit: AtomicBool::new(false),
            is_release: AtomicBool::new(false),
            page_size_request: AtomicU32::new(0),
            touched_pragmas: AtomicU32::new(0),
            deadline_ns: AtomicU64::new(u64::MAX),
            is_budget_spent: AtomicBool::new(false),
            base: Instant::now(),
            denial: Mutex::new(None),
            page_failure: Mutex::new(None),
            are_pages_lost: AtomicBool::new(false),
        })
    }

    flag! {
        /// See the field.
        is_commit_uncounted, set_commit_uncounted, is_commit_uncounted;
        /// See the field.
        is_system, set_system, is_system;
        /// See the field.
        is_stepping, set_stepping, is_stepping;
        /// See the field.
        is_vacuuming, set_vacuuming, is_vacuuming;
        /// See the field.
        is_read_only, set_read_only, is_read_only;
        /// See the field.
        is_object, set_object, is_object;
        /// See the field.
        is_reserved_named, set_reserved_named, is_reserved_named;
        /// See the field.
        is_fresh, set_fresh, is_fresh;
        /// See the field.
        is_read_transaction, set_read_transaction, is_read_transaction;
        /// See the field.
        is_plain, set_plain, is_plain;
        /// See the field.
        is_other, set_other, is_other;
        /// See the field.
        is_begin, set_begin, is_begin;
        /// See the field.
        is_commit, set_commit, is_commit;
        /// See the field.
        is_release, set_release, is_release;
        /// See the field.
        is_budget_spent, set_budget_spent, is_budget_spent;
    }

    pub(crate) fn wal_frames(&self) -> u32 {
        self.wal_frames.load(Relaxed)
    }

    pub(crate) fn set_wal_frames(&self, frames: u32) {
        self.wal_frames.store(frames, Relaxed);
    }

    pub(crate) fn request_page_size(&self, bytes: u32) {
        self.page_size_request.store(bytes, Relaxed);
    }

    pub(crate) fn take_page_size_request(&self) -> Option<u32> {
        match self.page_size_request.swap(0, Relaxed) {
            0 => None,
            bytes => Some(bytes),
        }
    }

    pub(crate) fn touch_pragma(&self, index: usize) {
        self.touched_pragmas.fetch_or(1 << index, Relaxed);
    }

    pub(crate) fn is_pragma_touched(&self, index: usize) -> bool {
        self.touched_pragmas.load(Relaxed) & (1 << index) != 0
    }

    pub(crate) fn take_touched_pragmas(&self) -> u32 {
        self.touched_pragmas.swap(0, Relaxed)
    }

    /// Forgets what the last statement left.
    pub(crate) fn begin_prepare(&self, is_read_only: bool, is_reserved_named: bool) {
        self.set_stepping(false);
        self.set_vacuuming(false);
        self.set_read_only(is_read_only);
        self.set_reserved_named(is_reserved_named);
        self.set_plain(false);
        self.set_other(false);
        self.set_begin(false);
        self.set_commit(false);
        self.set_release(false);
        self.request_page_size(0);
        self.take_denial();
    }

    /// Starts the clock of a statement.
    pub(crate) fn begin_step(&self, budget: Duration) {
        let deadline = self.base.elapsed().saturating_add(budget);
        self.deadline_ns.store(u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX - 1), Relaxed);
        self.set_budget_spent(false);
        self.set_stepping(true);
    }

    /// Stops it.
    pub(crate) fn end_step(&self) {
        self.deadline_ns.store(u64::MAX, Relaxed);
        self.set_stepping(false);
        self.set_vacuuming(false);
    }

    /// Asked by the progress handler: must the statement end?
    pub(crate) fn is_over_budget(&self) -> bool {
        let deadline = self.deadline_ns.load(Relaxed);
        if deadline == u64::MAX {
            return false;
        }
        let is_over = self.base.elapsed().as_nanos() >= u128::from(deadline);
        if is_over {
            self.set_budget_spent(true);
        }
        is_over
    }

    /// What is left of the running statement's time; outside of one, what is given.
    pub(crate) fn patience(&self, otherwise: Duration) -> Duration {
        match self.deadline_ns.load(Relaxed) {
            u64::MAX => otherwise,
            deadline => Duration::from_nanos(deadline).saturating_sub(self.base.elapsed()),
        }
    }

    /// A page of the file could not be had.
    pub(crate) fn note_page_failure(&self, failure: PageFailure) {
        if failure.is_lost {
            self.are_pages_lost.store(true, Relaxed);
        }
        *self.page_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.message);
    }

    pub(crate) fn take_page_failure(&self) -> Option<String> {
        self.page_failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn are_pages_lost(&self) -> bool {
        self.are_pages_lost.load(Relaxed)
    }

    pub(crate) fn deny(&self, reason: String) {
        *self.denial.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    pub(crate) fn take_denial(&self) -> Option<String> {
        self.denial.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
