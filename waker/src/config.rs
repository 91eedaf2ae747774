//! What an operator can set, each with its unit, default and reason, also as an environment variable.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};
use holdfast_bucket::BucketArgs;
use holdfast_types::WakerName;
use humantime::parse_duration;

/// Wakes cells whose alarms are due, also those that nobody has in memory.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// Where the bucket is.
    #[command(flatten)]
    pub bucket: BucketArgs,
    /// This process's name in certificates, leases and logs.
    #[arg(long, env = "HOLDFAST_WAKER_NAME", default_value = "waker", value_name = "NAME")]
    pub name: WakerName,
    /// Metrics and health. Port 0 takes a free one.
    #[arg(
        long,
        env = "HOLDFAST_WAKER_ADMIN_LISTEN",
        default_value = "127.0.0.1:7690",
        value_name = "HOST:PORT"
    )]
    pub admin_listen: String,
    /// Once it works, a JSON object with the admin listener's address is written to this file.
    #[arg(long, env = "HOLDFAST_WAKER_READY_FILE", value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// How often the due part of the alarm index is listed: one listing a tick and 1,000 due alarms. How much later than the
    /// lease of a dead node ends its alarms may fire. From 100ms to 5min.
    #[arg(long, env = "HOLDFAST_WAKER_TICK", default_value = "5s", value_parser = parse_tick)]
    pub tick: Duration,
    /// Into how many shards the cells are divided among wakers. Written by the first program that uses the index, and never
    /// changed after.
    #[arg(long, env = "HOLDFAST_WAKER_SHARDS", default_value_t = holdfast_routing::WAKE_SHARDS,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub shards: u16,
    /// Cells that are opened at once at most: what a fleet that boots with many due alarms bears.
    #[arg(long, env = "HOLDFAST_WAKER_HINTS_MAX", default_value_t = 64, value_name = "COUNT",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub hints_max: u32,
    /// How long one hint may take; the cell goes on opening when it is over, and is asked again.
    #[arg(long, env = "HOLDFAST_WAKER_HINT_TIMEOUT", default_value = "3s", value_parser = parse_duration)]
    pub hint_timeout: Duration,
    /// How often dead sessions are looked for whose logs are not recovered. Whoever wants one of their cells need not wait for
    /// it.
    #[arg(long, env = "HOLDFAST_WAKER_SWEEP", default_value = "30s", value_parser = parse_duration)]
    pub sweep: Duration,
    /// How long the lease of a cellnode that is long gone stays as a tombstone before it is deleted: as long as people look for
    /// what has become of it.
    #[arg(long, env = "HOLDFAST_WAKER_FORGET_AFTER", default_value = "24h", value_parser = parse_duration)]
    pub forget_after: Duration,
    /// How far the clocks of two machines may differ: a lease counts as over that long after its end. The same in all
    /// programs of a fleet.
    #[arg(long, env = "HOLDFAST_MAX_CLOCK_SKEW", default_value = "500ms", value_parser = parse_duration)]
    pub max_clock_skew: Duration,
}

impl Config {
    /// The configuration of a waker inside `holdfast dev`: a free port on loopback, everything else at its default.
    #[must_use]
    pub fn embedded(bucket: BucketArgs) -> Self {
        #[derive(Parser)]
        struct Defaults {
            #[command(flatten)]
            config: Config,
        }
        let Defaults { config: defaults } = Defaults::parse_from(["waker", "--bucket", "file:///"]);
        Self { bucket, admin_listen: "127.0.0.1:0".to_owned(), ..defaults }
    }

    pub(crate) fn clock_skew_max_ms(&self) -> u64 {
        millis(self.max_clock_skew)
    }

    pub(crate) fn forget_after_ms(&self) -> u64 {
        millis(self.forget_after)
    }

    /// Lifetime of a lease on a shard: one that is missed is no reason to hand it over.
    pub(crate) fn shard_ttl_ms(&self) -> u64 {
        millis(self.tick).saturating_mul(3)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn parse_tick(text: &str) -> Result<Duration, String> {
    let tick = parse_duration(text).map_err(|error| error.to_string())?;
    if (Duration::from_millis(100)..=Duration::from_secs(300)).contains(&tick) {
        Ok(tick)
    } else {
        Err(format!("`{text}` is not between 100ms and 5min"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_of_this_program_or_of_the_whole_fleet() {
        const FLEET: [&str; 6] = [
            "HOLDFAST_BUCKET",
            "HOLDFAST_LEASE_BUCKET",
            "HOLDFAST_ENDPOINT",
            "HOLDFAST_REGION",
            "HOLDFAST_PATH_STYLE",
            "HOLDFAST_MAX_CLOCK_SKEW",
        ];
        let command = Config::augment_args(clap::Command::new("waker"));
        for argument in command.get_arguments() {
            let name =
                argument.get_env().and_then(|name| name.to_str()).expect("every option has a variable");
            assert!(name.starts_with("HOLDFAST_WAKER_") || FLEET.contains(&name), "{name}");
        }
    }

    #[test]
    fn a_tick_has_bounds() {
        assert!(parse_tick("99ms").unwrap_err().contains("between 100ms and 5min"));
        assert_eq!(parse_tick("5s"), Ok(Duration::from_secs(5)));
        assert!(parse_tick("6min").is_err() && parse_tick("5").is_err());
        let config = Config::embedded(BucketArgs::at("file:///x"));
        assert_eq!((config.shard_ttl_ms(), config.shards), (15_000, 8));
    }
}
