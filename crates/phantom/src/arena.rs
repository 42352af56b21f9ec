//! Device memory: address space of one card, and how much of the card is in use.
//!
//! The driver gives physical memory in pages of 2 MiB; requests below that share pages. Where they lie
//! is the business of [`Addresses`]. Virtual reservations take addresses but no memory.

use std::collections::BTreeMap;

pub(crate) use addresses::PAGE;
use addresses::{Addresses, CHUNK};

use crate::error::Failure;

/// Alignment of small allocations.
const GRAIN: u64 = 512;

/// The memory of one card.
pub(crate) struct Arena {
    addresses: Addresses,
    /// Free parts of pages that small allocations share.
    small: BTreeMap<u64, u64>,
    /// Live allocations, start to length.
    live: BTreeMap<u64, u64>,
    /// Bytes of the card in use, without the context.
    used: u64,
    /// Bytes of the card that this process can have at once.
    capacity: u64,
}

impl Arena {
    /// A card with `capacity` bytes for this process, at addresses `[base, base + span)`.
    pub(crate) fn new(base: u64, span: u64, capacity: u64) -> Arena {
        assert!(base.is_multiple_of(PAGE) && span.is_multiple_of(PAGE));
        let addresses = Addresses::new(base, base + span);
        Arena { addresses, small: BTreeMap::new(), live: BTreeMap::new(), used: 0, capacity }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// What this process can have, now that others hold so much.
    pub(crate) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    pub(crate) fn available(&self) -> u64 {
        self.capacity.saturating_sub(self.used)
    }

    /// Takes memory and an address for it.
    pub(crate) fn allocate(&mut self, size: u64) -> Result<u64, Failure> {
        let size = size.max(1);
        let start =
            if size < PAGE { self.allocate_small(size)? } else { self.allocate_pages(size)? };
        Ok(start)
    }

    /// Gives an allocation back; its length, if there is one at `start`.
    pub(crate) fn release(&mut self, start: u64) -> Result<u64, Failure> {
        let length = self.live.remove(&start).ok_or(Failure::InvalidValue)?;
        if length < PAGE {
            self.release_small(start, length);
        } else {
            self.used -= length;
            self.addresses.give_back(start, length);
        }
        Ok(length)
    }

    /// The allocation that contains `address`.
    pub(crate) fn containing(&self, address: u64) -> Option<(u64, u64)> {
        let (&start, &length) = self.live.range(..=address).next_back()?;
        (address < start + length).then_some((start, length))
    }

    /// Takes memory without an address: physical memory of the virtual memory API.
    pub(crate) fn charge(&mut self, size: u64) -> Result<(), Failure> {
        if self.available() < size {
            return Err(Failure::OutOfMemory);
        }
        self.used += size;
        Ok(())
    }

    /// Gives charged memory back.
    pub(crate) fn discharge(&mut self, size: u64) {
        assert!(size <= self.used);
        self.used -= size;
    }

    /// Takes addresses without memory.
    pub(crate) fn reserve(&mut self, size: u64) -> Result<u64, Failure> {
        self.addresses.take(granted(size)).ok_or(Failure::OutOfMemory)
    }

    /// Gives reserved addresses back.
    pub(crate) fn unreserve(&mut self, start: u64, size: u64) {
        self.addresses.give_back(start, granted(size));
    }

    fn allocate_pages(&mut self, size: u64) -> Result<u64, Failure> {
        let length = size.checked_next_multiple_of(PAGE).ok_or(Failure::OutOfMemory)?;
        self.charge(length)?;
        let start = self.addresses.take(length).ok_or_else(|| {
            self.used -= length;
            Failure::OutOfMemory
        })?;
        self.live.insert(start, length);
        Ok(start)
    }

    fn allocate_small(&mut self, size: u64) -> Result<u64, Failure> {
        let length = size.next_multiple_of(GRAIN).min(PAGE - GRAIN);
        let start = match take_first_fit(&mut self.small, length) {
            Some(start) => start,
            None => {
                self.charge(PAGE)?;
                let page = self.addresses.take(PAGE).ok_or(Failure::OutOfMemory)?;
                self.small.insert(page + length, PAGE - length);
                page
            }
        };
        self.live.insert(start, length);
        Ok(start)
    }

    fn release_small(&mut self, start: u64, length: u64) {
        let (start, length) = insert_merged(&mut self.small, start, length);
        // Pages that became empty go back to the card.
        let first = start.next_multiple_of(PAGE);
        let end = (start + length) / PAGE * PAGE;
        if end <= first {
            return;
        }
        self.small.remove(&start);
        if start < first {
            self.small.insert(start, first - start);
        }
        if end < start + length {
            self.small.insert(end, start + length - end);
        }
        self.used -= end - first;
        (first..end).step_by(PAGE as usize).for_each(|page| self.addresses.give_back(page, PAGE));
    }
}

fn take_first_fit(ranges: &mut BTreeMap<u64, u64>, length: u64) -> Option<u64> {
    let (&start, &found) = ranges.iter().find(|(_, found)| **found >= length)?;
    ranges.remove(&start);
    if length < found {
        ranges.insert(start + length, found - length);
    }
    Some(start)
}

/// Adds a free range and joins it with its neighbours; gives the joined range.
fn insert_merged(ranges: &mut BTreeMap<u64, u64>, mut start: u64, mut length: u64) -> (u64, u64) {
    if let Some((&before, &before_length)) = ranges.range(..start).next_back()
        && before + before_length == start
    {
        ranges.remove(&before);
        start = before;
        length += before_length;
    }
    if let Some(after_length) = ranges.remove(&(start + length)) {
        length += after_length;
    }
    ranges.insert(start, length);
    (start, length)
}

/// How much of a reservation is really kept apart. PyTorch reserves a little more than the card has
/// for each of its segments, which on a card without a limit is more than there are addresses.
pub(crate) fn granted(size: u64) -> u64 {
    const MOST: u64 = 2 << 40;
    size.min(MOST).next_multiple_of(CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena(pages: u64) -> Arena {
        Arena::new(PAGE, 1 << 40, pages * PAGE)
    }

    #[test]
    fn small_allocations_share_a_page_and_give_it_back() {
        let mut arena = arena(1);
        let first = arena.allocate(1000).unwrap();
        let second = arena.allocate(1).unwrap();
        assert_eq!((second - first, arena.used()), (1024, PAGE));
        assert_eq!(arena.allocate(PAGE), Err(Failure::OutOfMemory));
        arena.release(first).unwrap();
        assert_eq!(arena.used(), PAGE);
        arena.release(second).unwrap();
        assert_eq!(arena.used(), 0);
        assert!(arena.small.is_empty());
    }

    #[test]
    fn memory_ends_where_the_card_ends() {
        let mut arena = arena(10);
        let held = arena.allocate(9 * PAGE).unwrap();
        assert_eq!(arena.allocate(2 * PAGE), Err(Failure::OutOfMemory));
        assert_eq!(arena.allocate(PAGE + 1), Err(Failure::OutOfMemory));
        arena.allocate(PAGE).unwrap();
        assert_eq!(arena.available(), 0);
        assert_eq!(arena.release(held), Ok(9 * PAGE));
        assert_eq!(arena.release(held), Err(Failure::InvalidValue));
        assert_eq!(arena.allocate(3 * PAGE), Ok(held), "freed addresses are used again");
    }

    #[test]
    fn reserved_addresses_take_no_memory() {
        let mut arena = arena(2);
        let range = arena.reserve(100 * PAGE).unwrap();
        assert_eq!(arena.used(), 0);
        arena.charge(2 * PAGE).unwrap();
        assert_eq!(arena.charge(1), Err(Failure::OutOfMemory));
        arena.discharge(2 * PAGE);
        arena.unreserve(range, 100 * PAGE);
        assert_eq!(arena.reserve(100 * PAGE), Ok(range));
    }

    #[test]
    fn an_address_inside_finds_its_allocation() {
        let mut arena = arena(10);
        let start = arena.allocate(3 * PAGE).unwrap();
        assert_eq!(arena.containing(start + 5), Some((start, 3 * PAGE)));
        assert_eq!(arena.containing(start + 3 * PAGE), None);
    }
}
