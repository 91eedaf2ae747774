//! Fresh randomness for identities.

use holdfast_types::{SessionId, WriteId};

fn bits() -> u128 {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    u128::from_le_bytes(bytes)
}

/// A new process life.
pub(crate) fn session_id() -> SessionId {
    SessionId::from_bits(bits())
}

/// A new write.
pub(crate) fn write_id() -> WriteId {
    WriteId::from_bits(bits())
}
