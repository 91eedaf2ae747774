//! Opens a store by its URL: the one place that knows which scheme is which store.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{
    Bucket, BucketError, CloudBucket, CloudOptions, CloudProvider, ErrorKind, LocalBucket, S3Bucket,
    S3Options,
};

/// Which traffic a handle carries: each has its own connections, so that bulk uploads cannot starve a lease renewal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pool {
    /// Data: uploads, restores, listings.
    #[default]
    Bulk,
    /// Leases and owner records.
    Lease,
}

/// How to reach a store. What a scheme has no use for is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Base URL of the store's API, for example `http://127.0.0.1:9000`; the provider's own when absent.
    pub endpoint: Option<String>,
    /// Region name; from the environment when absent.
    pub region: Option<String>,
    /// Puts the bucket's name into the path instead of the host name (S3 servers without wildcard DNS). Endpoints that
    /// are not known to have it get that anyway.
    pub path_style: bool,
    /// Which connections to use.
    pub pool: Pool,
}

/// Why a store cannot be opened. Disposition: reject; nothing was read or written.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The text is not a bucket URL.
    #[error(
        "`{url}` is not a bucket URL: {reason}; write s3://BUCKET[/PREFIX], gs://…, az://… or file:///DIRECTORY"
    )]
    BadUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The scheme is known, but this build has no store for it, or its configuration is incomplete.
    #[error("bucket `{url}` cannot be opened: {reason}")]
    Unsupported {
        /// What was given.
        url: String,
        /// What is missing.
        reason: String,
    },
    /// The store itself failed.
    #[error("bucket `{url}` cannot be opened: {source}")]
    Store {
        /// What was given.
        url: String,
        /// What it said.
        source: BucketError,
    },
}

impl OpenError {
    /// A URL that cannot be read.
    pub(crate) fn bad_url(url: &str, reason: impl Into<String>) -> Self {
        Self::BadUrl { url: url.to_owned(), reason: reason.into() }
    }
}

/// Opens the bucket at `url`: `s3://bucket[/prefix]`, `gs://bucket[/prefix]`, `az://container[/prefix]` or
/// `file:///absolute/directory` (created when absent).
///
/// # Errors
/// [`OpenError`] names the URL and what is wrong. Whether the store can be reached and does what is needed is the
/// start-up probe's question, not asked here.
pub async fn open(url: &str, options: &OpenOptions) -> Result<Arc<dyn Bucket>, OpenError> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(OpenError::bad_url(url, "it has no scheme"));
    };
    match scheme {
        "file" => {
            let directory = file_path(url, rest)?;
            let bucket = LocalBucket::open(directory)
                .await
                .map_err(|source| OpenError::Store { url: url.to_owned(), source })?;
            Ok(Arc::new(bucket))
        }
        "s3" => {
            let options = S3Options {
                endpoint: options.endpoint.clone(),
                region: options.region.clone(),
                path_style: options.path_style.then_some(true),
                credentials: None,
            };
            let bucket = S3Bucket::open(rest, &options).await.map_err(|error| refused(url, error))?;
            Ok(Arc::new(bucket))
        }
        "gs" | "az" => {
            let provider = if scheme == "gs" { CloudProvider::Google } else { CloudProvider::Azure };
            let options = CloudOptions { endpoint: options.endpoint.clone() };
            let bucket = CloudBucket::open(provider, rest, &options).map_err(|error| refused(url, error))?;
            Ok(Arc::new(bucket))
        }
        other => Err(OpenError::bad_url(url, format!("the scheme `{other}` is unknown"))),
    }
}

/// What a network store found wrong before anything was sent.
fn refused(url: &str, error: BucketError) -> OpenError {
    if error.kind == ErrorKind::Invalid {
        OpenError::Unsupported { url: url.to_owned(), reason: error.detail }
    } else {
        OpenError::Store { url: url.to_owned(), source: error }
    }
}

/// The directory of `file:///dir`; percent escapes are decoded.
fn file_path(url: &str, rest: &str) -> Result<PathBuf, OpenError> {
    let path = match rest.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        _ => return Err(OpenError::bad_url(url, "a file URL has three slashes and an absolute directory")),
    };
    let path = percent_encoding::percent_decode_str(path)
        .decode_utf8()
        .map_err(|_| OpenError::bad_url(url, "the path is not UTF-8"))?;
    if path.contains('\0') {
        return Err(OpenError::bad_url(url, "the path holds a NUL"));
    }
    Ok(PathBuf::from(path.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_urls_name_absolute_directories() {
        let path = |url: &str| file_path(url, url.strip_prefix("file:").unwrap());
        assert_eq!(path("file:///var/lib/holdfast").unwrap(), PathBuf::from("/var/lib/holdfast"));
        assert_eq!(path("file:///a%20b/%25").unwrap(), PathBuf::from("/a b/%"));
        for bad in ["file:", "file:x", "file://x", "file:/x", "file://host/x", "file:///a%00"] {
            assert!(matches!(path(bad), Err(OpenError::BadUrl { .. })), "{bad}");
        }
    }

    #[tokio::test]
    async fn an_unknown_scheme_is_named() {
        let error = open("ftp://x", &OpenOptions::default()).await.unwrap_err();
        assert!(error.to_string().contains("the scheme `ftp` is unknown"), "{error}");
        assert!(open("nothing", &OpenOptions::default()).await.is_err());
    }
}
