//! A 128-bit FNV-1a digest: the same for the same input on every machine and in every release, so
//! that keys on disk stay valid. Nobody attacks this cache; chance alone never meets 128 bits.

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// A digest in the making.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u128);

impl Digest {
    pub(crate) fn new() -> Digest {
        Digest(OFFSET)
    }

    /// Adds a field; its length goes in too, so that no two lists of fields read alike.
    pub(crate) fn field(mut self, bytes: &[u8]) -> Digest {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
        self
    }

    pub(crate) fn number(self, number: i64) -> Digest {
        self.field(&number.to_le_bytes())
    }

    pub(crate) fn key(self, key: u128) -> Digest {
        self.field(&key.to_le_bytes())
    }

    pub(crate) fn finish(self) -> u128 {
        self.0
    }
}

/// A short digest that tells a damaged line from a whole one.
pub(crate) fn checksum(text: &str) -> u32 {
    let digest = Digest::new().field(text.as_bytes()).finish();
    (digest ^ (digest >> 32) ^ (digest >> 64) ^ (digest >> 96)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_borders() {
        let two = |a: &str, b: &str| Digest::new().field(a.as_bytes()).field(b.as_bytes()).finish();
        assert_ne!(two("ab", "c"), two("a", "bc"));
        assert_ne!(Digest::new().number(1).finish(), Digest::new().number(256).finish());
    }

    #[test]
    fn keys_on_disk_stay_valid() {
        assert_eq!(Digest::new().finish(), OFFSET);
        assert_eq!(
            Digest::new().number(1).finish(),
            306_019_710_827_994_847_121_173_740_186_441_944_164
        );
        assert_eq!(checksum("fathom"), 3330591217);
        assert_ne!(checksum("fathom"), checksum("fathon"));
    }
}
