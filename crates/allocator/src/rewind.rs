//! The state at the beginning of a recording that starts in the middle of a run.
//!
//! A snapshot lists segments and blocks at its end. Walking its trace backwards undoes every event
//! and leaves what was there before the first one. Sizes of blocks that the trace frees are not
//! known: they follow from the request and from what lies behind the block.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use recording::{Block, BlockState, Event, Recording, Segment};
use rustc_hash::FxHashMap;

use crate::settings::{SMALL_SEGMENT, SMALL_SIZE, Settings};

/// Segments and blocks before the first event: from `start`, or by undoing the events from `finish`.
pub fn start(recording: &Recording, settings: &Settings) -> Vec<Segment> {
    let mut sketch = Sketch::default();
    if recording.start.is_empty() {
        sketch.list(&recording.finish);
        for (at, event) in recording.events.iter().enumerate().rev() {
            sketch.undo(at, event, settings);
        }
    } else {
        recording.start.iter().for_each(|event| sketch.make(event));
    }
    sketch.segments(settings, &recording.events)
}

/// A block that is not free.
#[derive(Clone, Copy, Debug)]
struct Used {
    requested: u64,
    /// `None` if it has to be inferred.
    size: Option<u64>,
    state: BlockState,
    /// Index of the event that ends it.
    until: usize,
}

/// Segments by address, without their blocks, and the blocks in use by address.
#[derive(Clone, Debug, Default)]
struct Sketch {
    segments: BTreeMap<u64, Segment>,
    used: FxHashMap<u64, Used>,
}

impl Sketch {
    fn list(&mut self, segments: &[Segment]) {
        for segment in segments.iter().filter(|segment| can_be(segment.address, segment.size)) {
            let bare = Segment { blocks: Vec::new(), ..segment.clone() };
            self.segments.insert(segment.address, bare);
            for block in &segment.blocks {
                let Block { address, size, requested, state } = *block;
                if state != BlockState::Inactive {
                    let used = Used { requested, size: Some(size), state, until: usize::MAX };
                    self.used.insert(address, used);
                }
            }
        }
    }

    /// An event of a recording's `start`: makes what it names.
    fn make(&mut self, event: &Event) {
        match *event {
            Event::SegmentAlloc { address, size, stream, pool } => {
                let large = size != SMALL_SEGMENT;
                self.add(address, size, (stream, pool), large, false);
            }
            Event::SegmentMap { address, size, stream, pool } => {
                self.add(address, size, (stream, pool), size != SMALL_SEGMENT, true);
            }
            Event::Alloc { address, size, .. } => {
                let state = BlockState::Allocated;
                let used = Used { requested: size, size: None, state, until: usize::MAX };
                self.used.insert(address, used);
            }
            Event::FreeRequested { address, .. } => self.set(address, BlockState::PendingFree),
            _ => {}
        }
    }

    /// Takes back one event of the trace.
    fn undo(&mut self, at: usize, event: &Event, settings: &Settings) {
        match *event {
            Event::Alloc { address, .. } => drop(self.used.remove(&address)),
            Event::FreeCompleted { address, size } => {
                let state = BlockState::PendingFree;
                let used = Used { requested: size, size: None, state, until: at };
                self.used.insert(address, used);
            }
            Event::FreeRequested { address, .. } => self.set(address, BlockState::Allocated),
            Event::SegmentAlloc { address, .. } => drop(self.segments.remove(&address)),
            Event::SegmentFree { address, size, stream, pool } => {
                self.add(address, size, (stream, pool), size != SMALL_SEGMENT, false);
            }
            Event::SegmentMap { address, size, .. } => self.cut(address, size),
            Event::SegmentUnmap { address, size, stream, pool } => {
                let large = size.is_multiple_of(settings.large_segment_size.max(1));
                self.add_pages(address, size, (stream, pool), large);
            }
            Event::OutOfMemory { .. } | Event::Mark(_) => {}
        }
    }

    fn set(&mut self, address: u64, state: BlockState) {
        if let Some(used) = self.used.get_mut(&address) {
            used.state = state;
        }
    }

    fn add(
        &mut self,
        address: u64,
        size: u64,
        (stream, pool): (u64, (u32, u32)),
        large: bool,
        expandable: bool,
    ) {
        if !can_be(address, size) {
            return;
        }
        let blocks = Vec::new();
        let segment = Segment { address, size, stream, pool, large, expandable, blocks };
        self.segments.insert(address, segment);
    }

    /// Pages are mapped again: they join the ranges of their stream and pool that they touch.
    fn add_pages(&mut self, address: u64, size: u64, owner: (u64, (u32, u32)), large: bool) {
        let joins =
            |segment: &Segment| segment.expandable && (segment.stream, segment.pool) == owner;
        let (mut first, mut length, mut large) = (address, size, large);
        let end = address.saturating_add(size);
        if self.segments.get(&end).is_some_and(joins)
            && let Some(after) = self.segments.remove(&end)
        {
            (length, large) = (length + after.size, after.large);
        }
        let before = self.segments.range(..address).next_back().map(|(_, segment)| segment);
        if let Some(before) = before
            && joins(before)
            && before.address + before.size == address
        {
            (first, length, large) = (before.address, length + before.size, before.large);
        }
        self.add(first, length, owner, large, true);
    }

    /// Pages are not mapped yet: what is left of their range stays.
    fn cut(&mut self, address: u64, size: u64) {
        let Some((_, whole)) = self.segments.range(..=address).next_back() else { return };
        let whole = whole.clone();
        let (end, whole_end) = (address.saturating_add(size), whole.address + whole.size);
        if !whole.expandable || whole_end < end {
            return;
        }
        self.segments.remove(&whole.address);
        for (from, to) in [(whole.address, address), (end, whole_end)] {
            if from < to {
                let part = Segment { address: from, size: to - from, ..whole.clone() };
                self.segments.insert(from, part);
            }
        }
    }

    /// Segments tiled with blocks; what overlaps or lies outside is left out.
    fn segments(self, settings: &Settings, events: &[Event]) -> Vec<Segment> {
        let landings = OnceCell::new();
        let mut used: Vec<(u64, Used)> = self.used.into_iter().collect();
        used.sort_unstable_by_key(|(address, _)| *address);
        let mut used = used.into_iter().peekable();
        let mut result: Vec<Segment> = Vec::new();
        let mut free_from = 0;
        for mut segment in self.segments.into_values() {
            let Some(end) = segment.address.checked_add(segment.size) else { continue };
            if segment.address < free_from || segment.size == 0 || 1 << 62 < end {
                continue;
            }
            free_from = end;
            let mut at = segment.address;
            while let Some((address, block)) = used.next_if(|(address, _)| *address < end) {
                if address < at {
                    continue;
                }
                let until = used.peek().map_or(end, |(next, _)| end.min(*next));
                let later = || landings.get_or_init(|| Landings::of(events));
                let size = match block.size {
                    Some(size) => size,
                    None => infer(address, &block, until, &segment, settings, later),
                };
                free(&mut segment.blocks, at, address);
                let size = size.min(until - address);
                let (requested, state) = (block.requested.min(size), block.state);
                segment.blocks.push(Block { address, size, requested, state });
                at = address + size;
            }
            free(&mut segment.blocks, at, end);
            result.push(segment);
        }
        result
    }
}

/// Could a card have this range? Files may come from anyone; sums of such addresses do not overflow.
pub(crate) fn can_be(address: u64, size: u64) -> bool {
    address.checked_add(size).is_some_and(|end| end <= 1 << 62)
}

fn free(blocks: &mut Vec<Block>, from: u64, to: u64) {
    if from < to {
        let state = BlockState::Inactive;
        blocks.push(Block { address: from, size: to - from, requested: 0, state });
    }
}

/// The size of a block whose request is known; `until` is where the next used block begins.
fn infer<'a>(
    address: u64,
    used: &Used,
    until: u64,
    segment: &Segment,
    settings: &Settings,
    landings: impl FnOnce() -> &'a Landings,
) -> u64 {
    let rounded = settings.round(used.requested.min(1 << 60));
    if !segment.large || segment.expandable || until - address <= rounded {
        return rounded;
    }
    let gap = until - address - rounded;
    if gap <= SMALL_SIZE || settings.max_split_size <= rounded {
        // Free blocks of the large pool are above 1 MiB, so the gap is an unsplit tail.
        return rounded + gap;
    }
    // The block may own a tail before the free block behind it: then a later one begins there.
    landings().first(address + rounded, used.until).map_or(rounded, |landing| landing - address)
}

/// Where blocks of the trace begin, and when, in order.
struct Landings(Vec<(u64, usize)>);

impl Landings {
    fn of(events: &[Event]) -> Landings {
        let mut all = Vec::new();
        for (at, event) in events.iter().enumerate() {
            if let Event::Alloc { address, .. } = event {
                all.push((*address, at));
            }
        }
        all.sort_unstable();
        Landings(all)
    }

    /// The lowest address up to 1 MiB behind `end` where a block begins before event `until`.
    fn first(&self, end: u64, until: usize) -> Option<u64> {
        let from = self.0.partition_point(|(address, _)| *address < end);
        let near = self.0[from..].iter().take_while(|(address, _)| address - end <= SMALL_SIZE);
        near.filter(|(_, at)| *at < until).map(|(address, _)| *address).next()
    }
}
