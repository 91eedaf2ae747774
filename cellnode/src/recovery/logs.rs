//! Every node log of the bucket, and the look that a node takes again at those that it could not recover. Finding dead
//! sessions is a waker's work.

use std::time::Duration;

use holdfast_bucket::{Bucket, BucketError};
use holdfast_records::Key;
use holdfast_rpc::follower::LogName;

use super::Recoveries;

/// Rows of one page of a listing.
const PAGE: usize = 1_000;
/// Between two looks at what could not be recovered.
const REVIEW_INTERVAL: Duration = Duration::from_secs(30);

/// Looks again at what this process could not recover, until it is dropped: others may have.
pub(crate) async fn keep_reviewing(recoveries: Recoveries) {
    loop {
        tokio::time::sleep(REVIEW_INTERVAL).await;
        recoveries.review().await;
    }
}

/// Every log that has a record.
///
/// # Errors
/// [`BucketError`].
pub async fn list_logs(records: &dyn Bucket) -> Result<Vec<LogName>, BucketError> {
    let mut logs = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = records.list("log/", after.as_deref(), PAGE).await?;
        logs.extend(page.objects.iter().filter_map(|object| match Key::parse(&object.key) {
            Ok(Key::NodeLog(node, session)) => Some(LogName { node, session }),
            Ok(_) | Err(_) => None,
        }));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(logs),
        }
    }
}
