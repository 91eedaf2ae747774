//! What a handler learns of where it runs: `navigator`. `atob` and `btoa` are the engine's, behind the
//! checks of their arguments.

use crate::prelude::{Part, no_natives};

pub(crate) const PART: Part = Part {
    name: "environment",
    source: include_str!("environment.js"),
    natives: no_natives,
    globals: &["Navigator", "navigator", "atob", "btoa"],
};
