//! Builds the clients of Google Cloud Storage and Azure: credentials from the environment as the providers' own tools
//! have it, connections of their own for every bucket that is opened, no retries inside.

use std::sync::Arc;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};

use super::answer::Watched;
use crate::{BucketError, ErrorKind};

/// Whose store it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloudProvider {
    /// Google Cloud Storage: `gs://`.
    Google,
    /// Azure Blob Storage: `az://`.
    Azure,
}

impl CloudProvider {
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }
}

/// How to reach the store. Credentials come from the environment (`GOOGLE_…`, `AZURE_…`) and the machine's role.
#[derive(Clone, Debug, Default)]
pub struct CloudOptions {
    /// Base URL of the store's API; with Azure that of the account.
    pub endpoint: Option<String>,
}

/// All that is asked of a store.
pub(super) trait CloudStore: ObjectStore + PaginatedListStore + MultipartStore {}

impl<S: ObjectStore + PaginatedListStore + MultipartStore> CloudStore for S {}

/// Connections that stand idle are dropped before stores drop them.
const IDLE: &str = "15 seconds";

/// A server that is there accepts a connection well within this.
const CONNECT: &str = "3 seconds";

/// The callers of this crate bound each attempt; a bound on whole requests would cut long downloads.
const REQUEST: &str = "1 day";

const CLIENT_OPTIONS: [(ClientConfigKey, &str); 3] = [
    (ClientConfigKey::PoolIdleTimeout, IDLE),
    (ClientConfigKey::ConnectTimeout, CONNECT),
    (ClientConfigKey::Timeout, REQUEST),
];

pub(super) fn store(
    provider: CloudProvider,
    bucket: &str,
    options: &CloudOptions,
) -> Result<Arc<dyn CloudStore>, BucketError> {
    // Fails when the process has chosen a provider already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let no_retries = RetryConfig { max_retries: 0, ..RetryConfig::default() };
    let is_plain = options.endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let built: object_store::Result<Arc<dyn CloudStore>> = match provider {
        CloudProvider::Google => {
            let mut builder = GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(bucket)
                .with_retry(no_retries)
                .with_http_connector(Watched::default());
            for (key, value) in CLIENT_OPTIONS {
                builder = builder.with_config(GoogleConfigKey::Client(key), value);
            }
            if is_plain {
                builder = builder.with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), "true");
            }
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_base_url(endpoint);
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        CloudProvider::Azure => {
            let mut builder = MicrosoftAzureBuilder::from_env()
                .with_container_name(bucket)
                .with_retry(no_retries)
                .with_http_connector(Watched::default());
            for (key, value) in CLIENT_OPTIONS {
                builder = builder.with_config(AzureConfigKey::Client(key), value);
            }
            if is_plain {
                builder = builder.with_config(AzureConfigKey::Client(ClientConfigKey::AllowHttp), "true");
            }
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_endpoint(endpoint.clone());
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
    };
    built.map_err(|error| BucketError::new("open", bucket, ErrorKind::Invalid, error.to_string()))
}
