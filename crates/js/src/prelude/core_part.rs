//! The first part: what the other parts are defined with.

use super::{Part, no_natives};

pub(super) const PART: Part =
    Part { name: "core", source: include_str!("core.js"), natives: no_natives, globals: &[] };
