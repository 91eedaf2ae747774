//! One record of the bucket under conditional writes: a write lands and is answered in two steps, either of which may come
//! late or never; a read is served and delivered in two steps.

use holdfast_core::store::{Answer, Guard};

/// The version of a record.
pub type Version = u64;
/// A record and its version; none where there is none.
pub type Found<R> = Option<(R, Version)>;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Register<R> {
    /// What a reader finds.
    pub current: Found<R>,
    /// Writes whose writer was told that nobody knows. Each may still land.
    pub floating: Vec<(R, Guard<Version>)>,
}

/// A write under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write<R> {
    /// On its way to the bucket.
    Sent(R, Guard<Version>),
    /// On its way back.
    Answered(Answer<Version>),
}

/// A read under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read<R> {
    /// On its way to the bucket.
    Asked,
    /// On its way back.
    Served(Found<R>),
}

impl<R: Clone> Register<R> {
    /// A record that does not exist yet.
    #[must_use]
    pub const fn absent() -> Self {
        Self { current: None, floating: Vec::new() }
    }

    /// What a reader finds, without its version.
    #[must_use]
    pub fn record(&self) -> Option<&R> {
        self.current.as_ref().map(|(record, _)| record)
    }

    /// Applies a write if its condition holds.
    pub fn apply(&mut self, record: &R, guard: &Guard<Version>) -> Answer<Version> {
        let holds = match (guard, &self.current) {
            (Guard::Absent, current) => current.is_none(),
            (Guard::Match(version), Some((_, current))) => version == current,
            (Guard::Match(_), None) => false,
        };
        if !holds {
            return Answer::Rejected;
        }
        let version = self.current.as_ref().map_or(1, |(_, version)| version + 1);
        self.current = Some((record.clone(), version));
        Answer::Applied(version)
    }

    /// A write whose answer nobody waits for lands, if its condition still holds. It is gone either way.
    pub fn land_floating(&mut self, at: usize) {
        let (record, guard) = self.floating.remove(at);
        self.apply(&record, &guard);
    }

    /// Forgets floating writes whose condition can never hold again: they are no difference between two states.
    pub fn forget_stale(&mut self) {
        let current = self.current.as_ref().map(|(_, version)| *version);
        self.floating.retain(|(_, guard)| match guard {
            Guard::Absent => current.is_none(),
            Guard::Match(version) => current.is_none_or(|current| *version >= current),
        });
    }
}

impl<R: Clone> Write<R> {
    /// The write lands where it is still on its way.
    pub fn land(&mut self, register: &mut Register<R>) {
        if let Self::Sent(record, guard) = self {
            *self = Self::Answered(register.apply(record, guard));
            register.forget_stale();
        }
    }

    /// Nobody will know: what is on its way may land later.
    pub fn lose(self, register: &mut Register<R>) {
        if let Self::Sent(record, guard) = self {
            register.floating.push((record, guard));
            register.forget_stale();
        }
    }
}

impl<R: Clone> Read<R> {
    /// The read is served.
    pub fn serve(&mut self, register: &Register<R>) {
        if matches!(self, Self::Asked) {
            *self = Self::Served(register.current.clone());
        }
    }
}
