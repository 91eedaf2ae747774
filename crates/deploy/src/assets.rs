//! Static files of a version, answered out of the bucket.

mod store;

use std::sync::Arc;

use holdfast_assets::{Answer, Site};
use holdfast_js::{AssetAnswer, AssetServer};
use http::{HeaderMap, Request, Uri};

pub use store::{Store, StoreError};

/// Answers requests for one version's static files.
#[derive(Debug)]
pub(crate) struct Server {
    site: Arc<Site>,
    store: Arc<Store>,
}

impl Server {
    /// Of these files, read from there.
    pub(crate) fn new(site: Site, store: Arc<Store>) -> Self {
        Self { site: Arc::new(site), store }
    }
}

impl AssetServer for Server {
    fn is_for_worker(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        self.site.is_for_worker(uri, headers)
    }

    fn answer(&self, request: Request<()>) -> AssetAnswer {
        let (site, store) = (Arc::clone(&self.site), Arc::clone(&self.store));
        Box::pin(async move {
            let (request, ()) = request.into_parts();
            let reading = match holdfast_assets::answer(&site, &request) {
                Answer::Done(response) => return response,
                Answer::Read(reading) => reading,
            };
            match store.read(reading.file().content).await {
                Ok(bytes) => reading.with(bytes),
                Err(error) => {
                    tracing::error!(path = reading.file().path, %error, "a static file cannot be read");
                    reading.failed()
                }
            }
        })
    }
}
