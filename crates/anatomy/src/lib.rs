//! Who holds every byte: a [`Recording`] and its [`Timeline`], taken apart.
//!
//! [`dissect`] gives an [`Anatomy`]: the allocated peak, the reserved peak and the moment at which
//! memory ran out, each by category, module, line, operator and phase; the largest tensors there; the
//! ledger from the card's total down; phases with their own peaks; growth per step and who holds it.
//!
//! Time is counted in events that have happened: time 0 is before the first, time `n` after event
//! `n - 1`. An allocation lives from the time it is born up to, not with, the time it is freed, which
//! is when PyTorch's `memory_allocated` falls. At each time the categories sum to that statistic to
//! the byte: [`check`] proves it the slow way.
//!
//! - [`mod@anatomy`]: the data that comes out; `account`: rows of the ledger; [`categories`]: bytes by category;
//! - [`lives`]: every allocation with its birth, death, owner, category and name;
//! - `dissection`, `alike`, `areas`, `modules`, `source`, `tensors`, `ledger`: one moment taken apart;
//! - `phases`, `growth`: the run over time; [`curve`]: categories at every event;
//! - [`mod@fold`]: the tree of modules folded to what matters; [`bytes`]: sizes for people.

mod account;
pub mod alike;
pub mod anatomy;
mod areas;
pub mod bytes;
pub mod categories;
mod check;
pub mod curve;
mod dissection;
pub mod fold;
mod growth;
mod hard;
mod ledger;
pub mod lives;
mod modules;
mod peaks;
mod phases;
mod private;
mod source;
mod tensors;

use allocator::Timeline;
use recording::{Event, Recording};

pub use account::{Around, Entry, Part};
pub use anatomy::{
    Alike, Anatomy, AreaBytes, Dissection, Growth, GrowthSite, LibraryLine, LineBytes, ModuleBytes,
    Named, Origin, OutOfMemory, PhaseBytes, PhasePeak, StepPeak, Tensor, When,
};
pub use categories::Categories;
pub use check::check;
pub use modules::Modules;
pub use peaks::Peaks;
pub use recording::{Facts, Known, Saved};
pub use source::Source;

use dissection::Knife;
use lives::Lives;

/// Takes a recording apart, with what it says of its card itself: see [`dissect_on`].
pub fn dissect(recording: &Recording, timeline: &Timeline) -> Anatomy {
    dissect_on(recording, timeline, &Around::of(&recording.about))
}

/// Takes a recording apart. The timeline must be of the same recording: its own, from
/// [`allocator::reproduce`], or one under other settings. It may end early; so does the anatomy then.
pub fn dissect_on(recording: &Recording, timeline: &Timeline, around: &Around) -> Anatomy {
    let lives = Lives::of(recording, timeline);
    let knife = Knife::new(recording, timeline, &lives, around);
    let phases = phases::phases(&lives, timeline);
    let steps = phases::steps(&phases);
    Anatomy {
        allocated_peak: knife.cut(peak_time(timeline, |moment| moment.allocated)),
        hard_allocated: hard::peak(&lives.list),
        reserved_peak: knife.cut(peak_time(timeline, |moment| moment.reserved)),
        out_of_memory: last_refusal(recording, timeline).map(|(at, tried_bytes, free_bytes)| {
            let origin = knife.origin(lives.refused);
            OutOfMemory { tried_bytes, free_bytes, origin, at: knife.cut(at + 1) }
        }),
        phases,
        first_step: steps.first().copied(),
        steady_step: steps.last().filter(|_| 1 < steps.len()).copied(),
        growth: growth::growth(&lives, &knife),
        parameters: recording.about.parameters,
        saved: recording.about.saved,
        facts: recording.about.facts.clone(),
        modules: modules::named(recording),
        has_names: lives.has_names,
        is_inferred: lives.is_inferred,
        events: recording.trace_number(timeline.moments.len()),
    }
}

/// Every allocation whose request is wanted, whenever it was made, with who asked for it; tensors alike
/// are counted together, the largest first.
pub fn allocations(
    recording: &Recording,
    timeline: &Timeline,
    is_wanted: &dyn Fn(u64) -> bool,
) -> Vec<Alike> {
    let lives = Lives::of(recording, timeline);
    let mut wanted: Vec<&lives::Life> =
        lives.list.iter().filter(|life| is_wanted(life.requested)).collect();
    wanted.sort_by_key(|life| (std::cmp::Reverse(life.requested), life.born));
    let around = Around::of(&recording.about);
    Knife::new(recording, timeline, &lives, &around).alike(&wanted)
}

/// The first time at which a quantity is greatest; the state before the first event counts too.
fn peak_time(timeline: &Timeline, quantity: fn(&allocator::Moment) -> u64) -> usize {
    let start = ledger::before(timeline);
    let mut best = (quantity(&start), 0);
    for (index, moment) in timeline.moments.iter().enumerate() {
        if best.0 < quantity(moment) {
            best = (quantity(moment), index + 1);
        }
    }
    best.1
}

/// The last request that failed: index, what it asked for, what the card had left.
fn last_refusal(recording: &Recording, timeline: &Timeline) -> Option<(usize, u64, u64)> {
    let events = recording.events.iter().take(timeline.moments.len()).enumerate();
    events.rev().find_map(|(index, event)| match *event {
        Event::OutOfMemory { size, free, .. } => Some((index, size, free)),
        _ => None,
    })
}
