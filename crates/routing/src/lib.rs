//! holdfast-routing
