//! What `fathom replay` has found, for people ([`terminal`]) and for programs ([`json`]).

mod json;
mod terminal;

use study::settings_trials::{Floor, Trial};

pub use json::json;
pub use terminal::terminal;

/// A recording played again, under its own settings and under others.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// The file, as it was named.
    pub file: String,
    /// The device that was replayed.
    pub device: u32,
    /// All devices of the file.
    pub devices: Vec<u32>,
    /// The version of torch, as far as the file tells; a snapshot tells the oldest it can be.
    pub torch: String,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the recording; empty for the defaults.
    pub settings: String,
    /// Peaks of the recording, allocated and reserved; `None` if it is not reproduced.
    pub recorded_peaks: Option<(u64, u64)>,
    /// The recorded card's total, if it is known.
    pub recorded_memory_bytes: Option<u64>,
    /// Events of the device.
    pub events: usize,
    /// `None` if every block and segment is where it was recorded.
    pub first_difference: Option<Difference>,
    /// Why the file cannot be reproduced, if it contradicts itself.
    pub contradiction: Option<Contradiction>,
    /// Blocks in use before the first event, and their bytes.
    pub start: (usize, u64),
    /// Requests for which the recorded card had no room until the cache was emptied.
    pub retries: u64,
    /// Requests that failed when it was recorded.
    pub failed_requests: usize,
    /// Whether it asked for nothing after the last of them.
    pub died: bool,
    /// The total of the card that was tried: as given, else as recorded.
    pub memory_bytes: Option<u64>,
    /// Its name, if it was asked for by name.
    pub card: String,
    /// What the context of a process takes of it.
    pub context_bytes: u64,
    /// How that is known: `recorded`, `measured`, `assumed`.
    pub context_known: &'static str,
    /// What other programs hold of it.
    pub used_bytes: u64,
    /// How sizes were understood.
    pub notes: Vec<String>,
    /// The row the verdict is about, if a card was named: the first, or the second if settings were named too.
    pub judged: Option<usize>,
    /// One for each settings tried; the first is as recorded.
    pub trials: Vec<Trial>,
    /// The smallest cards, context included.
    pub floor: Option<Floor>,
    /// What an allocator that knew the future would need.
    pub ideal: Option<Ideal>,
    /// 0, or 1 if it differs or does not fit.
    pub exit_code: u8,
}

/// Where the replay is not what was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Index of the event; the number of events if only the final blocks differ.
    pub event: usize,
    /// What was recorded.
    pub recorded: String,
    /// What the replay did.
    pub replayed: String,
}

/// The blocks that a file lists at its end are not those that its events leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Index of the event.
    pub event: usize,
    /// What was recorded.
    pub what: String,
    /// Whether its block is listed.
    pub found: &'static str,
}

/// What an allocator that knew the future would need, without a context.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ideal {
    /// Bytes in use at once: nothing can need less.
    pub bound_bytes: u64,
    /// Bytes of a layout in one piece that was found, knowing when each block ends.
    pub packed_bytes: u64,
}
