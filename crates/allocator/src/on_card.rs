//! A recording's requests on a card of another size.
//!
//! The one rule for what was there before a trace that begins in the middle of a run. Verdicts and the
//! smallest card both follow it, so that they cannot contradict each other:
//!
//! 1. under the settings it was recorded with, what was there stays where it was;
//! 2. if the card has no room for that, whole free segments and pages are given back first, as PyTorch
//!    does before it fails;
//! 3. if there is still no room, blocks in use are asked for anew, in order of addresses: a model;
//! 4. neither may promise more than the recorded state does: where a card that just holds that state
//!    runs out, a smaller one does not fit either;
//! 5. other settings would have made other segments: they always ask anew.

use recording::Segment;

use crate::allocator::Allocator;
use crate::replay::{Requests, card_beside};
use crate::settings::Settings;
use crate::timeline::Timeline;

/// What a trial makes of blocks that are older than the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// They stay where the card has room for them: for the settings that they were made under.
    Kept,
    /// They are asked for anew: for other settings.
    Anew,
}

/// A replay on a card.
#[derive(Clone, Debug)]
pub struct OnCard {
    /// The requests on this card.
    pub timeline: Timeline,
    /// Older blocks are where they were recorded; else the start is a model.
    pub keeps_start: bool,
}

impl Requests<'_> {
    /// On a card of `settings.memory`, by the rule above.
    pub fn replay_on_card(&self, settings: &Settings, start: Start) -> OnCard {
        let kept = |timeline| OnCard { timeline, keeps_start: true };
        if self.start.is_empty() {
            return kept(self.replay(settings));
        }
        if start == Start::Anew {
            return OnCard { timeline: self.replay_anew(settings), keeps_start: false };
        }
        let has_room =
            |start: &[Segment]| settings.room().is_none_or(|room| reserved(start) <= room);
        if has_room(&self.start) {
            return kept(self.replay(settings));
        }
        let without_cache = self.without_cache(settings);
        let (found, larger) = match has_room(&without_cache) {
            true => (kept(self.replay_from(without_cache, settings)), vec![self.start.clone()]),
            false => {
                let anew = OnCard { timeline: self.replay_anew(settings), keeps_start: false };
                (anew, vec![without_cache, self.start.clone()])
            }
        };
        if found.timeline.unmet(self.events).is_some() {
            return found;
        }
        let mut larger =
            larger.into_iter().map(|start| self.replay_on_just_enough(start, settings));
        larger.find(|recorded| recorded.unmet(self.events).is_some()).map_or(found, kept)
    }

    /// From these segments on, on a card that has room for them and for nothing more.
    fn replay_on_just_enough(&self, start: Vec<Segment>, settings: &Settings) -> Timeline {
        let memory = Some(reserved(&start).saturating_add(settings.context));
        let settings = Settings { memory, memory_fraction: None, ..settings.clone() };
        self.replay_from(start, &settings)
    }

    /// The recorded start after PyTorch gave back all that it can.
    fn without_cache(&self, settings: &Settings) -> Vec<Segment> {
        let card = card_beside(&self.start, None);
        let (mut allocator, _) = Allocator::with_state(settings, card, &self.start);
        allocator.empty_cache();
        allocator.segments()
    }
}

/// Bytes of segments.
pub(crate) fn reserved(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| segment.size).sum()
}
