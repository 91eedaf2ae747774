//! Tells whether a store's refusal is about this machine's clock, from the `Date` of its answer.

use std::time::{Duration, SystemTime};

use aws_sdk_s3::primitives::{DateTime, DateTimeFormat};

/// Clocks that differ by more than this get every signature refused: stores allow 15 minutes. A refusal that does not
/// name its cause is put down to the clock only when there can be little doubt.
const SKEW_MIN: Duration = Duration::from_secs(14 * 60);

/// Whether an HTTP date is far from this machine's time. An unreadable one is not.
pub(crate) fn is_far_off(date: &str) -> bool {
    is_far_from(date, SystemTime::now())
}

fn is_far_from(date: &str, ours: SystemTime) -> bool {
    let date = DateTime::from_str(date, DateTimeFormat::HttpDate).ok();
    let Some(theirs) = date.and_then(|date| SystemTime::try_from(date).ok()) else { return false };
    let apart = ours.duration_since(theirs).unwrap_or_else(|ahead| ahead.duration());
    apart > SKEW_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_an_hour_is_far() {
        let ours = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (date, is_far) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", false),
            ("Sun, 06 Nov 1994 08:59:37 GMT", false),
            ("Sun, 06 Nov 1994 09:04:37 GMT", true),
            ("Sun, 06 Nov 1994 08:34:37 GMT", true),
            ("yesterday", false),
        ] {
            assert_eq!(is_far_from(date, ours), is_far, "{date}");
        }
    }
}
