//! How long one try of a call about an object may take. A try that is given up may have happened nevertheless.

use std::time::Duration;

use holdfast_bucket::{BucketError, ErrorKind};

/// Longest wait for the answer of one try, in milliseconds; a longer body gets more, at a megabyte a second.
const TRY_MS_MAX: u64 = 5_000;

/// The call's answer, if it comes in the time that a body of `len` bytes may take.
///
/// # Errors
/// The call's own, or [`ErrorKind::NoAnswer`].
pub(crate) async fn in_time<T>(
    (operation, key): (&'static str, &str),
    len: u64,
    call: impl Future<Output = Result<T, BucketError>>,
) -> Result<T, BucketError> {
    let patience = Duration::from_millis(TRY_MS_MAX + len / 1_000);
    match tokio::time::timeout(patience, call).await {
        Ok(answer) => answer,
        Err(_) => Err(BucketError::new(operation, key, ErrorKind::NoAnswer, "no answer in time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_body_gets_more_time_and_none_for_ever() {
        let after = |ms| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(())
        };
        assert!(in_time(("put", "k"), 0, after(4_999)).await.is_ok());
        let error = in_time(("put", "k"), 0, after(5_001)).await.unwrap_err();
        assert_eq!((error.kind, error.to_string().contains('k')), (ErrorKind::NoAnswer, true));
        assert!(in_time(("put", "k"), 8_000_000, after(12_999)).await.is_ok());
    }
}
