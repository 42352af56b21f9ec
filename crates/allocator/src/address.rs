//! Maps by address.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Anything by its address.
pub(crate) type ByAddress<T> = HashMap<u64, T, BuildHasherDefault<AddressHasher>>;

/// Addresses are multiples of 512: their upper bits, spread by one multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, address: u64) {
        let mixed = (self.0 ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
