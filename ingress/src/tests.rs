//! The edge end to end: real sockets on loopback, a real bucket directory, and a cell host in this process whose
//! behaviour the tests choose by what they ask.

mod application;
mod edges;
mod http2;
mod limits;
mod support;
