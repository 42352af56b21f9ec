//! Between a [`Snapshot`] and the [`Recording`]s of its devices.
//!
//! A snapshot is what PyTorch writes: events with their stacks, and the segments at the end. A
//! recording is what Fathom replays and explains. What PyTorch keeps and a recording has no place for
//! (stacks of frees, named regions) stands beside it, as [`Clues`]: names can be inferred from it.

mod back;
mod clues;
mod owners;
mod pools;
mod settings;

use std::collections::{BTreeSet, HashSet};

use recording::{About, Block, BlockState, Event, Mark, OwnerId, Recording, Segment};

use crate::model::{self, Action, PoolId, SegmentKind, Snapshot, TraceEntry};
pub use back::from_recording;
pub use clues::{Clues, Region};
use owners::Owners;

/// Devices of one process that torch can count: its `DeviceIndex` is a signed byte.
const MOST_DEVICES: usize = 128;

/// One recording for each device that has a segment or an event, in order of their numbers.
///
/// Traces that begin in the middle of a run convert like any other: what was there before follows
/// from the segments at the end. Without a trace, a recording has no events.
pub fn to_recordings(snapshot: &Snapshot) -> Vec<Recording> {
    let devices = devices(snapshot).into_iter();
    devices.map(|device| convert(snapshot, device, false).0).collect()
}

/// The same, each with what the snapshot tells beside its events; their stacks are among the recording's.
pub fn with_clues(snapshot: &Snapshot) -> Vec<(Recording, Clues)> {
    devices(snapshot).into_iter().map(|device| convert(snapshot, device, true)).collect()
}

/// Devices that have a segment or an event, in order of their numbers.
fn devices(snapshot: &Snapshot) -> Vec<u32> {
    let traced = snapshot.device_traces.iter().enumerate();
    let traced = traced.filter(|(_, trace)| !trace.is_empty()).map(|(device, _)| device as u32);
    let held = snapshot.segments.iter().map(|segment| segment.device);
    let devices: BTreeSet<u32> = traced.chain(held).collect();
    devices.into_iter().take(MOST_DEVICES).collect()
}

fn convert(snapshot: &Snapshot, device: u32, wants_clues: bool) -> (Recording, Clues) {
    let segments = snapshot.segments.iter().filter(|segment| segment.device == device);
    let finish: Vec<Segment> = segments.map(segment).collect();
    let trace = snapshot.device_traces.get(device as usize).map_or(&[][..], Vec::as_slice);
    let mut owners = Owners::new(&snapshot.tables);
    let mut events = Vec::with_capacity(trace.len());
    let mut clues = Clues::of(snapshot, device);
    let mut pools = pools::pools(trace, &finish).into_iter();
    for entry in trace {
        let pool = entry.pool.map(|PoolId(a, b)| (a, b));
        let derived = pools.next().unwrap_or_default();
        clues.place(entry, events.len());
        events.extend(event(entry, pool.unwrap_or(derived), &mut owners));
        if entry.action == Action::Oom {
            let owner = owners.of(entry);
            let is_known = owner != OwnerId(0);
            events.extend(is_known.then_some(Event::Mark(Mark::Owner { address: 0, owner })));
        }
        if wants_clues {
            let ran = entry.stack.and_then(|stack| owners.stack(stack));
            clues.ran.resize(events.len(), ran);
        }
    }
    events.extend(older(snapshot, device, trace, &mut owners));
    let about = About {
        torch: settings::version(snapshot).to_owned(),
        allocator_settings: settings::conf(snapshot, &finish, &events),
        device,
        complete: true,
        ..About::default()
    };
    let mut recording = Recording { about, events, finish, ..Recording::default() };
    owners.fill(&mut recording);
    clues.end(recording.events.len(), trace.iter().any(|entry| entry.time_us != 0));
    (recording, clues)
}

/// Who made the blocks that are alive at the end and older than the trace.
fn older(
    snapshot: &Snapshot,
    device: u32,
    trace: &[TraceEntry],
    owners: &mut Owners<'_>,
) -> Vec<Event> {
    let made = trace.iter().filter(|entry| entry.action == Action::Alloc);
    let made: HashSet<u64> = made.map(|entry| entry.address).collect();
    let segments = snapshot.segments.iter().filter(|segment| segment.device == device);
    let blocks = segments.flat_map(|segment| &segment.blocks);
    let mut marks = Vec::new();
    for block in blocks.filter(|block| block.state != model::BlockState::Inactive) {
        if !made.contains(&block.address) && block.address != 0 {
            let owner = owners.of_stacks(block.forward_stack, block.stack, None);
            if owner != OwnerId(0) {
                marks.push(Event::Mark(Mark::Owner { address: block.address, owner }));
            }
        }
    }
    marks
}

fn segment(segment: &model::Segment) -> Segment {
    let PoolId(first, second) = segment.pool.unwrap_or_default();
    Segment {
        address: segment.address,
        size: segment.total_size,
        stream: segment.stream,
        pool: (first, second),
        large: segment.kind == SegmentKind::Large,
        expandable: segment.is_expandable,
        blocks: segment.blocks.iter().map(block).collect(),
    }
}

fn block(block: &model::Block) -> Block {
    Block {
        address: block.address,
        size: block.size,
        requested: block.requested_size.unwrap_or(block.size),
        state: match block.state {
            model::BlockState::Allocated => BlockState::Allocated,
            model::BlockState::PendingFree => BlockState::PendingFree,
            model::BlockState::Inactive => BlockState::Inactive,
        },
    }
}

/// An entry as an event; `None` for what says nothing about memory.
fn event(entry: &TraceEntry, pool: (u32, u32), owners: &mut Owners<'_>) -> Option<Event> {
    let TraceEntry { address, size, stream, .. } = *entry;
    Some(match entry.action {
        Action::Alloc => Event::Alloc { address, size, stream, owner: owners.of(entry), pool },
        Action::FreeRequested => Event::FreeRequested { address, size },
        Action::FreeCompleted => Event::FreeCompleted { address, size },
        Action::SegmentAlloc => Event::SegmentAlloc { address, size, stream, pool },
        Action::SegmentFree => Event::SegmentFree { address, size, stream, pool },
        Action::SegmentMap => Event::SegmentMap { address, size, stream, pool },
        Action::SegmentUnmap => Event::SegmentUnmap { address, size, stream, pool },
        Action::Oom => Event::OutOfMemory { size, free: entry.device_free, stream, pool },
        Action::Annotate => {
            let name = owners.text(entry.user_metadata?);
            Event::Mark(Mark::Name { address, category: recording::Category::Unknown, name })
        }
        Action::Snapshot | Action::Other(_) => return None,
    })
}
