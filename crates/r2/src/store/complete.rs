//! Completing a multipart upload: its parts become the object by one write of the record, as the body of a put does.

use std::collections::BTreeSet;

use holdfast_records::{R2Body, R2ObjectHead, R2Part, R2Record, R2Upload};
use holdfast_types::{Millis, R2BodyId, R2BucketName};

use super::multipart::{check_number, upload_id};
use super::{R2, RACES_MAX, Replaced, Seen, fresh_write_id, now_ms, pause, record_key};
use crate::answer::{Shown, object_json};
use crate::digest::multipart_etag;
use crate::limits::{check_parts, check_upload_key};
use crate::part_tag::PartTag;
use crate::request::{CompleteUpload, UploadedPart};
use crate::{Answer, R2Error};

/// What an upload's parts come to.
struct Whole {
    parts: Vec<R2Part>,
    size: u64,
    etag: String,
}

impl Whole {
    /// Of parts in any order.
    fn of(upload: &R2Upload, mut parts: Vec<UploadedPart>) -> Result<Self, R2Error> {
        parts.sort_by_key(|part| part.part_number);
        if parts.windows(2).any(|pair| pair[0].part_number == pair[1].part_number) {
            return Err(R2Error::bad_upload());
        }
        let read = |UploadedPart { part_number, etag }: &UploadedPart| {
            check_number(*part_number)?;
            PartTag::read(etag, upload.secret, *part_number).ok_or_else(R2Error::invalid_part)
        };
        let tags: Vec<PartTag> = parts.iter().map(read).collect::<Result<_, _>>()?;
        let lens: Vec<u64> = tags.iter().map(|tag| tag.len).collect();
        Ok(Self {
            size: check_parts(&lens)?,
            etag: multipart_etag(tags.iter().map(|tag| &tag.md5)),
            parts: tags.iter().map(|tag| R2Part(tag.id, tag.len)).collect(),
        })
    }
}

impl R2 {
    pub(super) async fn complete_upload(
        &self,
        name: &R2BucketName,
        complete: CompleteUpload,
    ) -> Result<Answer, R2Error> {
        let CompleteUpload { key, upload_id: upload, parts } = complete;
        check_upload_key(&key)?;
        let upload = upload_id(&upload)?;
        let record = match self.upload(name, &key, upload).await {
            Ok(record) => record,
            Err(error) => {
                // An earlier try may have done it, and its answer may have been lost.
                let seen = self.look(&record_key(name, &key)).await?;
                return seen.object().filter(|_| seen.upload() == Some(upload)).map(shown).ok_or(error);
            }
        };
        let Whole { parts, size, etag } = Whole::of(&record, parts)?;
        let head = R2ObjectHead {
            key,
            uploaded_ms: Millis::new(now_ms()),
            size,
            revision: fresh_write_id()?,
            etag,
            checksums: Default::default(),
            http: record.http,
            custom: record.custom,
            storage_class: record.storage_class,
            body: R2Body::Parts(upload),
        };
        let head = self.name_parts(name, upload, head, &parts).await?;
        Ok(shown(&head))
    }

    /// Makes the parts of an upload the object.
    async fn name_parts(
        &self,
        name: &R2BucketName,
        upload: R2BodyId,
        head: R2ObjectHead,
        parts: &[R2Part],
    ) -> Result<R2ObjectHead, R2Error> {
        let (key, list) = (record_key(name, &head.key), R2Part::encode_list(parts));
        for races in 0..RACES_MAX {
            if races > 0 {
                pause(races).await?;
            }
            let seen = self.look(&key).await?;
            if let Some(object) = seen.object().filter(|_| seen.upload() == Some(upload)) {
                if object.revision == head.revision {
                    // It is there, though the store said that it is not.
                    self.clear_up(name, upload, &Seen::nothing(), &head, parts).await;
                    return Ok(head);
                }
                // Another try was faster. What is left of the upload is that one's to clear up: it may have other parts.
                let is_same = object.etag == head.etag;
                return if is_same { Ok(object.clone()) } else { Err(R2Error::no_such_upload()) };
            }
            // After the look: what gives an upload up bars it first, and ends it before it lets go of that.
            if seen.barred().contains(&upload) {
                return Err(R2Error::no_such_upload());
            }
            self.upload(name, &head.key, upload).await?;
            let record = R2Record::new(fresh_write_id()?, seen.barred().to_vec(), Some(head.clone()));
            match self.replace(name, &head.key, &seen, &record, &list).await {
                Replaced::Yes => {
                    self.clear_up(name, upload, &seen, &head, parts).await;
                    return Ok(head);
                }
                Replaced::No => {}
                Replaced::Overtaken(now) if now.revision() == Some(head.revision) => {
                    self.clear_up(name, upload, &seen, &head, parts).await;
                    return Ok(head);
                }
                // Only a sweep came, and this one never was there.
                Replaced::Overtaken(now) if now.object().is_some() && now.revision() == seen.revision() => {}
                // As with a put: it may have been there, and whoever came after may be deleting its parts.
                Replaced::Overtaken(_) => {
                    return Err(R2Error::internal("a multipart upload may have been overtaken"));
                }
                Replaced::Unknown(error) => return Err(error),
            }
        }
        Err(R2Error::internal(format!("`{key}` is written to all the time: {RACES_MAX} races were lost")))
    }

    /// The parts are the object: what it replaced goes, and what is left of the upload. What stays is found by the sweep.
    async fn clear_up(
        &self,
        name: &R2BucketName,
        upload: R2BodyId,
        before: &Seen,
        head: &R2ObjectHead,
        parts: &[R2Part],
    ) {
        self.remove_body(name, &head.key, before.object().map(|object| &object.body)).await;
        let kept: BTreeSet<R2BodyId> = parts.iter().map(|part| part.0).collect();
        let closed = self.close_upload(name, &head.key, upload).await;
        let cleared = match closed {
            Ok(()) => self.remove_parts(name, &head.key, upload, &kept).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = cleared {
            tracing::warn!(key = head.key, %upload, %error, "something of an R2 upload stays behind, until `holdfast r2 sweep`");
        }
    }
}

fn shown(head: &R2ObjectHead) -> Answer {
    Answer::object(Some(object_json(head, None, Shown::ALL)))
}
