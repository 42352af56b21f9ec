//! Names of what is cached, by content: the same in every build, which the standard library's hasher does not
//! promise.

use sha2::{Digest, Sha256};

/// The first half of a SHA-256, in hex: short enough for a file name, and chance alone never meets 128 bits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_half_of_the_published_function() {
        assert_eq!(hash(b"abc"), "ba7816bf8f01cfea414140de5dae2223");
    }
}
