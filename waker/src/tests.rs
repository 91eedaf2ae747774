//! The waker against a bucket in memory, and against nodes that answer on loopback.

mod balance;
mod burial;
mod index;
mod life;
mod support;
mod sweep;
