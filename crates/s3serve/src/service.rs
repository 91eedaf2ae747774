//! Dispatches the S3 operations that there are; every other one is answered with `NotImplemented`.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use holdfast_bucket::Bucket;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, Bucket as BucketRow, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput, CreateMultipartUploadInput,
    CreateMultipartUploadOutput, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput,
    DeleteObjectsOutput, GetBucketLocationInput, GetBucketLocationOutput, GetObjectInput, GetObjectOutput,
    HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput, ListBucketsInput,
    ListBucketsOutput, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output,
    ListPartsInput, ListPartsOutput, PutObjectInput, PutObjectOutput, Timestamp, UploadPartInput,
    UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::multipart::is_reserved;
use crate::{list, multipart, object};

/// Memory for bodies that are held whole, in KiB, over all requests; more requests wait.
const MEMORY_KIB: usize = 256 * 1024;

/// One bucket under one name.
pub(crate) struct BucketService {
    pub(crate) bucket: Arc<dyn Bucket>,
    pub(crate) name: String,
    memory_kib: Semaphore,
}

impl BucketService {
    pub(crate) fn new(bucket: Arc<dyn Bucket>, name: String) -> Self {
        Self { bucket, name, memory_kib: Semaphore::new(MEMORY_KIB) }
    }

    /// Waits for memory to hold `len` bytes, which must be far less than all of it.
    pub(crate) async fn reserve(&self, len: u64) -> SemaphorePermit<'_> {
        let kib = u32::try_from(len / 1024 + 1).unwrap_or(u32::MAX);
        self.memory_kib.acquire_many(kib).await.expect("the semaphore is never closed")
    }

    /// # Errors
    /// `NoSuchBucket` for any other bucket than the one.
    pub(crate) fn check_bucket(&self, name: &str) -> S3Result<()> {
        if name == self.name {
            return Ok(());
        }
        Err(s3_error!(NoSuchBucket, "the only bucket here is `{}`", self.name))
    }

    /// # Errors
    /// `NoSuchBucket`; `AccessDenied` for the keys under which parts of uploads are kept.
    pub(crate) fn check_key(&self, bucket: &str, key: &str) -> S3Result<()> {
        self.check_bucket(bucket)?;
        if is_reserved(key) {
            return Err(s3_error!(
                AccessDenied,
                "keys that begin with `{}` are reserved",
                multipart::RESERVED
            ));
        }
        Ok(())
    }
}

#[async_trait]
impl S3 for BucketService {
    async fn list_buckets(&self, _: S3Request<ListBucketsInput>) -> S3Result<S3Response<ListBucketsOutput>> {
        let row = BucketRow {
            name: Some(self.name.clone()),
            creation_date: Some(Timestamp::from(SystemTime::UNIX_EPOCH)),
            ..BucketRow::default()
        };
        Ok(S3Response::new(ListBucketsOutput { buckets: Some(vec![row]), ..ListBucketsOutput::default() }))
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.check_bucket(&request.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.check_bucket(&request.input.bucket)?;
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        object::get(self, request).await
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        object::head(self, request).await
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        object::put(self, request).await
    }

    async fn copy_object(
        &self,
        request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        object::copy(self, request).await
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        object::delete(self, request).await
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        object::delete_many(self, request).await
    }

    async fn list_objects(
        &self,
        request: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        list::list_v1(self, request).await
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        list::list_v2(self, request).await
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        multipart::create(self, request).await
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        multipart::upload_part(self, request).await
    }

    async fn list_parts(&self, request: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        multipart::list_parts(self, request).await
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        multipart::complete(self, request).await
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        multipart::abort(self, request).await
    }
}
