//! A recording under other allocator settings, and what came of each.

use allocator::{OnCard, Outcome, Requests, Settings, Start, Timeline};
use recording::{About, Event};

/// A row: the text of some settings, and the settings.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// As in `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// What they mean.
    pub settings: Settings,
}

/// One row: a recording under some settings.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// `PYTORCH_CUDA_ALLOC_CONF`; empty for the defaults.
    pub settings: String,
    /// `set_per_process_memory_fraction`, where the settings need a limit.
    pub memory_fraction: Option<f64>,
    /// The recorded start was kept; else it was laid out anew, which is a model of it.
    pub keeps_start: bool,
    /// The request that was not met; `None` if all were.
    pub refused: Option<Refused>,
    /// `allocated_bytes.all.peak`
    pub peak_allocated_bytes: u64,
    /// `reserved_bytes.all.peak`
    pub peak_reserved_bytes: u64,
    /// Reserved and not in use at the reserved peak, when most is in use there.
    pub fragmentation_bytes: u64,
    /// `cudaMalloc` calls, or mappings.
    pub segments_allocated: usize,
    /// `cudaFree` calls, or unmappings.
    pub segments_freed: usize,
}

/// A request that found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Index of the event.
    pub event: usize,
    /// Bytes of the segment that was tried.
    pub tried_bytes: u64,
}

/// The smallest memory on which every request is met; each was tried, and one byte less fails.
#[derive(Clone, Debug, Default)]
pub struct Floor {
    /// Under the recorded settings.
    pub own_bytes: Option<u64>,
    /// There the blocks older than the trace are where they were recorded; else that is modelled.
    pub keeps_start: bool,
    /// Under the defaults of its torch.
    pub default_bytes: Option<u64>,
    /// Under the settings that need least, with their text.
    pub best: Option<(String, u64)>,
}

/// The smallest card under the recorded settings: what `smallest card` means wherever it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smallest {
    /// Its memory, context included.
    pub bytes: u64,
    /// There the blocks older than the trace are where they were recorded; else that is modelled.
    pub keeps_start: bool,
}

/// By a search with replays; `None` if no size does.
pub fn smallest(requests: &Requests<'_>, recorded: &Settings) -> Option<Smallest> {
    let bytes = allocator::floor(requests, recorded, start_of(0))?;
    let on_it = Settings { memory: Some(bytes), ..recorded.clone() };
    let keeps_start = requests.replay_on_card(&on_it, start_of(0)).keeps_start;
    Some(Smallest { bytes, keeps_start })
}

/// The context of the card that a file comes from, and whether the file tells it: snapshots do not.
pub fn context_of(about: &About) -> (u64, bool) {
    match about.context_bytes {
        0 => (gpus::unlimited().context_bytes, false),
        bytes => (bytes, true),
    }
}

/// What is tried beside the recorded settings; each is left out where its torch does not have it.
const TRIED: [&str; 5] = [
    "",
    "expandable_segments:True",
    "roundup_power2_divisions:8",
    "max_split_size_mb:128",
    "large_segment_size_mb:64",
];

/// `garbage_collection_threshold` only acts with a memory limit: this share of the card.
const COLLECTED: &str = "garbage_collection_threshold:0.8";
const SHARE: f64 = 0.95;

/// All rows: as recorded, as asked for, then those worth trying. None stands there twice, except that
/// a start older than the trace makes the recorded settings a row of their own.
pub fn candidates(
    recorded: &Candidate,
    asked: Option<Candidate>,
    starts_empty: bool,
) -> Vec<Candidate> {
    let own = &recorded.settings;
    let plain = Settings { context: own.context, memory: own.memory, ..defaults(own) };
    let mut rows = vec![recorded.clone()];
    rows.extend(asked);
    let mut add = |conf: &str, change: fn(&mut Settings)| {
        let Ok(mut settings) = plain.with_conf(conf) else { return };
        change(&mut settings);
        let first = usize::from(!starts_empty);
        if !rows[first..].iter().any(|row| row.settings == settings) {
            rows.push(Candidate { conf: conf.to_owned(), settings });
        }
    };
    TRIED.iter().for_each(|conf| add(conf, |_| ()));
    if plain.memory.is_some() {
        add(COLLECTED, |settings| settings.memory_fraction = Some(SHARE));
    }
    rows
}

/// The defaults of the same torch.
fn defaults(settings: &Settings) -> Settings {
    let (major, minor) = settings.version;
    Settings::for_torch(&format!("{major}.{minor}")).unwrap_or_default()
}

/// The rows under the recorded settings keep what is older than the trace; all others ask for it anew.
pub(crate) fn start_of(row: usize) -> Start {
    if row == 0 { Start::Kept } else { Start::Anew }
}

/// One row of the table.
pub fn trial(requests: &Requests<'_>, rows: &[Candidate], row: usize) -> Trial {
    let OnCard { timeline, keeps_start } =
        requests.replay_on_card(&rows[row].settings, start_of(row));
    Trial { keeps_start, ..describe(requests, &rows[row], &timeline) }
}

/// A timeline as a row.
pub fn describe(requests: &Requests<'_>, row: &Candidate, timeline: &Timeline) -> Trial {
    let (taken, returned) = timeline.segment_counts();
    Trial {
        settings: row.conf.clone(),
        memory_fraction: row.settings.memory_fraction,
        keeps_start: true,
        refused: refused(requests, &row.settings, timeline),
        peak_allocated_bytes: timeline.stats.allocated_bytes.all.peak,
        peak_reserved_bytes: timeline.stats.reserved_bytes.all.peak,
        fragmentation_bytes: timeline.fragmentation_at_peak(),
        segments_allocated: taken,
        segments_freed: returned,
    }
}

/// The first request that this card could not meet.
fn refused(requests: &Requests<'_>, settings: &Settings, timeline: &Timeline) -> Option<Refused> {
    let event = timeline.unmet(requests.events)?;
    let tried_bytes = match (&timeline.outcome, requests.events.get(event)) {
        (Outcome::OutOfMemory { error, .. }, _) => error.segment,
        (_, Some(Event::OutOfMemory { size, .. })) => settings.segment_size(*size),
        _ => 0,
    };
    let before = requests.events.iter().take(event);
    Some(Refused { event: before.filter(|event| event.is_of_allocator()).count(), tried_bytes })
}

/// The smallest cards: of the recorded settings, of the defaults, and of the best row. Each is found by
/// the rule by which `trial` judges its row.
pub fn floor(requests: &Requests<'_>, rows: &[Candidate]) -> Floor {
    let Some(recorded) = rows.first() else { return Floor::default() };
    let own = &recorded.settings;
    let smallest = smallest(requests, own);
    let own_bytes = smallest.map(|smallest| smallest.bytes);
    let plain = Settings { context: own.context, memory: own.memory, ..defaults(own) };
    let is_plain = plain == *own;
    let default_bytes = match is_plain {
        true => own_bytes,
        false => allocator::floor(requests, &plain, Start::Anew),
    };
    let mut floor = Floor {
        own_bytes,
        keeps_start: smallest.is_none_or(|smallest| smallest.keeps_start),
        default_bytes,
        best: None,
    };
    // What asking anew saves is no merit of other settings.
    let anew = match requests.start.is_empty() {
        true => own_bytes,
        false => allocator::floor(requests, own, Start::Anew),
    };
    let mut least = [own_bytes, default_bytes, anew].into_iter().flatten().min();
    for row in rows.iter().skip(1).filter(|row| !row.conf.is_empty()) {
        // One replay a byte below the best tells whether a search is worth it.
        let fits = |least: u64| allocator::fits(requests, &row.settings, least - 1, Start::Anew);
        if least.is_none_or(fits) {
            let found = allocator::floor(requests, &row.settings, Start::Anew);
            if let Some(bytes) = found.filter(|bytes| least.is_none_or(|least| *bytes < least)) {
                (least, floor.best) = (Some(bytes), Some((row.conf.clone(), bytes)));
            }
        }
    }
    floor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(torch: &str, conf: &str, memory: Option<u64>) -> Candidate {
        let settings = Settings::for_torch(torch).unwrap().with_conf(conf).unwrap();
        Candidate { conf: conf.to_owned(), settings: Settings { memory, ..settings } }
    }

    fn names(rows: &[Candidate]) -> Vec<&str> {
        rows.iter().map(|row| row.conf.as_str()).collect()
    }

    #[test]
    fn the_smallest_card_is_one_number_wherever_it_is_said() {
        // A snapshot: its trace begins in the middle, and it does not tell the context.
        let text = "torch 2.6.0\nsegment_alloc 0x7f0000000000 20971520 stream 0\nalloc 0x7f0000000000 3145728 stream 0\n";
        let mut recording = recording::text::recording(text).unwrap();
        recording.about.complete = true;
        let (context, is_told) = context_of(&recording.about);
        assert!(!is_told && context != 0);
        let wants = crate::Wants { floor: true, ..crate::Wants::default() };
        let study =
            crate::study(recording.clone(), &crate::Context { wants, ..crate::Context::default() });
        let own = Settings { context, ..Settings::of(&recording.about).unwrap() };
        let requests = Requests::of(&recording, &own);
        let rows = [Candidate { conf: String::new(), settings: own.clone() }];
        let floor = floor(&requests, &rows);
        assert_eq!(floor.own_bytes, Some(context + (20 << 20)));
        assert_eq!(study.unwrap().floor_bytes, floor.own_bytes);
    }

    #[test]
    fn each_settings_is_tried_once_and_only_where_its_torch_has_it() {
        let rows = candidates(&recorded("2.6", "", None), None, true);
        let tried =
            ["", "expandable_segments:True", "roundup_power2_divisions:8", "max_split_size_mb:128"];
        assert_eq!(names(&rows), tried);
        let expandable = recorded("2.15", "expandable_segments:True", None);
        let rows = candidates(&expandable, None, true);
        assert_eq!(rows.iter().filter(|row| row.settings.expandable_segments).count(), 1);
        assert!(names(&rows).contains(&"large_segment_size_mb:64"));
        assert!(
            !names(&candidates(&recorded("2.0", "", None), None, true))
                .contains(&"expandable_segments:True")
        );
    }

    #[test]
    fn a_start_older_than_the_trace_is_also_laid_out_anew() {
        let rows = candidates(&recorded("2.6", "", None), None, false);
        assert_eq!(&names(&rows)[..2], ["", ""]);
    }

    #[test]
    fn what_was_asked_for_comes_second() {
        let asked = recorded("2.6", "max_split_size_mb:128", None);
        let rows = candidates(&recorded("2.6", "", None), Some(asked), true);
        assert_eq!(names(&rows)[1], "max_split_size_mb:128");
        assert_eq!(names(&rows).iter().filter(|name| name.starts_with("max_split")).count(), 1);
    }

    #[test]
    fn garbage_is_collected_under_a_limit() {
        let rows = candidates(&recorded("2.6", "", Some(1 << 30)), None, true);
        let last = rows.last().unwrap();
        assert!(last.conf.starts_with("garbage") && last.settings.collects_garbage());
    }
}
