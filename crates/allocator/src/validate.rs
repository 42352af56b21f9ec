//! A separate, slow and obvious check of any timeline. It shares nothing with the allocator but the
//! data it looks at, and names each way to be wrong.

use std::collections::BTreeMap;

use recording::{BlockState, Event, Recording, Segment};

use crate::replay::soft;
use crate::timeline::{Moment, Timeline};

/// What is wrong with a timeline, in words; `Ok` if nothing is.
pub fn validate(recording: &Recording, timeline: &Timeline) -> Result<(), String> {
    state(&timeline.start).map_err(|fault| format!("start: {fault}"))?;
    state(&timeline.finish).map_err(|fault| format!("finish: {fault}"))?;
    let mut book = Book::open(&timeline.start);
    let mut segments = timeline.segments.iter().peekable();
    let soft = soft(&recording.events);
    for (at, moment) in timeline.moments.iter().enumerate() {
        let place = |fault: String| format!("event {at}, `{}`: {fault}", recording.events[at]);
        if timeline.synchronized.binary_search(&at).is_ok() {
            book.blocks.retain(|_, entry| entry.allocated);
        }
        while let Some(next) = segments.next_if(|next| next.at == at) {
            book.segment(&next.event).map_err(place)?;
        }
        let goes_on_without = moment.address == 0 && soft.contains(&at);
        if !goes_on_without {
            book.event(&recording.events[at], moment).map_err(place)?;
        }
        book.sums(moment).map_err(place)?;
    }
    // A request that failed has no moment, but what it tried has left traces.
    if timeline.synchronized.last().is_some_and(|at| timeline.moments.len() <= *at) {
        book.blocks.retain(|_, entry| entry.allocated);
    }
    for next in segments {
        book.segment(&next.event)?;
    }
    book.close(timeline)
}

/// What is wrong with a list of segments.
pub fn state(segments: &[Segment]) -> Result<(), String> {
    let mut free_from = 0;
    for segment in segments {
        if segment.address < free_from {
            return Err(format!("`{segment}` overlaps the one before or is out of order"));
        }
        free_from = segment.address + segment.size;
        let mut at = segment.address;
        let mut before = None;
        for block in &segment.blocks {
            if block.address != at {
                return Err(format!("`{block}` does not begin where the one before ends, {at:#x}"));
            }
            if block.size == 0 {
                return Err(format!("`{block}` is empty"));
            }
            if before == Some(BlockState::Inactive) && block.state == BlockState::Inactive {
                return Err(format!("`{block}` is free beside a free block"));
            }
            if block.state != BlockState::Inactive && block.size < block.requested {
                return Err(format!("`{block}` is smaller than what was asked for"));
            }
            at += block.size;
            before = Some(block.state);
        }
        if at != free_from {
            return Err(format!("blocks of `{segment}` end at {at:#x}, not with the segment"));
        }
    }
    Ok(())
}

/// A block in use.
#[derive(Clone, Copy, Debug)]
struct Entry {
    size: u64,
    requested: u64,
    allocated: bool,
    /// The address the recording knows it by.
    recorded: u64,
}

/// Segments and blocks in use, kept the slow way.
struct Book {
    segments: BTreeMap<u64, u64>,
    blocks: BTreeMap<u64, Entry>,
    peak: Moment,
}

impl Book {
    fn open(start: &[Segment]) -> Book {
        let segments = start.iter().map(|segment| (segment.address, segment.size)).collect();
        let mut blocks = BTreeMap::new();
        for block in start.iter().flat_map(|segment| &segment.blocks) {
            if block.state != BlockState::Inactive {
                let allocated = block.state == BlockState::Allocated;
                let (size, requested, recorded) = (block.size, block.requested, block.address);
                blocks.insert(block.address, Entry { size, requested, allocated, recorded });
            }
        }
        let mut book = Book { segments, blocks, peak: Moment::default() };
        book.peak = book.total();
        book
    }

    /// A segment or pages come or go.
    fn segment(&mut self, event: &Event) -> Result<(), String> {
        match *event {
            Event::SegmentAlloc { address, size, .. } | Event::SegmentMap { address, size, .. } => {
                let before = self.segments.range(..address + size).next_back();
                if before.is_some_and(|(start, size)| address < start + size) {
                    return Err(format!("`{event}` overlaps a segment"));
                }
                self.segments.insert(address, size);
            }
            Event::SegmentFree { address, size, .. } => {
                if self.segments.remove(&address) != Some(size) {
                    return Err(format!("`{event}` is no segment"));
                }
                self.unused(event, address, size)?;
            }
            Event::SegmentUnmap { address, size, .. } => {
                self.cut(event, address, size)?;
                self.unused(event, address, size)?;
            }
            _ => return Err(format!("`{event}` is no segment event")),
        }
        Ok(())
    }

    fn unused(&self, event: &Event, address: u64, size: u64) -> Result<(), String> {
        let last = self.blocks.range(..address + size).next_back();
        match last {
            Some((start, entry)) if address < start + entry.size => {
                Err(format!("`{event}` takes a block in use at {start:#x}"))
            }
            _ => Ok(()),
        }
    }

    /// Unmapped pages must have been mapped, by one event or several.
    fn cut(&mut self, event: &Event, address: u64, size: u64) -> Result<(), String> {
        let (mut at, end) = (address, address + size);
        while at < end {
            let found = self.segments.range(..=at).next_back().map(|(a, b)| (*a, *b));
            let Some((start, length)) = found.filter(|(start, length)| at < start + length) else {
                return Err(format!("`{event}` takes pages that are not mapped at {at:#x}"));
            };
            self.segments.remove(&start);
            if start < at {
                self.segments.insert(start, at - start);
            }
            if end < start + length {
                self.segments.insert(end, start + length - end);
            }
            at = start + length;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, moment: &Moment) -> Result<(), String> {
        match *event {
            Event::Alloc { address: recorded, size: requested, .. } => {
                let Moment { address, block: size, .. } = *moment;
                if !address.is_multiple_of(512) || size < requested {
                    return Err(format!("a block of {size} at {address:#x} cannot be"));
                }
                let last = self.blocks.range(..address + size).next_back();
                if last.is_some_and(|(start, entry)| address < start + entry.size) {
                    return Err(format!("a block of {size} at {address:#x} overlaps another"));
                }
                self.inside(address, size)?;
                let entry = Entry { size, requested, allocated: true, recorded };
                self.blocks.insert(address, entry);
            }
            Event::FreeRequested { address, .. } => {
                let found = self.blocks.get_mut(&moment.address);
                if let Some(entry) = found.filter(|entry| entry.recorded == address) {
                    entry.allocated = false;
                }
            }
            Event::FreeCompleted { address, .. } => {
                let found = self.blocks.get(&moment.address);
                if found.is_some_and(|entry| entry.recorded == address) {
                    self.blocks.remove(&moment.address);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A block must lie in one segment, or in pages that follow each other.
    fn inside(&self, address: u64, size: u64) -> Result<(), String> {
        let mut at = address;
        while at < address + size {
            match self.segments.range(..=at).next_back() {
                Some((start, length)) if at < start + length => at = start + length,
                _ => return Err(format!("a block of {size} at {address:#x} leaves its segment")),
            }
        }
        Ok(())
    }

    fn total(&self) -> Moment {
        let mut sum = Moment { reserved: self.segments.values().sum(), ..Moment::default() };
        for entry in self.blocks.values() {
            sum.active += entry.size;
            sum.requested += entry.requested;
            sum.allocated += if entry.allocated { entry.size } else { 0 };
        }
        sum
    }

    fn sums(&mut self, moment: &Moment) -> Result<(), String> {
        let mut total = self.total();
        (total.address, total.block) = (moment.address, moment.block);
        self.peak.allocated = self.peak.allocated.max(total.allocated);
        self.peak.reserved = self.peak.reserved.max(total.reserved);
        if total != *moment {
            return Err(format!("sums are {moment:?}, blocks and segments give {total:?}"));
        }
        if moment.reserved < moment.active || moment.active < moment.requested {
            return Err(format!("reserved, active, requested do not descend: {moment:?}"));
        }
        Ok(())
    }

    /// The final list must hold what the events left, and the peaks must have been reached.
    fn close(&self, timeline: &Timeline) -> Result<(), String> {
        let mut left = self.blocks.clone();
        for block in timeline.finish.iter().flat_map(|segment| &segment.blocks) {
            if block.state != BlockState::Inactive && left.remove(&block.address).is_none() {
                return Err(format!("finish: `{block}` was never handed out"));
            }
        }
        if let Some((address, _)) = left.iter().find(|(_, entry)| entry.allocated) {
            return Err(format!("finish: the block at {address:#x} is missing"));
        }
        let reserved: u64 = timeline.finish.iter().map(|segment| segment.size).sum();
        if reserved != self.segments.values().sum::<u64>() {
            return Err(format!("finish: {reserved} bytes of segments"));
        }
        let (peak, stats) = (self.peak, &timeline.stats);
        if stats.allocated_bytes.all.peak < peak.allocated
            || stats.reserved_bytes.all.peak < peak.reserved
        {
            return Err(format!("peaks are below {peak:?}"));
        }
        Ok(())
    }
}
