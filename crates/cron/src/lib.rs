//! Cron expressions as Cloudflare reads them: five fields (minute, hour, day of the month, month, day of the week), in UTC,
//! days of the week from 1 (Sunday) to 7 (Saturday) or by name, with `L`, `W` and `#`. Where both days are given, either
//! one is enough.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use chrono::{DateTime, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

/// Longest expression, in bytes.
pub const EXPRESSION_LEN_MAX: usize = 256;
/// Fields of an expression.
const FIELDS: usize = 5;

/// Why an expression is refused. Disposition: reject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// It is not five fields.
    #[error(
        "has {0} fields; write five: minute, hour, day of the month, month, day of the week (\"*/30 * * * *\")"
    )]
    Fields(usize),
    /// It is longer than [`EXPRESSION_LEN_MAX`].
    #[error("is longer than {EXPRESSION_LEN_MAX} bytes")]
    TooLong,
    /// A field says nothing that can be read.
    #[error("is not a cron expression: {0}")]
    Invalid(String),
    /// It names no day that there is.
    #[error("never comes: no date is what it names")]
    Never,
}

/// When something is to happen again and again.
#[derive(Clone, Debug)]
pub struct Schedule(Cron);

impl Schedule {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`CronError`].
    pub fn parse(expression: &str) -> Result<Self, CronError> {
        if expression.len() > EXPRESSION_LEN_MAX {
            return Err(CronError::TooLong);
        }
        let fields = expression.split_ascii_whitespace().count();
        if fields != FIELDS {
            return Err(CronError::Fields(fields));
        }
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .alternative_weekdays(true)
            .build();
        let schedule = Self(parser.parse(expression).map_err(|error| CronError::Invalid(error.to_string()))?);
        // Every date that there is comes within these years, the 29th of February on each day of the week included.
        schedule.next_after(0).ok_or(CronError::Never)?;
        Ok(schedule)
    }

    /// The first time after this one; both in milliseconds since 1970-01-01 UTC. None where that is out of range.
    #[must_use]
    pub fn next_after(&self, ms: i64) -> Option<i64> {
        let after = DateTime::<Utc>::from_timestamp_millis(ms)?;
        Some(self.0.find_next_occurrence(&after, false).ok()?.timestamp_millis())
    }

    /// The last time up to this one, and this one itself where it is one; both in milliseconds since 1970-01-01 UTC. None
    /// where that is out of range.
    #[must_use]
    pub fn last_until(&self, ms: i64) -> Option<i64> {
        let until = DateTime::<Utc>::from_timestamp_millis(ms)?;
        Some(self.0.find_previous_occurrence(&until, true).ok()?.timestamp_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis()
    }

    fn next(expression: &str, after: &str) -> String {
        let schedule = Schedule::parse(expression).unwrap_or_else(|error| panic!("`{expression}` {error}"));
        let next = schedule.next_after(ms(after)).unwrap();
        DateTime::<Utc>::from_timestamp_millis(next).unwrap().format("%F %H:%M:%S%.3f").to_string()
    }

    #[test]
    fn expressions_mean_what_they_mean_at_cloudflare() {
        // A Monday.
        let now = "2026-11-30T21:45:31.250Z";
        for (expression, expected) in [
            ("* * * * *", "2026-11-30 21:46:00.000"),
            ("*/30 * * * *", "2026-11-30 22:00:00.000"),
            ("45 * * * *", "2026-11-30 22:45:00.000"),
            ("0 17 * * sun", "2026-12-06 17:00:00.000"),
            ("0 17 * * 1", "2026-12-06 17:00:00.000"),
            ("0 17 * * 7", "2026-12-05 17:00:00.000"),
            ("10 7 * * mon-fri", "2026-12-01 07:10:00.000"),
            ("10 7 * * 2-6", "2026-12-01 07:10:00.000"),
            ("0 15 1 * *", "2026-12-01 15:00:00.000"),
            ("0 18 * * 6L", "2026-12-25 18:00:00.000"),
            ("59 23 LW * *", "2026-11-30 23:59:00.000"),
            ("0 12 L * *", "2026-12-31 12:00:00.000"),
            ("0 9 * jan,MAR *", "2027-01-01 09:00:00.000"),
            ("0 0 * * MON#2", "2026-12-14 00:00:00.000"),
            ("0 0 29 2 *", "2028-02-29 00:00:00.000"),
            // Either day is enough.
            ("0 0 13 * fri", "2026-12-04 00:00:00.000"),
        ] {
            assert_eq!(next(expression, now), expected, "{expression}");
        }
    }

    #[test]
    fn a_time_that_is_one_is_not_after_itself_and_is_the_last_until_itself() {
        let schedule = Schedule::parse("*/5 * * * *").unwrap();
        let at = ms("2026-11-30T21:45:00Z");
        assert_eq!(schedule.next_after(at), Some(ms("2026-11-30T21:50:00Z")));
        assert_eq!(schedule.last_until(at), Some(at));
        assert_eq!(schedule.last_until(at + 299_999), Some(at));
        assert_eq!(schedule.next_after(at - 1), Some(at));
        assert_eq!(schedule.next_after(i64::MAX), None);
        assert_eq!(schedule.last_until(i64::MIN), None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(Schedule::parse("* * * *").unwrap_err(), CronError::Fields(4));
        assert_eq!(Schedule::parse("0 * * * * *").unwrap_err(), CronError::Fields(6));
        assert_eq!(Schedule::parse("@daily").unwrap_err(), CronError::Fields(1));
        assert_eq!(Schedule::parse("").unwrap_err(), CronError::Fields(0));
        assert_eq!(Schedule::parse(&"*".repeat(257)).unwrap_err(), CronError::TooLong);
        assert_eq!(Schedule::parse("0 0 30 2 *").unwrap_err(), CronError::Never);
        for bad in [
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 0",
            "* * * * 8",
            "a * * * *",
            "*/0 * * * *",
            "5-1 * * * *",
        ] {
            assert!(matches!(Schedule::parse(bad), Err(CronError::Invalid(_))), "{bad}");
        }
    }
}
