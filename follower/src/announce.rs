//! What a follower's lease tells those that look for one: where it is, which disk it has, how much room.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use holdfast_bucket::Buckets;
use holdfast_core::lease::LeaseTiming;
use holdfast_records::{FollowerLease, Record};
use holdfast_rpc::PROTOCOL;
use holdfast_types::{HostId, Incarnation, Millis, SessionId, WriteId};

use crate::clock;
use crate::config::Config;
use crate::host::Host;
use crate::lease::{Describe, LeaseLoop};

/// The lease of this process.
pub(crate) fn lease(
    config: &Config,
    (session, incarnation): (SessionId, Incarnation),
    internal: SocketAddr,
    host: &Host,
    buckets: &Buckets,
) -> Result<LeaseLoop> {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let timing = LeaseTiming::with_ttl(millis(config.lease_ttl), millis(config.max_clock_skew));
    let address = config.advertise.clone().unwrap_or_else(|| internal.to_string());
    let machine = match &config.host {
        Some(host) => host.clone(),
        None => this_host()?,
    };
    let (follower, zone) = (config.follower.clone(), config.zone.clone());
    let (host, started_ms) = (host.clone(), clock::wall());
    let describe: Describe = Box::new(move |write_id: WriteId, expires_ms: Millis| FollowerLease {
        version: FollowerLease::VERSION,
        write_id,
        follower: follower.clone(),
        session,
        incarnation,
        expires_ms,
        started_ms,
        address: address.clone(),
        host: machine.clone(),
        zone: zone.clone(),
        protocol: PROTOCOL,
        free_bytes: if host.journal().has_room() { host.free_bytes() } else { 0 },
        retained_bytes: host.retained_bytes(),
        sessions: host.streams(),
        draining: host.is_draining(),
    });
    let bucket = Arc::clone(&buckets.leases);
    Ok(LeaseLoop::new(bucket, config.follower.clone(), (timing, session, incarnation), describe))
}

fn this_host() -> Result<HostId> {
    let read = |path| std::fs::read_to_string(path).ok().map(|text: String| text.trim().to_owned());
    let candidates = [read("/etc/machine-id"), read("/proc/sys/kernel/hostname")];
    candidates
        .into_iter()
        .flatten()
        .find_map(|text| HostId::parse(&text).ok())
        .context("this machine has neither a machine id nor a usable host name; name it with --host")
}
