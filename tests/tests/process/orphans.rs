//! Alarms whose owners die: they fire on the survivors without any request, none early, none later than the dead node's
//! lease, a tick of the waker and a little more explain (field cases 60, 61).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_tests::cluster::{Cluster, ClusterOptions};
use holdfast_tests::wait;
use http::Method;

use crate::application::{ask, publish};
use crate::support::{SOON, TTL, client};

const SOURCE: &str = "import { DurableObject } from 'cloudflare:workers';
    export class Bell extends DurableObject {
      async ring(at) { await this.ctx.storage.setAlarm(at); return 'set'; }
      async alarm() {
        const rung = (await this.ctx.storage.get('rung')) ?? [];
        await this.ctx.storage.put('rung', [...rung, Date.now()]);
      }
      async rung() { return (await this.ctx.storage.get('rung')) ?? []; }
    }
    export default { async fetch(request, env) {
      const [, what, name, at] = new URL(request.url).pathname.split('/');
      if (what === 'ready') return new Response('ready');
      const bell = env.BELLS.getByName(name);
      if (what === 'ring') return new Response(await bell.ring(Number(at)));
      return Response.json(await bell.rung());
    } };";

const BELLS: usize = 24;
/// A tick of the cluster's wakers, and what opening a cell may take besides.
const TICK_AND_OPENING_MS: u64 = 1_000 + 3_000;

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

async fn fleet_of_bells() -> Cluster {
    let options = ClusterOptions { nodes: 2, wakers: 1, lease_ttl: TTL, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(options).await.unwrap();
    // A program may know of a class before another does.
    cluster.allow_in_logs("Uncaught");
    publish(&cluster, "Bell", SOURCE).await;
    let (client, ingress) = (client(), cluster.ingress());
    wait::until("the application", SOON, async || ask(&client, Method::GET, ingress, "/ready").await)
        .await
        .unwrap();
    for number in 0..BELLS {
        let path = format!("/rung/{number}");
        let rung =
            wait::until("a bell", SOON, async || ask(&client, Method::GET, ingress, &path).await).await;
        assert_eq!(rung.unwrap(), "[]");
    }
    cluster
}

/// Sets every bell for a moment from now; that moment.
async fn ring_in(cluster: &Cluster, ms: u64) -> u64 {
    let at = now_ms() + ms;
    for number in 0..BELLS {
        let path = format!("/ring/{number}/{at}");
        ask(&client(), Method::GET, cluster.ingress(), &path).await.unwrap();
    }
    at
}

/// When each bell rang first. Nobody asks one before `from`, so none was woken by that.
async fn first_rings(cluster: &Cluster, from: u64) -> Vec<u64> {
    tokio::time::sleep(Duration::from_millis(from.saturating_sub(now_ms()))).await;
    let mut firsts = Vec::new();
    for number in 0..BELLS {
        let path = format!("/rung/{number}");
        let answer =
            wait::until("a bell", SOON, async || ask(&client(), Method::GET, cluster.ingress(), &path).await)
                .await;
        let rung: Vec<u64> = serde_json::from_str(&answer.unwrap()).unwrap();
        firsts.push(*rung.first().unwrap_or_else(|| panic!("bell {number} has not rung by {from}")));
    }
    firsts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alarms_of_a_dead_node_fire_on_the_survivor_without_a_request() {
    let mut cluster = fleet_of_bells().await;
    let at = ring_in(&cluster, 4_000).await;
    cluster.kill("n1").unwrap();
    let lease_ms = u64::try_from(TTL.as_millis()).unwrap() + 500;
    let latest = at.max(now_ms() + lease_ms) + TICK_AND_OPENING_MS;
    let firsts = first_rings(&cluster, latest).await;
    let late: Vec<u64> = firsts.iter().map(|first| first.saturating_sub(at)).collect();
    println!("late by (ms): {late:?}");
    for first in firsts {
        assert!(first >= at, "{} ms early", at - first);
        assert!(first <= latest, "{} ms later than the lease, the tick and 3 s", first - latest);
    }
}
