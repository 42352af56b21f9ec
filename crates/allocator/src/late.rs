//! Deferred frees, completed as late as a card may complete them.
//!
//! Memory that another stream has used (`record_stream`) goes back to its pool when that stream's work
//! is done. PyTorch looks before each request. A card that is done at once gives the least; the other
//! end is a card that is done only when the host waits for it, which a recording knows by its marks.
//!
//! ```text
//! free_requested          alloc                       idle   alloc
//!       └───── at once ─────┘                           │      │
//!       └──────────────────── as late as possible ──────┴──────┘
//! ```
//!
//! What is allocated is the same either way: it counts up to the request. What is active and what is
//! reserved differ.

use std::collections::HashMap;

use recording::{Event, Mark};

use crate::allocator::Handle;
use crate::replay::{Player, Requests};
use crate::settings::Settings;
use crate::source::SyntheticCard;
use crate::timeline::Timeline;

/// Indices of the frees that wait for other streams, in order.
pub fn deferred(events: &[Event]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut last = None;
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::FreeRequested { .. } => last = Some(at),
            Event::Mark(Mark::Deferred) => found.extend(last.take()),
            _ => {}
        }
    }
    found
}

/// For each event at which deferred frees become certain, those frees; `None` if none is marked.
fn certain(events: &[Event]) -> Option<HashMap<usize, Vec<u32>>> {
    let mut last: HashMap<u32, usize> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        if let Event::Mark(Mark::Idle { free }) = *event {
            last.insert(free, at);
        }
    }
    let mut at: HashMap<usize, Vec<u32>> = HashMap::new();
    for (free, index) in last {
        at.entry(index).or_default().push(free);
    }
    // A table has no order, and the allocator's answer must not depend on it.
    at.values_mut().for_each(|frees| frees.sort_unstable());
    (!at.is_empty()).then_some(at)
}

impl Requests<'_> {
    /// As [`Requests::replay`], with deferred frees that complete at the first request after their mark.
    /// `None` if the recording does not say when that is.
    pub fn replay_late(&self, settings: &Settings) -> Option<Timeline> {
        let certain = certain(self.events)?;
        let deferred = deferred(self.events);
        let number = deferred.iter().zip(0u32..).map(|(at, number)| (*at, number));
        let number: HashMap<usize, u32> = number.collect();
        let mut late = Late {
            player: self.player(&self.start, settings),
            waiting: HashMap::new(),
            due: Vec::new(),
        };
        let mut calls = self.calls.before.iter().copied().peekable();
        for (at, event) in self.events.iter().enumerate() {
            if calls.next_if_eq(&at).is_some() {
                late.player.allocator.empty_cache();
                late.player.note_segments(at);
            }
            if let Some(free) = number.get(&at) {
                late.defer(*free, event);
            }
            let frees = certain.get(&at).into_iter().flatten();
            late.due.extend(frees.filter_map(|free| late.waiting.remove(free)));
            if matches!(event, Event::Alloc { .. } | Event::OutOfMemory { .. }) {
                late.complete();
            }
            if let Err(error) = late.player.play(at, event)
                && !self.goes_on(&mut late.player, at, error)
            {
                break;
            }
        }
        Some(late.player.timeline(self.start.clone()))
    }
}

/// A replay, and blocks that were given back in it.
struct Late {
    player: Player<SyntheticCard>,
    /// By the number of their free: streams may still use them.
    waiting: HashMap<u32, Handle>,
    /// Those that the next request finds free.
    due: Vec<Handle>,
}

impl Late {
    /// The recording completes this free sooner: its event no longer finds the block.
    fn defer(&mut self, free: u32, event: &Event) {
        let Event::FreeRequested { address, .. } = *event else { return };
        if let Some(handle) = self.player.detach(address) {
            self.waiting.insert(free, handle);
        }
    }

    /// `process_events`.
    fn complete(&mut self) {
        for handle in self.due.drain(..) {
            self.player.allocator.complete_free(handle);
        }
    }
}
