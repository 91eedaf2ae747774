//! The Web platform as parts of the prelude.

pub(crate) mod compression;
pub(crate) mod crypto;
pub(crate) mod streams;
