//! The wakers: the alarm index's format, and who looks after its shards.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use holdfast_bucket::Buckets;
use holdfast_records::{Key, Record, WAKER_LEASES_PREFIX, WakeFormat, WakerLease};
use holdfast_types::Millis;

use super::{Check, Status};
use crate::peers;

/// Rows of one page.
const PAGE: usize = 1_000;

/// Looks at the format and at the leases.
pub(super) async fn wakers(buckets: &Buckets) -> Result<Vec<Check>> {
    let Some(object) = buckets.records.get(&Key::WakeFormat.to_string()).await? else {
        return Ok(vec![none_yet()]);
    };
    let format = match WakeFormat::decode(&object.body) {
        Ok(format) => format,
        Err(error) => return Ok(vec![Check::new(Status::Fault, "alarm index", error.to_string())]),
    };
    let detail =
        format!("format {}.{}, shards: {}", format.version.major, format.version.minor, format.shards);
    let mut checks = vec![Check::new(Status::Ok, "alarm index", detail)];
    checks.extend(judge(format.shards, &leases(buckets).await?, peers::now()));
    Ok(checks)
}

fn none_yet() -> Check {
    let detail = "none yet: the first waker, or the first node with an alarm, makes it";
    Check::new(Status::Note, "alarm index", detail)
}

async fn leases(buckets: &Buckets) -> Result<Vec<WakerLease>> {
    let page = buckets.records.list(WAKER_LEASES_PREFIX, None, PAGE).await?;
    let mut leases = Vec::new();
    for object in page.objects {
        let Some(found) = buckets.records.get(&object.key).await? else { continue };
        let lease = WakerLease::decode(&found.body).with_context(|| format!("`{}`", object.key))?;
        leases.push(lease);
    }
    Ok(leases)
}

/// Without a waker the alarms of cells that are in nobody's memory do not fire, and nothing else is wrong.
fn judge(shards: u16, leases: &[WakerLease], now: Millis) -> Vec<Check> {
    let mut held: BTreeMap<&str, u16> = BTreeMap::new();
    for lease in leases.iter().filter(|lease| now < lease.expires_ms) {
        *held.entry(lease.waker.as_str()).or_default() += 1;
    }
    let mut checks: Vec<Check> = held
        .iter()
        .map(|(waker, count)| {
            let detail = format!("looks after {count} of {shards} shards of the alarm index");
            Check::new(Status::Ok, format!("waker `{waker}`"), detail)
        })
        .collect();
    let orphaned = shards.saturating_sub(held.values().sum());
    if held.is_empty() {
        let detail = "none runs: alarms of cells that no node has in memory do not fire until one does";
        checks.push(Check::new(Status::Note, "wakers", detail));
    } else if orphaned > 0 {
        let detail =
            format!("{orphaned} of {shards} shards have no waker now; a live one takes them within seconds");
        checks.push(Check::new(Status::Note, "wakers", detail));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_types::{SessionId, WakerName, WriteId};

    fn lease(waker: &str, expires_ms: u64) -> WakerLease {
        WakerLease {
            version: WakerLease::VERSION,
            write_id: WriteId::from_bits(1),
            waker: WakerName::parse(waker).unwrap(),
            session: SessionId::from_bits(1),
            expires_ms: Millis::new(expires_ms),
            wish: None,
        }
    }

    #[test]
    fn shards_without_a_waker_are_told() {
        let texts = |leases: &[WakerLease]| -> Vec<(Status, String)> {
            let checks = judge(2, leases, Millis::new(100));
            checks
                .into_iter()
                .map(|check| (check.status, format!("{}: {}", check.check, check.detail)))
                .collect()
        };
        let all = texts(&[lease("w1", 101), lease("w1", 200)]);
        let detail = "waker `w1`: looks after 2 of 2 shards of the alarm index";
        assert_eq!(all, [(Status::Ok, detail.to_owned())]);
        let half = texts(&[lease("w1", 101), lease("w2", 100)]);
        assert_eq!((half[0].0, half[1].0), (Status::Ok, Status::Note));
        assert!(half[1].1.contains("1 of 2 shards have no waker"), "{half:?}");
        assert!(texts(&[lease("w1", 0)])[0].1.contains("none runs"));
    }
}
