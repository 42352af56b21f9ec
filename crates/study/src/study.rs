//! From a recording to all that it shows: it is replayed once, and everything else follows from that.

use allocator::{Outcome, Reproduction, Timeline};
use anatomy::{Anatomy, Around};
use recording::{Recording, Segment};

use crate::agreement;
use crate::fragments::Fragments;
use crate::names::shorten;
use crate::replayer::{CachingAllocator, Replayer};
use crate::run::Deferred;

/// What a recording shows.
#[derive(Clone, Debug, Default)]
pub struct Study {
    /// The card's number.
    pub device: u32,
    /// The version of torch; empty if not known.
    pub torch: String,
    /// `PYTORCH_CUDA_ALLOC_CONF`; empty for the defaults.
    pub settings: String,
    /// Whether the recording was brought to its end.
    pub is_whole: bool,
    /// Who holds every byte.
    pub anatomy: Anatomy,
    /// Root causes, the largest first.
    pub findings: Vec<diagnose::Finding>,
    /// What is often blamed and is not the cause.
    pub suspects: Vec<diagnose::Suspect>,
    /// How memory lies in pieces where it ran out, else at the peak; `None` if that is not known.
    pub fragments: Option<Fragments>,
    /// The smallest card on which a replay still completes, context included; `None` if it did not.
    pub floor_bytes: Option<u64>,
    /// What of the peak depends on when other streams are done; `None` if no free waited for one.
    pub deferred: Option<Deferred>,
    /// Whether the replay is what was recorded, if there is something to say.
    pub notes: Vec<String>,
    /// What it was made from, if that is wanted further.
    pub source: Option<Source>,
}

/// A recording and its replay.
#[derive(Clone, Debug)]
pub struct Source {
    /// As it was read.
    pub recording: Recording,
    /// Under its own settings; as the recorded addresses show it, if the replay differs on the way.
    pub timeline: Timeline,
    /// Whether it is what was recorded.
    pub is_reproduced: bool,
}

impl Source {
    /// Segments and blocks at the end: as recorded, else as the replay leaves them. `None` if it differs from what
    /// was recorded on the way.
    pub fn finish(&self) -> Option<&[Segment]> {
        let recorded = Some(self.recording.finish.as_slice()).filter(|all| !all.is_empty());
        recorded.or(self.is_reproduced.then_some(self.timeline.finish.as_slice()))
    }
}

/// What is known beside a recording.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// What stands around PyTorch's memory; `None`: as far as the recording says.
    pub around: Option<Around>,
    /// Files below this folder are named from there; empty for whole paths.
    pub folder: String,
    /// Whether the last request that failed ended the run; `None`: whether one failed.
    pub ran_out: Option<bool>,
    /// What takes time of its own.
    pub wants: Wants,
}

/// Parts of a study that are worked out on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// `fragments`.
    pub fragments: bool,
    /// `floor_bytes`.
    pub floor: bool,
    /// `deferred`.
    pub deferred: bool,
    /// `source`.
    pub source: bool,
}

/// Studies a recording; an error in words if it cannot be replayed.
pub fn study(recording: Recording, context: &Context) -> Result<Study, String> {
    let (allocator, note) = CachingAllocator::sized(&recording)?;
    let mut study = study_with(&allocator, recording, context);
    study.notes.extend(note);
    Ok(study)
}

/// The same with an allocator of the caller's choice. It replays the recording once, and everything else follows.
pub fn study_with(replayer: &dyn Replayer, recording: Recording, context: &Context) -> Study {
    let mut replayed = replayer.reproduce(&recording);
    // A trace says what was held where, whatever a replay makes of it.
    if replayed.timeline.moments.len() < recording.events.len() && replayed.difference.is_some() {
        replayed.timeline = replayer.observe(&recording);
    }
    let Reproduction { timeline, difference } = &replayed;
    let around = context.around.unwrap_or_else(|| Around::of(&recording.about));
    let others = around.others.0;
    let mut anatomy = anatomy::dissect_on(&recording, timeline, &around);
    if !context.folder.is_empty() {
        shorten(&mut anatomy, &context.folder);
    }
    let ran_out = context.ran_out.unwrap_or(anatomy.out_of_memory.is_some());
    let wants = context.wants;
    let is_reproduced = difference.is_none();
    let can_shrink = wants.floor && recording.about.complete && is_reproduced;
    let findings = diagnose::diagnose(&anatomy, ran_out);
    let study = Study {
        device: recording.about.device,
        torch: recording.about.torch.clone(),
        settings: recording.about.allocator_settings.clone(),
        is_whole: recording.about.complete,
        suspects: diagnose::suspects(&anatomy, ran_out, &findings),
        findings,
        fragments: wants
            .fragments
            .then(|| replayer.pieces(&recording, &replayed, &anatomy, others))
            .flatten(),
        floor_bytes: can_shrink.then(|| replayer.smallest_card(&recording)).flatten(),
        deferred: wants
            .deferred
            .then(|| deferred(replayer, &recording, others, timeline))
            .flatten(),
        notes: agreement::note(&recording, difference.as_ref()).into_iter().collect(),
        anatomy,
        source: None,
    };
    let source =
        wants.source.then_some(Source { recording, timeline: replayed.timeline, is_reproduced });
    Study { source, ..study }
}

/// What of the peak depends on when other streams are done.
fn deferred(
    replayer: &dyn Replayer,
    recording: &Recording,
    others: u64,
    at_once: &Timeline,
) -> Option<Deferred> {
    let frees = allocator::deferred(&recording.events).len();
    if frees == 0 {
        return None;
    }
    let late = replayer.late(recording, others)?;
    let peaks = |timeline: &Timeline| {
        let stats = &timeline.stats;
        [stats.reserved_bytes.all.peak, stats.active_bytes.all.peak]
    };
    let waiting = late.moments.iter().map(|moment| moment.active - moment.allocated);
    Some(Deferred {
        frees,
        at_once: peaks(at_once),
        late: peaks(&late),
        most_waiting: waiting.max().unwrap_or(0),
        late_fits: late.outcome == Outcome::Completed,
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anatomy::Anatomy;

    use super::*;

    /// PyTorch's, and how often it was asked for a replay.
    struct Counted(CachingAllocator, Cell<usize>);

    impl Replayer for Counted {
        fn reproduce(&self, recording: &Recording) -> Reproduction {
            self.1.set(self.1.get() + 1);
            self.0.reproduce(recording)
        }

        fn observe(&self, recording: &Recording) -> Timeline {
            self.0.observe(recording)
        }

        fn smallest_card(&self, recording: &Recording) -> Option<u64> {
            self.0.smallest_card(recording)
        }

        fn late(&self, _: &Recording, _: u64) -> Option<Timeline> {
            None
        }

        fn pieces(
            &self,
            recording: &Recording,
            replayed: &Reproduction,
            anatomy: &Anatomy,
            others: u64,
        ) -> Option<Fragments> {
            self.0.pieces(recording, replayed, anatomy, others)
        }
    }

    #[test]
    fn all_that_can_be_wanted_follows_from_one_replay() {
        let events = "segment_alloc 0x200000 2097152\nalloc 0x200000 512\nalloc 0x200200 1024\n";
        let mut recording =
            Recording { events: recording::text::parse(events).unwrap(), ..Recording::default() };
        recording.about.complete = true;
        let replayer = Counted(CachingAllocator::of(&recording.about).unwrap(), Cell::default());
        let wants = Wants { fragments: true, floor: true, deferred: true, source: true };
        let context = Context { wants, ..Context::default() };
        let study = study_with(&replayer, recording, &context);
        assert_eq!(replayer.1.get(), 1);
        assert_eq!(study.anatomy.allocated_peak.allocated, 1536);
        assert!(study.source.is_some_and(|source| source.is_reproduced));
    }
}
