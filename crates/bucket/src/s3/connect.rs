//! Builds the SDK's client: connections of its own for every call of [`client`], so that lease traffic never queues
//! behind uploads; the standard AWS chain for credentials, region and endpoint.

use std::env;
use std::fmt;
use std::time::Duration;

use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    Builder, Credentials, RequestChecksumCalculation, ResponseChecksumValidation,
    StalledStreamProtectionConfig,
};
use aws_smithy_http_client::tls;

use crate::{BucketError, ErrorKind};

/// A server that is there accepts a connection well within this.
const CONNECT: Duration = Duration::from_secs(3);

/// Idle connections are dropped before stores usually drop them (20 s and more), so that a write rarely meets a
/// connection that is just being closed.
const IDLE: Duration = Duration::from_secs(15);

/// Where an S3 endpoint without a region of its own is said to be; such servers ignore it or expect this.
const REGION_DEFAULT: &str = "us-east-1";

/// Providers whose endpoints have wildcard DNS. Some of them refuse the bucket's name in the path (Tigris, for buckets
/// of 2025 and later).
const WILDCARDS: [&str; 5] = [
    ".amazonaws.com",
    ".r2.cloudflarestorage.com",
    ".tigris.dev",
    "t3.storage.dev",
    "storage.googleapis.com",
];

/// Fixed credentials, for a server that this process started itself. Everybody else uses the standard chain.
#[derive(Clone, PartialEq, Eq)]
pub struct S3Credentials {
    /// Access key id.
    pub access_key: String,
    /// Secret key.
    pub secret_key: String,
}

impl fmt::Debug for S3Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// How to reach an S3 store. What is absent comes from the environment, the profile files and the machine's role.
#[derive(Clone, Debug, Default)]
pub struct S3Options {
    /// Base URL of the store's API.
    pub endpoint: Option<String>,
    /// Region name.
    pub region: Option<String>,
    /// Puts the bucket's name into the path instead of the host name. By default when an endpoint is given that is not
    /// known to have wildcard DNS: few servers outside the big providers do.
    pub path_style: Option<bool>,
    /// Credentials instead of the chain's.
    pub credentials: Option<S3Credentials>,
}

/// A client with connections of its own.
///
/// # Errors
/// `Invalid` when the endpoint is not a URL.
pub(super) async fn client(options: &S3Options) -> Result<Client, BucketError> {
    let endpoint = options.endpoint.clone().or_else(endpoint_of_environment);
    if let Some(endpoint) = &endpoint {
        check_endpoint(endpoint)?;
    }
    let shared = shared_config(options, endpoint.is_some()).await;
    let endpoint = endpoint.or_else(|| shared.endpoint_url().map(str::to_owned));
    let path_style = options
        .path_style
        .unwrap_or_else(|| endpoint.as_deref().is_some_and(|endpoint| !is_wildcard(endpoint)));
    let mut builder = Builder::from(&shared)
        .force_path_style(path_style)
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT).build())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
    if let Some(endpoint) = endpoint {
        builder = builder.endpoint_url(endpoint);
    }
    Ok(Client::from_conf(builder.build()))
}

async fn shared_config(options: &S3Options, has_endpoint: bool) -> SdkConfig {
    let http = aws_smithy_http_client::Builder::new()
        .pool_idle_timeout(IDLE)
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .build_https();
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
    if let Some(region) = region(options, has_endpoint).await {
        loader = loader.region(region);
    }
    if let Some(S3Credentials { access_key, secret_key }) = &options.credentials {
        loader = loader.credentials_provider(Credentials::new(access_key, secret_key, None, None, "options"));
    }
    loader.load().await
}

/// The region where it is known without asking the machine's metadata service: a server with an endpoint of its own is
/// often on a machine that has none, and waiting for it costs seconds.
async fn region(options: &S3Options, has_endpoint: bool) -> Option<Region> {
    let given = options.region.clone().map(Region::new);
    let chain = RegionProviderChain::first_try(given)
        .or_else(EnvironmentVariableRegionProvider::new())
        .or_else(ProfileFileRegionProvider::new());
    let found = chain.region().await;
    found.or_else(|| has_endpoint.then(|| Region::new(REGION_DEFAULT)))
}

fn endpoint_of_environment() -> Option<String> {
    let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
    if set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return None;
    }
    set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL"))
}

/// Whether every bucket has a host name of its own below the endpoint's.
fn is_wildcard(endpoint: &str) -> bool {
    let uri: Option<http::Uri> = endpoint.parse().ok();
    uri.as_ref().and_then(http::Uri::host).is_some_and(|host| WILDCARDS.iter().any(|end| host.ends_with(end)))
}

fn check_endpoint(endpoint: &str) -> Result<(), BucketError> {
    let uri: Option<http::Uri> = endpoint.parse().ok();
    let is_base = uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() && uri.query().is_none()
    });
    if is_base {
        return Ok(());
    }
    let detail = format!("the endpoint `{endpoint}` is not of the form http(s)://HOST[:PORT]");
    Err(BucketError::new("open", "", ErrorKind::Invalid, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_base_url() {
        for good in ["http://127.0.0.1:9000", "https://s3.example.com", "http://[::1]:1/"] {
            check_endpoint(good).unwrap();
        }
        for bad in ["", "127.0.0.1:9000", "ftp://x", "http://", "http://x?y"] {
            assert_eq!(check_endpoint(bad).unwrap_err().kind, ErrorKind::Invalid, "{bad}");
        }
    }

    #[test]
    fn known_providers_have_wildcard_dns() {
        assert!(is_wildcard("https://fly.storage.tigris.dev"));
        assert!(is_wildcard("https://account.r2.cloudflarestorage.com/"));
        assert!(!is_wildcard("http://127.0.0.1:9000"));
        assert!(!is_wildcard("https://s3.example.com"));
    }

    #[test]
    fn secrets_are_not_printed() {
        let credentials = S3Credentials { access_key: "id".into(), secret_key: "hush".into() };
        assert!(!format!("{credentials:?}").contains("hush"));
    }
}
