//! `connect()` on real programs: a Worker and an object speak to servers over TCP and TLS, and nothing of an object's leaves
//! before what it wrote is durable.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use bytes::Bytes;
use holdfast_tests::client::SqlClient;
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::fault_proxy::{Action, Rule};
use holdfast_tests::wait;
use http::Method;
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::support::{SOON, TTL, client};

const SOURCE: &str = "import { DurableObject } from 'cloudflare:workers';
    import { connect } from 'cloudflare:sockets';
    const OPTIONS = { plain: {}, half: { allowHalfOpen: true }, tls: { secureTransport: 'on' }, starttls: { secureTransport: 'starttls' } };
    async function say(socket, text) {
      const writer = socket.writable.getWriter();
      await writer.write(text);
      writer.releaseLock();
    }
    async function talk(request) {
      const [, , kind, host, port] = new URL(request.url).pathname.split('/');
      let socket = connect({ hostname: host, port: Number(port) }, OPTIONS[kind]);
      try {
        if (kind === 'starttls') {
          await say(socket, 'STARTTLS');
          const reader = socket.readable.getReader();
          await reader.read();
          reader.releaseLock();
          socket = socket.startTls();
        }
        await socket.opened;
        await say(socket, 'hello');
        await socket.writable.close();
        return new Response(await new Response(socket.readable).text());
      } catch (error) {
        return new Response(`${error.name}: ${error.message}`);
      }
    }
    export class Dialer extends DurableObject {
      async fetch(request) {
        const [, what, kind, host, port] = new URL(request.url).pathname.split('/');
        if (what === 'object') return talk(request);
        this.ctx.storage.sql.exec('CREATE TABLE IF NOT EXISTS t(a)');
        this.socket ??= connect({ hostname: host, port: Number(port) });
        await this.socket.opened;
        if (kind === 'insert') this.ctx.storage.sql.exec('INSERT INTO t VALUES (1)');
        await say(this.socket, kind);
        return new Response('said');
      }
    }
    export default { fetch(request, env) {
      return request.url.includes('/worker/') ? talk(request) : env.DIALERS.getByName('d').fetch(request);
    } };";

/// Says what it hears until its client has ended; `TLS` begins where it is told so.
async fn echo(mut io: impl AsyncRead + AsyncWrite + Unpin) {
    let mut all = Vec::new();
    if io.read_to_end(&mut all).await.is_ok() {
        let _ = io.write_all(&all).await;
        let _ = io.shutdown().await;
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Tls,
    StartTls,
}

async fn serve(kind: Kind, tls: TlsAcceptor) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                match kind {
                    Kind::Plain => return echo(tcp).await,
                    Kind::Tls => {}
                    Kind::StartTls => {
                        let mut asked = [0; 8];
                        tcp.read_exact(&mut asked).await.unwrap();
                        assert_eq!(&asked, b"STARTTLS");
                        tcp.write_all(b"go on").await.unwrap();
                    }
                }
                if let Ok(stream) = tls.accept(tcp).await {
                    echo(stream).await;
                }
            });
        }
    });
    address
}

/// A server's configuration for `localhost`, and the certificate of whoever vouches for it.
fn authority() -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), made.cert.pem())
}

async fn get(client: &SqlClient, ingress: SocketAddr, path: &str) -> anyhow::Result<String> {
    let answer = client.send(Method::GET, ingress, path, Bytes::new()).await.into_result()?;
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
    Ok(answer.text())
}

fn is_silent(server: &TcpStream) -> bool {
    server.try_read(&mut [0; 8]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_and_objects_connect_to_servers_and_what_leaves_waits_for_what_was_written() {
    let (tls, pem) = authority();
    let folder = tempfile::tempdir().unwrap();
    let authorities = folder.path().join("authorities.pem");
    std::fs::write(&authorities, pem).unwrap();
    let allow = vec!["--allow-outbound".to_owned(), "127.0.0.1".to_owned()];
    let options = ClusterOptions {
        nodes: 1,
        lease_ttl: TTL,
        node_args: allow.clone(),
        ingress_args: allow,
        authorities: Some(authorities),
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    super::application::publish(&cluster, "Dialer", SOURCE).await;
    let (client, ingress) = (client(), cluster.ingress());
    let get = async |path: &str| get(&client, ingress, path).await;

    let plain = serve(Kind::Plain, tls.clone()).await.port();
    let secure = serve(Kind::Tls, tls.clone()).await.port();
    let later = serve(Kind::StartTls, tls).await.port();
    for side in ["worker", "object"] {
        let first = format!("/{side}/plain/127.0.0.1/{plain}");
        wait::until("the application", SOON, async || get(&first).await).await.unwrap();
        for (kind, port) in [("plain", plain), ("half", plain), ("tls", secure), ("starttls", later)] {
            let answer = get(&format!("/{side}/{kind}/localhost/{port}")).await.unwrap();
            assert_eq!(answer, "hello", "{side} {kind}");
        }
        let failed = "Error: proxy request failed, cannot connect to the specified address";
        let refusals = [
            (format!("tls/127.0.0.1/{secure}"), failed),
            (
                format!("plain/127.0.0.2/{plain}"),
                "`127.0.0.2` is at 127.0.0.2, which is not a public address",
            ),
            ("plain/169.254.169.254/80".to_owned(), "which is not a public address"),
            ("plain/127.0.0.1/25".to_owned(), "TypeError: Connections to port 25 are prohibited"),
        ];
        for (path, why) in refusals {
            let answer = get(&format!("/{side}/{path}")).await.unwrap();
            assert!(answer.contains(why), "{side} {path}: {answer}");
        }
    }
    let outcomes = [("i1", "ok"), ("i1", "refused"), ("n1", "ok"), ("n1", "failed")];
    for (program, outcome) in outcomes {
        let label = format!("outcome=\"{outcome}\"");
        let count = cluster.metric(program, "holdfast_outbound_connections_opened_count_total", &label).await;
        assert!(count.unwrap() >= 1.0, "{program} {outcome}");
    }

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let path = |what: &str| format!("/say/{what}/127.0.0.1/{port}");
    let before = path("before");
    let (said, accepted) = tokio::join!(get(&before), listener.accept());
    assert_eq!(said.unwrap(), "said");
    let (mut server, _) = accepted.unwrap();
    let mut heard = [0; 6];
    server.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"before");
    let hold = Rule::new(Action::Hold { ms: 3_000 }).method(&Method::PUT).contains(".ltx").times(1);
    cluster.faults("n1").add(hold);
    let insert = path("insert");
    let saying = get(&insert);
    let holding = async {
        wait::until("an upload that is held", SOON, async || {
            ensure!(cluster.faults("n1").is_holding(".ltx"), "none is");
            Ok(())
        })
        .await
        .unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(cluster.faults("n1").is_holding(".ltx") && is_silent(&server), "it has no proof yet");
        server.read_exact(&mut heard).await.unwrap();
    };
    let (said, ()) = tokio::join!(saying, holding);
    assert_eq!((said.unwrap().as_str(), &heard), ("said", b"insert"));
    cluster.finish().unwrap();
}
