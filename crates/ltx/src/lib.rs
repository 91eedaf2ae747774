//! holdfast-ltx
