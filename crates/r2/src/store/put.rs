//! Puts. The record is looked at first: what does not hold is refused before its body is read, and a body that is written
//! after the look cannot have been barred before it.

use holdfast_bucket::ByteStream;
use holdfast_records::{Key, R2ObjectHead, R2Record};
use holdfast_types::{Millis, R2BucketName};

use super::body::Written;
use super::{R2, RACES_MAX, Replaced, Seen, fresh_write_id, now_ms, pause, record_key};
use crate::answer::{Shown, object_json};
use crate::limits::{check_key, check_metadata, check_size, check_storage_class};
use crate::request::Put;
use crate::{Answer, R2Error};

impl R2 {
    pub(super) async fn put(
        &self,
        name: &R2BucketName,
        put: Put,
        body: ByteStream,
    ) -> Result<Answer, R2Error> {
        check_key(&put.key)?;
        check_size(put.length)?;
        check_metadata(&put.custom_metadata, &put.http_metadata)?;
        check_storage_class(put.storage_class.as_deref())?;
        let key = record_key(name, &put.key);
        let seen = self.look(&key).await?;
        if !put.only_if.holds(seen.state()) {
            return Ok(Answer::object(None));
        }
        let written = self.write_body(name, &put, body).await?;
        let object = self.publish(name, &put, written, (key, seen)).await?;
        Ok(Answer::object(object.map(|head| object_json(&head, None, Shown::ALL))))
    }

    /// Makes a body the object; none where the condition does not hold any more.
    async fn publish(
        &self,
        name: &R2BucketName,
        put: &Put,
        written: Written,
        (key, mut seen): (String, Seen),
    ) -> Result<Option<R2ObjectHead>, R2Error> {
        let Written { place, inline, etag, checksums } = written;
        let head = R2ObjectHead {
            key: put.key.clone(),
            uploaded_ms: Millis::new(now_ms()),
            size: put.length,
            revision: fresh_write_id()?,
            etag,
            checksums,
            http: put.http_metadata.clone(),
            custom: put.custom_metadata.clone(),
            storage_class: put.storage_class.clone(),
            body: place,
        };
        for races in 0..RACES_MAX {
            if races > 0 {
                seen = self.look_again(name, &key, &head, races).await?;
                if seen.revision() == Some(head.revision) {
                    // It is there, though the store said that it is not.
                    return Ok(Some(head));
                }
                if !put.only_if.holds(seen.state()) {
                    self.remove_body(name, &put.key, Some(&head.body)).await;
                    return Ok(None);
                }
            }
            let record = R2Record::new(fresh_write_id()?, seen.barred().to_vec(), Some(head.clone()));
            match self.replace(name, &put.key, &seen, &record, &inline).await {
                Replaced::Yes => return Ok(Some(self.published(name, put, &seen, head).await)),
                Replaced::No => {}
                // Only a sweep came after this one: it carries on what it finds.
                Replaced::Overtaken(now) if now.revision() == Some(head.revision) => {
                    return Ok(Some(self.published(name, put, &seen, head).await));
                }
                // Only a sweep came, and this one never was there.
                Replaced::Overtaken(now) if now.object().is_some() && now.revision() == seen.revision() => {}
                // Another is there. This one may have been before it, or not; it cannot count as having been, for the
                // other may rest on a condition that would not have held then. The body stays: whoever came after may be
                // deleting it, so it cannot be used again.
                Replaced::Overtaken(_) => return Err(R2Error::internal("a put may have been overtaken")),
                // The record may still come to name the body, which stays.
                Replaced::Unknown(error) => return Err(error),
            }
        }
        self.remove_body(name, &put.key, Some(&head.body)).await;
        Err(R2Error::internal(format!("`{key}` is written to all the time: {RACES_MAX} races were lost")))
    }

    /// The object of a put is there: the body of the one before goes.
    async fn published(
        &self,
        name: &R2BucketName,
        put: &Put,
        before: &Seen,
        head: R2ObjectHead,
    ) -> R2ObjectHead {
        self.remove_body(name, &put.key, before.object().map(|object| &object.body)).await;
        head
    }

    /// What is at a key after a lost race. The body must be there after this look: a sweep that took it for a dead one has
    /// barred it in the record before it deleted it.
    async fn look_again(
        &self,
        name: &R2BucketName,
        key: &str,
        head: &R2ObjectHead,
        races: u32,
    ) -> Result<Seen, R2Error> {
        pause(races).await?;
        let seen = self.look(key).await?;
        let Some(id) = head.body.id() else { return Ok(seen) };
        let body = Key::R2Body(name.clone(), head.key.clone(), id).to_string();
        if seen.barred().contains(&id) || self.bucket.head(&body).await?.is_none() {
            return Err(R2Error::internal(format!("`{body}` was swept before its put had ended")));
        }
        Ok(seen)
    }
}
