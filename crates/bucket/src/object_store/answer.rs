//! Remembers the last HTTP answer of the call in progress. `object_store` folds statuses into its own kinds (a 409 reads
//! as "already exists" whatever its cause); what a conditional write came to depends on the status itself.

use std::cell::RefCell;
use std::future::Future;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

/// An HTTP answer, as far as its head tells.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Azure's error code.
    pub(super) code: Option<String>,
    pub(super) date: Option<String>,
}

tokio::task_local! {
    static LAST: RefCell<Option<Answer>>;
}

/// Runs a call and returns the last answer that it got, if any, beside its result.
pub(super) async fn watch<T>(call: impl Future<Output = T>) -> (T, Option<Answer>) {
    let watched = async {
        let result = call.await;
        (result, LAST.with(RefCell::take))
    };
    LAST.scope(RefCell::new(None), watched).await
}

/// Connects as usual, and notes the answers.
#[derive(Debug, Default)]
pub(super) struct Watched {
    inner: ReqwestConnector,
}

impl HttpConnector for Watched {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        self.inner.connect(options).map(|client| HttpClient::new(WatchedClient { client }))
    }
}

#[derive(Debug)]
struct WatchedClient {
    client: HttpClient,
}

#[async_trait]
impl HttpService for WatchedClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let result = self.client.execute(request).await;
        let answer = result.as_ref().ok().map(|response| {
            let header = |name| response.headers().get(name)?.to_str().ok().map(str::to_owned);
            Answer {
                status: response.status().as_u16(),
                code: header("x-ms-error-code"),
                date: header("date"),
            }
        });
        // Outside of a call nobody asks.
        let _ = LAST.try_with(|last| last.replace(answer));
        result
    }
}
