//! `fathom.replay/1`: fields are only ever added.

use serde::Serialize;

use crate::replay::Replay;

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    file: &'a str,
    device: u32,
    devices: &'a [u32],
    reproduces: bool,
    first_difference: Option<Difference<'a>>,
    /// Why it differs, if the blocks at the end are not what the events leave.
    contradiction: Option<Contradiction<'a>>,
    events: usize,
    recorded: Recorded<'a>,
    trials: Vec<Trial<'a>>,
    floor_bytes: Option<u64>,
    floor: Option<Floor<'a>>,
    ideal_bytes: Option<u64>,
    ideal_packed_bytes: Option<u64>,
    /// What other programs are taken to hold of the card.
    used_bytes: u64,
    notes: &'a [String],
    exit_code: u8,
}

#[derive(Serialize)]
struct Difference<'a> {
    event: usize,
    recorded: &'a str,
    replayed: &'a str,
}

#[derive(Serialize)]
struct Contradiction<'a> {
    event: usize,
    recorded: &'a str,
    at_the_end: &'a str,
}

#[derive(Serialize)]
struct Recorded<'a> {
    torch: &'a str,
    settings: &'a str,
    memory_bytes: Option<u64>,
    context_bytes: u64,
    context_known: &'static str,
    start_blocks: usize,
    start_bytes: u64,
    failed_requests: usize,
    died: bool,
    retries: u64,
    peak_allocated_bytes: Option<u64>,
    peak_reserved_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Trial<'a> {
    settings: &'a str,
    memory_bytes: Option<u64>,
    memory_fraction: Option<f64>,
    verdict: &'static str,
    refused_event: Option<usize>,
    refused_bytes: Option<u64>,
    start: &'static str,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
    fragmentation_bytes: u64,
    segments_allocated: usize,
    segments_freed: usize,
}

#[derive(Serialize)]
struct Floor<'a> {
    own_bytes: Option<u64>,
    /// What is older than the trace, on that card: `recorded` or `modelled`.
    own_start: &'static str,
    default_bytes: Option<u64>,
    best_bytes: Option<u64>,
    best_settings: Option<&'a str>,
}

/// The replay as JSON, with a line break at the end.
pub fn json(replay: &Replay) -> String {
    let floor = replay.floor.as_ref();
    let report = Report {
        schema: "fathom.replay/1",
        file: &replay.file,
        device: replay.device,
        devices: &replay.devices,
        reproduces: replay.first_difference.is_none(),
        first_difference: replay.first_difference.as_ref().map(|difference| Difference {
            event: difference.event,
            recorded: &difference.recorded,
            replayed: &difference.replayed,
        }),
        contradiction: replay.contradiction.as_ref().map(|found| Contradiction {
            event: found.event,
            recorded: &found.what,
            at_the_end: found.found,
        }),
        events: replay.events,
        recorded: recorded(replay),
        trials: trials(replay),
        floor_bytes: floor.and_then(|floor| floor.own_bytes),
        floor: floor.map(|floor| Floor {
            own_bytes: floor.own_bytes,
            own_start: if floor.keeps_start { "recorded" } else { "modelled" },
            default_bytes: floor.default_bytes,
            best_bytes: floor.best.as_ref().map(|best| best.1),
            best_settings: floor.best.as_ref().map(|best| best.0.as_str()),
        }),
        ideal_bytes: replay.ideal.map(|ideal| ideal.bound_bytes),
        ideal_packed_bytes: replay.ideal.map(|ideal| ideal.packed_bytes),
        used_bytes: replay.used_bytes,
        notes: &replay.notes,
        exit_code: replay.exit_code,
    };
    let mut text = serde_json::to_string_pretty(&report).expect("plain data serialises");
    text.push('\n');
    text
}

fn recorded(replay: &Replay) -> Recorded<'_> {
    Recorded {
        torch: &replay.torch,
        settings: &replay.settings,
        memory_bytes: replay.recorded_memory_bytes,
        context_bytes: replay.context_bytes,
        context_known: if replay.context_known == "assumed" { "assumed" } else { "measured" },
        start_blocks: replay.start.0,
        start_bytes: replay.start.1,
        failed_requests: replay.failed_requests,
        died: replay.died,
        retries: replay.retries,
        peak_allocated_bytes: replay.recorded_peaks.map(|peaks| peaks.0),
        peak_reserved_bytes: replay.recorded_peaks.map(|peaks| peaks.1),
    }
}

fn trials(replay: &Replay) -> Vec<Trial<'_>> {
    let rows = replay.trials.iter().map(|trial| Trial {
        settings: &trial.settings,
        memory_bytes: replay.memory_bytes,
        memory_fraction: trial.memory_fraction,
        verdict: if trial.refused.is_none() { "fits" } else { "does_not_fit" },
        refused_event: trial.refused.map(|refused| refused.event),
        refused_bytes: trial.refused.map(|refused| refused.tried_bytes),
        start: if trial.keeps_start { "recorded" } else { "modelled" },
        peak_allocated_bytes: trial.peak_allocated_bytes,
        peak_reserved_bytes: trial.peak_reserved_bytes,
        fragmentation_bytes: trial.fragmentation_bytes,
        segments_allocated: trial.segments_allocated,
        segments_freed: trial.segments_freed,
    });
    rows.collect()
}
