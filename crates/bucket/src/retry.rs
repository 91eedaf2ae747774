//! When a store call is made again, for every store that talks over a network. Owns back-off and the loop of a
//! conditional write (design 3.2); it must never make a write again whose outcome is open.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::{BucketError, Commit, ErrorKind, Version};

/// How long one attempt of a small call may take: the longest that a healthy store needs, many times over.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(10);

/// How long a streamed body may be silent.
pub(crate) const STALL: Duration = Duration::from_secs(10);

/// After this long no further attempt of a read, an unconditional write or a delete begins.
const BUDGET: Duration = Duration::from_secs(30);

/// Most attempts of one call.
const ATTEMPTS_MAX: u32 = 6;

/// Bounds of the pause before the second attempt, and of any pause.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Slowest upload that is still waited for, in bytes per second.
const UPLOAD_RATE_MIN: u64 = 256 * 1024;

/// Longest deadline of a conditional write that is honoured: a larger one is a caller's slip, and would overflow.
const DEADLINE_MAX: Duration = Duration::from_secs(3600);

/// How long one attempt to send `len` bytes may take.
pub(crate) fn upload_limit(len: usize) -> Duration {
    ATTEMPT + Duration::from_secs(len as u64 / UPLOAD_RATE_MIN)
}

/// The pause before attempt `attempt + 1` (the first is 1): a random part of an exponentially growing span, so that
/// many clients that failed together do not come back together.
pub(crate) fn pause(attempt: u32) -> Duration {
    let span = PAUSE_FIRST.saturating_mul(1 << attempt.min(10)).min(PAUSE_MAX);
    // Without randomness the middle is as good as any.
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    span.mul_f64(0.25 + 0.75 * f64::from(random) / f64::from(u32::MAX))
}

/// Runs one attempt of a call within `limit`.
///
/// # Errors
/// The attempt's own, or `NoAnswer`.
pub(crate) async fn within<T>(
    operation: &'static str,
    key: &str,
    limit: Duration,
    attempt: impl Future<Output = Result<T, BucketError>>,
) -> Result<T, BucketError> {
    timeout(limit, attempt).await.unwrap_or_else(|_| {
        let detail = format!("no answer within {} ms", limit.as_millis());
        Err(BucketError::new(operation, key, ErrorKind::NoAnswer, detail))
    })
}

/// Makes a call that is safe to repeat until it succeeds, fails for good, or has used up its budget. Each call has its
/// own: no quota is shared, so one failing object never starves another.
///
/// # Errors
/// The last attempt's.
pub(crate) async fn repeat<T, F, A>(mut attempt: F) -> Result<T, BucketError>
where
    F: FnMut() -> A,
    A: Future<Output = Result<T, BucketError>>,
{
    let begin = Instant::now();
    let mut count = 0;
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        count += 1;
        let pause = pause(count);
        // A full disk does not empty in seconds: the caller decides how long to wait.
        let may_heal = error.kind.is_transient() && error.kind != ErrorKind::NoSpace;
        if !may_heal || count >= ATTEMPTS_MAX || begin.elapsed() + pause > BUDGET {
            return Err(error);
        }
        tracing::debug!(operation = error.operation, attempt = count, %error, "store call is made again");
        sleep(pause).await;
    }
}

/// What one attempt of a conditional write came to.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// Written.
    Applied(Version),
    /// The condition did not hold.
    Rejected,
    /// Surely not written; the store asks to come again (409, 429).
    Refused(BucketError),
    /// Probably not written; the store asks to come again (503).
    Busy(BucketError),
    /// Nobody knows.
    Open(BucketError),
}

/// Makes a conditional write: again after `Refused` and `Busy` while `deadline_ms` lasts, never after `Open`. One attempt
/// takes at most `limit`.
///
/// A rejection that follows a `Busy` answer may be the work of our own earlier attempt, so it is reported as unknown.
pub(crate) async fn commit<F, A>(key: &str, deadline_ms: u64, limit: Duration, mut attempt: F) -> Commit
where
    F: FnMut() -> A,
    A: Future<Output = Attempt>,
{
    let deadline = Instant::now() + Duration::from_millis(deadline_ms).min(DEADLINE_MAX);
    let mut doubt = None;
    let mut count = 0;
    loop {
        let begin = Instant::now();
        let answer = timeout_at(deadline.min(begin + limit), attempt()).await.unwrap_or_else(|_| {
            let detail = format!("no answer within {} ms", begin.elapsed().as_millis());
            Attempt::Open(BucketError::new("put_if", key, ErrorKind::NoAnswer, detail))
        });
        let (error, is_in_doubt) = match answer {
            Attempt::Applied(version) => return Commit::Applied(version),
            Attempt::Rejected => return doubt.map_or(Commit::Rejected, Commit::Unknown),
            Attempt::Open(error) => return Commit::Unknown(error),
            Attempt::Refused(error) => (error, false),
            Attempt::Busy(error) => (error, true),
        };
        count += 1;
        let resume = Instant::now() + pause(count);
        if resume >= deadline {
            return Commit::Unknown(error);
        }
        tracing::debug!(operation = "put_if", attempt = count, %error, "conditional write is made again");
        if is_in_doubt {
            doubt = Some(error);
        }
        tokio::time::sleep_until(resume).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn error(kind: ErrorKind) -> BucketError {
        BucketError::new("put_if", "k", kind, "scripted")
    }

    async fn run(answers: impl IntoIterator<Item = Attempt>) -> (Commit, usize) {
        let mut answers: VecDeque<_> = answers.into_iter().collect();
        let commit =
            commit("k", 60_000, ATTEMPT, || std::future::ready(answers.pop_front().expect("scripted"))).await;
        (commit, answers.len())
    }

    fn busy() -> Attempt {
        Attempt::Busy(error(ErrorKind::Unavailable))
    }

    fn refused() -> Attempt {
        Attempt::Refused(error(ErrorKind::Unavailable))
    }

    #[tokio::test(start_paused = true)]
    async fn a_conflict_is_made_again_and_leaves_no_doubt() {
        let applied = Attempt::Applied(Version::new("1"));
        assert!(matches!(run([refused(), refused(), applied]).await, (Commit::Applied(_), 0)));
        assert!(matches!(run([refused(), Attempt::Rejected]).await, (Commit::Rejected, 0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejection_after_a_doubtful_answer_is_unknown() {
        assert!(matches!(run([busy(), refused(), Attempt::Rejected]).await, (Commit::Unknown(_), 0)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_outcome_is_never_made_again() {
        let open = Attempt::Open(error(ErrorKind::NoAnswer));
        assert!(matches!(run([open, Attempt::Rejected]).await, (Commit::Unknown(_), 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_bounds_a_conditional_write() {
        let begin = Instant::now();
        let silent = commit("k", 700, ATTEMPT, std::future::pending).await;
        assert!(matches!(silent, Commit::Unknown(e) if e.kind == ErrorKind::NoAnswer));
        let limited = commit("k", 60_000, Duration::from_millis(100), std::future::pending).await;
        assert!(matches!(limited, Commit::Unknown(e) if e.kind == ErrorKind::NoAnswer));
        let busy = commit("k", 700, ATTEMPT, || std::future::ready(busy())).await;
        assert!(matches!(busy, Commit::Unknown(e) if e.kind == ErrorKind::Unavailable));
        assert!(begin.elapsed() <= Duration::from_millis(1500));
    }

    #[tokio::test(start_paused = true)]
    async fn only_failures_that_may_heal_are_repeated() {
        for (kind, attempts) in [
            (ErrorKind::NoAnswer, ATTEMPTS_MAX),
            (ErrorKind::Unavailable, ATTEMPTS_MAX),
            (ErrorKind::BadBody, ATTEMPTS_MAX),
            (ErrorKind::NoSpace, 1),
            (ErrorKind::Denied, 1),
            (ErrorKind::ClockSkew, 1),
        ] {
            let mut count = 0;
            let answer: Result<(), _> = repeat(|| {
                count += 1;
                std::future::ready(Err(error(kind)))
            })
            .await;
            assert_eq!((answer.unwrap_err().kind, count), (kind, attempts));
        }
    }
}
