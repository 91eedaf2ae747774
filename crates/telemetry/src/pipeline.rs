//! The process's one metrics pipeline: a meter provider, the Prometheus registry that it always feeds, and, when the
//! start-up asks for it, a push over OTLP. It exists from the first use, so that libraries and tests may count before
//! or without [`crate::init`].

use std::sync::OnceLock;

use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::Registry;

use crate::Metrics;

pub(crate) struct Pipeline {
    pub(crate) provider: SdkMeterProvider,
    pub(crate) registry: Registry,
    pub(crate) metrics: Metrics,
}

static PIPELINE: OnceLock<Pipeline> = OnceLock::new();

impl Pipeline {
    pub(crate) fn new(resource: Resource, otlp: Option<opentelemetry_otlp::MetricExporter>) -> Self {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .without_units()
            .scope_info_enabled(false)
            .build()
            .expect("a new registry has no collector yet that could collide");
        let mut builder = SdkMeterProvider::builder().with_resource(resource).with_reader(exporter);
        if let Some(otlp) = otlp {
            builder = builder.with_periodic_exporter(otlp);
        }
        let provider = builder.build();
        let metrics = Metrics::new(&provider.meter("holdfast"));
        Self { provider, registry, metrics }
    }

    /// The Prometheus text of everything recorded so far.
    pub(crate) fn render(&self) -> String {
        prometheus::TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .unwrap_or_else(|error| format!("# the exposition failed: {error}\n"))
    }
}

/// The pipeline, made without OTLP when nobody has installed one.
pub(crate) fn pipeline() -> &'static Pipeline {
    PIPELINE.get_or_init(|| Pipeline::new(Resource::builder().with_service_name("holdfast").build(), None))
}

/// Makes `pipeline` the process's one; `false` when there is one already.
pub(crate) fn install(pipeline: Pipeline) -> bool {
    PIPELINE.set(pipeline).is_ok()
}

/// Every metric of the process as Prometheus text (version 0.0.4).
#[must_use]
pub fn render_prometheus() -> String {
    pipeline().render()
}
