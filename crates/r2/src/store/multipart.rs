//! Multipart uploads: begun by a record that nobody else knows, fed with parts that no object names yet, and given up. Nobody
//! can see any of it before [`R2::complete_upload`] makes it an object.

use std::collections::BTreeSet;

use bytes::Bytes;
use holdfast_bucket::{ByteStream, Guard, Settled, settle_put_if};
use holdfast_records::{Key, R2Upload, Record as _, r2_upload_prefix};
use holdfast_types::{R2BodyId, R2BucketName};
use serde_json::json;

use super::{R2, ROWS_MAX, WRITE_DEADLINE_MS, damaged, fresh_body_id, fresh_write_id, record_key};
use crate::limits::{PARTS_MAX, check_metadata, check_size, check_storage_class, check_upload_key};
use crate::part_tag::PartTag;
use crate::request::{AbortUpload, CreateUpload, UploadPart};
use crate::{Answer, AnswerBody, R2Error};

/// Reads the id of an upload as the API gave it.
pub(super) fn upload_id(text: &str) -> Result<R2BodyId, R2Error> {
    R2BodyId::parse(text).map_err(|_| R2Error::no_such_upload())
}

/// Refuses a number that no part has.
pub(super) fn check_number(number: u32) -> Result<(), R2Error> {
    if (1..=PARTS_MAX).contains(&number) {
        return Ok(());
    }
    let text =
        format!("Part number must be between 1 and {PARTS_MAX} (inclusive). Actual value was: {number}");
    Err(R2Error::invalid_argument(text))
}

impl R2 {
    pub(super) async fn create_upload(
        &self,
        name: &R2BucketName,
        create: CreateUpload,
    ) -> Result<Answer, R2Error> {
        let CreateUpload { key, http_metadata, custom_metadata, storage_class } = create;
        check_upload_key(&key)?;
        check_metadata(&custom_metadata, &http_metadata)?;
        check_storage_class(storage_class.as_deref())?;
        let (upload, secret) = (fresh_body_id()?, fresh_write_id()?);
        let record = R2Upload::new(secret, http_metadata, custom_metadata, storage_class);
        let place = Key::R2Upload(name.clone(), key, upload).to_string();
        let is_mine = move |bytes: &[u8]| R2Upload::decode(bytes).is_ok_and(|found| found.secret == secret);
        let bytes = Bytes::from(record.encode());
        match settle_put_if(&*self.bucket, &place, bytes, Guard::Absent, is_mine, WRITE_DEADLINE_MS).await {
            Settled::Applied(_) => Ok(Answer::of(&json!({ "uploadId": upload.to_string() }))),
            Settled::Rejected(_) => Err(damaged(&place, "an id that was just made is taken")),
            Settled::Unknown(error) => Err(R2Error::internal(error)),
        }
    }

    pub(super) async fn upload_part(
        &self,
        name: &R2BucketName,
        part: UploadPart,
        body: ByteStream,
    ) -> Result<Answer, R2Error> {
        let UploadPart { key, upload_id: upload, part_number, length } = part;
        check_upload_key(&key)?;
        check_number(part_number)?;
        check_size(length)?;
        let upload = upload_id(&upload)?;
        let record = self.upload(name, &key, upload).await?;
        let id = fresh_body_id()?;
        let place = Key::R2Part(name.clone(), key.clone(), upload, id).to_string();
        let written = self.write_part(&place, length, body).await;
        // An upload that was given up meanwhile has been cleared of its parts, perhaps before this one was there.
        let md5 = match written {
            Ok(md5) => self.upload(name, &key, upload).await.map(|_| md5),
            Err(error) => Err(error),
        };
        if md5.is_err()
            && let Err(error) = self.bucket.delete(&place).await
        {
            tracing::warn!(%place, %error, "a part of an R2 upload stays behind, until `holdfast r2 sweep`");
        }
        let etag = PartTag { id, md5: md5?, len: length }.sign(record.secret, part_number);
        Ok(Answer::of(&json!({ "partNumber": part_number, "etag": etag })))
    }

    pub(super) async fn abort_upload(
        &self,
        name: &R2BucketName,
        abort: AbortUpload,
    ) -> Result<Answer, R2Error> {
        let AbortUpload { key, upload_id: upload } = abort;
        check_upload_key(&key)?;
        let upload = upload_id(&upload)?;
        self.upload(name, &key, upload).await?;
        if self.look(&record_key(name, &key)).await?.upload() == Some(upload) {
            return Err(R2Error::no_such_upload());
        }
        self.sweep_upload(name, &key, upload).await?;
        Ok(Answer { head: Bytes::from_static(b"{}"), body: AnswerBody::None })
    }

    /// The record of an upload that is not over.
    pub(super) async fn upload(
        &self,
        name: &R2BucketName,
        key: &str,
        upload: R2BodyId,
    ) -> Result<R2Upload, R2Error> {
        let place = Key::R2Upload(name.clone(), key.to_owned(), upload).to_string();
        let object = self.bucket.get(&place).await?.ok_or_else(R2Error::no_such_upload)?;
        R2Upload::decode(&object.body).map_err(|error| damaged(&place, error))
    }

    /// Ends an upload: from here on nobody who looks can make it the object.
    pub(super) async fn close_upload(
        &self,
        name: &R2BucketName,
        key: &str,
        upload: R2BodyId,
    ) -> Result<(), R2Error> {
        let place = Key::R2Upload(name.clone(), key.to_owned(), upload).to_string();
        Ok(self.bucket.delete(&place).await?)
    }

    /// Deletes parts of an upload. Gives how many.
    pub(super) async fn remove_parts(
        &self,
        name: &R2BucketName,
        key: &str,
        upload: R2BodyId,
        kept: &BTreeSet<R2BodyId>,
    ) -> Result<u64, R2Error> {
        let prefix = r2_upload_prefix(name, key, upload);
        let (mut removed, mut after) = (0, None);
        loop {
            let listing = self.bucket.list(&prefix, after.as_deref(), ROWS_MAX).await?;
            let is_kept =
                |key: &str| matches!(Key::parse(key), Ok(Key::R2Part(.., id)) if kept.contains(&id));
            let keys = listing.objects.into_iter().map(|row| row.key);
            let dead: Vec<String> = keys.filter(|key| !is_kept(key)).collect();
            if !dead.is_empty() {
                self.bucket.delete_many(&dead).await?;
            }
            removed += dead.len() as u64;
            match listing.next {
                Some(next) => after = Some(next),
                None => return Ok(removed),
            }
        }
    }
}
