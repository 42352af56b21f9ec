//! The allocations of a size, and who asked for them.

use allocator::Timeline;
use anatomy::{Alike, Origin};
use oom::Amount;
use recording::{Event, Mark, Recording};

use crate::names::below;
use crate::study::{Context, Wants, study};

/// How many of the nearest sizes are looked at, and how many allocations of them are named.
const NEAREST: usize = 3;
const SHOWN: usize = 5;

/// Requests from this on get a segment of their own size.
const SMALLEST_OWN: u64 = 10 << 20;

/// What a run says of a size.
#[derive(Clone, Debug)]
pub struct Sought {
    /// The phantom's memory; `None` if it had no end.
    pub memory_bytes: Option<u64>,
    /// Steps of the optimizer that were seen.
    pub steps: u64,
    /// Whether the run ended in such a request that found no room.
    pub refused: Option<Refused>,
    /// Small requests want a segment of a fixed size: these may be of any size that wants such a one.
    pub by_segment: bool,
    /// Allocations of that size.
    pub matches: Vec<Alike>,
    /// Without one, those nearest in size.
    pub nearest: Vec<Alike>,
    /// The version of torch.
    pub torch: String,
}

/// A request that found no room.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Rounded as the allocator rounds.
    pub bytes: u64,
    pub origin: Origin,
}

impl Sought {
    /// Whether something of that size was asked for.
    pub fn is_found(&self) -> bool {
        !self.matches.is_empty() || self.refused.is_some()
    }
}

/// Looks for the sizes in what was recorded on a phantom with so much memory; files below `folder` are named from
/// there. An error in words if it cannot be replayed.
pub fn seek(
    recording: Recording,
    asked: &[Amount],
    memory_bytes: Option<u64>,
    folder: &str,
) -> Result<Sought, String> {
    let wants = Wants { source: true, ..Wants::default() };
    let context = Context { folder: folder.to_owned(), wants, ..Context::default() };
    let study = study(recording, &context)?;
    let source = study.source.as_ref().ok_or("the recording is gone")?;
    let (recording, timeline) = (&source.recording, &source.timeline);
    let is_asked = |bytes: u64| asked.iter().any(|range| range.contains(bytes));
    let matches = named(recording, timeline, folder, &is_asked);
    let mut nearest = Vec::new();
    if matches.is_empty() {
        let sizes = nearest_sizes(recording, asked);
        nearest = named(recording, timeline, folder, &|bytes| sizes.contains(&bytes));
        nearest.truncate(SHOWN);
    }
    let refusal = study.anatomy.out_of_memory.filter(|refusal| is_asked(refusal.tried_bytes));
    Ok(Sought {
        memory_bytes,
        steps: steps(recording),
        by_segment: asked.iter().any(|range| range.high < SMALLEST_OWN),
        nearest,
        matches,
        refused: refusal
            .map(|refusal| Refused { bytes: refusal.tried_bytes, origin: refusal.origin }),
        torch: study.torch,
    })
}

fn named(
    recording: &Recording,
    timeline: &Timeline,
    folder: &str,
    is_wanted: &dyn Fn(u64) -> bool,
) -> Vec<Alike> {
    let mut all = anatomy::allocations(recording, timeline, is_wanted);
    all.iter_mut().for_each(|alike| below(folder, &mut alike.first.origin.file));
    all
}

/// The sizes nearest to what was asked for, as factors.
fn nearest_sizes(recording: &Recording, asked: &[Amount]) -> Vec<u64> {
    let wanted = asked.iter().map(|range| range.middle()).max().unwrap_or(0).max(1) as f64;
    let mut sizes: Vec<u64> = recording
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Alloc { size, .. } if *size != 0 => Some(*size),
            _ => None,
        })
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let distance = |size: u64| (size as f64 / wanted).ln().abs();
    sizes.sort_by(|a, b| distance(*a).total_cmp(&distance(*b)));
    sizes.truncate(NEAREST);
    sizes
}

fn steps(recording: &Recording) -> u64 {
    let steps = recording.events.iter().filter_map(|event| match event {
        Event::Mark(Mark::Phase { step, .. }) => Some(u64::from(*step)),
        _ => None,
    });
    steps.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(events: &str) -> Recording {
        Recording { events: recording::text::parse(events).unwrap(), ..Recording::default() }
    }

    #[test]
    fn the_nearest_sizes_are_near_as_factors() {
        let events = "alloc 0x1000 512\nalloc 0x2000 1000\nalloc 0x3000 9000\nalloc 0x4000 1000\n";
        let sizes = nearest_sizes(&recorded(events), &[Amount::exactly(1500)]);
        assert_eq!(sizes, [1000, 512, 9000]);
    }

    #[test]
    fn a_size_is_found_or_its_neighbours_are() {
        let events = "segment_alloc 0x200000 2097152\nalloc 0x200000 512\nalloc 0x200200 1024\n";
        let seek = |bytes| seek(recorded(events), &[Amount::exactly(bytes)], None, "").unwrap();
        let found = seek(1024);
        assert!(found.is_found() && found.nearest.is_empty() && found.by_segment);
        assert_eq!(found.matches.len(), 1);
        let missing = seek(2048);
        assert!(!missing.is_found());
        assert_eq!(missing.nearest.len(), 2);
    }
}
