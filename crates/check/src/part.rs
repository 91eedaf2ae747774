//! A part of a world that most steps leave alone: worlds share it until a step changes it, and its hash is computed once.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
pub struct Part<T> {
    value: Arc<T>,
    /// Zero until it is known.
    digest: AtomicU64,
}

impl<T> Part<T> {
    /// Of a world.
    pub fn new(value: T) -> Self {
        Self { value: Arc::new(value), digest: AtomicU64::new(0) }
    }
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Self {
        let digest = self.digest.load(Ordering::Relaxed);
        Self { value: Arc::clone(&self.value), digest: AtomicU64::new(digest) }
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Clone> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut T {
        *self.digest.get_mut() = 0;
        Arc::make_mut(&mut self.value)
    }
}

impl<T: Hash> Hash for Part<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let mut digest = self.digest.load(Ordering::Relaxed);
        if digest == 0 {
            // Keyed alike in every process: the state space has one size.
            let mut part = DefaultHasher::new();
            self.value.hash(&mut part);
            digest = part.finish();
            self.digest.store(digest, Ordering::Relaxed);
        }
        hasher.write_u64(digest);
    }
}

impl<T: PartialEq> PartialEq for Part<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value) || self.value == other.value
    }
}

impl<T: Eq> Eq for Part<T> {}

impl<T: fmt::Debug> fmt::Debug for Part<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
