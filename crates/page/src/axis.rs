//! A page's ticks and lives for a recording that is replayed again and again: on other cards, and with some of its
//! allocations left out.

use std::collections::HashSet;

use allocator::{Requests, Timeline};
use anatomy::lives::Lives;
use recording::{Block, BlockState, Event, Mark, Recording, Segment, TextId};

use crate::clock::Clock;
use crate::segments;

/// Where a page's ticks and lives are in its recording.
#[derive(Clone, Debug)]
pub struct Axis {
    clock: Clock,
    /// Of each life, in the order of a story: the event that made it, or the address of what was there before.
    births: Vec<Birth>,
}

#[derive(Clone, Copy, Debug)]
enum Birth {
    Event(usize),
    Before(u64),
}

impl Axis {
    /// Of a recording that replays as it was recorded.
    pub fn of(recording: &Recording, timeline: &Timeline) -> Axis {
        let lives = Lives::of(recording, timeline);
        let clock = Clock::of(&lives, timeline.moments.len());
        let births = lives.list.iter().map(|life| match life.born.checked_sub(1) {
            Some(event) => Birth::Event(event),
            None => Birth::Before(life.address),
        });
        Axis { births: births.collect(), clock }
    }

    /// The tick at which an event has happened.
    pub fn tick_of(&self, event: usize) -> u32 {
        self.clock.seen(event + 1)
    }

    /// What is reserved in a replay: ticks at which it changes, and bytes.
    pub fn reserved(&self, timeline: &Timeline) -> (Vec<u32>, Vec<u64>) {
        segments::reserved(timeline, &self.clock).into_iter().unzip()
    }

    /// What is allocated in a replay, at the ticks that stand for these buckets: the highest of each.
    pub fn allocated(&self, timeline: &Timeline, bucket: u32) -> Vec<u64> {
        let mut highest = Vec::new();
        for (event, moment) in timeline.moments.iter().enumerate() {
            let place = (self.tick_of(event) / bucket.max(1)) as usize;
            if highest.len() <= place {
                highest.resize(place + 1, 0);
            }
            highest[place] = highest[place].max(moment.allocated);
        }
        highest
    }

    /// The events and the start without some lives, of which a bit is set, the lowest first. Other events keep their
    /// numbers; a free of what was never asked for does nothing.
    pub fn without(&self, requests: &Requests<'_>, removed: &[u8]) -> (Vec<Event>, Vec<Segment>) {
        let mut events = requests.events.to_vec();
        let mut before = HashSet::new();
        for (life, birth) in self.births.iter().enumerate() {
            let is_removed = removed.get(life / 8).is_some_and(|byte| byte >> (life % 8) & 1 == 1);
            match *birth {
                _ if !is_removed => {}
                Birth::Event(at) => events[at] = Event::Mark(NOTHING),
                Birth::Before(address) => drop(before.insert(address)),
            }
        }
        let mut start = requests.start.clone();
        start.iter_mut().for_each(|segment| free(segment, &before));
        (events, start)
    }
}

/// A mark about no allocation.
const NOTHING: Mark = Mark::Tensor { address: 0, what: TextId(0) };

fn free(segment: &mut Segment, addresses: &HashSet<u64>) {
    for block in segment.blocks.iter_mut().filter(|block| addresses.contains(&block.address)) {
        (block.state, block.requested) = (BlockState::Inactive, 0);
    }
    join_free(segment);
}

/// Free blocks side by side are one, as PyTorch's allocator has them.
fn join_free(segment: &mut Segment) {
    let mut joined: Vec<Block> = Vec::with_capacity(segment.blocks.len());
    for block in segment.blocks.drain(..) {
        let is_free = block.state == BlockState::Inactive;
        match joined.last_mut() {
            Some(last) if is_free && last.state == BlockState::Inactive => last.size += block.size,
            _ => joined.push(block),
        }
    }
    segment.blocks = joined;
}

#[cfg(test)]
mod tests {
    use allocator::Settings;
    use recording::text;

    use super::*;

    const MIB: u64 = 1 << 20;
    const TEXT: &str = "torch 2.6.0\nalloc 0x7f0000000000 20971520\nalloc 0x7effff000000 31457280\n\
                        free_requested 0x7f0000000000 20971520\nfree_completed 0x7f0000000000 20971520\n\
                        alloc 0x7f0000000000 20971520\n";

    fn played(removed: u8) -> (Axis, Timeline) {
        let recording = text::recording(TEXT).unwrap();
        let settings = Settings::of(&recording.about).unwrap();
        let mut requests = Requests::of(&recording, &settings);
        let whole = requests.replay(&settings);
        let axis = Axis::of(&recording, &whole);
        let (events, start) = axis.without(&requests, &[removed]);
        requests.events = &events;
        requests.start = start;
        let timeline = requests.replay(&settings);
        (axis, timeline)
    }

    #[test]
    fn what_is_left_out_is_never_asked_for_and_others_keep_their_ticks() {
        let (axis, timeline) = played(0);
        assert_eq!(axis.reserved(&timeline), (vec![0, 1, 2], vec![0, 20 * MIB, 50 * MIB]));
        assert_eq!(axis.allocated(&timeline, 1), [0, 20, 50, 30, 50].map(|mib| mib * MIB));
        let (axis, timeline) = played(0b010);
        assert_eq!(axis.reserved(&timeline), (vec![0, 1], vec![0, 20 * MIB]));
        let (axis, timeline) = played(0b101);
        assert_eq!(axis.reserved(&timeline), (vec![0, 2], vec![0, 30 * MIB]));
    }

    #[test]
    fn free_blocks_become_one() {
        use BlockState::{Allocated, Inactive};
        let block =
            |(at, state): (u64, _)| Block { address: 10 * at, size: 10, requested: 10, state };
        let blocks = (0..).zip([Allocated, Inactive, Allocated]).map(block).collect();
        let (stream, pool, large, expandable) = (0, (0, 0), false, false);
        let mut segment = Segment { address: 0, size: 30, stream, pool, large, expandable, blocks };
        free(&mut segment, &HashSet::from([0]));
        let left: Vec<_> =
            segment.blocks.iter().map(|it| (it.address, it.size, it.state)).collect();
        assert_eq!(left, [(0, 20, Inactive), (20, 10, Allocated)]);
    }
}
