//! Start-up and flush: the log to stderr always; traces and metrics by OTLP where the standard `OTEL_…` variables ask
//! for it. Once per process, whatever number of services runs inside.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{MetricExporter, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::pipeline::{self, Pipeline};

/// How long a flush may take at exit; a collector that is down must not keep a process alive.
const FLUSH_MS_MAX: u64 = 3_000;

/// Targets whose spans the exporter itself makes; exporting them would feed on itself.
const OWN_TARGETS: &[&str] = &["h2", "hyper", "hyper_util", "tonic", "tower", "opentelemetry"];

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people; coloured on a terminal.
    Pretty,
    /// One JSON object a line.
    Json,
}

impl std::str::FromStr for LogFormat {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "pretty" => Ok(Self::Pretty),
            "json" => Ok(Self::Json),
            other => Err(format!("log format `{other}` is unknown: use `pretty` or `json`")),
        }
    }
}

/// What [`init`] needs to know.
#[derive(Clone, Debug)]
pub struct TelemetryOptions {
    /// The program, for example `cellnode`; `OTEL_SERVICE_NAME` overrides it.
    pub service_name: String,
    /// Which of its processes, for example the node's name.
    pub instance: String,
    /// How log lines look.
    pub log_format: LogFormat,
    /// What is logged, in the notation of `RUST_LOG`, for example `info,holdfast_bucket=debug`.
    pub log_filter: String,
}

/// Telemetry could not start. Disposition: reject; the text says what to change.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter does not parse.
    #[error(
        "log filter `{filter}` is not valid: {reason}; write it as `info` or `info,holdfast_bucket=debug`"
    )]
    BadFilter {
        /// What was given.
        filter: String,
        /// What is wrong.
        reason: String,
    },
    /// Telemetry, or another subscriber, was installed before.
    #[error("telemetry is already started in this process")]
    AlreadyStarted,
    /// OTLP needs an async runtime.
    #[error("OTLP export is asked for by `OTEL_…`, but telemetry was started outside of an async runtime")]
    NoRuntime,
    /// The OTLP exporter refused its configuration.
    #[error("OTLP export cannot start: {0}; check the `OTEL_EXPORTER_OTLP_…` variables")]
    Otlp(String),
}

/// Keeps telemetry running; hand it to [`Telemetry::shutdown`] before the process ends.
#[derive(Debug)]
#[must_use = "without `shutdown` the last spans and metrics are lost"]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

static STARTED: AtomicBool = AtomicBool::new(false);

/// Installs the log, the metrics pipeline and, where `OTEL_EXPORTER_OTLP_ENDPOINT` (or the one of a signal) is set, the
/// export. Call it once, first thing, and inside the async runtime.
///
/// # Errors
/// [`TelemetryError`]; nothing is installed then, except that a process has only one try.
pub fn init(options: TelemetryOptions) -> Result<Telemetry, TelemetryError> {
    let TelemetryOptions { service_name, instance, log_format, log_filter } = options;
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(&log_filter)
        .map_err(|error| TelemetryError::BadFilter { filter: log_filter, reason: error.to_string() })?;
    if STARTED.swap(true, Ordering::SeqCst) {
        return Err(TelemetryError::AlreadyStarted);
    }
    let wanted = Wanted::from_lookup(|name| std::env::var(name).ok());
    if (wanted.traces || wanted.metrics) && tokio::runtime::Handle::try_current().is_err() {
        return Err(TelemetryError::NoRuntime);
    }
    let resource = resource(service_name, instance);
    let traces = if wanted.traces { Some(tracer_provider(resource.clone())?) } else { None };
    let metric_exporter = if wanted.metrics { Some(metric_exporter()?) } else { None };
    let export = traces.as_ref().map(|provider| {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("holdfast"))
            .with_filter(LevelFilter::INFO.and(filter_fn(|meta| !is_own_target(meta.target()))))
    });
    tracing_subscriber::registry()
        .with(log_layer(log_format).with_filter(filter))
        .with(export)
        .try_init()
        .map_err(|_| TelemetryError::AlreadyStarted)?;
    if !pipeline::install(Pipeline::new(resource, metric_exporter)) {
        tracing::warn!("metrics were used before telemetry started: they are not exported by OTLP");
    }
    Ok(Telemetry { traces })
}

impl Telemetry {
    /// Sends what is buffered, for at most three seconds. Metrics stay readable until the process ends.
    pub async fn shutdown(self) {
        let flush = tokio::task::spawn_blocking(move || {
            // A collector that is down is no reason to fail the exit; the SDK has logged it.
            let _ = pipeline::pipeline().provider.force_flush();
            if let Some(traces) = self.traces {
                let _ = traces.shutdown_with_timeout(Duration::from_millis(FLUSH_MS_MAX));
            }
        });
        if tokio::time::timeout(Duration::from_millis(FLUSH_MS_MAX), flush).await.is_err() {
            tracing::warn!("the last spans and metrics could not be sent in time");
        }
    }
}

/// Which signals are exported.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    traces: bool,
    metrics: bool,
}

impl Wanted {
    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| lookup(name).is_some_and(|value| !value.is_empty());
        let off = lookup("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let signal = |name: &str| {
            let none = lookup(&format!("OTEL_{name}_EXPORTER")).is_some_and(|value| value == "none");
            !off && !none
                && (set("OTEL_EXPORTER_OTLP_ENDPOINT") || set(&format!("OTEL_EXPORTER_OTLP_{name}_ENDPOINT")))
        };
        Self { traces: signal("TRACES"), metrics: signal("METRICS") }
    }
}

/// `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win over what the program says.
fn resource(service_name: String, instance: String) -> Resource {
    let mut builder = Resource::builder().with_attributes([
        KeyValue::new("service.namespace", "holdfast"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", instance),
    ]);
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        builder = builder.with_service_name(service_name);
    }
    builder.build()
}

fn tracer_provider(resource: Resource) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .build()
        .map_err(|error| TelemetryError::Otlp(error.to_string()))?;
    Ok(SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build())
}

fn metric_exporter() -> Result<MetricExporter, TelemetryError> {
    MetricExporter::builder().with_tonic().build().map_err(|error| TelemetryError::Otlp(error.to_string()))
}

fn log_layer<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a> + Send + Sync,
{
    let layer = fmt::layer().with_writer(std::io::stderr);
    match format {
        LogFormat::Pretty => layer.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    }
}

fn is_own_target(target: &str) -> bool {
    let root = target.split("::").next().unwrap_or(target);
    OWN_TARGETS.contains(&root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(variables: &[(&str, &str)]) -> (bool, bool) {
        let Wanted { traces, metrics } = Wanted::from_lookup(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        });
        (traces, metrics)
    }

    #[test]
    fn export_is_off_unless_an_endpoint_is_named() {
        assert_eq!(wanted(&[]), (false, false));
        assert_eq!(wanted(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), (false, false));
        assert_eq!(wanted(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317")]), (true, true));
        assert_eq!(wanted(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4317")]), (true, false));
        assert_eq!(wanted(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c:4317")]), (false, true));
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317");
        assert_eq!(wanted(&[all, ("OTEL_SDK_DISABLED", "true")]), (false, false));
        assert_eq!(wanted(&[all, ("OTEL_METRICS_EXPORTER", "none")]), (true, false));
    }

    #[test]
    fn the_exporter_s_own_spans_are_not_exported() {
        assert!(is_own_target("h2::proto::streams"));
        assert!(is_own_target("tonic"));
        assert!(!is_own_target("holdfast_cellnode::cells"));
        assert!(!is_own_target("h2o"));
    }

    #[tokio::test]
    async fn a_process_starts_telemetry_once() {
        let options = |filter: &str| TelemetryOptions {
            service_name: "test".into(),
            instance: "t1".into(),
            log_format: LogFormat::Json,
            log_filter: filter.into(),
        };
        let error = init(options("info,=")).unwrap_err();
        assert!(matches!(error, TelemetryError::BadFilter { .. }), "{error}");
        let telemetry = init(options("warn")).unwrap();
        assert!(matches!(init(options("warn")), Err(TelemetryError::AlreadyStarted)));
        crate::metrics().capture(1);
        telemetry.shutdown().await;
        assert!(crate::render_prometheus().contains("holdfast_cellnode_captures_count_total "));
    }
}
