//! Both ends of the internal call against each other and against scripted peers, over real sockets on loopback.

mod calls;
mod failures;
mod pinning;
mod streaming;
mod support;
mod wakes;
mod wire;
