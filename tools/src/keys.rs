//! `holdfast fleet`: the keys that the fleet's processes trust each other by, and their rotation without a restart.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Subcommand, ValueEnum};
use holdfast_bucket::{BucketArgs, Buckets};
use holdfast_records::FleetIdentity;
use holdfast_rpc::identity::{self, FOLLOW_INTERVAL, Rotated, RotationStep, advanced, next_step};
use holdfast_rpc::{CellClient, Peer, ProcessIdentity, Role};
use holdfast_types::NodeName;
use humantime::parse_duration;
use serde_json::{Value, json};

use crate::args::open_existing;
use crate::output::{Output, Table};
use crate::peers::{self, LeaseState};
use crate::progress;

/// How long nodes that have not taken a step up yet are waited for, after the pause.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often they are asked.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// What can be done with the fleet's keys.
#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// Show which keys there are, and how far a rotation has come. No secret is shown.
    Show {
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
    /// Replace a key while everything runs. A rotation that was interrupted goes on where it was.
    Rotate {
        /// Which.
        #[arg(value_enum)]
        key: RotatedKey,
        /// Pause after each step, for every program to take it up: they read the fleet's identity every 30 s.
        #[arg(long, default_value = "2min", value_parser = parse_duration, value_name = "TIME")]
        step_wait: Duration,
        /// For token keys: end the old ones, too. Every token that they have signed is refused from then on.
        #[arg(long)]
        retire: bool,
        /// Where the bucket is.
        #[command(flatten)]
        bucket: BucketArgs,
    },
}

/// A key that can be rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RotatedKey {
    /// The authority behind the certificates of internal calls.
    Authority,
    /// The key that signs bearer tokens.
    TokenKey,
}

impl Fleet {
    /// Does it.
    pub async fn run(self, output: Output) -> Result<()> {
        match self {
            Self::Show { bucket } => {
                let buckets = open_existing(&bucket).await?;
                let fleet = identity::load(&*buckets.records).await?;
                output.print(&to_json(&fleet), || to_text(&fleet))
            }
            Self::Rotate { key, step_wait, retire, bucket } => {
                if step_wait <= FOLLOW_INTERVAL {
                    bail!(
                        "`--step-wait` must be longer than 30s: that is how often programs read the fleet's identity"
                    );
                }
                if retire && key == RotatedKey::Authority {
                    bail!(
                        "`--retire` is for token keys: an authority that has been replaced is always retired"
                    );
                }
                let buckets = open_existing(&bucket).await?;
                let rotation = Rotation { buckets, step_wait, retire };
                let fleet = match key {
                    RotatedKey::Authority => rotation.run(Rotated::Authority).await?,
                    RotatedKey::TokenKey => rotation.run(Rotated::TokenKey).await?,
                };
                output.print(&to_json(&fleet), || to_text(&fleet))
            }
        }
    }
}

struct Rotation {
    buckets: Buckets,
    step_wait: Duration,
    retire: bool,
}

impl Rotation {
    async fn run(&self, what: Rotated) -> Result<FleetIdentity> {
        let mut is_first = true;
        loop {
            let fleet = identity::load(&*self.buckets.records).await?;
            let step = next_step(&fleet, what);
            // The next step would begin another rotation.
            if step == RotationStep::Add && !is_first {
                return Ok(fleet);
            }
            if step == RotationStep::Retire && what == Rotated::TokenKey && !self.retire {
                // Tokens of the old key are in use, and whoever has them is not asked.
                if is_first {
                    bail!(
                        "the old token key still counts; `--retire` ends it, together with every token that it has signed"
                    );
                }
                return Ok(fleet);
            }
            if step != RotationStep::Add {
                self.pause(step).await;
            }
            let next = advanced(&fleet, what)?;
            if step != RotationStep::Add && what == Rotated::Authority {
                self.wait_for_nodes(&next).await?;
            }
            if !identity::store(&*self.buckets.records, &fleet, &next).await? {
                bail!(
                    "somebody else has changed the fleet's identity meanwhile: look at `holdfast fleet show` and try again"
                );
            }
            is_first = false;
        }
    }

    async fn pause(&self, step: RotationStep) {
        let what = match step {
            RotationStep::Add => return,
            RotationStep::Promote => "every program learns to trust the new key",
            RotationStep::Retire => "every program shows what the new key has signed",
        };
        let spinner = progress::spinner(what);
        tokio::time::sleep(self.step_wait).await;
        spinner.finish_and_clear();
    }

    /// Waits until each live node answers to what a process of the next step shows, and shows what that trusts.
    async fn wait_for_nodes(&self, next: &FleetIdentity) -> Result<()> {
        let began = tokio::time::Instant::now();
        loop {
            // A new client each time: connections outlive a rotation.
            let process =
                ProcessIdentity::new(next.clone(), Role::Tools, "holdfast", peers::fresh_session()?)?;
            let behind = self.behind(&CellClient::new(process)).await?;
            let Some((node, error)) = behind else { return Ok(()) };
            if began.elapsed() >= PATIENCE {
                bail!(
                    "node `{node}` has not taken up the last step of the rotation: {error}. Nothing is lost: see that it can \
                     read the bucket and runs this release, then run the same command again"
                );
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    async fn behind(&self, client: &CellClient) -> Result<Option<(NodeName, String)>> {
        for found in peers::leases(&self.buckets).await? {
            let lease = found.lease.with_context(|| format!("the lease of node `{}`", found.node))?;
            if !LeaseState::of(&lease, peers::now()).is_live() {
                continue;
            }
            if let Err(error) = client.describe(&Peer::of(&lease)).await {
                return Ok(Some((found.node, error.to_string())));
            }
        }
        Ok(None)
    }
}

/// Names an authority without a secret: the digest of its certificate, as `openssl x509 -fingerprint -sha256` has it.
fn fingerprint(certificate_pem: &str) -> String {
    holdfast_rpc::identity::fingerprint(certificate_pem)
        .unwrap_or_else(|error| format!("unreadable: {error}"))
}

fn state(is_pending: bool, is_signing: bool) -> &'static str {
    match (is_pending, is_signing) {
        (true, _) => "signs later",
        (false, true) => "signs",
        (false, false) => "trusted still",
    }
}

/// Kind, name and state of each key.
fn rows(fleet: &FleetIdentity) -> Vec<(&'static str, String, &'static str)> {
    let authorities = fleet.cas.iter().map(|ca| {
        let is_signing = fleet.signing_authority() == Some(ca);
        ("authority", fingerprint(&ca.certificate_pem), state(ca.pending, is_signing))
    });
    let keys = fleet.token_keys.iter().map(|key| {
        let is_signing = fleet.signing_token_key() == Some(key);
        ("token key", key.id.clone(), state(key.pending, is_signing))
    });
    authorities.chain(keys).collect()
}

fn to_json(fleet: &FleetIdentity) -> Value {
    let keys = rows(fleet)
        .into_iter()
        .map(|(kind, name, state)| json!({ "kind": kind, "name": name, "state": state }));
    json!({ "fleet": fleet.fleet.to_string(), "keys": keys.collect::<Vec<_>>() })
}

fn to_text(fleet: &FleetIdentity) -> String {
    let mut table = Table::new(["KEY", "STATE", "NAME"]);
    for (kind, name, state) in rows(fleet) {
        table.row([kind, state, &name]);
    }
    format!("fleet `{}`\n\n{table}", fleet.fleet)
}
