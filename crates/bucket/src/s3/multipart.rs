//! Large bodies in parts. Holds few parts in memory; the object appears whole, at completion, or not
//! at all; an upload that fails or is dropped is aborted, so that the store does not keep its parts.

use aws_sdk_s3::primitives::ByteStream as SdkBody;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};

use super::S3Bucket;
use super::error::Failure;
use super::read::version;
use super::write::put;
use crate::parts::{PART_LEN, PARTS_IN_FLIGHT, PARTS_MAX, parts};
use crate::retry::{ATTEMPT, repeat, upload_limit, within};
use crate::{BucketError, ByteStream, ErrorKind, Version};

const OPERATION: &str = "put_stream";

pub(super) async fn put_stream(
    bucket: &S3Bucket,
    key: &str,
    body: ByteStream,
) -> Result<Version, BucketError> {
    let full = bucket.full(OPERATION, key)?;
    let mut parts = Box::pin(parts(body));
    let first = parts.try_next().await?.unwrap_or_default();
    if first.len() < PART_LEN {
        return put(OPERATION, bucket, key, first).await;
    }
    let upload = Upload::begin(bucket, key, full).await?;
    let all = futures::stream::once(std::future::ready(Ok(first))).chain(parts);
    match upload.send(all).await {
        Ok(version) => {
            upload.disarm();
            Ok(version)
        }
        Err(error) => {
            upload.abort().await;
            Err(error)
        }
    }
}

/// A multipart upload that was begun. Dropped while armed, it aborts itself in the background.
struct Upload<'a> {
    bucket: &'a S3Bucket,
    key: &'a str,
    full: String,
    id: String,
    is_armed: std::sync::atomic::AtomicBool,
}

impl<'a> Upload<'a> {
    async fn begin(bucket: &'a S3Bucket, key: &'a str, full: String) -> Result<Self, BucketError> {
        let id = repeat(|| {
            let request = bucket.client.create_multipart_upload().bucket(&bucket.location.bucket).key(&full);
            within(OPERATION, key, ATTEMPT, async {
                match request.send().await {
                    Ok(answer) => answer.upload_id.ok_or_else(|| {
                        BucketError::new(OPERATION, key, ErrorKind::BadBody, "the store gave no upload id")
                    }),
                    Err(error) => Err(Failure::of(&error).into_error(OPERATION, key)),
                }
            })
        })
        .await?;
        Ok(Self { bucket, key, full, id, is_armed: true.into() })
    }

    async fn send(
        &self,
        parts: impl Stream<Item = Result<Bytes, BucketError>> + Send,
    ) -> Result<Version, BucketError> {
        let sent: Vec<CompletedPart> = parts
            .enumerate()
            .map(|(index, part)| async move { self.send_part(index + 1, part?).await })
            .buffered(PARTS_IN_FLIGHT)
            .try_collect()
            .await?;
        self.complete(sent).await
    }

    async fn send_part(&self, number: usize, part: Bytes) -> Result<CompletedPart, BucketError> {
        if number > PARTS_MAX {
            let detail = format!("the body is longer than {PARTS_MAX} parts of {PART_LEN} bytes");
            return Err(BucketError::new(OPERATION, self.key, ErrorKind::Invalid, detail));
        }
        let number = i32::try_from(number).expect("10,000 fits");
        let etag = repeat(|| {
            let client = &self.bucket.client;
            let request = client.upload_part().bucket(&self.bucket.location.bucket).key(&self.full);
            let request = request.upload_id(&self.id).part_number(number).body(SdkBody::from(part.clone()));
            within(OPERATION, self.key, upload_limit(part.len()), async {
                match request.send().await {
                    Ok(answer) => version(OPERATION, self.key, answer.e_tag()),
                    Err(error) => Err(Failure::of(&error).into_error(OPERATION, self.key)),
                }
            })
        })
        .await?;
        Ok(CompletedPart::builder().part_number(number).e_tag(etag.as_str()).build())
    }

    /// Makes the object appear. One attempt unless the store surely did nothing: a completed upload is gone, so that a
    /// second attempt could not tell its own success from a lost upload. The caller writes the whole body again.
    async fn complete(&self, parts: Vec<CompletedPart>) -> Result<Version, BucketError> {
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
        let request = self.bucket.client.complete_multipart_upload().bucket(&self.bucket.location.bucket);
        let request = request.key(&self.full).upload_id(&self.id).multipart_upload(parts);
        // Stores concatenate before they answer.
        let limit = ATTEMPT * 12;
        let answer = within(OPERATION, self.key, limit, async {
            request.send().await.map_err(|error| Failure::of(&error).into_error(OPERATION, self.key))
        })
        .await?;
        match answer.e_tag() {
            // Some stores leave the quotes out in XML; the header's spelling is the one that conditions need.
            Some(etag) if etag.starts_with('"') => Ok(Version::new(etag)),
            _ => {
                let head = super::read::head(self.bucket, self.key).await?;
                head.map(|head| head.version).ok_or_else(|| {
                    let detail = "the object is not there after its upload was completed";
                    BucketError::new(OPERATION, self.key, ErrorKind::BadBody, detail)
                })
            }
        }
    }

    fn disarm(&self) -> bool {
        self.is_armed.swap(false, std::sync::atomic::Ordering::Relaxed)
    }

    async fn abort(&self) {
        if self.disarm() {
            abort(self.bucket.clone(), self.key.to_owned(), self.full.clone(), self.id.clone()).await;
        }
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        if self.disarm()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (bucket, key) = (self.bucket.clone(), self.key.to_owned());
            runtime.spawn(abort(bucket, key, self.full.clone(), self.id.clone()));
        }
    }
}

async fn abort(bucket: S3Bucket, key: String, full: String, id: String) {
    let request =
        bucket.client.abort_multipart_upload().bucket(&bucket.location.bucket).key(full).upload_id(id);
    let answer = within(OPERATION, &key, ATTEMPT, async {
        request.send().await.map_err(|error| Failure::of(&error).into_error(OPERATION, &key))
    })
    .await;
    if let Err(error) = answer {
        tracing::warn!(%error, "a failed upload could not be aborted: its parts stay until the bucket's rule removes them");
    }
}
