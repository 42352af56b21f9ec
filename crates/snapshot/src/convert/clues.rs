//! What a snapshot tells beside the events of a recording: what ran at each of them, and named regions.

use recording::StackId;

use crate::model::{Snapshot, TraceEntry};

/// Beside one device's recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clues {
    /// What ran at each event of the recording; `None` if the snapshot has no frames there. At a free this is what
    /// freed the block, or else what allocated it: torch's settings decide.
    pub ran: Vec<Option<StackId>>,
    /// Starts and ends of named regions, in order.
    pub regions: Vec<Region>,
}

/// A named region starts or ends: `Optimizer.step#AdamW.step`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Index of the recording's first event after it.
    pub event: usize,
    pub name: String,
    pub is_start: bool,
    time_us: u64,
}

impl Clues {
    /// The regions of a device, not yet placed among its events.
    pub(super) fn of(snapshot: &Snapshot, device: u32) -> Clues {
        let text = |id| snapshot.tables.string(id);
        let all = snapshot.annotations.iter().flatten();
        let own = all.filter(|annotation| annotation.device == device);
        let mut regions: Vec<Region> = own
            .map(|annotation| Region {
                event: usize::MAX,
                name: text(annotation.name).to_owned(),
                is_start: text(annotation.stage) == "START",
                time_us: annotation.time_us,
            })
            .collect();
        regions.sort_by_key(|region| region.time_us);
        Clues { ran: Vec::new(), regions }
    }

    /// Regions that begin or end before this entry, which is the event with this index.
    pub(super) fn place(&mut self, entry: &TraceEntry, index: usize) {
        let first = self.regions.partition_point(|region| region.event != usize::MAX);
        let waiting = self.regions.iter_mut().skip(first);
        waiting
            .take_while(|region| region.time_us <= entry.time_us)
            .for_each(|region| region.event = index);
    }

    /// What is left ends with the events; without times nothing can be placed.
    pub(super) fn end(&mut self, events: usize, has_times: bool) {
        if !has_times {
            self.regions.clear();
        }
        self.ran.resize(events, None);
        let late = self.regions.iter_mut().filter(|region| region.event == usize::MAX);
        late.for_each(|region| region.event = events);
    }
}
