//! The program `holdfast`: everything an operator or a developer does by hand. It needs nothing but the bucket's
//! credentials and the network, and it must never own a cell.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod bench;
mod bucket;
mod cell;
mod cli;
mod deploy;
mod dev;
mod diagnose;
mod fleet;
mod keys;
mod log;
mod node;
mod output;
mod past;
mod peers;
mod process;
mod progress;
mod project;
mod r2;
mod secret;
mod token;

fn main() -> std::process::ExitCode {
    cli::main()
}
