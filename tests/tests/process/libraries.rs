//! Libraries of others, from npm, as their documentation shows them first: what works goes to `docs/libraries.md`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use bytes::Bytes;
use holdfast_tests::client::{Outcome, SqlClient};
use holdfast_tests::wait;
use http::Method;
use serde_json::{Value, json};

use crate::support::{SOON, fleet};

/// A library, what of it is run, and what that comes to.
struct Library {
    name: &'static str,
    runs: &'static str,
    answer: Value,
}

fn libraries() -> Vec<Library> {
    let library = |name, runs, answer| Library { name, runs, answer };
    vec![
        library(
            "drizzle-orm",
            "`durable-sqlite`: migrations, insert, update, select, relational query, a transaction that rolls back",
            json!([
                [{"name": "ann"}, {"name": "bob"}],
                [{"name": "bob", "age": 5, "tags": null}, {"name": "ann", "age": 4, "tags": ["a"]}],
                {"name": "bob"}, "RangeError", 2
            ]),
        ),
        library(
            "hono",
            "routes, parameters, `cors`, `validator`, `contextStorage` over awaits, `HTTPException`, `notFound`",
            json!([
                [200, "Hello Hono!", "yes"],
                [
                    [200, r#"{"id":"7","page":"2","user":"ann"}"#, "yes"],
                    [200, r#"{"id":"7","page":"2","user":"bob"}"#, "yes"]
                ],
                [201, r#"{"made":"a"}"#, "yes"],
                [400, "no title", "yes"],
                [403, "not yours", "yes"],
                [404, "nothing here", "yes"]
            ]),
        ),
        library(
            "itty-router",
            "`AutoRouter`, `withParams`, `error`, `json`",
            json!([
                [200, "\"Hello, you!\""],
                [200, r#"{"id":"3","query":{"a":["1","2"]}}"#],
                [418, r#"{"status":418,"error":"teapot"}"#],
                [200, r#"{"x":[1]}"#],
                [404, r#"{"status":404,"error":"Not Found"}"#]
            ]),
        ),
        library(
            "jose",
            "`SignJWT` and `jwtVerify` with HS256 and ES256, expiry, `exportJWK`",
            json!(["eyJhbGciOiJIUzI1NiJ9", "admin", "ann", "ERR_JWT_EXPIRED", "ES256", "P-256"]),
        ),
        library("nanoid", "`nanoid`, `customAlphabet`", json!([21, 10, true, 100])),
        library(
            "partyserver",
            "a `Server` in a Durable Object: `onStart`, `onRequest`, `name`, `getConnections`",
            json!({"name": "room", "started": true, "query": "?x=1", "connections": 0}),
        ),
        library(
            "ulid",
            "`ulid`, `monotonicFactory`, `decodeTime`",
            json!(["0000000001", 26, 1_469_918_176_385_u64, true]),
        ),
        library(
            "xxhash-wasm",
            "WebAssembly: `h32ToString`, `h64`, `create64`, a text that its memory must grow for",
            json!(["fc44ef8a", "9b05309a5e688c8e", "15397730242686860875", "b2aceeb7592b1d54", true]),
        ),
        library(
            "yjs",
            "maps, texts and arrays of two documents that follow each other, state vectors",
            json!([{"a": {"b": 1}}, "Hello world!", [1, 2], ["a"]]),
        ),
        library(
            "zod",
            "objects, coercion, defaults, unions, issues of `safeParse`, `toJSONSchema`",
            json!([
                {"username": "billie", "xp": 100, "tags": []}, false,
                [["username", "too_small"], ["xp", "invalid_type"], ["mail", "invalid_format"]], 5,
                {"a": {"type": "string"}}
            ]),
        ),
    ]
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("libraries")
}

/// The project beside its libraries.
fn install() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libraries");
    let installed = Command::new("/bin/sh").arg(source().join("install.sh")).arg(&folder).output().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "installs libraries from npm"]
async fn libraries_do_what_their_documentation_says() {
    let project = tokio::task::spawn_blocking(install).await.unwrap();
    let cluster = fleet(1, 1).await;
    let deployed = cluster.tool(&["deploy", project.to_str().unwrap()]).await.unwrap();
    assert_eq!(deployed.code, 0, "{}", deployed.stderr);
    let client = SqlClient::new(Duration::from_secs(60));
    let get = async |name: &str| -> anyhow::Result<String> {
        match client.send(Method::GET, cluster.ingress(), &format!("/{name}"), Bytes::new()).await {
            Outcome::Acked(answer, _) => Ok(answer.text()),
            Outcome::Refused(reason) | Outcome::Unknown(reason) => Err(anyhow::Error::msg(reason)),
        }
    };
    // The ingress adopts the application by itself, and so does the node, soon after.
    for name in ["nanoid", "partyserver"] {
        let adopted = async || -> anyhow::Result<()> {
            let answer = get(name).await?;
            // Until then the ingress says in JSON that there is none.
            let is_ours =
                serde_json::from_str::<Value>(&answer).is_ok_and(|answer| answer.get("error").is_none());
            ensure!(is_ours, "{answer}");
            Ok(())
        };
        wait::until("the application runs", SOON, adopted).await.unwrap();
    }
    let mut wrong = String::new();
    let versions: Value =
        serde_json::from_str(&std::fs::read_to_string(source().join("package.json")).unwrap()).unwrap();
    let mut text = String::from(
        "# Libraries\n\nMade by the test `process::libraries` (`HOLDFAST_BLESS=1` writes it): `tests/libraries` installs \
         these from npm, and\nruns them on Holdfast unchanged. Right values are asserted, not only that nothing \
         throws.\n\n| library | version | what is run | works |\n|---|---|---|---|\n",
    );
    for Library { name, runs, answer } in libraries() {
        let came = get(name).await.unwrap_or_else(|reason| format!("no answer: {reason}"));
        if serde_json::from_str::<Value>(&came).ok() != Some(answer.clone()) {
            writeln!(wrong, "{name}\n  is: {came}\n  should be: {answer}").unwrap();
        }
        let version = versions["dependencies"][name].as_str().unwrap();
        writeln!(text, "| `{name}` | {version} | {runs} | yes |").unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/libraries.md");
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, text, "docs/libraries.md is not what this run made: HOLDFAST_BLESS=1 writes it");
}
