//! The sweep of multipart uploads: those that nobody went on with, and parts that did not become part of their object. An
//! upload is barred in the record before anything of it goes, as bodies are, and the bar goes last.

use std::collections::BTreeSet;

use holdfast_records::{Key, R2Part, r2_parts_prefix, r2_upload_prefix, r2_uploads_prefix};
use holdfast_types::{R2BodyId, R2BucketName};

use super::{R2, ROWS_MAX, Swept, damaged};
use crate::R2Error;

/// Parts of one upload, which stand together in a listing.
struct Group {
    key: String,
    upload: R2BodyId,
    newest_ms: u64,
}

impl R2 {
    /// Deletes what is older of multipart uploads, and of no object. An upload is as old as its newest part.
    pub(super) async fn sweep_uploads(&self, name: &R2BucketName, until: u64) -> Result<Swept, R2Error> {
        let mut swept = self.sweep_parts(name, until).await?;
        let prefix = r2_uploads_prefix(name);
        let mut after = None;
        loop {
            let listing = self.bucket.list(&prefix, after.as_deref(), ROWS_MAX).await?;
            for row in listing.objects {
                let Ok(Key::R2Upload(_, key, upload)) = Key::parse(&row.key) else { continue };
                // Those with parts were looked at with them.
                if upload.made_ms() <= until && !self.has_parts(name, &key, upload).await? {
                    swept.deleted += self.sweep_upload(name, &key, upload).await?;
                }
            }
            match listing.next {
                Some(next) => after = Some(next),
                None => return Ok(swept),
            }
        }
    }

    async fn sweep_parts(&self, name: &R2BucketName, until: u64) -> Result<Swept, R2Error> {
        let prefix = r2_parts_prefix(name);
        let (mut swept, mut after) = (Swept::default(), None);
        let mut group: Option<Group> = None;
        loop {
            let listing = self.bucket.list(&prefix, after.as_deref(), ROWS_MAX).await?;
            for row in listing.objects {
                let Ok(Key::R2Part(_, key, upload, part)) = Key::parse(&row.key) else { continue };
                swept.bodies += 1;
                match &mut group {
                    Some(group) if group.upload == upload && group.key == key => {
                        group.newest_ms = group.newest_ms.max(part.made_ms());
                    }
                    _ => {
                        let next = Group { key, upload, newest_ms: part.made_ms() };
                        swept.deleted += self.sweep_group(name, group.replace(next), until).await?;
                    }
                }
            }
            match listing.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        swept.deleted += self.sweep_group(name, group, until).await?;
        Ok(swept)
    }

    async fn sweep_group(
        &self,
        name: &R2BucketName,
        group: Option<Group>,
        until: u64,
    ) -> Result<u64, R2Error> {
        match group {
            Some(Group { key, upload, newest_ms }) if newest_ms <= until => {
                self.sweep_upload(name, &key, upload).await
            }
            _ => Ok(0),
        }
    }

    /// Deletes an upload, or those of its parts that its object does not have. Gives how many parts.
    pub(super) async fn sweep_upload(
        &self,
        name: &R2BucketName,
        key: &str,
        upload: R2BodyId,
    ) -> Result<u64, R2Error> {
        let mut list = None;
        self.rewrite(name, key, |seen| {
            list = (seen.upload() == Some(upload)).then(|| seen.body.clone());
            if list.is_some() || seen.barred().contains(&upload) {
                return None;
            }
            let mut barred = seen.barred().to_vec();
            barred.push(upload);
            barred.sort_unstable();
            Some(barred)
        })
        .await?;
        self.close_upload(name, key, upload).await?;
        let Some(list) = list else {
            let deleted = self.remove_parts(name, key, upload, &BTreeSet::new()).await?;
            self.unbar(name, key, &[upload]).await?;
            return Ok(deleted);
        };
        // It is the object. Nobody can make it one again with other parts: whoever replaces the object finds it ended.
        let parts = R2Part::decode_list(&list)
            .ok_or_else(|| damaged(key, "its parts cannot be read from its record"))?;
        let kept = parts.iter().map(|part| part.0).collect();
        self.remove_parts(name, key, upload, &kept).await
    }

    /// Whether there is nothing of an upload of this id.
    pub(super) async fn is_cleared(
        &self,
        name: &R2BucketName,
        key: &str,
        upload: R2BodyId,
    ) -> Result<bool, R2Error> {
        let record = Key::R2Upload(name.clone(), key.to_owned(), upload).to_string();
        Ok(self.bucket.head(&record).await?.is_none() && !self.has_parts(name, key, upload).await?)
    }

    async fn has_parts(&self, name: &R2BucketName, key: &str, upload: R2BodyId) -> Result<bool, R2Error> {
        let listing = self.bucket.list(&r2_upload_prefix(name, key, upload), None, 1).await?;
        Ok(!listing.objects.is_empty())
    }
}
