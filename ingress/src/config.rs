//! What an operator can set, each with its unit, default and reason, also as an environment variable.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};
use holdfast_bucket::BucketArgs;
use holdfast_outbound::AddressRange;
use holdfast_types::NodeName;
use humantime::parse_duration;

use crate::AuthMode;

/// Threads of the Worker where nothing is said of it: more than that belongs into more processes.
const WORKER_THREADS_MAX: usize = 8;

/// The public edge: finds the owner of each cell and forwards requests to it.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// Where the bucket is.
    #[command(flatten)]
    pub bucket: BucketArgs,
    /// This process's name in certificates and logs.
    #[arg(long, env = "HOLDFAST_INGRESS_NAME", default_value = "ingress", value_name = "NAME")]
    pub name: NodeName,
    /// Public listener: HTTP/1.1 and HTTP/2. Port 0 takes a free one.
    #[arg(long, env = "HOLDFAST_INGRESS_LISTEN", default_value = "127.0.0.1:8080", value_name = "HOST:PORT")]
    pub listen: String,
    /// Metrics and health. Port 0 takes a free one.
    #[arg(
        long,
        env = "HOLDFAST_INGRESS_ADMIN_LISTEN",
        default_value = "127.0.0.1:8090",
        value_name = "HOST:PORT"
    )]
    pub admin_listen: String,
    /// Who may use the SQL API: holders of a `token` of this fleet, or anyone (`none`, on loopback only).
    #[arg(long, env = "HOLDFAST_INGRESS_AUTH", default_value = "token", value_enum)]
    pub auth: AuthMode,
    /// Certificate chain of the public listener, PEM. Default: plain HTTP, for use behind a proxy that ends TLS.
    #[arg(long, env = "HOLDFAST_INGRESS_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the public listener, PEM.
    #[arg(long, env = "HOLDFAST_INGRESS_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Pass X-Forwarded-* and Forwarded on to handlers. Only behind a proxy that sets them: anybody else could lie.
    #[arg(long, env = "HOLDFAST_INGRESS_TRUST_FORWARDED", value_parser = clap::builder::BoolishValueParser::new())]
    pub trust_forwarded: bool,
    /// Once it listens, a JSON object with the listeners' addresses is written to this file.
    #[arg(long, env = "HOLDFAST_INGRESS_READY_FILE", value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Largest request body, in bytes; a larger one is answered 413.
    #[arg(long, env = "HOLDFAST_INGRESS_BODY_MAX", default_value_t = 16 << 20, value_name = "BYTES")]
    pub body_max: u64,
    /// Largest head of a request, in bytes; a larger one is answered 431. At least 8192.
    #[arg(long, env = "HOLDFAST_INGRESS_HEADER_MAX", default_value_t = 64 << 10, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(8192..=1 << 20))]
    pub header_max: u32,
    /// How long a request may wait for the head of its answer.
    #[arg(long, env = "HOLDFAST_INGRESS_REQUEST_TIMEOUT", default_value = "30s", value_parser = parse_duration)]
    pub request_timeout: Duration,
    /// Requests in flight; beyond it 503, so that a crowd does not become a queue that nobody waits for.
    #[arg(long, env = "HOLDFAST_INGRESS_REQUESTS_MAX", default_value_t = 4_096)]
    pub requests_max: usize,
    /// Public connections at once; more wait in the kernel's queue.
    #[arg(long, env = "HOLDFAST_INGRESS_CONNECTIONS_MAX", default_value_t = 16_384)]
    pub connections_max: usize,
    /// Threads that run the application's Worker. Default: as many as the machine has cores, and at most 8.
    #[arg(long, env = "HOLDFAST_INGRESS_WORKER_THREADS", value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub worker_threads: Option<u16>,
    /// Addresses that the application may `fetch` from although they are not public, or this machine's own, as `10.0.0.0/8`;
    /// may be given several times. Everything on the network of this machine that is not listed stays out of the application's reach.
    #[arg(long, env = "HOLDFAST_INGRESS_ALLOW_OUTBOUND", value_name = "CIDR", value_delimiter = ',')]
    pub allow_outbound: Vec<AddressRange>,
    /// Offer the application's objects at `/-/cells/<class>/<name>/`, to holders of a token for the cell.
    #[arg(long, env = "HOLDFAST_INGRESS_DIRECT_CELLS", value_parser = clap::builder::BoolishValueParser::new())]
    pub direct_cells: bool,
    /// How far the clocks of two machines may differ: a lease counts as over that long after its end. The same in all
    /// programs of a fleet.
    #[arg(long, env = "HOLDFAST_MAX_CLOCK_SKEW", default_value = "500ms", value_parser = parse_duration)]
    pub max_clock_skew: Duration,
    /// Routes remembered; each takes a few hundred bytes and saves two reads of the bucket.
    #[arg(long, env = "HOLDFAST_INGRESS_ROUTES_MAX", default_value_t = 200_000)]
    pub routes_max: usize,
    /// WebSockets at once; beyond it 503. Each takes a few KiB and one file.
    #[arg(long, env = "HOLDFAST_INGRESS_SOCKETS_MAX", default_value_t = 65_536)]
    pub sockets_max: usize,
    /// How often the client of a WebSocket is pinged. One that says nothing for two of these is gone, and its object is told
    /// so: long enough that a phone may sleep, short enough that nobody is thought to be there for minutes.
    #[arg(long, env = "HOLDFAST_INGRESS_SOCKET_PING", default_value = "30s", value_parser = parse_duration)]
    pub socket_ping: Duration,
    /// How long requests are taken still after `/-/ready` says that it drains: for balancers to see it, and for clients to get an answer
    /// that closes their connection rather than a connection that closes under their next request.
    #[arg(long, env = "HOLDFAST_INGRESS_DRAIN_DELAY", default_value = "1s", value_parser = parse_duration)]
    pub drain_delay: Duration,
    /// How long requests in flight may take to finish at the end; then they are cut off.
    #[arg(long, env = "HOLDFAST_INGRESS_DRAIN_TIMEOUT", default_value = "30s", value_parser = parse_duration)]
    pub drain_timeout: Duration,
}

impl Config {
    /// Threads that run the Worker.
    pub(crate) fn worker_threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.worker_threads.map_or(cores.min(WORKER_THREADS_MAX), usize::from)
    }

    /// The configuration of an ingress inside `holdfast dev`: no tokens, a free admin port on loopback, objects at
    /// `/-/cells/`, everything else at its default.
    #[must_use]
    pub fn embedded(bucket: BucketArgs, listen: String) -> Self {
        #[derive(Parser)]
        struct Defaults {
            #[command(flatten)]
            config: Config,
        }
        let Defaults { config: defaults } = Defaults::parse_from(["ingress", "--bucket", "file:///"]);
        let admin_listen = "127.0.0.1:0".to_owned();
        Self { bucket, listen, admin_listen, auth: AuthMode::None, direct_cells: true, ..defaults }
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
        let command = Config::augment_args(clap::Command::new("ingress"));
        for argument in command.get_arguments() {
            let name =
                argument.get_env().and_then(|name| name.to_str()).expect("every option has a variable");
            assert!(name.starts_with("HOLDFAST_INGRESS_") || FLEET.contains(&name), "{name}");
        }
    }

    #[test]
    fn the_embedded_configuration_is_the_default_one() {
        let config = Config::embedded(BucketArgs::at("file:///x"), "127.0.0.1:0".into());
        assert_eq!(config.auth, AuthMode::None);
        assert!(config.direct_cells);
        assert_eq!((config.body_max, config.request_timeout), (16 << 20, Duration::from_secs(30)));
    }
}
