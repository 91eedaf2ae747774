//! The command-line options that name a bucket, the same in every program.

use std::sync::Arc;

use crate::{Bucket, OpenError, OpenOptions, Pool, open};

/// Where the fleet's bucket is.
#[derive(Clone, Debug, clap::Args)]
pub struct BucketArgs {
    /// The fleet's bucket: s3://BUCKET[/PREFIX], gs://BUCKET[/PREFIX], az://CONTAINER[/PREFIX] or file:///DIRECTORY.
    #[arg(long = "bucket", env = "HOLDFAST_BUCKET", value_name = "URL")]
    pub url: String,
    /// Another bucket for leases, so that a slow data bucket cannot cost a node its lease. Default: the same bucket.
    #[arg(long, env = "HOLDFAST_LEASE_BUCKET", value_name = "URL")]
    pub lease_bucket: Option<String>,
    /// Base URL of the store's API, for S3 servers other than Amazon's.
    #[arg(long, env = "HOLDFAST_ENDPOINT", value_name = "URL")]
    pub endpoint: Option<String>,
    /// Region of the bucket. Default: the provider's own rules (AWS_REGION, profile).
    #[arg(long, env = "HOLDFAST_REGION", value_name = "NAME")]
    pub region: Option<String>,
    /// Put the bucket's name into the path, not the host name: for S3 servers without wildcard DNS.
    #[arg(long, env = "HOLDFAST_PATH_STYLE", value_parser = clap::builder::BoolishValueParser::new())]
    pub path_style: bool,
}

/// The handles that a program works with: each with connections of its own.
#[derive(Clone, Debug)]
pub struct Buckets {
    /// Data: LTX objects, openers, listings.
    pub bulk: Arc<dyn Bucket>,
    /// Leases and owner records of the data bucket: small, and never behind bulk traffic.
    pub records: Arc<dyn Bucket>,
    /// Node leases: the lease bucket, or the same as `records`.
    pub leases: Arc<dyn Bucket>,
}

impl BucketArgs {
    /// For the bucket at `url` with everything else at its default.
    #[must_use]
    pub fn at(url: &str) -> Self {
        Self { url: url.to_owned(), lease_bucket: None, endpoint: None, region: None, path_style: false }
    }

    /// Opens the bucket's handles.
    ///
    /// # Errors
    /// As [`open`].
    pub async fn open(&self) -> Result<Buckets, OpenError> {
        let options = |pool| OpenOptions {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            path_style: self.path_style,
            pool,
        };
        let bulk = open(&self.url, &options(Pool::Bulk)).await?;
        let records = open(&self.url, &options(Pool::Lease)).await?;
        let leases = match &self.lease_bucket {
            Some(url) => open(url, &options(Pool::Lease)).await?,
            None => Arc::clone(&records),
        };
        Ok(Buckets { bulk, records, leases })
    }
}
