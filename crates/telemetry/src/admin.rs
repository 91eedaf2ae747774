//! The admin listener of every program: `/metrics`, `/health` and `/ready`, for scrapers and orchestrators. It shows;
//! it must never change anything.

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::pipeline::render_prometheus;

/// Whether a process takes work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    Ready,
    /// It does not, for this reason, for example `draining`.
    NotReady(String),
}

impl From<bool> for Readiness {
    fn from(ready: bool) -> Self {
        if ready { Self::Ready } else { Self::NotReady("not ready".into()) }
    }
}

impl IntoResponse for Readiness {
    fn into_response(self) -> Response {
        match self {
            Self::Ready => (StatusCode::OK, "ready\n").into_response(),
            Self::NotReady(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason + "\n").into_response(),
        }
    }
}

/// Serves the admin endpoints until `shutdown` resolves. `ready` is asked on every `/ready`; `/health` answers 200 for
/// as long as the process can answer at all. Both are also found below `/-/`, as on a public listener.
///
/// # Errors
/// The listener's.
pub async fn serve_admin<F, R>(
    listener: TcpListener,
    ready: F,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()>
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Into<Readiness>,
{
    axum::serve(listener, router(move || ready().into())).with_graceful_shutdown(shutdown).await
}

fn router(ready: impl Fn() -> Readiness + Send + Sync + 'static) -> Router {
    let ready: Arc<dyn Fn() -> Readiness + Send + Sync> = Arc::new(ready);
    let answer = get(move || std::future::ready(ready()));
    let health = get(|| std::future::ready("ok\n"));
    Router::new()
        .route("/metrics", get(|| std::future::ready(exposition())))
        .route("/health", health.clone())
        .route("/-/health", health)
        .route("/ready", answer.clone())
        .route("/-/ready", answer)
}

fn exposition() -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], render_prometheus())
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use http_body_util::BodyExt;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tower::ServiceExt;

    async fn fetch(router: &Router, path: &str) -> (u16, String) {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn readiness_is_asked_anew_each_time() {
        let draining = Arc::new(AtomicBool::new(false));
        let seen = draining.clone();
        let router = router(move || {
            if seen.load(Ordering::SeqCst) {
                Readiness::NotReady("draining".into())
            } else {
                Readiness::Ready
            }
        });
        assert_eq!(fetch(&router, "/ready").await, (200, "ready\n".into()));
        draining.store(true, Ordering::SeqCst);
        assert_eq!(fetch(&router, "/-/ready").await, (503, "draining\n".into()));
        assert_eq!(fetch(&router, "/health").await, (200, "ok\n".into()));
        assert_eq!(fetch(&router, "/cells").await.0, 404);
    }

    #[tokio::test]
    async fn metrics_are_served_and_the_listener_stops_when_told() {
        crate::metrics().capture(1);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let server = tokio::spawn(serve_admin(listener, || true, async {
            stopped.await.unwrap();
        }));
        let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
            .build_http::<Body>();
        let uri = format!("http://{address}/metrics").parse().unwrap();
        let response = client.get(uri).await.unwrap();
        assert!(
            response.headers()["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4")
        );
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(
            String::from_utf8_lossy(&body).contains("# TYPE holdfast_cellnode_captures_count_total counter")
        );
        drop(client);
        stop.send(()).unwrap();
        server.await.unwrap().unwrap();
    }
}
