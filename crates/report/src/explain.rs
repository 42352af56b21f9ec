//! A recording or snapshot explained: the sections of a report without a run around them.

use anatomy::{Anatomy, Dissection, Origin};
use anstyle::Style;

use study::Study;

use crate::bytes;
use crate::lines::Lines;
use crate::moment::{reached, when};
use crate::reader::Reader;
use crate::sections::columns::{count, place};
use crate::sections::{Section, Unfold, causes, fragments, section_if, sections};

/// A file taken apart.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// The file, as it was named.
    pub file: String,
    /// What it shows.
    pub study: Study,
    /// Remedies that were asked about.
    pub answers: Vec<diagnose::Answer>,
    /// The command that goes on from here.
    pub next: Option<String>,
}

/// The explanation as text: what answers the question, and of the rest what is unfolded.
pub fn explain(explanation: &Explanation, reader: Reader, unfold: &Unfold) -> String {
    let study = &explanation.study;
    let anatomy = &study.anatomy;
    let pieces = study.fragments.clone().unwrap_or_default();
    let peak = if anatomy.events == 0 { "state" } else { "peak" };
    let first = [
        Section { label: "tried", rows: tried(anatomy) },
        Section { label: "why", rows: fragments::why(&pieces) },
        Section { label: peak, rows: peaks(anatomy, unfold) },
        Section { label: "known", rows: known(shown(anatomy)) },
    ];
    let told = (&study.findings[..], &study.suspects[..]);
    let body = sections(anatomy, shown(anatomy), told, reader, unfold);
    let is_full = unfold.fragments;
    let shows_pieces = unfold.all || is_full;
    let most = (!is_full).then_some(fragments::SEGMENTS);
    let last = [
        section_if(shows_pieces, "pools", || fragments::pools(&pieces, is_full)),
        section_if(shows_pieces, "map", || fragments::map(&pieces, most)),
        Section { label: "asked", rows: causes::answers(&explanation.answers) },
    ];
    let notes = study.notes.iter();
    let notes = notes.map(|note| Section { label: "note", rows: vec![note.clone()] });
    let mut lines = Lines::new(reader);
    lines.answer(Style::new(), &explanation.file, &heading(explanation));
    for Section { label, rows } in first.into_iter().chain(body).chain(last).chain(notes) {
        lines.section(reader.label, label, rows);
    }
    if let Some(next) = &explanation.next {
        lines.command(reader.label, "next", next);
    }
    lines.text()
}

fn heading(explanation: &Explanation) -> String {
    let mut parts = vec![format!("device {}", explanation.study.device)];
    if !explanation.study.torch.is_empty() {
        parts.push(format!("torch {}", at_least(&explanation.study.torch)));
    }
    parts.push(match explanation.study.anatomy.events {
        0 => "a state without a trace".to_owned(),
        events => format!("{} events", count(events as u64)),
    });
    parts.join(" · ")
}

/// A version of torch: a snapshot tells the oldest that writes its form, without the last number.
pub(crate) fn at_least(version: &str) -> String {
    let is_whole = 1 < version.matches('.').count();
    if is_whole { version.to_owned() } else { format!("{version} or newer") }
}

/// Where memory ran out, else where most was allocated.
fn shown(anatomy: &Anatomy) -> &Dissection {
    anatomy.out_of_memory.as_ref().map_or(&anatomy.allocated_peak, |refusal| &refusal.at)
}

/// `15.0 MiB by bmm at train.py:12 with 2.0 MiB free in forward, step 3`
fn tried(anatomy: &Anatomy) -> Vec<String> {
    let refusal = anatomy.out_of_memory.iter();
    let row = refusal.map(|refusal| {
        let (tried, free) = (bytes::text(refusal.tried_bytes), bytes::text(refusal.free_bytes));
        format!("{tried}{} with {free} free{}", by(&refusal.origin), moment(&refusal.at))
    });
    row.collect()
}

fn peaks(anatomy: &Anatomy, unfold: &Unfold) -> Vec<String> {
    let (peak, reserved) = (&anatomy.allocated_peak, &anatomy.reserved_peak);
    let size = bytes::text(peak.allocated);
    let requested = match unfold.all {
        true => format!(" (requested {})", bytes::text(peak.requested)),
        false => String::new(),
    };
    let phase = peak.when.phase.map_or("", |phase| phase.name());
    let reached = reached(anatomy, phase, unfold.all);
    vec![
        format!("allocated {size}{}{requested}{reached}", moment(peak)),
        format!("reserved {}{}", bytes::text(reserved.reserved), moment(reserved)),
    ]
}

/// `by frames 61 %, by frames and lifetimes 30 %; not known 9 %`: of categories that nobody recorded.
fn known(at: &Dissection) -> Vec<String> {
    let all: u64 = at.evidence.iter().map(|row| row.bytes).sum();
    if all == 0 {
        return Vec::new();
    }
    let share = |bytes: u64| share(bytes, all);
    let by = at.evidence.iter().filter(|row| !row.name.is_empty());
    let by: Vec<String> = by.map(|row| format!("by {} {}", row.name, share(row.bytes))).collect();
    let unknown: u64 =
        at.evidence.iter().filter(|row| row.name.is_empty()).map(|row| row.bytes).sum();
    let unknown = (unknown != 0).then(|| format!("not known {}", share(unknown)));
    let parts: Vec<String> = by.into_iter().chain(unknown).collect();
    vec![format!("categories are inferred: {}", parts.join(", "))]
}

/// A part of all, in percent; what is there is never shown as nothing.
fn share(bytes: u64, all: u64) -> String {
    let percent = (bytes as f64 * 100.0 / all as f64).round() as u64;
    if percent == 0 && bytes != 0 { "under 1 %".to_owned() } else { format!("{percent} %") }
}

fn moment(at: &Dissection) -> String {
    let phase = at.when.phase.map_or(String::new(), |phase| phase.name().replace('_', " "));
    when(&phase, u64::from(at.when.step))
}

/// ` by addmm in encoder.fc at train.py:12`, as far as it is known.
pub(crate) fn by(origin: &Origin) -> String {
    let place = place(&origin.file, origin.line);
    let at = if place.is_empty() { place } else { format!(" at {place}") };
    operator(origin) + &at
}

/// ` by addmm in encoder.fc`, as far as it is known.
pub(crate) fn operator(origin: &Origin) -> String {
    let operator = if origin.operator.is_empty() { &origin.node } else { &origin.operator };
    let parts = [(" by ", operator), (" in ", &origin.module)];
    let known = parts.iter().filter(|(_, text)| !text.is_empty());
    known.map(|(word, text)| format!("{word}{text}")).collect()
}
