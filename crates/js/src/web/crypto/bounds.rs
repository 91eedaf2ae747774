//! How much work one call may ask for. A host function cannot be interrupted, so that what takes longer than about a
//! second is refused before it begins.

/// Web Crypto, 10.1.1: the most bytes of one `getRandomValues`.
pub(super) const RANDOM_BYTES_MAX: usize = 65_536;

/// The longest HMAC key that is generated: 65,536 bits, above every hash's block.
pub(super) const SECRET_KEY_BYTES_MAX: usize = 8_192;

/// PBKDF2 iterations of one call, as workerd has it.
pub(super) const PBKDF2_ITERATIONS_MAX: u32 = 100_000;

/// PBKDF2 iterations times blocks of output: 500,000 of SHA-512 take about half a second.
pub(crate) const PBKDF2_WORK_MAX: u64 = 500_000;

/// The work of PBKDF2: for each block of output the salt is hashed, and then the iterations follow.
pub(crate) const fn pbkdf2_work(blocks: u64, iterations: u32, salt_len: u64) -> u64 {
    blocks.saturating_mul((iterations as u64).saturating_add(salt_len / 64))
}

/// Bits of an RSA modulus that is generated: the search for the primes of 4,096 bits takes up to some seconds.
pub(super) const RSA_GENERATE_BITS_MAX: usize = 3_072;

/// Bits of an RSA modulus, imported or generated: below it is broken, above it a signature takes a second.
pub(super) const RSA_BITS_MIN: usize = 1_024;
/// See [`RSA_BITS_MIN`].
pub(super) const RSA_BITS_MAX: usize = 8_192;
