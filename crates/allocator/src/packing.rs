//! How little memory would do for an allocator that knew the future.
//!
//! Two numbers: a bound below which nothing can go, and a layout that was found, in which blocks are
//! placed anywhere in one piece of memory. The best there is lies between them. Streams, pools and
//! segments are not heeded.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use recording::{BlockState, Event};

use crate::replay::Requests;
use crate::settings::Settings;

/// Up to this many blocks the slower and better of two ways of packing is tried too.
const MOST_BY_SIZE: usize = 20_000;

/// How little memory a recording's blocks need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Rounded bytes in their users' hands at once, at the most: no allocator needs less. What only a
    /// stream still uses is left out: an allocator in need waits for it.
    pub bound: u64,
    /// Bytes of a layout that was found: an allocator that knew the future can do with it.
    pub packed: u64,
}

/// A block from the moment that makes it up to, but not with, the one that ends it. Moment 0 is before
/// the first event: what is older than a trace lives then, even if the first event ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Life {
    from: usize,
    until: usize,
    size: u64,
}

/// A block with its place.
#[derive(Clone, Copy, Debug)]
struct Placed {
    life: Life,
    offset: u64,
}

/// Packs the blocks of a recording, rounded as by these settings.
pub fn pack(requests: &Requests<'_>, settings: &Settings) -> Packing {
    let lives = lives(requests, settings, false);
    let bound = peak(&self::lives(requests, settings, true));
    let mut packed = height(&by_time(&lives));
    if bound < packed && lives.len() <= MOST_BY_SIZE {
        packed = packed.min(height(&by_size(&lives)));
    }
    Packing { bound, packed }
}

/// The bound of [`Packing`] without what PyTorch goes on without.
pub(crate) fn least_bytes(requests: &Requests<'_>, settings: &Settings) -> u64 {
    let mut lives = lives(requests, settings, true);
    lives.retain(|life| !requests.soft.contains(&life.from.wrapping_sub(1)));
    peak(&lives)
}

/// The life of every block; it ends when its user, or also every stream, is done with it.
fn lives(requests: &Requests<'_>, settings: &Settings, ends_with_user: bool) -> Vec<Life> {
    let size = |requested: u64| settings.round(requested.min(1 << 60));
    let fatal: Vec<usize> = crate::timeline::fatal(requests.events).collect();
    let mut lives = Vec::new();
    let mut live: HashMap<u64, usize> = HashMap::new();
    for block in requests.start.iter().flat_map(|segment| &segment.blocks) {
        let waits = block.state == BlockState::PendingFree && ends_with_user;
        if block.state != BlockState::Inactive && !waits {
            live.insert(block.address, lives.len());
            // A file may list blocks that no rounding makes.
            let size = size(block.requested).min(block.size);
            lives.push(Life { from: 0, until: usize::MAX, size });
        }
    }
    for (index, event) in requests.events.iter().enumerate() {
        let at = index + 1;
        match event {
            Event::Alloc { address, size: requested, .. } => {
                live.insert(*address, lives.len());
                lives.push(Life { from: at, until: usize::MAX, size: size(*requested) });
            }
            // The request that the program died of needs its room for a moment.
            Event::OutOfMemory { size: rounded, .. } if fatal.contains(&index) => {
                lives.push(Life { from: at, until: at + 1, size: size(*rounded) });
            }
            Event::FreeRequested { address, .. } if ends_with_user => {
                live.remove(address).into_iter().for_each(|index| lives[index].until = at);
            }
            Event::FreeCompleted { address, .. } => {
                live.remove(address).into_iter().for_each(|index| lives[index].until = at);
            }
            _ => {}
        }
    }
    lives
}

/// The most bytes alive at once.
fn peak(lives: &[Life]) -> u64 {
    let mut changes: Vec<(usize, i128)> = Vec::with_capacity(2 * lives.len());
    for life in lives {
        changes.push((life.from, life.size.into()));
        changes.push((life.until, -i128::from(life.size)));
    }
    // Ends before beginnings at the same event.
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    u64::try_from(most).unwrap_or(u64::MAX)
}

fn height(placed: &[Placed]) -> u64 {
    placed.iter().map(|block| block.offset.saturating_add(block.life.size)).max().unwrap_or(0)
}

/// Largest block first, each at the lowest place where nothing else is during its life.
fn by_size(lives: &[Life]) -> Vec<Placed> {
    let mut order = lives.to_vec();
    order.sort_by_key(|life| (std::cmp::Reverse(life.size), life.from));
    // In order of offsets.
    let mut placed: Vec<Placed> = Vec::with_capacity(order.len());
    for life in order {
        let mut offset = 0_u64;
        for other in &placed {
            let together = other.life.from < life.until && life.from < other.life.until;
            if !together {
                continue;
            }
            if offset.saturating_add(life.size) <= other.offset {
                break;
            }
            offset = offset.max(other.offset.saturating_add(other.life.size));
        }
        let index = placed.partition_point(|other| other.offset < offset);
        placed.insert(index, Placed { life, offset });
    }
    placed
}

/// In order of time, each into the smallest hole that is large enough, else on top.
fn by_time(lives: &[Life]) -> Vec<Placed> {
    let mut ends: Vec<usize> = (0..lives.len()).collect();
    ends.sort_by_key(|index| lives[*index].until);
    let mut ends = ends.into_iter().peekable();
    let mut holes = Holes::default();
    let mut placed: Vec<Placed> = Vec::with_capacity(lives.len());
    // `lives` is in order of beginnings, and who ends by then is placed already.
    for life in lives {
        while let Some(ended) = ends.next_if(|index| lives[*index].until <= life.from) {
            holes.give_back(placed[ended].offset, lives[ended].size);
        }
        let offset = holes.take(life.size);
        placed.push(Placed { life: *life, offset });
    }
    placed
}

/// Free ranges below the top.
#[derive(Default)]
struct Holes {
    by_offset: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    top: u64,
}

impl Holes {
    fn take(&mut self, size: u64) -> u64 {
        let Some((hole, offset)) = self.by_size.range((size, 0)..).next().copied() else {
            return self.grow(size);
        };
        self.remove(offset, hole);
        if size < hole {
            self.insert(offset + size, hole - size);
        }
        offset
    }

    /// On top, or from the last hole on if it touches the top.
    fn grow(&mut self, size: u64) -> u64 {
        let last = self.by_offset.last_key_value().map(|(offset, hole)| (*offset, *hole));
        let offset = match last {
            Some((offset, hole)) if offset + hole == self.top => {
                self.remove(offset, hole);
                offset
            }
            _ => self.top,
        };
        self.top = offset.saturating_add(size);
        offset
    }

    fn give_back(&mut self, mut offset: u64, mut size: u64) {
        let before = self.by_offset.range(..offset).next_back().map(|(at, size)| (*at, *size));
        if let Some((start, hole)) = before
            && start + hole == offset
        {
            self.remove(start, hole);
            (offset, size) = (start, size + hole);
        }
        if let Some(hole) = self.by_offset.get(&offset.saturating_add(size)).copied() {
            self.remove(offset + size, hole);
            size += hole;
        }
        self.insert(offset, size);
    }

    fn insert(&mut self, offset: u64, size: u64) {
        self.by_offset.insert(offset, size);
        self.by_size.insert((size, offset));
    }

    fn remove(&mut self, offset: u64, size: u64) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(from: usize, until: usize, size: u64) -> Life {
        Life { from, until, size }
    }

    /// Pairs of blocks that share a byte at one time, found the slow way.
    fn overlaps(placed: &[Placed]) -> usize {
        let pairs = placed
            .iter()
            .enumerate()
            .flat_map(|(index, a)| placed[index + 1..].iter().map(move |b| (a, b)));
        pairs
            .filter(|(a, b)| {
                a.life.from < b.life.until
                    && b.life.from < a.life.until
                    && a.offset < b.offset + b.life.size
                    && b.offset < a.offset + a.life.size
            })
            .count()
    }

    #[test]
    fn holes_are_used_again() {
        let lives = [life(0, 9, 4), life(1, 3, 2), life(2, 9, 1), life(4, 9, 2), life(5, 9, 3)];
        let placed = by_time(&lives);
        let offsets: Vec<u64> = placed.iter().map(|block| block.offset).collect();
        assert_eq!(offsets, [0, 4, 6, 4, 7]);
        assert_eq!((peak(&lives), height(&placed)), (10, 10));
    }

    #[test]
    fn who_knows_the_future_leaves_no_hole() {
        // In order of time the long-lived small block lands behind the large one and splits the rest.
        let lives = [life(0, 2, 6), life(1, 9, 1), life(3, 9, 7)];
        assert_eq!(peak(&lives), 8);
        assert_eq!(height(&by_time(&lives)), 14);
        assert_eq!(height(&by_size(&lives)), 8);
    }

    #[test]
    fn blocks_never_overlap() {
        let mut lives = Vec::new();
        let mut seed = 1_u64;
        for from in 0..400 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (length, size) = (1 + (seed >> 33) as usize % 40, 1 + (seed >> 50) % 100);
            lives.push(life(from, from + length, size));
        }
        for placed in [by_time(&lives), by_size(&lives)] {
            assert_eq!((placed.len(), overlaps(&placed)), (lives.len(), 0));
            assert!(peak(&lives) <= height(&placed));
        }
    }
}
