//! Where a card's memory lies: addresses in the order in which the driver hands them out.
//!
//! Of free blocks of one size PyTorch's allocator takes the one with the lowest address. So the order
//! of addresses decides which block is used, how the cache fragments, and how much is reserved.
//!
//! ```text
//! lower addresses ◀── new chunks
//! |  hole  | 20 MiB segment   |2|2|open| 44 MiB segment        |   open   | 20 MiB segment   | open  |
//!          |◀──── chunk: 32 MiB ──────▶|◀────── chunk: 64 MiB ────────────▶|◀── the first chunk ─────▶|
//! ```
//!
//! Under Linux the driver takes addresses from the system in chunks, multiples of 32 MiB, each below
//! the one before. Memory goes to the lowest open pages that hold it, else to the start of a new chunk.
//! An empty chunk goes back to the system, which gives out its highest hole first. These rules were
//! read off the segments in memory snapshots of real cards; `tests/recorded.rs` says how well they
//! agree. Windows, and Linux inside it, hand out ascending addresses.

mod ranges;

use ranges::Ranges;

/// The driver's page.
pub const PAGE: u64 = 2 << 20;

/// What the driver takes from the system is a multiple of this, and begins at one.
pub const CHUNK: u64 = 32 << 20;

/// The addresses of one card.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// What the system can still give, in whole chunks.
    holes: Ranges,
    /// What the driver has taken, start to length.
    chunks: Ranges,
    /// Free pages in chunks.
    open: Ranges,
}

impl Addresses {
    /// Addresses of `[start, end)`, as far as it holds whole chunks.
    pub fn new(start: u64, end: u64) -> Addresses {
        let (start, end) = (start.div_ceil(CHUNK), end / CHUNK);
        let mut holes = Ranges::default();
        if start < end {
            holes.insert(start * CHUNK, (end - start) * CHUNK);
        }
        Addresses { holes, chunks: Ranges::default(), open: Ranges::default() }
    }

    /// Addresses for `size` bytes, in whole pages; `None` if there are none left.
    pub fn take(&mut self, size: u64) -> Option<u64> {
        let length = size.max(1).checked_next_multiple_of(PAGE)?;
        if let Some(start) = self.open.lowest(length) {
            self.open.cut(start, length);
            return Some(start);
        }
        let chunk = length.checked_next_multiple_of(CHUNK)?;
        let start = self.take_chunk(chunk)?;
        if length < chunk {
            self.open.insert(start + length, chunk - length);
        }
        Some(start)
    }

    /// Gives addresses back that [`take`](Addresses::take) gave for this size. Others stay as they are.
    pub fn give_back(&mut self, start: u64, size: u64) {
        let length = size.max(1).next_multiple_of(PAGE);
        let Some((chunk, chunk_length)) = self.chunks.containing(start) else { return };
        self.open.insert(start, length);
        self.open.join_within(start, chunk, chunk + chunk_length);
        if self.open.get(chunk) == Some(chunk_length) {
            self.open.cut(chunk, chunk_length);
            self.chunks.cut(chunk, chunk_length);
            self.holes.insert(chunk, chunk_length);
            self.holes.join_within(chunk, 0, u64::MAX);
        }
    }

    /// A new chunk at the end of the highest hole that holds it.
    fn take_chunk(&mut self, length: u64) -> Option<u64> {
        let (hole, found) = self.holes.highest(length)?;
        let start = hole + found - length;
        self.holes.cut(start, length);
        self.chunks.insert(start, length);
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn chunks_go_down_and_their_rest_is_used() {
        let mut addresses = Addresses::new(0, 1 << 40);
        let first = addresses.take(20 * MIB).unwrap();
        assert_eq!(first, (1 << 40) - CHUNK);
        let second = addresses.take(44 * MIB).unwrap();
        assert_eq!(second, first - 2 * CHUNK);
        // 20 MiB are open after the second, 12 after the first: the lowest is used.
        assert_eq!(addresses.take(2 * MIB), Some(second + 44 * MIB));
        assert_eq!(addresses.take(20 * MIB), Some(second - CHUNK));
        // Less than a page is a page.
        assert_eq!(addresses.take(1), Some(second - CHUNK + 20 * MIB));
    }

    #[test]
    fn an_empty_chunk_is_the_first_to_be_used_again() {
        let mut addresses = Addresses::new(0, 1 << 40);
        let taken: Vec<u64> = (0..3).map(|_| addresses.take(30 * MIB).unwrap()).collect();
        let small = addresses.take(2 * MIB).unwrap();
        assert_eq!(small, taken[2] + 30 * MIB);
        addresses.give_back(taken[2], 30 * MIB);
        addresses.give_back(taken[0], 30 * MIB);
        // The third chunk is not empty and stays; the first went back and is the highest hole.
        assert_eq!(addresses.take(32 * MIB), Some(taken[0]));
        assert_eq!(addresses.take(30 * MIB), Some(taken[2]));
    }

    #[test]
    fn all_that_is_given_back_is_one_hole_again() {
        let mut addresses = Addresses::new(PAGE, 1 << 30);
        let sizes = [3, 40 * MIB, 2 * MIB, 70 * MIB, 12 * MIB, 20 * MIB];
        let taken = sizes.map(|size| addresses.take(size).unwrap());
        for index in [2, 0, 5, 1, 4, 3] {
            addresses.give_back(taken[index], sizes[index]);
        }
        assert_eq!(addresses.take((1 << 30) - CHUNK), Some(CHUNK));
    }

    #[test]
    fn addresses_end() {
        let mut addresses = Addresses::new(1, 2 * CHUNK);
        assert_eq!(addresses.take(CHUNK + 1), None);
        assert_eq!(addresses.take(u64::MAX), None);
        assert_eq!(addresses.take(CHUNK), Some(CHUNK));
        assert_eq!(addresses.take(1), None);
        assert_eq!(Addresses::new(5, 3).take(1), None);
    }
}
