//! `fathom replay`.

use std::path::Path;

use allocator::{Requests, Settings, Timeline, pack, reproduce};
use anyhow::Result;
use recording::{BlockState, Event, Recording};
use report::replay::{Contradiction, Difference, Ideal, Replay};

use crate::card::Meant;
use crate::cli::ReplayArguments;
use crate::error::Hinted;
use crate::load;
use crate::outputs::Outputs;
use crate::screen;
use study::one_card::Room;
use study::settings_trials::{self, Candidate, Trial};

/// Replays a file under its own settings and under others; 1 if it differs or does not fit.
pub(crate) fn replay(arguments: &ReplayArguments) -> Result<u8> {
    let asked_card = arguments.card.meant()?;
    let mut outputs = Outputs::check(&[("--json", arguments.source.json.as_deref())])?;
    let recordings = load::load(&arguments.file)?;
    let devices = recordings.iter().map(|recording| recording.about.device).collect();
    let recording = load::choose(recordings, &arguments.file, arguments.source.device)?;
    answer::need_trace(&recording, &arguments.file.display().to_string())?;
    let own = settings_of(&recording, &arguments.file)?;
    let size = asked_card.as_ref().map(|meant| meant.card.memory_bytes);
    let (own, sized) = study::sized(&recording, own, size);
    let asked = asked(arguments.settings.as_deref(), &own)?;
    let mut replay = describe(&recording, arguments);
    replay.devices = devices;
    replay.notes.extend(sized);
    let result = reproduce(&recording, &own);
    // A difference has lines of its own; what is not known of the settings may be its reason.
    if !Settings::unknown(&recording.about).is_empty() {
        replay.notes.extend(study::agreement(&recording, result.difference.as_ref()));
    }
    if let Some(difference) = result.difference {
        replay.first_difference = Some(Difference {
            event: recording.trace_number(difference.event),
            recorded: difference.expected,
            replayed: difference.got,
        });
        replay.contradiction = allocator::contradiction(&recording).map(|found| Contradiction {
            event: recording.trace_number(found.event),
            what: found.event_text,
            found: if found.is_there { "still there" } else { "not there" },
        });
        replay.exit_code = 1;
    } else {
        let stats = &result.timeline.stats;
        let peaks = (stats.allocated_bytes.all.peak, stats.reserved_bytes.all.peak);
        replay.recorded_peaks = Some(peaks);
        replay.retries = stats.num_alloc_retries;
        let endless = gpus::unlimited().memory_bytes;
        match &asked_card {
            Some(card) => put_on(&mut replay, card),
            None => replay.memory_bytes = own.memory.filter(|bytes| *bytes < endless),
        }
        let requests = Requests::of(&recording, &own);
        let recorded = Candidate { conf: replay.settings.clone(), settings: own.clone() };
        replay.judged = asked_card.as_ref().map(|_| usize::from(asked.is_some()));
        let rows = rows(&replay, recorded, asked, requests.start.is_empty());
        replay.trials = try_all(&replay, &requests, &rows, &result.timeline);
        replay.start = older(&requests);
        replay.floor = Some(settings_trials::floor(&requests, &rows));
        let packing = pack(&requests, &own);
        replay.ideal = Some(Ideal { bound_bytes: packing.bound, packed_bytes: packing.packed });
        let judged = replay.judged.and_then(|row| replay.trials.get(row));
        replay.exit_code = u8::from(judged.is_some_and(|trial| trial.refused.is_some()));
    }
    show(&replay, arguments, &mut outputs);
    Ok(outputs.finish(replay.exit_code))
}

/// Asks about another card than the recorded one. A card by its name has a context of its own; any other
/// is taken to have the recorded one.
fn put_on(replay: &mut Replay, Meant { card, notes }: &Meant) {
    replay.memory_bytes = Some(card.memory_bytes);
    replay.used_bytes = card.used_bytes;
    if !card.is_nameless() {
        replay.card = card.title.to_owned();
        replay.context_bytes = card.context_bytes;
        replay.context_known = if card.context_known.is_assumed() { "assumed" } else { "measured" };
    }
    replay.notes.extend(notes.iter().cloned());
}

/// The settings to try, on the card that was given or recorded.
fn rows(
    replay: &Replay,
    recorded: Candidate,
    asked: Option<Candidate>,
    starts_empty: bool,
) -> Vec<Candidate> {
    let taken_bytes = replay.context_bytes + replay.used_bytes;
    let room = Room { memory_bytes: replay.memory_bytes, taken_bytes };
    settings_trials::candidates(&room.put(recorded), asked.map(|row| room.put(row)), starts_empty)
}

/// The table. Without a card the recorded settings are not tried again: what was recorded stands there.
fn try_all(
    replay: &Replay,
    requests: &Requests<'_>,
    rows: &[Candidate],
    recorded: &Timeline,
) -> Vec<Trial> {
    let trials = rows.iter().enumerate().map(|(at, row)| match (at, replay.memory_bytes) {
        (0, None) => settings_trials::describe(requests, row, recorded),
        _ => settings_trials::trial(requests, rows, at),
    });
    trials.collect()
}

/// Blocks in use before the first event, and their bytes.
fn older(requests: &Requests<'_>) -> (usize, u64) {
    let blocks = requests.start.iter().flat_map(|segment| &segment.blocks);
    let used = blocks.filter(|block| block.state != BlockState::Inactive);
    used.fold((0, 0), |(blocks, bytes), block| (blocks + 1, bytes + block.size))
}

/// What the recording says of itself.
fn describe(recording: &Recording, arguments: &ReplayArguments) -> Replay {
    let about = &recording.about;
    let failed = recording.events.iter().filter(|e| matches!(e, Event::OutOfMemory { .. }));
    let (context_bytes, is_context_told) = settings_trials::context_of(about);
    Replay {
        file: arguments.file.display().to_string(),
        device: about.device,
        torch: about.torch.clone(),
        settings: about.allocator_settings.clone(),
        recorded_memory_bytes: (about.memory_bytes != 0).then_some(about.memory_bytes),
        events: recording.trace_length(),
        failed_requests: failed.count(),
        died: allocator::fatal(&recording.events).next().is_some(),
        context_bytes,
        context_known: if is_context_told { "recorded" } else { "assumed" },
        ..Replay::default()
    }
}

fn settings_of(recording: &Recording, path: &Path) -> Result<Settings> {
    Settings::of(&recording.about).map_err(|error| {
        Hinted::error(
            format!("`{}`: {error}", path.display()),
            "settings of PyTorch's native allocator, torch 1.13 and newer, can be replayed",
        )
    })
}

/// `--settings`, read with the rules of the recording's torch.
fn asked(conf: Option<&str>, own: &Settings) -> Result<Option<Candidate>> {
    let Some(conf) = conf else { return Ok(None) };
    study::one_card::asked(conf, own)
        .map_err(|error| Hinted::error(format!("`--settings`: {error}"), answer::CONF_HINT))
}

fn show(replay: &Replay, arguments: &ReplayArguments, outputs: &mut Outputs) {
    if outputs.json(arguments.source.json.as_deref(), || report::replay::json(replay)) {
        outputs.print(&report::replay::terminal(replay, screen::reader()));
    }
}
