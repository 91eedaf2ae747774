//! holdfast-telemetry
