//! Conservation, the slow way: at every event the owners' bytes are PyTorch's own statistic.

use std::collections::{BTreeMap, HashMap};

use allocator::Timeline;
use recording::{BlockState, Event, OwnerId, Recording};

use crate::curve;

/// What is wrong, in words. Shares nothing with the lives: a book of blocks by owner is kept here, and
/// then the categories of [`curve::curve`] are compared with the same statistic.
pub fn check(recording: &Recording, timeline: &Timeline) -> Result<(), String> {
    let mut blocks: HashMap<u64, (OwnerId, u64)> = HashMap::new();
    let mut owners: BTreeMap<OwnerId, u64> = BTreeMap::new();
    for block in timeline.start.iter().flat_map(|segment| &segment.blocks) {
        if block.state == BlockState::Allocated {
            blocks.insert(block.address, (OwnerId(0), block.size));
            *owners.entry(OwnerId(0)).or_default() += block.size;
        }
    }
    for (index, moment) in timeline.moments.iter().enumerate() {
        match recording.events[index] {
            Event::Alloc { address, owner, .. } => {
                blocks.insert(address, (owner, moment.block));
                *owners.entry(owner).or_default() += moment.block;
            }
            Event::FreeRequested { address, .. } | Event::FreeCompleted { address, .. } => {
                if let Some((owner, size)) = blocks.remove(&address) {
                    *owners.entry(owner).or_default() -= size;
                }
            }
            _ => {}
        }
        same("owners", index, recording, owners.values().sum(), moment.allocated)?;
    }
    for (index, categories) in curve::curve(recording, timeline) {
        same("categories", index, recording, categories.sum(), timeline.moments[index].allocated)?;
    }
    Ok(())
}

fn same(
    what: &str,
    index: usize,
    recording: &Recording,
    sum: u64,
    allocated: u64,
) -> Result<(), String> {
    if sum == allocated {
        return Ok(());
    }
    let event = &recording.events[index];
    Err(format!("event {index}, `{event}`: {what} sum to {sum}, allocated are {allocated}"))
}
