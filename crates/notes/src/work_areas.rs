//! Work areas that libraries were given, as the phantom saw them handed over.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::hash::Map;

/// What a work area is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkArea {
    pub name: &'static str,
    /// PyTorch has another way if it does not get it.
    pub is_soft: bool,
}

/// By part and address, in the order in which they were handed over.
#[derive(Debug, Default)]
pub struct WorkAreas(Map<(u64, u64), Uses>);

/// What one address was used for during one part: freed blocks are handed out again.
#[derive(Debug, Default)]
struct Uses {
    list: Vec<WorkArea>,
    /// How many allocations were told theirs.
    told: AtomicUsize,
}

impl WorkAreas {
    /// A library got `address`. The same use as the last one there is the same work area, used again.
    pub fn add(&mut self, part: u64, address: u64, area: WorkArea) {
        let uses = &mut self.0.entry((part, address)).or_default();
        if uses.list.last() != Some(&area) {
            uses.list.push(area);
        }
    }

    /// What the next allocation at this address is for; once there is no other use, it is the last one.
    pub(crate) fn next(&self, part: u64, address: u64) -> Option<WorkArea> {
        let uses = self.0.get(&(part, address))?;
        let told = uses.told.fetch_add(1, Relaxed);
        uses.list.get(told).or(uses.list.last()).copied()
    }
}
