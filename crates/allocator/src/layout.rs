//! How memory lay after an event of a timeline, put together from what the timeline says: no second replay.
//!
//! Segments are those of the start and of the segment events since; blocks in use those that were handed out since and
//! not given back. What is left of a segment is free, in as few blocks as can be: neighbours that are free are one.

use std::collections::BTreeMap;

use recording::{Block, BlockState, Event, Recording, Segment};

use crate::settings::{SMALL_SIZE, Settings};
use crate::timeline::Timeline;

/// Segments and blocks after this event, in order of addresses; `None` if the timeline ends before it.
pub(crate) fn after(
    recording: &Recording,
    timeline: &Timeline,
    settings: &Settings,
    event: usize,
) -> Option<Vec<Segment>> {
    if timeline.moments.len() <= event {
        return None;
    }
    let mut layout = Layout::of(&timeline.start);
    let mut changes = timeline.segments.iter().peekable();
    for (at, now) in recording.events.iter().enumerate().take(event + 1) {
        let is_large = match *now {
            Event::Alloc { size, .. } | Event::OutOfMemory { size, .. } => {
                SMALL_SIZE < settings.round(size)
            }
            _ => false,
        };
        while let Some(change) = changes.next_if(|change| change.at <= at) {
            layout.change(&change.event, is_large);
        }
        layout.play(now, timeline.moments.get(at)?.block);
    }
    Some(layout.segments())
}

/// The kind of a segment: blocks of two kinds are never neighbours.
type Kind = ((u32, u32), bool, u64, bool);

#[derive(Default)]
struct Layout {
    /// By address: length and kind.
    segments: BTreeMap<u64, (u64, Kind)>,
    /// Blocks that are not free, by address.
    used: BTreeMap<u64, Block>,
}

impl Layout {
    fn of(start: &[Segment]) -> Layout {
        let mut layout = Layout::default();
        for segment in start {
            let Segment { pool, large, stream, expandable, .. } = *segment;
            let kind = (pool, large, stream, expandable);
            layout.segments.insert(segment.address, (segment.size, kind));
            let used = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
            layout.used.extend(used.map(|block| (block.address, *block)));
        }
        layout
    }

    /// A block is handed out, given back or free again.
    fn play(&mut self, event: &Event, size: u64) {
        match *event {
            // PyTorch went on without it.
            Event::Alloc { .. } if size == 0 => {}
            Event::Alloc { address, size: requested, .. } => {
                let state = BlockState::Allocated;
                self.used.insert(address, Block { address, size, requested, state });
            }
            Event::FreeRequested { address, .. } => {
                let block = self.used.get_mut(&address);
                block.into_iter().for_each(|block| block.state = BlockState::PendingFree);
            }
            Event::FreeCompleted { address, .. } => drop(self.used.remove(&address)),
            _ => {}
        }
    }

    /// A segment comes or goes, for a request that is large or not.
    fn change(&mut self, event: &Event, is_large: bool) {
        match *event {
            Event::SegmentAlloc { address, size, stream, pool } => {
                self.segments.insert(address, (size, (pool, is_large, stream, false)));
            }
            Event::SegmentMap { address, size, stream, pool } => {
                self.map(address, size, (pool, is_large, stream, true));
            }
            Event::SegmentFree { address, size, .. }
            | Event::SegmentUnmap { address, size, .. } => {
                self.unmap(address, address.saturating_add(size));
            }
            _ => {}
        }
    }

    /// Pages beside others of their kind are one segment with them.
    fn map(&mut self, mut address: u64, mut size: u64, kind: Kind) {
        let before = self.segments.range(..address).next_back().map(|(at, row)| (*at, *row));
        if let Some((at, (length, _))) =
            before.filter(|(at, (length, of))| *of == kind && at + length == address)
        {
            self.segments.remove(&at);
            (address, size) = (at, length + size);
        }
        let after = address.saturating_add(size);
        if let Some((length, _)) = self.segments.get(&after).copied().filter(|row| row.1 == kind) {
            self.segments.remove(&after);
            size += length;
        }
        self.segments.insert(address, (size, kind));
    }

    /// What lies on both sides of the pages stays.
    fn unmap(&mut self, start: u64, end: u64) {
        let found = self.segments.range(..=start).next_back().map(|(at, row)| (*at, *row));
        let Some((at, (size, kind))) = found.filter(|(at, (size, _))| start < at + size) else {
            return;
        };
        self.segments.remove(&at);
        if at < start {
            self.segments.insert(at, (start - at, kind));
        }
        if end < at + size {
            self.segments.insert(end, (at + size - end, kind));
        }
    }

    fn segments(&self) -> Vec<Segment> {
        let segment = |(&address, &(size, (pool, large, stream, expandable)))| {
            let blocks = self.blocks(address, address.saturating_add(size));
            Segment { address, size, stream, pool, large, expandable, blocks }
        };
        self.segments.iter().map(segment).collect()
    }

    /// All blocks of a range: those in use, and what lies between them.
    fn blocks(&self, start: u64, end: u64) -> Vec<Block> {
        let (mut blocks, mut at) = (Vec::new(), start);
        let free = |address: u64, end: u64| Block {
            address,
            size: end - address,
            requested: 0,
            state: BlockState::Inactive,
        };
        for (&address, block) in self.used.range(start..end) {
            if at < address {
                blocks.push(free(at, address));
            }
            blocks.push(*block);
            at = at.max(address.saturating_add(block.size));
        }
        if at < end {
            blocks.push(free(at, end));
        }
        blocks
    }
}
