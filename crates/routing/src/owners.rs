//! Owner records, as far as routing cares.

use std::sync::Arc;

use futures::future::BoxFuture;
use holdfast_bucket::Bucket;
use holdfast_core::routing::OwnerView;
use holdfast_records::{Key, OwnerRecord, OwnerState, Record};
use holdfast_types::CellName;

use crate::shared::SharedReads;

pub(crate) struct Owners {
    bucket: Arc<dyn Bucket>,
    reads: SharedReads<CellName, OwnerView>,
}

impl Owners {
    pub(crate) fn new(bucket: Arc<dyn Bucket>) -> Self {
        Self { bucket, reads: SharedReads::new() }
    }

    // Boxed, here and in `leases`: the compiler cannot see that nested futures over two borrows may move between threads.
    pub(crate) fn read<'a>(&'a self, cell: &'a CellName) -> BoxFuture<'a, OwnerView> {
        Box::pin(self.reads.get(cell, self.fetch(cell)))
    }

    async fn fetch(&self, cell: &CellName) -> OwnerView {
        let object = match self.bucket.get(&Key::Owner(cell.clone()).to_string()).await {
            Ok(Some(object)) => object,
            Ok(None) => return OwnerView::Unowned,
            Err(error) => {
                tracing::warn!(%error, %cell, "cannot read an owner record");
                return OwnerView::Unreadable;
            }
        };
        match OwnerRecord::decode(&object.body) {
            Ok(OwnerRecord { state: OwnerState::Owned, node, session, epoch, .. }) => {
                OwnerView::Owned { node, session, epoch }
            }
            Ok(OwnerRecord { state: OwnerState::Released | OwnerState::Purged, .. }) => OwnerView::Unowned,
            Err(error) => {
                tracing::error!(%error, %cell, "an owner record cannot be used");
                OwnerView::Unusable
            }
        }
    }
}
