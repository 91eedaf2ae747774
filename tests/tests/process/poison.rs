//! Alarms that end their process: the test kills the owner whenever the handler's request to a server arrives. They are
//! counted, come back after growing pauses, and are given up, while their cells and all others go on.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::ensure;
use holdfast_tests::client::SqlClient;
use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use holdfast_types::CellName;
use http::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::application::{ask, publish};
use crate::support::{SOON, TTL, acked, client, create, owner};

/// `/bell` begins an alarm that sets itself again every second; `/rung` tells how often it ran. `/arm` sets one whose handler
/// asks the server, and `/done` tells whether that ever came to its end, and whether it is armed.
const SOURCE: &str = "import { DurableObject } from 'cloudflare:workers';
    export class Cell extends DurableObject {
      async bell() { this.ctx.storage.kv.put('rung', 0); await this.ctx.storage.setAlarm(Date.now()); return 'set'; }
      rung() { return this.ctx.storage.kv.get('rung'); }
      async arm() { await this.ctx.storage.setAlarm(Date.now() + 500); return `Cell:${this.ctx.id}`; }
      async done() { return [this.ctx.storage.kv.get('done') ?? false, (await this.ctx.storage.getAlarm()) !== null].join(); }
      async alarm() {
        const { storage } = this.ctx;
        if (storage.kv.get('rung') === undefined) {
          await fetch('SERVER');
          storage.kv.put('done', true);
        } else {
          storage.kv.put('rung', storage.kv.get('rung') + 1);
          await storage.setAlarm(Date.now() + 1000);
        }
      }
    }
    export default { async fetch(request, env) {
      const [, what] = new URL(request.url).pathname.split('/');
      if (what === 'ready') return new Response('ready');
      const cell = env.CELLS.getByName(what === 'bell' || what === 'rung' ? 'bell' : 'deadly');
      return new Response(String(await cell[what]()));
    } };";

/// The log line of a run that is counted before it begins.
const COUNTED: &str = "its run is counted before it begins";
/// Runs of an alarm that ends each process: the first, and six that are counted.
const STARTS: usize = 7;
/// Longest pause between two of them is 32 s; besides a lease ends, and the waker looks.
const NEXT_START: Duration = Duration::from_secs(60);

/// A server to which handlers connect. Whoever takes a connection answers it, or ends the process on its other side.
async fn server() -> (SocketAddr, mpsc::Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, started) = mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if sender.send(stream).await.is_err() {
                return;
            }
        }
    });
    (address, started)
}

struct Fleet {
    cluster: Cluster,
    client: SqlClient,
    server: SocketAddr,
    started: mpsc::Receiver<TcpStream>,
}

impl Fleet {
    async fn new() -> Self {
        let (server, started) = server().await;
        let allow = vec!["--allow-outbound".to_owned(), "127.0.0.1".to_owned()];
        let options = ClusterOptions {
            nodes: 3,
            wakers: 1,
            lease_ttl: TTL,
            node_args: allow,
            ..ClusterOptions::default()
        };
        let mut cluster = Cluster::start(options).await.unwrap();
        cluster.allow_in_logs("an alarm is given up");
        // A program may know of a class before another does.
        cluster.allow_in_logs("Uncaught");
        publish(&cluster, "Cell", &SOURCE.replace("SERVER", &format!("http://{server}/"))).await;
        let fleet = Self { cluster, client: client(), server, started };
        fleet.asks("/ready").await;
        fleet
    }

    /// What the application answers, asked until it does.
    async fn asks(&self, path: &str) -> String {
        let asked = async || ask(&self.client, Method::GET, self.cluster.ingress(), path).await;
        wait::until(path, SOON, asked).await.unwrap()
    }

    async fn next_start(&mut self) -> TcpStream {
        let started = tokio::time::timeout(NEXT_START, self.started.recv()).await;
        started.expect("the next run begins").expect("the server lives")
    }

    /// Ends the process that runs the alarm of a cell, and starts it again.
    async fn kill(&mut self, node: &str, run: TcpStream) {
        self.cluster.kill(node).unwrap();
        drop(run);
        self.cluster.start_node(node).await.unwrap();
    }

    /// Lines of all nodes' logs that say this of a cell.
    fn lines(&self, cell: &str, text: &str) -> usize {
        let logs = ["n1", "n2", "n3"].map(|node| self.cluster.log(node));
        let lines = logs.iter().flat_map(|log| log.lines());
        lines.filter(|line| line.contains(cell) && line.contains(text)).count()
    }

    async fn rung(&self) -> u64 {
        self.asks("/rung").await.parse().unwrap()
    }

    async fn alarm(&self, db: &str) -> serde_json::Value {
        let path = format!("/-/db/{db}/alarm");
        let shown = wait::until("the alarm", SOON, async || {
            let sent = self.client.send(Method::GET, self.cluster.ingress(), &path, Default::default());
            let answer = sent.await.into_result()?;
            ensure!(answer.status == 200, "{}", answer.text());
            answer.json()
        });
        shown.await.unwrap()["alarm"].clone()
    }
}

async fn answer(mut run: TcpStream) {
    let mut head = [0; 4_096];
    assert!(run.read(&mut head).await.unwrap() > 0);
    run.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_whose_owner_died_twice_while_it_ran_ends_well_and_leaves_no_trace() {
    let mut fleet = Fleet::new().await;
    let cell = CellName::parse(&fleet.asks("/arm").await).unwrap();
    for _ in 0..2 {
        let run = fleet.next_start().await;
        let owner = fleet.cluster.owner_of(&cell).await.unwrap().unwrap().node.to_string();
        fleet.kill(&owner, run).await;
    }
    answer(fleet.next_start().await).await;
    let done = wait::until("the end of the alarm", SOON, async || {
        let done = fleet.asks("/done").await;
        ensure!(done == "true,false", "{done}");
        Ok(())
    });
    done.await.unwrap();
    assert_eq!(fleet.lines(cell.as_str(), COUNTED), 2, "the first death is not counted");
    assert_eq!(fleet.lines(cell.as_str(), "an alarm is given up"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_that_ends_every_process_that_runs_it_is_given_up_and_the_fleet_goes_on() {
    let mut fleet = Fleet::new().await;
    fleet.asks("/bell").await;
    let ingress = fleet.cluster.ingress();
    create(&fleet.client, ingress, "deadly").await.unwrap();
    let body = format!(r#"{{"in_ms": 200, "url": "http://{}/"}}"#, fleet.server);
    let set = fleet.client.send(Method::POST, ingress, "/-/db/deadly/alarm", body.into()).await;
    assert_eq!(set.into_result().unwrap().status, 200);
    let mut starts = Vec::new();
    for number in 0..STARTS {
        let run = fleet.next_start().await;
        starts.push(Instant::now());
        let owner = owner(&fleet.cluster, "deadly").await;
        fleet.kill(&owner, run).await;
        // Between its runs the cell serves.
        let id = format!("after death {number}");
        let args = [serde_json::json!(id)];
        acked(&fleet.client, ingress, "deadly", "INSERT INTO t (id, n) VALUES (?, 1)", &args).await.unwrap();
    }
    let given_up = wait::until("the end of the alarm", SOON, async || {
        let alarm = fleet.alarm("deadly").await;
        ensure!(alarm.is_null(), "{alarm}");
        Ok(())
    });
    given_up.await.unwrap();
    assert_eq!(fleet.lines("db:deadly", COUNTED), STARTS - 1);
    assert_eq!(fleet.lines("db:deadly", "their process probably died of them"), 1);
    let pauses: Vec<u128> = starts.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    println!("between starts (ms): {pauses:?}");
    for (pause, least) in pauses[1..].iter().zip([2_000, 4_000, 8_000, 16_000, 32_000]) {
        assert!(*pause >= least, "{pauses:?}");
    }
    // The fleet is quiet: no node dies any more, and alarms of others ring.
    let rung = fleet.rung().await;
    let goes_on = wait::until("the bell", SOON, async || {
        let now = fleet.rung().await;
        ensure!(now >= rung + 5, "{now} after {rung}");
        Ok(())
    });
    goes_on.await.unwrap();
    assert!(fleet.started.try_recv().is_err(), "it runs no more");
    let rows = acked(&fleet.client, ingress, "deadly", "SELECT count(*) FROM t", &[]).await.unwrap();
    assert!(rows[0][0].as_u64().unwrap() >= STARTS as u64, "{rows:?}");
}
