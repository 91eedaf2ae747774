//! What an operator can set, each with its unit, default and reason, also as an environment variable.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};
use holdfast_bucket::BucketArgs;
use holdfast_types::{FollowerName, HostId, Zone};
use humantime::parse_duration;

/// Stores node logs: acknowledges writes of cellnodes when they are fsynced here.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// Where the bucket is.
    #[command(flatten)]
    pub bucket: BucketArgs,
    /// This follower's name: 1 to 63 of `a-z A-Z 0-9 - _ .`.
    #[arg(long, env = "HOLDFAST_FOLLOWER_NAME", value_name = "NAME")]
    pub follower: FollowerName,
    /// The logs. What is in it may be the only copy of acknowledged writes: keep it across restarts.
    #[arg(long, env = "HOLDFAST_FOLLOWER_DATA_DIR", value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Internal gRPC listener. Port 0 takes a free one.
    #[arg(
        long,
        env = "HOLDFAST_FOLLOWER_LISTEN",
        default_value = "127.0.0.1:7500",
        value_name = "HOST:PORT"
    )]
    pub listen: String,
    /// `host:port` at which other programs reach the internal listener. Default: the listener's own address.
    #[arg(long, env = "HOLDFAST_FOLLOWER_ADVERTISE", value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// Metrics and health. Port 0 takes a free one.
    #[arg(
        long,
        env = "HOLDFAST_FOLLOWER_ADMIN_LISTEN",
        default_value = "127.0.0.1:7590",
        value_name = "HOST:PORT"
    )]
    pub admin_listen: String,
    /// Once ready, a JSON object with the listeners' addresses is written to this file.
    #[arg(long, env = "HOLDFAST_FOLLOWER_READY_FILE", value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Failure zone.
    #[arg(long, env = "HOLDFAST_ZONE", default_value = "default")]
    pub zone: Zone,
    /// The machine. Default: its machine id, or its host name.
    #[arg(long, env = "HOLDFAST_HOST")]
    pub host: Option<HostId>,
    /// Lifetime of the lease by which cellnodes find this follower. Renewed at a third of it. From 1s to 10min.
    #[arg(long, env = "HOLDFAST_LEASE_TTL", default_value = "10s", value_parser = parse_lease_ttl)]
    pub lease_ttl: Duration,
    /// How far the clocks of two machines may differ.
    #[arg(long, env = "HOLDFAST_MAX_CLOCK_SKEW", default_value = "500ms", value_parser = parse_duration)]
    pub max_clock_skew: Duration,
    /// How long a drain waits for sessions to move to other followers.
    #[arg(long, env = "HOLDFAST_FOLLOWER_DRAIN_TIMEOUT", default_value = "30s", value_parser = parse_duration)]
    pub drain_timeout: Duration,
    /// Length of a segment of the journal, in bytes. From 1 MiB to 1 GiB.
    #[arg(
        long, env = "HOLDFAST_FOLLOWER_SEGMENT_BYTES", default_value_t = 64 << 20, value_name = "BYTES",
        value_parser = clap::value_parser!(u64).range(1 << 20..=1 << 30)
    )]
    pub segment_bytes: u64,
    /// Most that one session may retain, in bytes; beyond it its appends are refused, and it moves on.
    #[arg(
        long, env = "HOLDFAST_FOLLOWER_SESSION_BYTES_MAX", default_value_t = 4 << 30, value_name = "BYTES"
    )]
    pub session_bytes_max: u64,
    /// Memory for frames that wait for the disk, in bytes; beyond it streams are not read. From 1 MiB to 1 GiB, and no more
    /// than half of a segment counts.
    #[arg(
        long, env = "HOLDFAST_FOLLOWER_QUEUE_BYTES_MAX", default_value_t = 64 << 20, value_name = "BYTES",
        value_parser = clap::value_parser!(u64).range(1 << 20..=1 << 30)
    )]
    pub queue_bytes_max: u64,
}

impl Config {
    /// The configuration of a follower inside `holdfast dev`: free ports on loopback, everything else at its default.
    #[must_use]
    pub fn embedded(bucket: BucketArgs, follower: FollowerName, data_dir: PathBuf) -> Self {
        #[derive(Parser)]
        struct Defaults {
            #[command(flatten)]
            config: Config,
        }
        let name = follower.as_str().to_owned();
        let arguments = ["follower", "--bucket", "file:///", "--data-dir", "/", "--follower", &name];
        let Defaults { config: defaults } = Defaults::parse_from(arguments);
        let any_port = "127.0.0.1:0".to_owned();
        Self { bucket, follower, data_dir, listen: any_port.clone(), admin_listen: any_port, ..defaults }
    }
}

fn parse_lease_ttl(text: &str) -> Result<Duration, String> {
    let ttl = parse_duration(text).map_err(|error| error.to_string())?;
    if (Duration::from_secs(1)..=Duration::from_secs(600)).contains(&ttl) {
        Ok(ttl)
    } else {
        Err(format!("`{text}` is not between 1s and 10min"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_of_this_program_or_of_the_whole_fleet() {
        const FLEET: [&str; 9] = [
            "HOLDFAST_BUCKET",
            "HOLDFAST_LEASE_BUCKET",
            "HOLDFAST_ENDPOINT",
            "HOLDFAST_REGION",
            "HOLDFAST_PATH_STYLE",
            "HOLDFAST_LEASE_TTL",
            "HOLDFAST_MAX_CLOCK_SKEW",
            "HOLDFAST_ZONE",
            "HOLDFAST_HOST",
        ];
        let command = Config::augment_args(clap::Command::new("follower"));
        for argument in command.get_arguments() {
            let name =
                argument.get_env().and_then(|name| name.to_str()).expect("every option has a variable");
            assert!(name.starts_with("HOLDFAST_FOLLOWER_") || FLEET.contains(&name), "{name}");
        }
    }

    #[test]
    fn a_lease_has_bounds() {
        assert!(parse_lease_ttl("100ms").is_err());
        assert!(parse_lease_ttl("10s").is_ok());
        assert!(parse_lease_ttl("1h").is_err());
    }
}
