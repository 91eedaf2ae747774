//! TCP connections that an isolate makes.

use super::OutgoingBody;

/// A TCP connection to a server.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingConnection {
    /// Where it goes.
    pub to: ConnectTo,
    /// Whether it is encrypted.
    pub security: Security,
    /// What is written to it: its clean end is the end of what is written, any other end closes the connection.
    pub body: OutgoingBody,
}

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectTo {
    /// To a server.
    Address {
        /// A name or an address.
        hostname: String,
        /// Its port.
        port: u16,
    },
    /// Where it goes already: a connection of [`Security::StartTls`] goes on encrypted.
    Upgraded {
        /// What the answer of that connection called it.
        key: String,
        /// Bytes that were written to it, which are sent before.
        written: u64,
        /// Whose certificate is expected.
        server_name: String,
    },
}

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// Never.
    Off,
    /// From the first byte on.
    On,
    /// Not yet.
    StartTls,
}
