//! Fresh randomness for identities.

use holdfast_types::{Incarnation, SessionId, WriteId};

fn bits() -> u128 {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    u128::from_le_bytes(bytes)
}

/// A new session.
#[must_use]
pub fn session_id() -> SessionId {
    SessionId::from_bits(bits())
}

/// A new write.
#[must_use]
pub fn write_id() -> WriteId {
    WriteId::from_bits(bits())
}

/// A new data directory.
#[must_use]
pub fn incarnation() -> Incarnation {
    Incarnation::from_bits(bits())
}

/// Jitter.
#[must_use]
pub fn byte() -> u8 {
    bits().to_le_bytes()[0]
}
