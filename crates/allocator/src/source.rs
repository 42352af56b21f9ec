//! Where segments come from: the card, or a recording of what a card once answered.

use addresses::{Addresses, PAGE};
use recording::Event;

/// The card as the allocator sees it.
pub trait SegmentSource {
    /// `cudaMalloc`: where the new segment is, or `None` if there is no room.
    fn allocate(&mut self, size: u64, stream: u64, pool: (u32, u32)) -> Option<u64>;
    /// `cuMemAddressReserve`: where a new expandable segment of this length begins, if anywhere.
    fn reserve(&mut self, size: u64) -> Option<u64>;
    /// `cuMemCreate` and `cuMemMap` of whole pages: is there room?
    fn map(&mut self, address: u64, size: u64, stream: u64, pool: (u32, u32)) -> bool;
    /// A segment or pages went back: `SegmentFree` or `SegmentUnmap`.
    fn give_back(&mut self, event: &Event);
    /// What `cudaMemGetInfo` would call free; `None` if unlimited.
    fn free_bytes(&self) -> Option<u64>;
}

/// A card that gives addresses as the driver does.
#[derive(Clone, Debug)]
pub struct SyntheticCard {
    addresses: Addresses,
    /// Where reservations begin that have no room among the addresses of a real card.
    beyond: u64,
    left: u64,
    endless: bool,
}

/// What a card with unlimited memory still cannot hold: numbers end somewhere.
const END: u64 = 1 << 62;

/// Below this no native driver begins: 47 bits are a process's, and the driver's are at their upper end.
const LOW: u64 = 1 << 45;

impl SyntheticCard {
    /// A card with this much memory or unlimited, whose addresses lie outside of `[taken, taken_end)`.
    pub fn new((taken, taken_end): (u64, u64), free: Option<u64>) -> SyntheticCard {
        let beyond = taken_end.min(END).next_multiple_of(PAGE);
        // The driver goes down. Files from Windows leave no room there.
        let room = if LOW < taken { (0, taken) } else { (beyond, beyond + LOW) };
        let addresses = Addresses::new(room.0, room.1);
        SyntheticCard {
            addresses,
            beyond: beyond.max(room.1),
            left: free.unwrap_or(END),
            endless: free.is_none(),
        }
    }

    fn take(&mut self, size: u64) -> bool {
        let fits = size <= self.left;
        if fits {
            self.left -= size;
        }
        fits
    }
}

impl SegmentSource for SyntheticCard {
    fn allocate(&mut self, size: u64, _stream: u64, _pool: (u32, u32)) -> Option<u64> {
        if self.take(size) { self.reserve(size) } else { None }
    }

    fn reserve(&mut self, size: u64) -> Option<u64> {
        if let Some(address) = self.addresses.take(size) {
            return Some(address);
        }
        let address = self.beyond;
        self.beyond = address.checked_add(size.checked_next_multiple_of(PAGE)?)?;
        Some(address)
    }

    fn map(&mut self, _address: u64, size: u64, _stream: u64, _pool: (u32, u32)) -> bool {
        self.take(size)
    }

    fn give_back(&mut self, event: &Event) {
        match *event {
            Event::SegmentFree { address, size, .. } => {
                self.left += size;
                self.addresses.give_back(address, size);
            }
            Event::SegmentUnmap { size, .. } => self.left += size,
            _ => {}
        }
    }

    fn free_bytes(&self) -> Option<u64> {
        (!self.endless).then_some(self.left)
    }
}
