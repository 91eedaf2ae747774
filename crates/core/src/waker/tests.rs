//! The machine by itself, and in a small world with owners that die.

mod passes;
mod sharing;
mod support;
mod world;
