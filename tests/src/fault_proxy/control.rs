//! The switches over HTTP, for scripts: `POST /rules` with a rule in JSON answers its id, `DELETE /rules` takes all
//! away, `POST /cut` with `{"ms": 2000}` cuts, `GET /hits?<id>` counts.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpListener;

use super::rules::{Faults, Rule, RuleId};

/// Largest request to the control endpoint.
const REQUEST_LEN_MAX: usize = 64 << 10;

#[derive(Deserialize)]
struct CutRequest {
    ms: u64,
}

/// Serves the switches until the task is dropped.
///
/// # Errors
/// When the listener fails.
pub async fn serve_control(listener: TcpListener, faults: Faults) -> Result<()> {
    loop {
        let (socket, _) = listener.accept().await?;
        let faults = faults.clone();
        let service = service_fn(move |request| {
            let faults = faults.clone();
            async move { Ok::<_, Infallible>(answer(request, &faults).await) }
        });
        tokio::spawn(async move {
            // A script that hangs up is no fault of ours.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

async fn answer(request: Request<Incoming>, faults: &Faults) -> Response<Full<Bytes>> {
    let (status, text) = match switch(request, faults).await {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error:#}\n")),
    };
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}

async fn switch(request: Request<Incoming>, faults: &Faults) -> Result<String> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, REQUEST_LEN_MAX).collect().await.map_err(anyhow::Error::from_boxed)?;
    let body = body.to_bytes();
    match (parts.method, parts.uri.path()) {
        (Method::POST, "/rules") => {
            let rule: Rule = serde_json::from_slice(&body).context("the body is not a rule")?;
            Ok(format!("{}\n", faults.add(rule).0))
        }
        (Method::DELETE, "/rules") => {
            faults.clear();
            Ok("cleared\n".into())
        }
        (Method::POST, "/cut") => {
            let CutRequest { ms } = serde_json::from_slice(&body).context("the body is not `{\"ms\": …}`")?;
            faults.cut_for(Duration::from_millis(ms));
            Ok("cut\n".into())
        }
        (Method::GET, "/hits") => {
            let id = parts.uri.query().unwrap_or_default().parse().context("the query is not a rule's id")?;
            Ok(format!("{}\n", faults.hits(RuleId(id))))
        }
        (method, path) => anyhow::bail!("there is no {method} {path}: use /rules, /cut or /hits"),
    }
}
