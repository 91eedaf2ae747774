//! Whole projects: what their packages answer, and what is refused with which text.

#![allow(clippy::unwrap_used)]

mod files;
mod modules;
mod refusals;
mod support;
