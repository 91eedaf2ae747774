//! Cells that nobody uses leave memory and stay owned.

use futures::poll;
use holdfast_core::ownership::{ClaimOutcome, Intent, OwnerState, ReleaseOutcome};
use holdfast_rpc::{CallError, CellHost as _};
use holdfast_types::Epoch;

use super::support::{Bench, Client};
use crate::release::release_unresident;

impl Bench {
    async fn owner(&self) -> (OwnerState, Epoch) {
        let (owner, _) = self.node.owners.read(&self.cell()).await.unwrap().expect("the cell has a record");
        (owner.state, owner.epoch)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_that_sleeps_stays_owned_and_wakes_without_a_look_at_its_objects() {
    let bench = Bench::new().await;
    assert_eq!(bench.call("/insert").await.unwrap().text().await, "1 rows");
    assert_eq!(bench.node.local_files.bytes(), 0, "files of a cell in memory are not in the book");
    bench.sleep().await;
    assert!(bench.node.local_files.bytes() > 0);
    assert_eq!(bench.owner().await, (OwnerState::Owned, Epoch::new(1)));
    for (epoch, rows) in [(2, "2 rows"), (3, "3 rows")] {
        let before = bench.looks();
        assert_eq!(bench.call("/insert").await.unwrap().text().await, rows);
        // The proof of its first output reads the owner record, as in any epoch.
        assert_eq!(bench.looks(), before + 1);
        assert_eq!(bench.owner().await, (OwnerState::Owned, Epoch::new(epoch)));
        bench.sleep().await;
    }
    // Asleep twice without a write: what the chain is has not changed.
    for _ in 0..2 {
        assert_eq!(bench.call("/rows").await.unwrap().text().await, "3 rows");
        bench.sleep().await;
    }
    // Nothing of the local files is needed.
    bench.forget_local_files();
    assert_eq!(bench.call("/rows").await.unwrap().text().await, "3 rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_changed_the_record_of_a_sleeping_cell_wins() {
    let bench = Bench::new().await;
    assert_eq!(bench.call("/insert").await.unwrap().text().await, "1 rows");
    bench.sleep().await;
    let (owner, version) = bench.node.owners.read(&bench.cell()).await.unwrap().unwrap();
    let released = bench.node.owners.release(&bench.cell(), &owner, version).await;
    assert_eq!(released, ReleaseOutcome::Released(Epoch::new(1)));
    assert!(bench.node.dormant.contains(&bench.cell()), "it was not told");
    let before = bench.looks();
    assert_eq!(bench.call("/rows").await.unwrap().text().await, "1 rows");
    assert!(bench.looks() > before + 2, "it is claimed and restored as any other");
    assert_eq!(bench.owner().await, (OwnerState::Owned, Epoch::new(2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sleeping_cell_that_is_given_up_and_deleted_is_not_made_anew_by_a_hint() {
    let bench = Bench::new().await;
    assert_eq!(bench.call("/insert").await.unwrap().text().await, "1 rows");
    bench.sleep().await;
    release_unresident(&bench.node, &bench.cell()).await.unwrap();
    let purged = bench.node.owners.claim(&bench.cell(), bench.node.claimant(), Intent::Purge).await;
    assert!(matches!(purged, ClaimOutcome::Claimed { .. }), "{purged:?}");
    let adopted = bench.host().adopt_cell(&bench.cell(), false).await;
    let Err(CallError::Rejected { status, .. }) = adopted else { panic!("{adopted:?}") };
    assert_eq!(status, http::StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_with_an_event_under_way_does_not_sleep() {
    let bench = Bench::new().await;
    let (body, client) = Client::body();
    let mut open = bench.spawn("/wait", body);
    bench.heard("begun 1").await;
    bench.quiet_thread().await;
    crate::release::sleep_idle(&bench.node).await;
    assert!(!bench.node.cells.is_empty() && poll!(&mut open).is_pending());
    client.send("x").await;
    assert_eq!(open.await.unwrap().unwrap().text().await, "x");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_to_adopt_makes_no_cell_and_lets_what_slept_sleep_on() {
    let bench = Bench::new().await;
    let adopt = async |is_asleep| bench.host().adopt_cell(&bench.cell(), is_asleep).await;
    let Err(CallError::Rejected { status, .. }) = adopt(false).await else { panic!("there is no such cell") };
    assert_eq!(status, http::StatusCode::NOT_FOUND);
    assert_eq!(bench.call("/insert").await.unwrap().text().await, "1 rows");
    bench.sleep().await;
    release_unresident(&bench.node, &bench.cell()).await.unwrap();
    assert_eq!(adopt(true).await, Ok(Epoch::new(2)));
    assert!(bench.node.cells.is_empty() && bench.node.dormant.contains(&bench.cell()));
    assert_eq!((bench.owner().await, bench.node.owned()), ((OwnerState::Owned, Epoch::new(2)), 1));
    assert_eq!(adopt(false).await, Ok(Epoch::new(3)));
    // A second hint, and one that is a lie, change nothing.
    assert_eq!(adopt(false).await, Ok(Epoch::new(3)));
    assert_eq!(adopt(true).await, Ok(Epoch::new(3)));
    assert_eq!(bench.call("/rows").await.unwrap().text().await, "1 rows");
    bench.node.begin_draining();
    assert_eq!(adopt(false).await, Err(CallError::Draining));
}
