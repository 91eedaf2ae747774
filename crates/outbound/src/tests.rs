//! `fetch` against a server on loopback, which is allowed to it here.

mod cache;
mod support;
mod tcp;
mod websockets;

use std::time::Duration;

use bytes::Bytes;
use holdfast_js::Redirect;
use holdfast_rpc::whole_body;
use http::{Method, Request};
use http_body_util::BodyExt as _;

use crate::{OutboundOptions, read_whole};
use support::{Server, allowed, fails, get, outbound, stream, text};

#[tokio::test]
async fn a_request_and_its_answer_cross() {
    let server = Server::start().await;
    let request = Request::builder()
        .method(Method::POST)
        .uri(server.url("/echo?a=%20b"))
        .header("x-mine", "1")
        .header("connection", "close, x-gone")
        .header("x-gone", "1")
        .body(whole_body(Bytes::from_static(b"body")))
        .unwrap();
    let fetched = outbound(allowed()).fetch(request, Redirect::Manual).await.unwrap();
    assert_eq!((fetched.url.as_str(), fetched.redirected), (server.url("/echo?a=%20b").as_str(), false));
    assert_eq!(fetched.response.headers()["x-answer"], "yes");
    assert!(!fetched.response.headers().contains_key("keep-alive"));
    let seen = text(fetched).await;
    assert!(seen.starts_with("POST /echo?a=%20b\n"), "{seen}");
    for line in ["x-mine: 1\n", "content-length: 4\n", "accept-encoding: gzip, deflate\n"] {
        assert!(seen.contains(line), "{line} {seen}");
    }
    assert!(!seen.contains("x-gone") && seen.contains(&format!("host: {}\n", server.address)), "{seen}");
    assert!(seen.ends_with("\nbody"), "{seen}");
}

#[tokio::test]
async fn bodies_stream_both_ways() {
    let server = Server::start().await;
    let (mut upload, body) = stream();
    let request = Request::builder().method(Method::PUT).uri(server.url("/mirror")).body(body).unwrap();
    let mut fetched = outbound(allowed()).fetch(request, Redirect::Follow).await.unwrap();
    for chunk in ["one", "two"] {
        upload.chunk(chunk).await;
        let frame = fetched.response.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), chunk);
    }
    drop(upload);
    assert!(fetched.response.body_mut().frame().await.is_none());
}

#[tokio::test]
async fn an_answer_that_breaks_is_a_broken_body() {
    let server = Server::start().await;
    let fetched = outbound(allowed()).fetch(get(&server.url("/break")), Redirect::Manual).await.unwrap();
    let error = read_whole(fetched.response.into_body(), 1 << 20).await.unwrap_err();
    assert!(error.message.starts_with("the body broke"), "{error}");
}

#[tokio::test]
async fn codings_are_taken_off() {
    let server = Server::start().await;
    for coding in ["gzip", "deflate"] {
        let url = server.url(&format!("/coded/{coding}"));
        let fetched = outbound(allowed()).fetch(get(&url), Redirect::Manual).await.unwrap();
        let headers = fetched.response.headers();
        assert!(!headers.contains_key("content-encoding") && !headers.contains_key("content-length"));
        assert_eq!(text(fetched).await, "hello ".repeat(100_000), "{coding}");
    }
    let fetched = outbound(allowed()).fetch(get(&server.url("/coded/br")), Redirect::Manual).await.unwrap();
    assert_eq!(fetched.response.headers()["content-encoding"], "br");
}

#[tokio::test]
async fn redirects_are_followed_as_asked() {
    let server = Server::start().await;
    let url = server.url("/to/3");
    let client = outbound(allowed());
    let fetched = client.fetch(get(&url), Redirect::Follow).await.unwrap();
    assert_eq!((fetched.url.clone(), fetched.redirected), (server.url("/to/0"), true));
    assert_eq!(text(fetched).await, "arrived GET");
    let fetched = client.fetch(get(&url), Redirect::Manual).await.unwrap();
    assert_eq!(fetched.response.status(), 302);
    let error = fails(&client, get(&url), Redirect::Error).await;
    assert!(error.starts_with("TypeError: fetch of"), "{error}");
    let error = fails(&client, get(&server.url("/to/21")), Redirect::Follow).await;
    assert!(error.contains("more than 20 redirects"), "{error}");
    assert!(client.fetch(get(&server.url("/to/20")), Redirect::Follow).await.is_ok());
    let error = fails(&client, get(&server.url("/away")), Redirect::Follow).await;
    assert!(error.contains("not to ftp:"), "{error}");
}

#[tokio::test]
async fn a_body_that_is_whole_goes_with_a_redirect_and_a_stream_does_not() {
    let server = Server::start().await;
    let client = outbound(allowed());
    let put = |body| Request::builder().method(Method::PUT).uri(server.url("/keep")).body(body).unwrap();
    let fetched =
        client.fetch(put(whole_body(Bytes::from_static(b"again"))), Redirect::Follow).await.unwrap();
    assert!(text(fetched).await.ends_with("\nagain"));
    let (mut upload, body) = stream();
    upload.chunk("once").await;
    drop(upload);
    let error = fails(&client, put(body), Redirect::Follow).await;
    assert!(error.contains("cannot be sent a second time"), "{error}");
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused_by_name_by_number_and_after_a_redirect() {
    let server = Server::start().await;
    let port = server.address.port();
    let closed = outbound(OutboundOptions::default());
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "169.254.169.254"] {
        let error =
            fails(&closed, get(&normal(&format!("http://{host}:{port}/echo"))), Redirect::Manual).await;
        assert!(error.starts_with("TypeError") && error.contains("not a public address"), "{host}: {error}");
    }
    let half =
        outbound(OutboundOptions { allow: vec!["127.0.0.1".parse().unwrap()], ..OutboundOptions::default() });
    let error = fails(&half, get(&server.url("/inside")), Redirect::Follow).await;
    assert!(error.contains("`127.0.0.2` is at 127.0.0.2"), "{error}");
    assert_eq!(server.seen(), 1);
}

/// As an isolate gives it: parsed and written again.
fn normal(url: &str) -> String {
    url::Url::parse(url).unwrap().into()
}

#[tokio::test]
async fn what_does_not_work_says_what() {
    let client = outbound(allowed());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = client.fetch(get(&format!("http://{address}/x?key=1")), Redirect::Manual).await.unwrap_err();
    assert!(error.retryable && error.name == "Error", "{error:?}");
    assert!(
        error.message.starts_with(&format!("fetch of `http://{address}/x` failed: cannot connect")),
        "{error}"
    );
    let error = fails(&client, get("http://user@example.com/"), Redirect::Manual).await;
    assert!(error.contains("credentials"), "{error}");
    let error = fails(&client, get("ftp://example.com/"), Redirect::Manual).await;
    assert!(error.contains("not to ftp:"), "{error}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let server = Server::start().await;
    let short = Duration::from_millis(30);
    let client = outbound(OutboundOptions { response_timeout: short, ..allowed() });
    let error = fails(&client, get(&server.url("/silent")), Redirect::Manual).await;
    assert!(error.contains("no answer came within 30ms"), "{error}");
    let client = outbound(OutboundOptions { idle_timeout: short, ..allowed() });
    let fetched = client.fetch(get(&server.url("/stalled")), Redirect::Manual).await.unwrap();
    let error = read_whole(fetched.response.into_body(), 10).await.unwrap_err();
    assert!(error.message.contains("nothing came for 30ms"), "{error}");
}

#[tokio::test]
async fn https_is_checked_against_the_authorities() {
    let server = Server::start_tls().await;
    let trusting = support::outbound_trusting(&server, allowed());
    let url = format!("https://localhost:{}/echo", server.address.port());
    assert!(text(trusting.fetch(get(&url), Redirect::Manual).await.unwrap()).await.starts_with("GET "));
    let error = fails(&outbound(allowed()), get(&url), Redirect::Manual).await;
    assert!(error.contains("the TLS handshake with `localhost` failed"), "{error}");
}

#[tokio::test]
async fn a_body_is_collected_up_to_its_bound() {
    assert_eq!(read_whole(whole_body(Bytes::new()), 0).await.unwrap(), "");
    assert_eq!(read_whole(whole_body("abc"), 3).await.unwrap(), "abc");
    assert!(read_whole(whole_body("abc"), 2).await.is_err());
}
