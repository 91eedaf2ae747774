//! A deployed application behind the public listener: published into the bucket, adopted, replaced.

use holdfast_bucket::BucketArgs;
use holdfast_deploy::Deployments;
use holdfast_js::id_from_name;
use holdfast_records::{
    AssetFile, Assets, Binding, BindingEntry, Blobs, HtmlHandling, Manifest, ModuleEntry, ModuleKind,
    NotFoundHandling, Package,
};
use holdfast_rpc::Access;
use holdfast_rpc::tokens::{CellPattern, mint};

use super::support::*;
use crate::AuthMode;

const SOURCE: &str = "let go; const gone = new Promise(resolve => { go = resolve; });
  export default { async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === '/throw') throw new Error('secret');
    if (pathname === '/echo') return new Response(request.body);
    if (pathname === '/room') return env.ROOMS.getByName('lobby').fetch('https://do.example/p%20q', request);
    if (pathname === '/unread') return new Response('did not read');
    if (pathname === '/break') return new Response(new ReadableStream({
      start(c) { c.enqueue(new TextEncoder().encode('first')); },
      async pull(c) { await gone; c.error(new Error('broken')); },
    }));
    if (pathname.startsWith('/files/')) return env.FILES.fetch(new URL(pathname.slice(6), request.url), request);
    if (pathname === '/go') go();
    const seen = [request.method, request.url];
    for (const name of ['authorization', 'x-forwarded-for', 'cf-connecting-ip']) seen.push(request.headers.get(name));
    return new Response(seen.join(' '), { headers: { 'x-version': 'VERSION', 'content-length': '999' } });
  } };
  export class Room {}";

fn package(source: &str) -> Package {
    let mut blobs = Blobs::default();
    let content = blobs.add(source.to_owned());
    let module = ModuleEntry { name: "index.js".into(), kind: ModuleKind::Esm, content, source_map: None };
    let binding = Binding::DurableObject { class: "Room".into() };
    let manifest = Manifest {
        name: "app".into(),
        entry: "index.js".into(),
        compatibility_date: "2026-11-01".into(),
        compatibility_flags: vec![],
        modules: vec![module],
        bindings: vec![
            BindingEntry { name: "FILES".into(), binding: Binding::Assets },
            BindingEntry { name: "ROOMS".into(), binding },
        ],
        classes: vec!["Room".into()],
        migrations: vec![],
        crons: vec![],
        assets: Some(Assets {
            files: vec![
                AssetFile { path: "/404.html".into(), content: blobs.add("nothing here") },
                AssetFile { path: "/page.html".into(), content: blobs.add("<p>a page") },
            ],
            html_handling: HtmlHandling::default(),
            not_found_handling: NotFoundHandling::Page,
            run_worker_first: vec![],
            is_alone: false,
            headers: None,
            redirects: None,
        }),
    };
    Package::new(manifest, blobs).unwrap()
}

async fn deployments(fleet: &Fleet) -> Deployments {
    let url = format!("file://{}", fleet.dir.path().join("bucket").display());
    let buckets = BucketArgs::at(&url).open().await.unwrap();
    Deployments::new(buckets.records, buckets.bulk)
}

async fn publish(fleet: &Fleet, source: &str) {
    deployments(fleet).await.publish(&package(source), "").await.unwrap();
}

/// Publishes the application, and asks until it answers.
async fn deploy(fleet: &Fleet, version: &str) {
    publish(fleet, &SOURCE.replace("VERSION", version)).await;
    loop {
        let answer = fleet.ask(&get("/")).await;
        if answer.header("x-version") == Some(version) {
            return;
        }
        // Nothing but the version before answers until then.
        assert!(answer.status == 404 || answer.header("x-version").is_some(), "{answer:?}");
    }
}

#[tokio::test]
async fn what_is_published_is_adopted_and_what_does_not_start_is_refused() {
    let fleet = fleet(|_| {}).await;
    let answer = fleet.ask(&get("/")).await;
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("no_application"), "{answer:?}");
    deploy(&fleet, "one").await;
    publish(&fleet, "export default {}; throw new Error('does not start');").await;
    deploy(&fleet, "two").await;
    assert_eq!(fleet.ask(&get("/-/health")).await.body, "ok\n");
    assert_eq!(fleet.ask(&get("/-/nothing")).await.status, 404);
}

#[tokio::test]
async fn the_application_sees_the_request_and_the_client_its_answer() {
    let fleet = fleet(|config| (config.body_max, config.worker_threads) = (1_000, Some(1))).await;
    deploy(&fleet, "one").await;
    let request = "GET /a%2f?b HTTP/1.1\r\nhost: shop.example\r\nauthorization: Bearer mine\r\nx-forwarded-for: 9.9.9.9\r\n\r\n";
    let answer = fleet.ask(request).await;
    assert_eq!(answer.body, "GET http://shop.example/a%2f?b Bearer mine  127.0.0.1");
    assert_eq!((answer.status, answer.header("holdfast-position")), (200, None));

    let mut client = fleet.connect().await;
    client.send(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let head = client.head().await.unwrap();
    assert_eq!((head.status, head.header("x-version")), (200, Some("one")));
    let chunked = "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n";
    assert_eq!(client.ask(chunked).await.body, "onetwo", "the connection goes on");

    let answer = fleet.ask(&get("/throw")).await;
    assert_eq!((answer.status, answer.body.as_str()), (500, "the application threw an exception\n"));
    assert_eq!(fleet.ask(&post("/echo", "", &"x".repeat(1_001))).await.status, 413);
    assert_eq!(fleet.ask(&post("/unread", "", &"x".repeat(1_000))).await.body, "did not read");

    let mut client = fleet.connect().await;
    client.send(get("/break").as_bytes()).await;
    let head = client.head().await.unwrap();
    fleet.ask(&get("/go")).await;
    assert_eq!(client.body(&head).await, None, "a clean end");
}

#[tokio::test]
async fn files_are_answered_without_the_worker_and_by_it() {
    let fleet = fleet(|_| {}).await;
    deploy(&fleet, "one").await;
    let page = fleet.ask(&get("/page")).await;
    assert_eq!((page.status, page.body.as_str(), page.header("x-version")), (200, "<p>a page", None));
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let etag = page.header("etag").unwrap();
    let known = fleet.ask(&format!("GET /page HTTP/1.1\r\nhost: x\r\nif-none-match: {etag}\r\n\r\n")).await;
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    let moved = fleet.ask(&get("/page.html?q")).await;
    assert_eq!((moved.status, moved.header("location")), (307, Some("/page?q")));
    assert_eq!(fleet.ask(&get("/other")).await.header("x-version"), Some("one"), "no file: the Worker");
    let person = "GET /other HTTP/1.1\r\nhost: x\r\nsec-fetch-mode: navigate\r\n\r\n";
    let answer = fleet.ask(person).await;
    assert_eq!((answer.status, answer.body.as_str()), (404, "nothing here"), "a person is shown the page");

    let page = fleet.ask(&get("/files/page")).await;
    assert_eq!((page.status, page.body.as_str()), (200, "<p>a page"));
    let moved = fleet.ask(&get("/files/page.html")).await;
    assert_eq!(
        (moved.status, moved.header("location")),
        (307, Some("/page")),
        "the client follows, not the Worker"
    );
    assert_eq!(fleet.ask(&get("/files/none")).await.status, 404);

    let mut client = fleet.connect().await;
    client.send(b"HEAD /page HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(client.head().await.unwrap().header("content-length"), Some("9"));
    let posted = client.ask(&post("/page", "", "a body")).await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
    assert_eq!(client.ask(&get("/page")).await.body, "<p>a page", "the connection goes on");
}

#[tokio::test]
async fn the_application_calls_its_objects_through_the_router() {
    let fleet = fleet(|_| {}).await;
    deploy(&fleet, "one").await;
    let answer = fleet.ask(&get("/room")).await;
    let cell = format!("Room:{}", id_from_name("Room", "lobby"));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.starts_with(&format!("{cell} GET /p%20q ReadWrite\n")), "{}", answer.body);
    assert!(answer.body.contains("holdfast-url: https://do.example/p%20q\n"), "{}", answer.body);
    assert_eq!(answer.header("keep-alive"), None);
}

#[tokio::test]
async fn objects_are_reached_directly_where_that_is_on_with_a_token() {
    let fleet = fleet(|config| config.auth = AuthMode::Token).await;
    deploy(&fleet, "one").await;
    let id = id_from_name("Room", "lobby");
    let unknown = fleet.ask(&get("/-/cells/Other/a/b")).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("unknown_class"), "{unknown:?}");
    assert_eq!(fleet.ask(&get("/-/cells/db/a/query")).await.status, 404);
    assert_eq!(fleet.ask(&get("/-/cells/Room/lobby/x")).await.status, 401);

    let token = |cells: &str| {
        mint(&fleet.identity, CellPattern::parse(cells).unwrap(), Access::ReadWrite, 0, u64::MAX / 2_000)
            .unwrap()
    };
    let ask = |path: &str, token: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {token}\r\n\r\n")
    };
    let all = token("Room:*");
    for name in ["lobby", id.as_str(), id.to_uppercase().as_str()] {
        let answer = fleet.ask(&ask(&format!("/-/cells/Room/{name}/x%2Fy"), &all)).await;
        assert!(answer.body.starts_with(&format!("Room:{id} GET /x%2Fy ReadWrite\n")), "{answer:?}");
        assert!(answer.body.contains("holdfast-url: http://h/x%2Fy\n"), "{answer:?}");
        assert!(!answer.body.contains("authorization"), "{answer:?}");
    }
    let other = token(&format!("Room:{}", id_from_name("Room", "other")));
    assert_eq!(fleet.ask(&ask("/-/cells/Room/lobby/x", &other)).await.status, 403);
}

#[tokio::test]
async fn objects_are_not_reached_directly_where_that_is_off() {
    let fleet = fleet(|config| config.direct_cells = false).await;
    deploy(&fleet, "one").await;
    assert_eq!(fleet.ask(&get("/-/cells/Room/lobby/x")).await.status, 404);
}

#[tokio::test]
async fn a_drain_waits_for_what_the_application_gave_to_wait_until() {
    let mut fleet = fleet(|_| {}).await;
    let source = "export default { async fetch(request, env, ctx) {
        const room = env.ROOMS.getByName('a');
        ctx.waitUntil(scheduler.wait(1).then(() => room.fetch('https://do.example/?wait')));
        return new Response('out', { headers: { 'x-version': 'one' } });
      } };
      export class Room {}";
    publish(&fleet, source).await;
    while fleet.ask(&get("/")).await.status == 404 {}
    fleet.begun.recv().await.unwrap();
    fleet.stop();
    fleet.go.send(true).unwrap();
    (&mut fleet.ingress).await.unwrap().unwrap();
    assert!(fleet.cancelled.try_recv().is_err(), "the call was cut off");
}
