//! `grpc-timeout`: how long the caller waits, as a deadline on this machine's clock.

use std::time::Duration;

use tokio::time::Instant;

use crate::{grpc, limits};

pub(super) fn of(headers: &http::HeaderMap) -> Instant {
    let text = headers.get(grpc::TIMEOUT).and_then(|value| value.to_str().ok());
    Instant::now() + text.and_then(parse).unwrap_or(limits::DEADLINE_DEFAULT)
}

/// Reads `TimeoutValue TimeoutUnit` of the gRPC protocol over HTTP/2: one to eight digits and a unit.
fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let well_formed = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let value: u64 = if well_formed { digits.parse().ok()? } else { return None };
    match unit {
        "H" => Some(Duration::from_secs(value * 3600)),
        "M" => Some(Duration::from_secs(value * 60)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_read_as_the_protocol_spells_it() {
        assert_eq!(parse("1S"), Some(Duration::from_secs(1)));
        assert_eq!(parse("99999999m"), Some(Duration::from_millis(99_999_999)));
        assert_eq!(parse("5u"), Some(Duration::from_micros(5)));
        for bad in ["", "S", "1", "1x", "-1S", "+1S", "123456789S", "1é"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
