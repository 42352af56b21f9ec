//! The allocator that a recording is replayed through: the one place that names PyTorch's.

use allocator::{Reproduction, Requests, Settings, Timeline, observe, reproduce};
use anatomy::Anatomy;
use recording::{About, Recording};

use crate::card_size::sized;
use crate::fragments::Fragments;
use crate::pieces::fragments;
use crate::settings_trials::{context_of, smallest};

/// Another allocator is one more implementation; everything else of a study follows from the timeline it gives.
pub trait Replayer {
    /// The recorded requests under the recorded settings, and where the result first differs from what was recorded.
    fn reproduce(&self, recording: &Recording) -> Reproduction;

    /// What the recording shows by its own addresses, where a replay differs.
    fn observe(&self, recording: &Recording) -> Timeline;

    /// The smallest card on which the same requests still complete, context included.
    fn smallest_card(&self, recording: &Recording) -> Option<u64>;

    /// The same requests if memory that other streams use comes back as late as a card may give it back, beside
    /// `others` bytes of other processes.
    fn late(&self, recording: &Recording, others: u64) -> Option<Timeline>;

    /// How memory lies in pieces where it ran out, else at the peak.
    fn pieces(
        &self,
        recording: &Recording,
        replayed: &Reproduction,
        anatomy: &Anatomy,
        others: u64,
    ) -> Option<Fragments>;
}

/// PyTorch's caching allocator, with the settings of one recording.
pub(crate) struct CachingAllocator {
    settings: Settings,
}

impl CachingAllocator {
    /// As the recording's torch had it; an error in words if there is no such torch.
    pub(crate) fn of(about: &About) -> Result<CachingAllocator, String> {
        let settings = Settings::of(about).map_err(|error| error.to_string())?;
        Ok(CachingAllocator { settings })
    }

    /// The same, with the card's size if the recording tells it by how it replays; a note says so then.
    pub(crate) fn sized(
        recording: &Recording,
    ) -> Result<(CachingAllocator, Option<String>), String> {
        let CachingAllocator { settings } = CachingAllocator::of(&recording.about)?;
        let (settings, note) = sized(recording, settings, None);
        Ok((CachingAllocator { settings }, note))
    }

    /// To PyTorch the memory of other processes is as far away as its own context.
    fn beside(&self, others: u64) -> Settings {
        Settings { context: self.settings.context + others, ..self.settings.clone() }
    }
}

impl Replayer for CachingAllocator {
    fn reproduce(&self, recording: &Recording) -> Reproduction {
        reproduce(recording, &self.settings)
    }

    fn observe(&self, recording: &Recording) -> Timeline {
        observe(recording, &self.settings)
    }

    fn smallest_card(&self, recording: &Recording) -> Option<u64> {
        let (context, _) = context_of(&recording.about);
        let settings = Settings { context, ..self.settings.clone() };
        let found = smallest(&Requests::of(recording, &settings), &settings);
        found.map(|smallest| smallest.bytes)
    }

    fn late(&self, recording: &Recording, others: u64) -> Option<Timeline> {
        let settings = self.beside(others);
        Requests::of(recording, &settings).replay_late(&settings)
    }

    fn pieces(
        &self,
        recording: &Recording,
        replayed: &Reproduction,
        anatomy: &Anatomy,
        others: u64,
    ) -> Option<Fragments> {
        fragments(recording, &self.beside(others), replayed, anatomy)
    }
}
