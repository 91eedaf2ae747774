//! `holdfast diagnose`: goes through what a fleet stands on, says of each thing whether it is well, and names faults. It
//! writes nothing but the probe's own objects.

mod check;
mod logs;
mod nodes;
mod store;
mod wakers;

use anyhow::{Result, bail};
use holdfast_bucket::probe::probe;
use holdfast_bucket::{Bucket, BucketArgs, Buckets};
use holdfast_records::FleetIdentity;
use holdfast_rpc::identity::{self, IdentityError};
use holdfast_telemetry::program::causes;
use serde_json::json;

use crate::args::open_existing;
use crate::node::lease_json;
use crate::output::Output;
use crate::peers;

pub use check::{Check, Status};
pub use store::store_checks;

use nodes::nodes;
use store::read_only_checks;

/// Options of `diagnose`.
#[derive(Debug, clap::Args)]
pub struct Diagnose {
    /// Write nothing: conditional writes are then not checked.
    #[arg(long)]
    read_only: bool,
    /// Where the bucket is.
    #[command(flatten)]
    bucket: BucketArgs,
}

impl Diagnose {
    /// Looks at everything, prints it, and fails when something is wrong.
    pub async fn run(self, output: Output) -> Result<()> {
        let buckets = open_existing(&self.bucket).await?;
        let mut checks = self.stores(&buckets).await;
        let fleet = fleet(&buckets, &mut checks).await;
        let leases = match peers::leases(&buckets).await {
            Ok(leases) => leases,
            Err(error) => {
                checks.push(Check::new(Status::Fault, "node leases", causes(&error)));
                Vec::new()
            }
        };
        checks.extend(nodes(fleet, &leases).await?);
        match logs::logs(&buckets, &leases).await {
            Ok(logs) => checks.extend(logs),
            Err(error) => checks.push(Check::new(Status::Fault, "node logs", causes(&error))),
        }
        match wakers::wakers(&buckets).await {
            Ok(wakers) => checks.extend(wakers),
            Err(error) => checks.push(Check::new(Status::Fault, "wakers", causes(&error))),
        }
        let faults: Vec<String> = checks
            .iter()
            .filter(|check| check.status == Status::Fault)
            .map(|check| format!("{}: {}", check.check, check.detail))
            .collect();
        let nodes: Vec<_> =
            leases.iter().filter_map(|found| found.lease.as_ref().ok()).map(lease_json).collect();
        output.print(&json!({ "ok": faults.is_empty(), "checks": checks, "nodes": nodes }), || {
            let lines: String = checks.iter().map(|check| format!("{check}\n")).collect();
            let notes = checks.iter().filter(|check| check.status == Status::Note).count();
            match (faults.is_empty(), notes) {
                (true, 0) => lines + "\nnothing is wrong",
                (true, _) => lines + "\nno fault was found; mind the notes",
                (false, _) => lines,
            }
        })?;
        if faults.is_empty() { Ok(()) } else { bail!("{}", faults.join("; ")) }
    }

    async fn stores(&self, buckets: &Buckets) -> Vec<Check> {
        let mut stores: Vec<(&str, &dyn Bucket)> = vec![("bucket", &*buckets.records)];
        if self.bucket.lease_bucket.is_some() {
            stores.push(("lease bucket", &*buckets.leases));
        }
        let mut checks = Vec::new();
        for (name, store) in stores {
            if self.read_only {
                checks.extend(read_only_checks(name, store).await);
            } else {
                checks.extend(store_checks(name, &probe(store).await));
            }
        }
        checks
    }
}

async fn fleet(buckets: &Buckets, checks: &mut Vec<Check>) -> Option<FleetIdentity> {
    let (status, detail, fleet) = match identity::load(&*buckets.records).await {
        Ok(fleet) => {
            let (cas, keys) = (fleet.cas.len(), fleet.token_keys.len());
            let detail = format!("`{}`, certificate authorities: {cas}, token keys: {keys}", fleet.fleet);
            (Status::Ok, detail, Some(fleet))
        }
        Err(IdentityError::NoFleet) => {
            (Status::Note, "none yet: the first ingress or cellnode makes it".to_owned(), None)
        }
        Err(error) => (Status::Fault, error.to_string(), None),
    };
    checks.push(Check::new(status, "fleet identity", detail));
    fleet
}
