//! The sweep: bodies and multipart uploads that no record names, of puts that did not end and of processes that died between two writes. A body
//! is deleted only once the record says that no writer may name it any more: a writer that saw the record before cannot
//! replace it, one that looks at it later sees that, or that the body is gone.

use std::time::Duration;

use holdfast_records::{Key, R2Record, r2_bodies_prefix};
use holdfast_types::{R2BodyId, R2BucketName};

use super::{R2, RACES_MAX, ROWS_MAX, Replaced, Seen, fresh_write_id, now_ms, pause, record_key};
use crate::R2Error;

/// Bodies of one object that are barred together.
const BARRED_MAX: usize = 64;

/// What a sweep came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Bodies and parts of uploads that were looked at.
    pub bodies: u64,
    /// Those that were deleted.
    pub deleted: u64,
}

impl R2 {
    /// The names of the R2 buckets in which something lies, in order.
    ///
    /// # Errors
    /// The bucket did not answer.
    pub async fn names(&self) -> Result<Vec<R2BucketName>, R2Error> {
        let mut names: Vec<R2BucketName> = Vec::new();
        let mut after = None;
        loop {
            let listing = self.bucket.list("r2/", after.as_deref(), 1).await?;
            let Some(row) = listing.objects.first() else { return Ok(names) };
            let segment = row.key.split('/').nth(1).unwrap_or_default();
            if let Ok(name) = R2BucketName::parse(segment) {
                names.push(name);
            }
            after = Some(format!("r2/{segment}/\u{10ffff}"));
        }
    }

    /// Deletes the bodies and multipart uploads of a bucket that no object has, where they are older than this. A put may be
    /// under way for long, and an upload; one that is swept fails, and nothing else is harmed.
    ///
    /// # Errors
    /// The bucket did not answer. Safe to repeat.
    pub async fn sweep(&self, name: &R2BucketName, older_than: Duration) -> Result<Swept, R2Error> {
        let age = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
        let until = now_ms().saturating_sub(age);
        let prefix = r2_bodies_prefix(name);
        let (mut swept, mut after) = (Swept::default(), None);
        let mut group: Option<(String, Vec<R2BodyId>)> = None;
        loop {
            let listing = self.bucket.list(&prefix, after.as_deref(), ROWS_MAX).await?;
            for row in listing.objects {
                let Ok(Key::R2Body(_, key, id)) = Key::parse(&row.key) else { continue };
                swept.bodies += 1;
                if id.made_ms() > until {
                    continue;
                }
                match &mut group {
                    Some((of, ids)) if *of == key && ids.len() < BARRED_MAX => ids.push(id),
                    _ => {
                        if let Some((key, ids)) = group.replace((key, vec![id])) {
                            swept.deleted += self.sweep_one(name, &key, &ids).await?;
                        }
                    }
                }
            }
            match listing.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        if let Some((key, ids)) = group {
            swept.deleted += self.sweep_one(name, &key, &ids).await?;
        }
        let Swept { bodies, deleted } = self.sweep_uploads(name, until).await?;
        Ok(Swept { bodies: swept.bodies + bodies, deleted: swept.deleted + deleted })
    }

    /// Deletes those of an object's bodies that its record does not name. Gives how many.
    async fn sweep_one(&self, name: &R2BucketName, key: &str, ids: &[R2BodyId]) -> Result<u64, R2Error> {
        let is_dead =
            |seen: &Seen, id: R2BodyId| seen.object().and_then(|object| object.body.id()) != Some(id);
        let body = |id| Key::R2Body(name.clone(), key.to_owned(), id).to_string();
        let (mut dead, mut before) = (Vec::new(), Vec::new());
        self.rewrite(name, key, |seen| {
            dead = ids.iter().copied().filter(|id| is_dead(seen, *id)).collect();
            before = seen.barred().iter().copied().filter(|id| !dead.contains(id)).collect();
            let mut barred = seen.barred().to_vec();
            barred.extend(&dead);
            barred.sort_unstable();
            barred.dedup();
            (!dead.is_empty()).then_some(barred)
        })
        .await?;
        if dead.is_empty() {
            return Ok(0);
        }
        let keys: Vec<String> = dead.iter().copied().map(body).collect();
        self.bucket.delete_many(&keys).await?;
        // They are gone, so nobody needs to be told any more; nor of those that a sweep deleted which then died.
        let mut gone = dead.clone();
        for id in before {
            if self.bucket.head(&body(id)).await?.is_none() && self.is_cleared(name, key, id).await? {
                gone.push(id);
            }
        }
        self.unbar(name, key, &gone).await?;
        Ok(dead.len() as u64)
    }

    /// Takes ids off the list of those that no writer may name: there is nothing of them any more.
    pub(super) async fn unbar(
        &self,
        name: &R2BucketName,
        key: &str,
        gone: &[R2BodyId],
    ) -> Result<(), R2Error> {
        self.rewrite(name, key, |seen| {
            let barred: Vec<R2BodyId> =
                seen.barred().iter().copied().filter(|id| !gone.contains(id)).collect();
            (barred.len() < seen.barred().len()).then_some(barred)
        })
        .await
    }

    /// Replaces a record by one of the same object with other barred bodies, where there are others to be.
    pub(super) async fn rewrite(
        &self,
        name: &R2BucketName,
        object: &str,
        mut change: impl FnMut(&Seen) -> Option<Vec<R2BodyId>>,
    ) -> Result<(), R2Error> {
        let key = record_key(name, object);
        for races in 0..RACES_MAX {
            if races > 0 {
                pause(races).await?;
            }
            let seen = self.read(&key).await?;
            let Some(barred) = change(&seen) else { return Ok(()) };
            let record = R2Record::new(fresh_write_id()?, barred, seen.object().cloned());
            match self.replace(name, object, &seen, &record, &seen.body).await {
                Replaced::Yes => return Ok(()),
                Replaced::No | Replaced::Overtaken(_) => {}
                Replaced::Unknown(error) => return Err(error),
            }
        }
        Err(R2Error::internal(format!("`{key}` is written to all the time")))
    }
}
