//! The report as text: the verdict first, then what it rests on, at last the next command.

use std::iter;

use anatomy::Anatomy;
use study::{Deferred, Fit, FitsOn, OutOfMemory, Peak, Run, SIMULATED, Verdict};

use crate::baseline;
use crate::bytes;
use crate::explain::operator;
use crate::lines::Lines;
use crate::moment::{beyond, reached, when};
use crate::processes;
use crate::ranks;
use crate::reader::Reader;
use crate::sections::columns::file_name;
use crate::sections::{Section, Unfold, causes, sections};
use crate::verdict::{takes_more, verdict};
use crate::whole;
use crate::why;
use crate::workspaces;

/// The whole report: what qualifies the verdict always, and of the rest what is unfolded.
pub fn terminal(run: &Run, reader: Reader, unfold: &Unfold) -> String {
    let mut lines = Lines::new(reader);
    let (style, word, sentence) = verdict(run, reader);
    lines.answer(style, word, &sentence);
    let parts = [answer(run, unfold), holders(run, reader, unfold), end(run, unfold)];
    for Section { label, rows } in parts.into_iter().flatten() {
        lines.section(reader.label, label, rows);
    }
    let labels = iter::once("next").chain(iter::repeat(""));
    for (label, command) in labels.zip(&run.next) {
        lines.command(reader.label, label, command);
    }
    lines.text()
}

/// What the verdict says at length, and what it rests on.
fn answer(run: &Run, unfold: &Unfold) -> Vec<Section> {
    let (likely, certain): (Vec<&FitsOn>, Vec<&FitsOn>) =
        run.fits_on.iter().partition(|card| card.known == Fit::Likely);
    let differ = "cuDNN workspaces differ from GPU to GPU";
    let likely = (!likely.is_empty()).then(|| format!("{}; {differ}", smallest(&likely)));
    let mut all = vec![Section { label: "warning", rows: run.warnings.clone() }];
    if let Some(refusal) = &run.out_of_memory {
        all.extend(out_of_memory(refusal, run.anatomy(), unfold));
    }
    all.push(Section { label: "peak", rows: peaks(run, unfold) });
    all.push(Section { label: "need", rows: need(run).into_iter().collect() });
    all.push(Section {
        label: "no limit",
        rows: run.beyond.iter().map(|it| beyond(it, unfold.all)).collect(),
    });
    all.push(Section { label: "whole", rows: whole::rows(run, unfold.all) });
    if let Some(against) = &run.against {
        all.push(Section { label: "baseline", rows: baseline::rows(against) });
    }
    let certain = (!certain.is_empty()).then(|| smallest(&certain));
    all.push(Section { label: "fits on", rows: certain.into_iter().collect() });
    all.push(Section { label: "likely", rows: likely.into_iter().collect() });
    all.push(Section { label: "shared", rows: processes::rows(run, unfold.all) });
    let ranks = run.ranks.as_ref().map(|ranks| ranks::rows(ranks, unfold.all));
    all.push(Section { label: "ranks", rows: ranks.unwrap_or_default() });
    all
}

/// What was asked, how it was run, and what else the reader should know.
fn end(run: &Run, unfold: &Unfold) -> Vec<Section> {
    let asked = Section { label: "asked", rows: causes::answers(&run.answers) };
    let how = Section { label: "run", rows: vec![how(run, unfold)] };
    // What is said of every run stands in the row above; work areas that are not at the peak qualify nothing.
    let is_of_peak = unfold.all || workspaces::are_modelled_at_peak(run);
    let areas = workspaces::sentence(run).filter(|_| !is_of_peak);
    let notes = run.notes.iter().filter(|note| *note != SIMULATED && Some(*note) != areas.as_ref());
    let notes = notes.map(|note| Section { label: "note", rows: vec![note.clone()] });
    [asked, how].into_iter().chain(notes).collect()
}

/// What it needs, if it fits.
fn need(run: &Run) -> Option<String> {
    let need = run.needed().filter(|_| run.verdict == Verdict::Fits)?;
    let (smallest, known) = (bytes::text_up(need.bytes), need.known);
    Some(format!("smallest GPU that fits: {smallest} ({known})"))
}

/// The smallest cards of a list, and how many there are beside them.
fn smallest(cards: &[&FitsOn]) -> String {
    const SHOWN: usize = 6;
    let named = |card: &&FitsOn| {
        let near = if card.is_tight { ", tight" } else { "" };
        format!("{} ({}{near})", card.name, bytes::text(card.memory_bytes))
    };
    let names: Vec<String> = cards.iter().take(SHOWN).map(named).collect();
    let more = match cards.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", and {more} larger"),
    };
    let replayed = match cards.iter().filter(|card| card.known == Fit::Replayed).count() {
        0 => String::new(),
        1 => "; the smallest by replay".to_owned(),
        count => format!("; the {count} smallest by replay"),
    };
    let run = match cards.iter().filter(|card| card.known == Fit::Run).count() {
        0 => String::new(),
        1 => "; the script was run on the first".to_owned(),
        count => format!("; the script was run on {count} of them"),
    };
    names.join(", ") + &more + &replayed + &run
}

/// Who held the memory where it ran out, else at the peak.
fn holders(run: &Run, reader: Reader, unfold: &Unfold) -> Vec<Section> {
    let Some(anatomy) = run.anatomy() else { return Vec::new() };
    let refusal = anatomy.out_of_memory.as_ref().filter(|_| run.out_of_memory.is_some());
    let at = refusal.map_or(&anatomy.allocated_peak, |refusal| &refusal.at);
    sections(anatomy, at, (run.findings(), run.suspects()), reader, unfold)
}

/// What was tried, why there was no room, and what PyTorch said.
fn out_of_memory(
    refusal: &OutOfMemory,
    anatomy: Option<&Anatomy>,
    unfold: &Unfold,
) -> [Section; 3] {
    let place = match (&refusal.file, refusal.line) {
        (Some(file), Some(number)) if unfold.all => format!(" at {file}:{number}"),
        (Some(file), Some(number)) => format!(" at {}:{number}", file_name(file)),
        _ => String::new(),
    };
    let tried = bytes::text(refusal.tried_bytes);
    let free = refusal.free_bytes.map(|free| format!(", {} free", bytes::text(free)));
    let moment = anatomy.and_then(|anatomy| anatomy.out_of_memory.as_ref());
    let by = moment.map(|moment| operator(&moment.origin)).unwrap_or_default();
    let tried = format!("{tried}{by}{place}{}", free.unwrap_or_default());
    let why = refusal.shortage.iter().flat_map(|shortage| match unfold.all {
        true => why::sentences(shortage).to_vec(),
        // The request stands in the row above.
        false => why::sentences(shortage)[1..].to_vec(),
    });
    // The script has printed it, and the first row says the same.
    let message = Some(why::message(&refusal.message));
    let message = message.filter(|message| unfold.all && !message.is_empty());
    [
        Section { label: "tried", rows: vec![tried] },
        Section { label: "why", rows: why.collect() },
        Section { label: "PyTorch", rows: message.into_iter().collect() },
    ]
}

fn peaks(run: &Run, unfold: &Unfold) -> Vec<String> {
    let Some(peak) = &run.peak else { return Vec::new() };
    let mut rows: Vec<String> = allocated(run, peak, unfold).into_iter().collect();
    // Where the card is full, how full it was says nothing; a run without a limit says more than one that was cut off.
    let is_full = run.out_of_memory.is_some() && !unfold.all;
    if is_full && run.beyond.as_ref().is_some_and(|beyond| beyond.need.is_some()) {
        rows.clear();
    } else if !is_full || rows.is_empty() {
        rows.push(reserved(run, peak, unfold));
    }
    let deferred = run.deferred().filter(|deferred| unfold.all || deferred.matters());
    rows.extend(deferred.map(|deferred| streams(&deferred)));
    rows.extend(run.unattributed.as_ref().map(|unattributed| {
        format!("{} of it not attributed: {}", bytes::text(unattributed.bytes), unattributed.why)
    }));
    rows
}

/// `allocated 14.06 GiB in backward, step 2, in 6.layers.3 (Conv2d) at train.py:16`.
fn allocated(run: &Run, peak: &Peak, unfold: &Unfold) -> Option<String> {
    let allocated = &peak.allocated;
    let requested = match peak.requested.bytes {
        bytes if bytes == 0 || !unfold.all => String::new(),
        bytes => format!(" (requested {})", bytes::text(bytes)),
    };
    let when = when(&allocated.phase, allocated.step);
    let reached = run.anatomy().map(|anatomy| reached(anatomy, &allocated.phase, unfold.all));
    let text = format!("allocated {}{when}{requested}", bytes::text(allocated.bytes));
    (0 < allocated.bytes).then(|| text + &reached.unwrap_or_default())
}

/// `reserved 15.62 GiB + context 256.0 MiB = up to 15.87 GiB`.
fn reserved(run: &Run, peak: &Peak, unfold: &Unfold) -> String {
    let reserved = &peak.reserved;
    let when = match unfold.all {
        true => when(&reserved.phase, reserved.step),
        false => String::new(),
    };
    let mut parts = vec![format!("reserved {}{when}", bytes::text(reserved.bytes))];
    let uncounted = peak.uncounted_bytes();
    if uncounted != 0 && reserved.bytes == 0 {
        parts = vec![format!("held {} that PyTorch does not count", bytes::text(uncounted))];
    } else if uncounted != 0 {
        parts.push(format!("outside of PyTorch's count {}", bytes::text(uncounted)));
    }
    let Some(card) = &run.card else { return parts.join(" + ") };
    let known = match (card.is_context_assumed(), unfold.all) {
        (true, _) => " (assumed)",
        (false, true) => " (measured)",
        (false, false) => "",
    };
    parts.push(format!("context {}{known}", bytes::text(card.context_bytes)));
    if peak.nccl_bytes != 0 {
        parts.push(format!("NCCL {} (modelled)", bytes::text(peak.nccl_bytes)));
    }
    let is_cache = run.needed().is_some_and(|need| takes_more(run, need.bytes));
    let most = if is_cache && run.out_of_memory.is_none() { "up to " } else { "" };
    format!("{} = {most}{}", parts.join(" + "), bytes::text(peak.process_bytes))
}

/// How far the peak depends on when other streams are done.
fn streams(deferred: &Deferred) -> String {
    let Deferred { frees, at_once: [reserved, _], late: [late, _], most_waiting, late_fits } =
        deferred;
    let frees = match frees {
        1 => "1 free waited".to_owned(),
        _ => format!("{frees} frees waited"),
    };
    let text = format!("{frees} for work of other streams, which is done at once here; ");
    let waiting = bytes::text(*most_waiting);
    text + &match (late_fits, reserved == late) {
        (false, _) => {
            format!("done as late as possible ({waiting} waiting), it would not fit (modelled)")
        }
        (true, true) => "done as late as possible, as much is reserved (modelled)".to_owned(),
        (true, false) => format!(
            "done as late as possible ({waiting} waiting), {} are reserved (modelled)",
            bytes::text(*late)
        ),
    }
}

/// `3 steps, then stopped · 6.2 s · torch 2.15.0+cu132 · kernels are simulated; ignore printed losses`.
fn how(run: &Run, unfold: &Unfold) -> String {
    let steps = match run.steps {
        0 => "no step".to_owned(),
        1 => "1 step".to_owned(),
        steps => format!("{steps} steps"),
    };
    let end = if run.stopped && unfold.all { ", then stopped" } else { "" };
    let is_short = run.whole.as_ref().is_some_and(|whole| whole.is_reported);
    let kind = if is_short { ", shortened training" } else { "" };
    let mut parts = vec![format!("{steps}{kind}{end}"), format!("{:.1} s", run.wall_seconds)];
    let software = &run.software;
    if unfold.all && !software.torch.is_empty() {
        parts.push(format!("torch {}, Python {}", software.torch, software.python));
    }
    let known = workspaces::known(&run.workspaces);
    let asked = matches!(known, "exact" | "mixed") && !software.cudnn.is_empty();
    let cudnn = if asked { format!(" (cuDNN {})", software.cudnn) } else { String::new() };
    match known {
        "none" => {}
        "exact" if !unfold.all => {}
        "exact" => parts.push(format!("workspaces exact{cudnn}")),
        "mixed" => parts.push(format!("workspaces partly exact{cudnn}")),
        _ => parts.push("workspaces modelled".to_owned()),
    }
    parts.extend(run.notes.iter().filter(|note| *note == SIMULATED).cloned());
    parts.join(" · ")
}
