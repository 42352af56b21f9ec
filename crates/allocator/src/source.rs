//! Where segments come from: the card, or a recording of what a card once answered.

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
    /// What `cudaMemGetInfo` would call free; `None` if without end.
    fn free_bytes(&self) -> Option<u64>;
}

/// A card that gives ascending addresses, none of them twice.
#[derive(Clone, Debug)]
pub struct Card {
    next: u64,
    left: u64,
    endless: bool,
}

/// Distance between addresses: the granularity of `cudaMalloc` above 1 MiB.
const STEP: u64 = 2 << 20;

/// What a card without end still cannot hold: numbers end somewhere.
const END: u64 = 1 << 62;

impl Card {
    /// A card whose addresses begin at `first`, and with this much memory or without end.
    pub fn new(first: u64, free: Option<u64>) -> Card {
        let next = first.min(END).next_multiple_of(STEP);
        Card { next, left: free.unwrap_or(END), endless: free.is_none() }
    }

    fn take(&mut self, size: u64) -> bool {
        let fits = size <= self.left;
        if fits {
            self.left -= size;
        }
        fits
    }
}

impl SegmentSource for Card {
    fn allocate(&mut self, size: u64, _stream: u64, _pool: (u32, u32)) -> Option<u64> {
        if self.take(size) { self.reserve(size) } else { None }
    }

    fn reserve(&mut self, size: u64) -> Option<u64> {
        let address = self.next;
        self.next = address.checked_add(size.checked_next_multiple_of(STEP)?)?;
        Some(address)
    }

    fn map(&mut self, _address: u64, size: u64, _stream: u64, _pool: (u32, u32)) -> bool {
        self.take(size)
    }

    fn give_back(&mut self, event: &Event) {
        if let Event::SegmentFree { size, .. } | Event::SegmentUnmap { size, .. } = event {
            self.left += size;
        }
    }

    fn free_bytes(&self) -> Option<u64> {
        (!self.endless).then_some(self.left)
    }
}
