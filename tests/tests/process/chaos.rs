//! Two minutes of the long test; `just chaos` runs twenty.

use std::time::Duration;

use holdfast_tests::chaos::{ChaosOptions, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledgement_is_lost_in_a_short_chaos_run() {
    let report = run(&ChaosOptions {
        duration: Duration::from_secs(120),
        seed: 1,
        cells: 200,
        workers: 16,
        nodes: 3,
        ingresses: 2,
        followers: 3,
        lease_ttl: Duration::from_secs(3),
    })
    .await
    .unwrap();
    println!("{}", serde_json::to_string_pretty(&report).unwrap());
    assert!(report.ok, "{report:#?}");
}
