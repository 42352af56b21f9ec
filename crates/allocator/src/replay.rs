//! Replay: the requests of a recording under other settings, on a card of any size.

use recording::{BlockState, Event, Mark, Recording, Segment};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::allocator::{Allocator, Handle};
use crate::cache_calls::CacheCalls;
use crate::on_card::reserved;
use crate::oom::OutOfMemory;
use crate::rewind;
use crate::settings::Settings;
use crate::source::{SegmentSource, SyntheticCard};
use crate::timeline::{Moment, Outcome, SegmentEvent, Timeline};

/// Replays a recording under these settings. New segments get addresses as the driver gives them;
/// segments of the start keep theirs. The end is the last event, or the first request that cannot be met.
pub fn replay(recording: &Recording, settings: &Settings) -> Timeline {
    Requests::of(recording, settings).replay(settings)
}

/// What a recording asks of an allocator, made ready to be replayed many times.
#[derive(Clone, Debug)]
pub struct Requests<'a> {
    /// The recording's events.
    pub events: &'a [Event],
    /// Segments and blocks before the first event, as they were recorded.
    pub start: Vec<Segment>,
    pub(crate) calls: CacheCalls,
    /// Requests that PyTorch goes on without, by event.
    pub(crate) soft: FxHashSet<usize>,
}

impl<'a> Requests<'a> {
    /// Reads them off a recording; its start is worked out under the settings it was `made` with.
    pub fn of(recording: &'a Recording, made: &Settings) -> Requests<'a> {
        let (start, calls) = (rewind::start(recording, made), CacheCalls::of(recording));
        Requests { events: &recording.events, start, calls, soft: soft(&recording.events) }
    }

    /// Bytes reserved before the first event.
    pub fn reserved_at_start(&self) -> u64 {
        reserved(&self.start)
    }

    /// From the recorded start on; a card too small for it has nothing left.
    pub fn replay(&self, settings: &Settings) -> Timeline {
        self.replay_from(self.start.clone(), settings)
    }

    /// From these segments on.
    pub(crate) fn replay_from(&self, start: Vec<Segment>, settings: &Settings) -> Timeline {
        self.play(self.player(&start, settings), start)
    }

    /// An allocator in the state of a start.
    pub(crate) fn player(&self, start: &[Segment], settings: &Settings) -> Player<SyntheticCard> {
        let free = settings.usable().map(|bytes| bytes.saturating_sub(reserved(start)));
        let (allocator, live) = Allocator::with_state(settings, card_beside(start, free), start);
        Player::new(allocator, live, self.events.len())
    }

    /// With an empty card before the start: what was there is asked for again, in order of addresses.
    ///
    /// A trace that begins in the middle of a run shows the segments that its own settings had made.
    /// Under others, or on a smaller card, they would have been others; in which order the blocks
    /// were asked for is not known, so this is a model of that start, not a measurement.
    pub fn replay_anew(&self, settings: &Settings) -> Timeline {
        let card = SyntheticCard::new(NOTHING_TAKEN, settings.usable());
        let allocator = Allocator::new(settings, card);
        let mut player = Player::new(allocator, Vec::new(), self.events.len());
        if let Err(error) = player.lay_out(&self.start) {
            player.outcome = Outcome::OutOfMemory { at: 0, error };
            return player.timeline(Vec::new());
        }
        let start = player.allocator.segments();
        self.play(player, start)
    }

    fn play(&self, mut player: Player<SyntheticCard>, start: Vec<Segment>) -> Timeline {
        let mut calls = self.calls.before.iter().copied().peekable();
        for (at, event) in self.events.iter().enumerate() {
            if calls.next_if_eq(&at).is_some() {
                player.allocator.empty_cache();
                player.note_segments(at);
            }
            if let Err(error) = player.play(at, event)
                && !self.goes_on(&mut player, at, error)
            {
                break;
            }
        }
        player.timeline(start)
    }

    /// A request could not be met: does the program go on without it?
    pub(crate) fn goes_on<S: SegmentSource>(
        &self,
        player: &mut Player<S>,
        at: usize,
        error: OutOfMemory,
    ) -> bool {
        let is_soft = self.soft.contains(&at);
        if is_soft {
            player.note((0, 0));
        } else {
            player.outcome = Outcome::OutOfMemory { at, error };
        }
        is_soft
    }
}

/// Allocations that are marked as soft: PyTorch has another way for each of them. The mark follows its allocation
/// before anything else happens at that address.
pub(crate) fn soft(events: &[Event]) -> FxHashSet<usize> {
    let (mut soft, mut live) = (FxHashSet::default(), FxHashMap::default());
    if !events.iter().any(|event| matches!(event, Event::Mark(Mark::Soft { .. }))) {
        return soft;
    }
    for (at, event) in events.iter().enumerate() {
        match *event {
            Event::Alloc { address, .. } => drop(live.insert(address, at)),
            Event::FreeCompleted { address, .. } => drop(live.remove(&address)),
            Event::Mark(Mark::Soft { address }) => soft.extend(live.get(&address)),
            _ => {}
        }
    }
    soft
}

/// A card with this much left, whose addresses lie beside these segments.
pub(crate) fn card_beside(start: &[Segment], free: Option<u64>) -> SyntheticCard {
    let lowest = start.iter().map(|segment| segment.address).min();
    let highest = start.iter().map(|segment| segment.address + segment.size).max();
    SyntheticCard::new(lowest.zip(highest).unwrap_or(NOTHING_TAKEN), free)
}

/// Addresses end here when nothing was there; what a real card's look like.
const NOTHING_TAKEN: (u64, u64) = (0x7f00_0000_0000, 0x7f00_0000_0000);

/// An allocator fed with a recording's events.
pub(crate) struct Player<S> {
    pub(crate) allocator: Allocator<S>,
    live: FxHashMap<u64, Handle>,
    moments: Vec<Moment>,
    segments: Vec<SegmentEvent>,
    synchronized: Vec<usize>,
    rescued: Vec<usize>,
    /// How it ended, as far as it came.
    pub(crate) outcome: Outcome,
}

impl<S: SegmentSource> Player<S> {
    /// Nothing played yet.
    pub(crate) fn new(
        allocator: Allocator<S>,
        live: crate::state::Live,
        events: usize,
    ) -> Player<S> {
        Player {
            allocator,
            live: live.into_iter().collect(),
            moments: Vec::with_capacity(events),
            segments: Vec::new(),
            synchronized: Vec::new(),
            rescued: Vec::new(),
            outcome: Outcome::Completed,
        }
    }

    /// Asks for the blocks of a start that are in use; its segment events are not part of the replay.
    fn lay_out(&mut self, start: &[Segment]) -> Result<(), OutOfMemory> {
        let mut used = Vec::new();
        for segment in start {
            let blocks = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
            used.extend(blocks.map(|block| (block, segment.stream, segment.pool)));
        }
        used.sort_by_key(|(block, ..)| block.address);
        for (block, stream, pool) in used {
            let handle = self.allocator.malloc(block.requested, stream, pool)?;
            if block.state == BlockState::PendingFree {
                self.allocator.request_free(handle);
            }
            self.live.insert(block.address, handle);
        }
        self.allocator.events.clear();
        Ok(())
    }

    /// One event: requests are fed, what the recording's allocator did is not.
    pub(crate) fn play(&mut self, at: usize, event: &Event) -> Result<Moment, OutOfMemory> {
        let block = match *event {
            Event::Alloc { address, size, stream, pool, .. } => {
                let handle = self.allocator.malloc(size, stream, pool);
                self.note_segments(at);
                let handle = handle?;
                self.live.insert(address, handle);
                self.allocator.block(handle)
            }
            Event::FreeRequested { address, .. } => match self.live.get(&address) {
                Some(handle) => {
                    let block = self.allocator.block(*handle);
                    self.allocator.request_free(*handle);
                    block
                }
                None => (0, 0),
            },
            Event::FreeCompleted { address, .. } => match self.live.remove(&address) {
                Some(handle) => {
                    let block = self.allocator.block(handle);
                    self.allocator.complete_free(handle);
                    block
                }
                None => (0, 0),
            },
            Event::OutOfMemory { size, stream, pool, .. } => {
                if let Ok(handle) = self.allocator.malloc(size, stream, pool) {
                    self.allocator.complete_free(handle);
                    self.rescued.push(at);
                }
                self.note_segments(at);
                (0, 0)
            }
            _ => (0, 0),
        };
        Ok(self.note(block))
    }

    fn note(&mut self, (address, block): (u64, u64)) -> Moment {
        let stats = &self.allocator.stats;
        let moment = Moment {
            address,
            block,
            allocated: stats.allocated_bytes.all.current,
            reserved: stats.reserved_bytes.all.current,
            active: stats.active_bytes.all.current,
            requested: stats.requested_bytes.all.current,
        };
        self.moments.push(moment);
        moment
    }

    /// The user gives a block back; the recording's own completion of that free is to find nothing.
    pub(crate) fn detach(&mut self, address: u64) -> Option<Handle> {
        let handle = self.live.remove(&address)?;
        self.allocator.request_free(handle);
        Some(handle)
    }

    /// A free that a later event brings about.
    pub(crate) fn skip(&mut self, event: &Event) {
        if let Event::FreeCompleted { address, .. } = event {
            self.live.remove(address);
        }
        self.note((0, 0));
    }

    /// Did this recorded failure not fail here?
    pub(crate) fn was_rescued(&self, at: usize) -> bool {
        self.rescued.last() == Some(&at)
    }

    /// Takes the allocator's segment events as caused by event `at`.
    pub(crate) fn note_segments(&mut self, at: usize) {
        if !self.allocator.events.is_empty() {
            let events = self.allocator.events.drain(..);
            self.segments.extend(events.map(|event| SegmentEvent { at, event }));
        }
        if self.synchronized.len() as u64 != self.allocator.stats.num_sync_all_streams {
            self.synchronized.push(at);
        }
    }

    /// The handle of a live block.
    pub(crate) fn live(&self, address: u64) -> Option<Handle> {
        self.live.get(&address).copied()
    }

    /// The result so far.
    pub(crate) fn timeline(mut self, start: Vec<Segment>) -> Timeline {
        self.note_segments(self.moments.len());
        Timeline {
            start,
            finish: self.allocator.segments(),
            moments: self.moments,
            segments: self.segments,
            synchronized: self.synchronized,
            stats: self.allocator.stats,
            outcome: self.outcome,
            rescued: self.rescued,
        }
    }
}
