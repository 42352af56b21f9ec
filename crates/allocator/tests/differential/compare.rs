//! Two histories of one program, event by event. Where segments lie may differ; what happens inside
//! them, their order and their sizes may not.

use std::collections::BTreeMap;

use allocator::{PoolStat, Stat, Stats};
use recording::{Block, BlockState, Event, Segment};

/// Where our segments lie on the other side.
#[derive(Default)]
pub(crate) struct Places(BTreeMap<u64, (u64, u64)>);

impl Places {
    /// A segment or pages of ours, and where they lie on the other side. Where a segment lay that went
    /// back, another may lie now.
    fn learn(&mut self, ours: &Event, (address, size): (u64, u64), theirs: u64) {
        if let Event::SegmentAlloc { .. } = ours {
            self.0.retain(|start, (_, length)| {
                start + *length <= address || address + size <= *start
            });
        }
        // Pages that come again are fewer or more than before.
        let place = self.0.entry(address).or_insert((theirs, size));
        place.1 = size.max(place.1);
    }

    /// The other side's address of one of ours; itself if no segment is there.
    fn of(&self, address: u64) -> u64 {
        let mut before = self.0.range(..=address).rev();
        let found = before.find(|(start, (_, size))| address < *start + size);
        found.map_or(address, |(start, (theirs, _))| theirs + (address - start))
    }
}

/// Address and size of a segment or of pages that come.
fn came(event: &Event) -> Option<(u64, u64)> {
    match *event {
        Event::SegmentAlloc { address, size, .. } | Event::SegmentMap { address, size, .. } => {
            Some((address, size))
        }
        _ => None,
    }
}

/// The first difference of two lists of events, in words; where our segments lie, if there is none.
///
/// `names_pools`: traces do so since 2.12.
pub(crate) fn events(
    ours: &[Event],
    theirs: &[Event],
    names_pools: bool,
) -> Result<Places, String> {
    let mut places = Places::default();
    // First with first, second with second, as long as they are the same.
    let mut came_there = theirs.iter().filter_map(came);
    let mut moved_here = Vec::with_capacity(ours.len());
    for event in ours {
        if let Some((address, size)) = came(event) {
            match came_there.next() {
                Some((there, length)) if length == size => {
                    places.learn(event, (address, size), there)
                }
                _ => came_there = [].iter().filter_map(came),
            }
        }
        moved_here.push(moved(event, &places, names_pools));
    }
    let (ours, theirs) = (ordered(&moved_here), ordered(theirs));
    let text = |event: Option<&Event>| event.map_or("nothing".into(), ToString::to_string);
    let mut indices = 0..ours.len().max(theirs.len());
    match indices.find(|index| ours.get(*index) != theirs.get(*index)) {
        None => Ok(places),
        Some(index) => {
            let (our, their) = (text(ours.get(index)), text(theirs.get(index)));
            Err(format!("event {index}: PyTorch `{their}`, ours `{our}`"))
        }
    }
}

/// Frees that complete together have no order that means anything: PyTorch goes through its streams
/// by hash. They come first in the group that ends with a request or a free.
fn ordered(events: &[Event]) -> Vec<Event> {
    let mut result = Vec::new();
    let ends = |event: &Event| {
        matches!(
            event,
            Event::Alloc { .. } | Event::FreeRequested { .. } | Event::OutOfMemory { .. }
        )
    };
    for group in events.split_inclusive(ends) {
        let mut group = group.to_vec();
        group.sort_by_key(|event| match event {
            Event::FreeCompleted { address, size } => (0, *address, *size),
            _ => (1, 0, 0),
        });
        result.extend(group);
    }
    result
}

/// Our event at the other side's addresses.
fn moved(ours: &Event, places: &Places, names_pools: bool) -> Event {
    let mut event = *ours;
    match &mut event {
        Event::Alloc { address, pool, .. }
        | Event::SegmentAlloc { address, pool, .. }
        | Event::SegmentFree { address, pool, .. }
        | Event::SegmentMap { address, pool, .. }
        | Event::SegmentUnmap { address, pool, .. } => {
            *address = places.of(*address);
            *pool = if names_pools { *pool } else { (0, 0) };
        }
        Event::FreeRequested { address, .. } | Event::FreeCompleted { address, .. } => {
            *address = places.of(*address);
        }
        Event::OutOfMemory { pool, .. } => *pool = if names_pools { *pool } else { (0, 0) },
        Event::Mark(_) => {}
    }
    event
}

/// The first difference of two final states.
pub(crate) fn states(ours: &[Segment], theirs: &[Segment], places: &Places) -> Result<(), String> {
    let lines = |segments: &[Segment], places: &Places| {
        let mut moved: Vec<Segment> = segments.to_vec();
        for segment in &mut moved {
            segment.address = places.of(segment.address);
            segment.blocks.iter_mut().for_each(|block| {
                let address = places.of(block.address);
                // What a free block was last asked for means nothing.
                let requested =
                    if block.state == BlockState::Inactive { 0 } else { block.requested };
                *block = Block { address, requested, ..*block };
            });
        }
        moved.sort_by_key(|segment| segment.address);
        let text: Vec<String> = moved.iter().map(ToString::to_string).collect();
        text.join("\n")
    };
    let (ours, theirs) = (lines(ours, places), lines(theirs, &Places::default()));
    let mut pairs = ours.lines().zip(theirs.lines());
    match pairs.find(|(our, their)| our != their) {
        Some((our, their)) => Err(format!("finally: PyTorch `{their}`, ours `{our}`")),
        None if ours.len() != theirs.len() => Err(format!("finally\n{theirs}\nours\n{ours}")),
        None => Ok(()),
    }
}

/// All statistics that PyTorch's version has. Of those named in `without`, only what they are now is
/// compared; counters have no such part and are left out.
pub(crate) fn stats(
    ours: &Stats,
    theirs: &BTreeMap<String, u64>,
    without: &[&str],
) -> Result<(), String> {
    for (name, our) in named(ours) {
        match theirs.get(&name) {
            Some(their) if *their != our && !is_left_out(&name, without) => {
                return Err(format!("{name}: PyTorch {their}, ours {our}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_left_out(name: &str, without: &[&str]) -> bool {
    !name.ends_with(".current") && without.iter().any(|prefix| name.starts_with(prefix))
}

/// Every number under its name in `torch.cuda.memory_stats()`.
fn named(stats: &Stats) -> Vec<(String, u64)> {
    let pools: [(&str, &PoolStat); 9] = [
        ("allocation", &stats.allocation),
        ("allocated_bytes", &stats.allocated_bytes),
        ("active", &stats.active),
        ("active_bytes", &stats.active_bytes),
        ("requested_bytes", &stats.requested_bytes),
        ("segment", &stats.segment),
        ("reserved_bytes", &stats.reserved_bytes),
        ("inactive_split", &stats.inactive_split),
        ("inactive_split_bytes", &stats.inactive_split_bytes),
    ];
    let mut all = Vec::new();
    let mut four = |name: String, stat: &Stat| {
        let Stat { current, peak, allocated, freed } = *stat;
        for (part, value) in
            [("current", current), ("peak", peak), ("allocated", allocated), ("freed", freed)]
        {
            all.push((format!("{name}.{part}"), value));
        }
    };
    for (name, stat) in pools {
        four(format!("{name}.all"), &stat.all);
        four(format!("{name}.small_pool"), &stat.small);
        four(format!("{name}.large_pool"), &stat.large);
    }
    four("oversize_allocations".to_owned(), &stats.oversize_allocations);
    four("oversize_segments".to_owned(), &stats.oversize_segments);
    let counters = [
        ("num_alloc_retries", stats.num_alloc_retries),
        ("num_ooms", stats.num_ooms),
        ("num_oom_rejections", stats.num_oom_rejections),
        ("num_sync_all_streams", stats.num_sync_all_streams),
        ("num_device_alloc", stats.num_device_alloc),
        ("num_device_free", stats.num_device_free),
    ];
    all.extend(counters.map(|(name, value)| (name.to_owned(), value)));
    all
}
