//! From a recording to its anatomy: replayed under its own settings, then taken apart.

use allocator::{Outcome, Requests, Settings, Start, Timeline, floor, reproduce};
use anatomy::Anatomy;
use recording::Recording;
use report::Deferred;

/// The anatomy, and what the reader should know about it; an error in words if it cannot be replayed.
pub(crate) fn dissect(recording: &Recording) -> Result<(Anatomy, Vec<String>), String> {
    let settings = Settings::of(&recording.about).map_err(|error| error.to_string())?;
    let result = reproduce(recording, &settings);
    let mut notes = Vec::new();
    if let Some(difference) = result.difference {
        let all = recording.trace_length();
        notes.push(match difference.event < recording.events.len() {
            true => format!(
                "the replay is not what was recorded from event {} of {all} on: who holds the memory \
                 is known up to there",
                recording.trace_number(difference.event)
            ),
            false => "the replay ends with other blocks than were recorded".to_owned(),
        });
    }
    let mut anatomy = anatomy::dissect(recording, &result.timeline);
    if let Ok(folder) = std::env::current_dir() {
        shorten(&mut anatomy, &format!("{}/", folder.display()));
    }
    Ok((anatomy, notes))
}

/// The smallest card on which a replay still completes, context included; `None` if it did not.
pub(crate) fn smallest_card(recording: &Recording) -> Option<u64> {
    let settings = Settings::of(&recording.about).ok()?;
    let is_whole = recording.about.complete && reproduce(recording, &settings).difference.is_none();
    let requests = Requests::of(recording, &settings);
    if is_whole { floor(&requests, &settings, Start::Kept) } else { None }
}

/// What of the peak depends on when other streams are done; `None` if no free waited for one.
pub(crate) fn deferred(recording: &Recording) -> Option<Deferred> {
    let frees = allocator::deferred(&recording.events).len();
    let settings = Settings::of(&recording.about).ok().filter(|_| frees != 0)?;
    let at_once = reproduce(recording, &settings).timeline;
    let late = Requests::of(recording, &settings).replay_late(&settings)?;
    let peaks = |timeline: &Timeline| {
        let stats = &timeline.stats;
        [stats.reserved_bytes.all.peak, stats.active_bytes.all.peak]
    };
    let waiting = late.moments.iter().map(|moment| moment.active - moment.allocated);
    Some(Deferred {
        frees,
        at_once: peaks(&at_once),
        late: peaks(&late),
        most_waiting: waiting.max().unwrap_or(0),
        late_fits: late.outcome == Outcome::Completed,
    })
}

/// A file as people name it from the folder the command was given in.
pub(crate) fn from_here(file: String) -> String {
    let folder = std::env::current_dir().unwrap_or_default();
    match file.strip_prefix(&format!("{}/", folder.display())) {
        Some(rest) => rest.to_owned(),
        None => file,
    }
}

/// Files below the folder the command was given in are named from there, as people name them.
fn shorten(anatomy: &mut Anatomy, folder: &str) {
    let cut = |file: &mut String| {
        if let Some(rest) = file.strip_prefix(folder) {
            *file = rest.to_owned();
        }
    };
    anatomy.out_of_memory.iter_mut().for_each(|refusal| cut(&mut refusal.origin.file));
    let refusal = anatomy.out_of_memory.as_mut().map(|refusal| &mut refusal.at);
    for at in [&mut anatomy.allocated_peak, &mut anatomy.reserved_peak].into_iter().chain(refusal) {
        at.raised_by.iter_mut().for_each(|origin| cut(&mut origin.file));
        at.lines.iter_mut().for_each(|line| cut(&mut line.file));
        at.tensors.iter_mut().for_each(|tensor| cut(&mut tensor.origin.file));
        at.alike.iter_mut().for_each(|alike| cut(&mut alike.first.origin.file));
    }
    anatomy.facts.cut(folder);
    for site in &mut anatomy.growth.sites {
        cut(&mut site.origin.file);
        site.holder = site.holder.replace(folder, "");
    }
}
