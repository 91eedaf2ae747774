//! What an operator can set, each with its unit, default and reason, also as an environment variable.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};
use holdfast_bucket::BucketArgs;
use holdfast_outbound::AddressRange;
use holdfast_types::{HostId, NodeName, Zone};
use humantime::parse_duration;

/// Owns cells: their databases, their writes, their replication.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// Where the bucket is.
    #[command(flatten)]
    pub bucket: BucketArgs,
    /// This node's name: 1 to 63 of `a-z A-Z 0-9 - _ .`. It belongs to the data directory.
    #[arg(long, env = "HOLDFAST_CELLNODE_NODE", value_name = "NAME")]
    pub node: NodeName,
    /// Local databases. Nothing in it is the only copy of an acknowledged write.
    #[arg(long, env = "HOLDFAST_CELLNODE_DATA_DIR", value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Internal gRPC listener. Port 0 takes a free one.
    #[arg(
        long,
        env = "HOLDFAST_CELLNODE_LISTEN",
        default_value = "127.0.0.1:7400",
        value_name = "HOST:PORT"
    )]
    pub listen: String,
    /// `host:port` at which other programs reach the internal listener. Default: the listener's own address.
    #[arg(long, env = "HOLDFAST_CELLNODE_ADVERTISE", value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// Metrics and health. Port 0 takes a free one.
    #[arg(
        long,
        env = "HOLDFAST_CELLNODE_ADMIN_LISTEN",
        default_value = "127.0.0.1:7490",
        value_name = "HOST:PORT"
    )]
    pub admin_listen: String,
    /// Once ready, a JSON object with the listeners' addresses is written to this file.
    #[arg(long, env = "HOLDFAST_CELLNODE_READY_FILE", value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Failure zone.
    #[arg(long, env = "HOLDFAST_ZONE", default_value = "default")]
    pub zone: Zone,
    /// The machine. Default: its machine id, or its host name.
    #[arg(long, env = "HOLDFAST_HOST")]
    pub host: Option<HostId>,
    /// Relative capacity: a node of weight 200 takes twice the cells of one with 100.
    #[arg(long, env = "HOLDFAST_CELLNODE_WEIGHT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub weight: u32,
    /// Lifetime of the lease: how long after a node's death its cells can be taken over, and how long an outage of
    /// the bucket it survives. Renewed at a third of it. From 1s to 10min.
    #[arg(long, env = "HOLDFAST_LEASE_TTL", default_value = "10s", value_parser = parse_lease_ttl)]
    pub lease_ttl: Duration,
    /// How far the clocks of two machines may differ.
    #[arg(long, env = "HOLDFAST_MAX_CLOCK_SKEW", default_value = "500ms", value_parser = parse_duration)]
    pub max_clock_skew: Duration,
    /// How long an output waits for its durability proof before its caller is told that the outcome is unknown. Behind a
    /// transaction of many megabytes it waits longer: a second for each.
    #[arg(long, env = "HOLDFAST_CELLNODE_PROOF_TIMEOUT", default_value = "15s", value_parser = parse_duration)]
    pub proof_timeout: Duration,
    /// How long a drain may take before the process exits without the rest.
    #[arg(long, env = "HOLDFAST_CELLNODE_DRAIN_TIMEOUT", default_value = "30s", value_parser = parse_duration)]
    pub drain_timeout: Duration,
    /// How long requests that have begun may go on once their cell is being given up. Then their callers are told that the
    /// outcome is unknown. Less than `--drain-timeout`, which is for all cells together.
    #[arg(long, env = "HOLDFAST_CELLNODE_FINISH_TIMEOUT", default_value = "5s", value_parser = parse_duration)]
    pub finish_timeout: Duration,
    /// Silence after which an object's isolate leaves memory. Its database and its hibernatable WebSockets stay.
    #[arg(long, env = "HOLDFAST_CELLNODE_OBJECT_IDLE", default_value = "60s", value_parser = parse_duration)]
    pub object_idle: Duration,
    /// What proves a write durable: an ensemble of followers wherever there is one (and the bucket while there is none),
    /// or the bucket alone.
    #[arg(long, env = "HOLDFAST_CELLNODE_DURABILITY", value_enum, default_value_t = Durability::Ensemble)]
    pub durability: Durability,
    /// Time between the uploads of a cell whose writes followers hold: longer means fewer objects and longer recoveries.
    #[arg(long, env = "HOLDFAST_CELLNODE_UPLOAD_PACE", default_value = "2s", value_parser = parse_duration)]
    pub upload_pace: Duration,
    /// Memory for writes that followers hold and the bucket does not, in bytes. Beyond a quarter of it uploads do not wait
    /// for their pace; beyond all of it writes are refused with 503.
    #[arg(long, env = "HOLDFAST_CELLNODE_RETAINED_MAX", default_value_t = 256 << 20, value_name = "BYTES")]
    pub retained_max: u64,
    /// Pause between attempts to recover the log of a dead session while requests wait for it. Short, because they do.
    #[arg(long, env = "HOLDFAST_CELLNODE_RECOVERY_RETRY", default_value = "1s", value_parser = parse_duration)]
    pub recovery_retry: Duration,
    /// Followers on this node's own machine are used too. Then nothing that only they hold survives the machine.
    #[arg(
        long,
        env = "HOLDFAST_CELLNODE_ALLOW_OWN_HOST",
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    pub allow_own_host: bool,
    /// Threads that run cells. Default: one per processor.
    #[arg(long, env = "HOLDFAST_CELLNODE_THREADS")]
    pub threads: Option<usize>,
    /// Cells in memory at once; beyond it a request for another is refused with 503.
    #[arg(long, env = "HOLDFAST_CELLNODE_CELLS_MAX", default_value_t = 20_000)]
    pub cells_max: usize,
    /// Memory of this process, in bytes: well below it cells that nobody uses leave memory, and just below it a request for
    /// another cell is refused with 503. Default: three quarters of what the machine or its control group has.
    #[arg(long, env = "HOLDFAST_CELLNODE_MEMORY_MAX", value_name = "BYTES")]
    pub memory_max: Option<u64>,
    /// A cell without a request for so long leaves memory. It stays owned, and wakes from its local file. 0s: never.
    #[arg(long, env = "HOLDFAST_CELLNODE_IDLE_AFTER", default_value = "10min", value_parser = parse_duration)]
    pub idle_after: Duration,
    /// Disk for the files of cells that are not in memory, in bytes: they spare a download when their cell is opened again.
    /// Beyond it the files of those that left memory first are removed. Cells in memory are not counted.
    #[arg(long, env = "HOLDFAST_CELLNODE_LOCAL_FILES_MAX", default_value_t = 20 << 30, value_name = "BYTES")]
    pub local_files_max: u64,
    /// Requests in flight on this node; beyond it 503.
    #[arg(long, env = "HOLDFAST_CELLNODE_REQUESTS_MAX", default_value_t = 4_096)]
    pub requests_max: usize,
    /// Requests that may wait for one cell; beyond it 503.
    #[arg(long, env = "HOLDFAST_CELLNODE_CELL_QUEUE_MAX", default_value_t = 512)]
    pub cell_queue_max: usize,
    /// Restores at once; others wait.
    #[arg(long, env = "HOLDFAST_CELLNODE_RESTORES_MAX", default_value_t = 8)]
    pub restores_max: usize,
    /// A cell whose chain has at least so many bytes in the bucket, and nothing of which is here, is opened before its
    /// database is here: pages come when they are first used, and the rest in the background. A restore of less takes
    /// about a second.
    #[arg(long, env = "HOLDFAST_CELLNODE_PAGED_FROM", default_value_t = 64 << 20, value_name = "BYTES")]
    pub paged_from: u64,
    /// Bytes a second that this node reads from the bucket to fill such databases in the background. Half of it for each
    /// of the two that are filled at once.
    #[arg(long, env = "HOLDFAST_CELLNODE_PAGED_FILL_RATE", default_value_t = 64 << 20, value_name = "BYTES")]
    pub paged_fill_rate: u64,
    /// Largest request body, in bytes.
    #[arg(long, env = "HOLDFAST_CELLNODE_BODY_MAX", default_value_t = 16 << 20, value_name = "BYTES")]
    pub body_max: usize,
    /// Memory for request bodies on this node, in bytes; beyond it 503.
    #[arg(long, env = "HOLDFAST_CELLNODE_BODIES_MAX", default_value_t = 256 << 20, value_name = "BYTES")]
    pub bodies_max: usize,
    /// Memory for answers that wait for their durability proof on this node, in bytes; beyond it 503.
    #[arg(long, env = "HOLDFAST_CELLNODE_ANSWERS_MAX", default_value_t = 256 << 20, value_name = "BYTES")]
    pub answers_max: usize,
    /// Memory for what waits for WebSocket clients that do not take it, in bytes; beyond it a socket that has more than 64 KiB
    /// waiting is given up.
    #[arg(long, env = "HOLDFAST_CELLNODE_SOCKETS_MEMORY", default_value_t = 256 << 20, value_name = "BYTES")]
    pub sockets_memory: u64,
    /// Largest database of one cell, in bytes.
    #[arg(long, env = "HOLDFAST_CELLNODE_DATABASE_MAX", default_value_t = 10 << 30, value_name = "BYTES")]
    pub database_max: u64,
    /// Longest run of one statement; a longer one is interrupted.
    #[arg(long, env = "HOLDFAST_CELLNODE_STATEMENT_BUDGET", default_value = "5s", value_parser = parse_duration)]
    pub statement_budget: Duration,
    /// How long history that no restore reads any more stays in the bucket. Short, it only spares restores under way a second
    /// look; to go back to a point in time with a tool that reads the bucket it must be as long as one wants to go back. 0s:
    /// none.
    #[arg(long, env = "HOLDFAST_CELLNODE_HISTORY_RETENTION", default_value = "5min", value_parser = parse_duration)]
    pub history_retention: Duration,
    /// Addresses that `fetch` of Durable Objects may connect to although they are not public, or this machine's own, as
    /// `10.1.0.0/16`. May be given several times.
    #[arg(
        long = "allow-outbound",
        env = "HOLDFAST_CELLNODE_ALLOW_OUTBOUND",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    pub allow_outbound: Vec<AddressRange>,
    /// WAL that may wait for its upload, in bytes; beyond it writes to the cell are refused with 503.
    #[arg(long, env = "HOLDFAST_CELLNODE_UNCAPTURED_MAX", default_value_t = 64 << 20, value_name = "BYTES")]
    pub uncaptured_max: u64,
}

/// What proves a write durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// Followers, wherever there are any.
    Ensemble,
    /// The bucket alone.
    Bucket,
}

impl Config {
    /// The configuration of a node inside `holdfast dev`: free ports on loopback, everything else at its default.
    #[must_use]
    pub fn embedded(bucket: BucketArgs, node: NodeName, data_dir: PathBuf) -> Self {
        let name = node.as_str().to_owned();
        #[derive(Parser)]
        struct Defaults {
            #[command(flatten)]
            config: Config,
        }
        let arguments = ["cellnode", "--bucket", "file:///", "--data-dir", "/", "--node", &name];
        let Defaults { config: defaults } = Defaults::parse_from(arguments);
        let any_port = "127.0.0.1:0".to_owned();
        Self { bucket, node, data_dir, listen: any_port.clone(), admin_listen: any_port, ..defaults }
    }
}

/// Reads a lease's lifetime.
///
/// # Errors
/// A text that is no duration, or one out of bounds.
pub fn parse_lease_ttl(text: &str) -> Result<Duration, String> {
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
        let command = Config::augment_args(clap::Command::new("cellnode"));
        for argument in command.get_arguments() {
            let name =
                argument.get_env().and_then(|name| name.to_str()).expect("every option has a variable");
            assert!(name.starts_with("HOLDFAST_CELLNODE_") || FLEET.contains(&name), "{name}");
        }
    }

    #[test]
    fn a_lease_has_bounds() {
        assert!(parse_lease_ttl("100ms").is_err());
        assert_eq!(parse_lease_ttl("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_lease_ttl("1min 500ms"), Ok(Duration::from_millis(60_500)));
        assert!(parse_lease_ttl("10").unwrap_err().contains("10s"));
        assert!(parse_lease_ttl("1h").is_err());
    }
}
