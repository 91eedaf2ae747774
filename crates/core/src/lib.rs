//! holdfast-core
