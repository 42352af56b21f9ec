//! What a trace shows by itself, without a replay: its own addresses say which blocks are there and how much is reserved.
//!
//! Where a replay differs from what was recorded, who held the memory is still known. Only the sizes of blocks are not in
//! a trace: they are taken to be the requests, rounded.

use std::collections::BTreeMap;

use recording::{BlockState, Event, Recording};

use crate::rewind;
use crate::settings::Settings;
use crate::stats::Stats;
use crate::timeline::{Moment, Outcome, SegmentEvent, Timeline};

/// The timeline of the recorded addresses, from the first event to the last.
pub fn observe(recording: &Recording, settings: &Settings) -> Timeline {
    let start = rewind::start(recording, settings);
    let mut seen = Seen::default();
    for segment in &start {
        seen.now.reserved = seen.now.reserved.saturating_add(segment.size);
        for block in segment.blocks.iter().filter(|block| block.state != BlockState::Inactive) {
            seen.hand_out(block.address, block.size, block.requested);
            if block.state == BlockState::PendingFree {
                seen.give_back(block.address);
            }
        }
    }
    let mut moments = Vec::with_capacity(recording.events.len());
    let mut segments = Vec::new();
    for (at, event) in recording.events.iter().enumerate() {
        if seen.follow(event, settings) {
            segments.push(SegmentEvent { at, event: *event });
        }
        moments.push(seen.now);
    }
    Timeline {
        start,
        stats: stats(&moments),
        moments,
        segments,
        synchronized: Vec::new(),
        outcome: Outcome::Completed,
        rescued: Vec::new(),
        finish: recording.finish.clone(),
    }
}

/// What was seen so far.
#[derive(Default)]
struct Seen {
    now: Moment,
    /// Size, bytes asked for, and whether it is handed out; by address.
    blocks: BTreeMap<u64, (u64, u64, bool)>,
}

impl Seen {
    /// Follows an event; true if it is about a segment.
    fn follow(&mut self, event: &Event, settings: &Settings) -> bool {
        (self.now.address, self.now.block) = (0, 0);
        match *event {
            Event::Alloc { address, size, .. } => {
                // What is still there was freed without a word.
                self.give_back(address);
                self.complete(address);
                self.hand_out(address, settings.round(size), size);
            }
            Event::FreeRequested { address, .. } => self.give_back(address),
            Event::FreeCompleted { address, .. } => {
                self.give_back(address);
                self.complete(address);
            }
            Event::SegmentAlloc { address, size, .. } | Event::SegmentMap { address, size, .. }
                if rewind::can_be(address, size) =>
            {
                self.now.reserved = self.now.reserved.saturating_add(size);
                return true;
            }
            Event::SegmentFree { address, size, .. }
            | Event::SegmentUnmap { address, size, .. }
                if rewind::can_be(address, size) =>
            {
                self.now.reserved = self.now.reserved.saturating_sub(size);
                return true;
            }
            _ => {}
        }
        false
    }

    fn hand_out(&mut self, address: u64, size: u64, requested: u64) {
        let requested = requested.min(size);
        self.blocks.insert(address, (size, requested, true));
        (self.now.address, self.now.block) = (address, size);
        self.now.allocated = self.now.allocated.saturating_add(size);
        self.now.active = self.now.active.saturating_add(size);
        self.now.requested = self.now.requested.saturating_add(requested);
    }

    fn give_back(&mut self, address: u64) {
        if let Some((size, _, is_out)) = self.blocks.get_mut(&address) {
            (self.now.address, self.now.block) = (address, *size);
            if std::mem::take(is_out) {
                self.now.allocated = self.now.allocated.saturating_sub(*size);
            }
        }
    }

    fn complete(&mut self, address: u64) {
        if let Some((size, requested, _)) = self.blocks.remove(&address) {
            self.now.active = self.now.active.saturating_sub(size);
            self.now.requested = self.now.requested.saturating_sub(requested);
        }
    }
}

/// The peaks of what was seen.
fn stats(moments: &[Moment]) -> Stats {
    let mut stats = Stats::default();
    let last = moments.last().copied().unwrap_or_default();
    let most = |of: fn(&Moment) -> u64| moments.iter().map(of).max().unwrap_or(0);
    for (stat, of) in [
        (&mut stats.allocated_bytes, (|moment| moment.allocated) as fn(&Moment) -> u64),
        (&mut stats.active_bytes, |moment| moment.active),
        (&mut stats.requested_bytes, |moment| moment.requested),
        (&mut stats.reserved_bytes, |moment| moment.reserved),
    ] {
        (stat.all.current, stat.all.peak) = (of(&last), most(of));
    }
    stats
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce;

    /// A block where no allocator would put it, and what comes after.
    const TRACE: &str = "\
torch 2.15.0
segment_alloc 0x7f0000000000 20971520
alloc 0x7f0000000000 3145728
alloc 0x7f0000400000 3145000
free_requested 0x7f0000000000 3145728
free_completed 0x7f0000000000 3145728
alloc 0x7f0000800000 4194304
";

    #[test]
    fn the_peak_is_known_where_the_replay_differs() {
        let recording = recording::text::recording(TRACE).unwrap();
        let settings = Settings::of(&recording.about).unwrap();
        let replayed = reproduce(&recording, &settings);
        assert_eq!(replayed.difference.unwrap().event, 2);
        let seen = observe(&recording, &settings);
        let allocated: Vec<u64> = seen.moments.iter().map(|moment| moment.allocated).collect();
        let (three, rounded, four) = (3_145_728, 3_145_216, 4_194_304);
        assert_eq!(allocated, [0, three, three + rounded, rounded, rounded, rounded + four]);
        assert_eq!(seen.stats.reserved_bytes.all.peak, 20_971_520);
        assert_eq!(seen.stats.allocated_bytes.all.peak, rounded + four);
    }

    #[test]
    fn where_the_replay_agrees_both_say_the_same() {
        let agreeing = "\
torch 2.15.0
segment_alloc 0x7f0000000000 20971520
alloc 0x7f0000000000 3145728
alloc 0x7f0000300000 3145728
free_requested 0x7f0000000000 3145728
free_completed 0x7f0000000000 3145728
";
        let recording = recording::text::recording(agreeing).unwrap();
        let settings = Settings::of(&recording.about).unwrap();
        let replayed = reproduce(&recording, &settings).timeline;
        // A replay takes a segment with the request that needs it.
        assert_eq!(observe(&recording, &settings).moments[1..], replayed.moments[1..]);
    }
}
