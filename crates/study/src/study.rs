//! From a recording to all that it shows: it is replayed once, and everything else follows from that.

use allocator::{Outcome, Reproduction, Requests, Settings, Start, Timeline, floor, reproduce};
use anatomy::{Anatomy, Around};
use recording::{Recording, Segment};

use crate::agreement;
use crate::fragments::Fragments;
use crate::names::shorten;
use crate::pieces::fragments;
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
    /// Under its own settings; up to the first difference, if there is one.
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
    let settings = Settings::of(&recording.about).map_err(|error| error.to_string())?;
    let replayed = reproduce(&recording, &settings);
    let Reproduction { timeline, difference } = &replayed;
    let around = context.around.unwrap_or_else(|| Around::of(&recording.about));
    // To PyTorch the memory of other processes is as far away as its own context.
    let beside_others =
        Settings { context: settings.context + around.others.0, ..settings.clone() };
    let mut anatomy = anatomy::dissect_on(&recording, timeline, &around);
    if !context.folder.is_empty() {
        shorten(&mut anatomy, &context.folder);
    }
    let ran_out = context.ran_out.unwrap_or(anatomy.out_of_memory.is_some());
    let wants = context.wants;
    let is_reproduced = difference.is_none();
    let can_shrink = wants.floor && recording.about.complete && is_reproduced;
    let requests = || Requests::of(&recording, &settings);
    let study = Study {
        device: recording.about.device,
        torch: recording.about.torch.clone(),
        settings: recording.about.allocator_settings.clone(),
        is_whole: recording.about.complete,
        findings: diagnose::diagnose(&anatomy, ran_out),
        fragments: wants
            .fragments
            .then(|| fragments(&recording, &beside_others, &replayed, &anatomy))
            .flatten(),
        floor_bytes: can_shrink.then(|| floor(&requests(), &settings, Start::Kept)).flatten(),
        deferred: wants.deferred.then(|| deferred(&recording, &beside_others, timeline)).flatten(),
        notes: agreement::note(&recording, difference.as_ref()).into_iter().collect(),
        anatomy,
        source: None,
    };
    let source =
        wants.source.then_some(Source { recording, timeline: replayed.timeline, is_reproduced });
    Ok(Study { source, ..study })
}

/// What of the peak depends on when other streams are done.
fn deferred(recording: &Recording, settings: &Settings, at_once: &Timeline) -> Option<Deferred> {
    let frees = allocator::deferred(&recording.events).len();
    if frees == 0 {
        return None;
    }
    let late = Requests::of(recording, settings).replay_late(settings)?;
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
