//! The generated messages, clients and servers of `proto/holdfast/v1`. They stay inside this crate: conversions are at
//! the border only.
#![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all)]

tonic::include_proto!("holdfast.v1");
