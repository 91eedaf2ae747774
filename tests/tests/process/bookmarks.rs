//! Bookmarks of an object on real programs, with a follower that proves: many transactions share an object in the bucket, but
//! none shares one with what was written before a bookmark. What an object wished for survives the death of its node.

use anyhow::ensure;
use holdfast_tests::wait;
use http::Method;

use crate::application::{ask, publish};
use crate::support::{SOON, client};
use crate::tier::{tier, wait_ensemble};

const SOURCE: &str = "import { DurableObject } from 'cloudflare:workers';
    export class Note extends DurableObject {
      constructor(ctx, env) {
        super(ctx, env);
        ctx.storage.sql.exec('CREATE TABLE IF NOT EXISTS t(n REAL)');
      }
      rows() { return this.ctx.storage.sql.exec('SELECT n FROM t ORDER BY n').toArray().map(({ n }) => n).join(); }
      add(n) { this.ctx.storage.sql.exec('INSERT INTO t VALUES (?)', Number(n)); }
      // A bookmark between any two writes, none of which waits for it.
      async fill(count) {
        const bookmarks = [];
        for (let n = 1; n <= count; n++) {
          this.add(n);
          bookmarks.push(this.ctx.storage.getCurrentBookmark());
          await new Promise(done => setTimeout(done));
        }
        return (await Promise.all(bookmarks)).join();
      }
      wish(bookmark) { return this.ctx.storage.onNextSessionRestoreBookmark(bookmark); }
      abort() { this.ctx.abort(new Error('enough')); }
    }
    export default { async fetch(request, env) {
      const [, method, given] = new URL(request.url).pathname.split('/');
      const note = env.NOTES.getByName('a');
      return new Response(await note[method](given).catch(error => `${error}`));
    } };";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_goes_back_to_each_of_its_bookmarks_and_a_killed_node_loses_no_wish() {
    let mut cluster = tier(1, 1, &[]).await;
    // A program may know of a class before another does: then a handler throws.
    cluster.allow_in_logs("Uncaught");
    let (client, ingress) = (client(), cluster.ingress());
    let get = async |path: &str| ask(&client, Method::GET, ingress, path).await;
    publish(&cluster, "Note", SOURCE).await;
    wait::until("the object", SOON, async || {
        let rows = get("/rows").await?;
        ensure!(rows.is_empty(), "{rows}");
        Ok(())
    })
    .await
    .unwrap();
    wait_ensemble(&cluster, "n1", &["f1"]).await;

    let filled = get("/fill/12").await.unwrap();
    let bookmarks: Vec<&str> = filled.split(',').collect();
    assert_eq!(bookmarks.len(), 12, "{filled}");
    assert!(bookmarks.is_sorted(), "{filled}");
    let all = get("/rows").await.unwrap();
    let upto = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(all, upto(12));
    let mut undo = String::new();
    for count in [5, 11, 1, 8] {
        undo = get(&format!("/wish/{}", bookmarks[count - 1])).await.unwrap();
        assert!(undo.len() == bookmarks[0].len(), "{undo}");
        assert!(get("/abort").await.unwrap().contains("enough"));
        assert_eq!(get("/rows").await.unwrap(), upto(count), "{undo}");
    }
    // What was before the last restore.
    get(&format!("/wish/{undo}")).await.unwrap();
    get("/abort").await.unwrap();
    assert_eq!(get("/rows").await.unwrap(), upto(1));

    // Nothing happens between the wish and the end of its node.
    get("/add/50").await.unwrap();
    let undo = get(&format!("/wish/{}", bookmarks[6])).await.unwrap();
    let mut expected = upto(7);
    for more in ["", "60", "70"] {
        cluster.kill("n1").unwrap();
        cluster.start_again("n1").await.unwrap();
        let rows = wait::until("the object again", SOON, async || get("/rows").await).await.unwrap();
        assert_eq!(rows, expected, "the restore took place once, before anything else");
        if !more.is_empty() {
            get(&format!("/add/{more}")).await.unwrap();
            expected = format!("{expected},{more}");
        }
    }
    get(&format!("/wish/{undo}")).await.unwrap();
    get("/abort").await.unwrap();
    assert_eq!(get("/rows").await.unwrap(), "1,50");
    cluster.finish().unwrap();
}
