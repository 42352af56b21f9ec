//! The report as text: the verdict first, then what it rests on.

use anatomy::Anatomy;
use anstyle::{AnsiColor, Style};

use crate::baseline;
use crate::bytes;
use crate::explain::{cause, operator};
use crate::ranks;
use crate::run::{Card, Deferred, OutOfMemory, Peak, Run, Verdict, Workspaces};
use crate::sections::words::sentence;
use crate::sections::{COLUMNS, SCREEN, Section, Unfold, causes, sections};
use crate::why::why;

/// Styles; plain text is readable without them.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    pub(crate) good: Style,
    pub(crate) bad: Style,
    pub(crate) label: Style,
}

impl Palette {
    /// For a terminal.
    pub fn coloured() -> Palette {
        Palette {
            good: AnsiColor::Green.on_default().bold(),
            bad: AnsiColor::Red.on_default().bold(),
            label: Style::new().dimmed(),
        }
    }

    /// For files and pipes.
    pub fn plain() -> Palette {
        Palette { good: Style::new(), bad: Style::new(), label: Style::new() }
    }
}

/// Columns of the labels on the left.
pub(crate) const LABEL_WIDTH: usize = 9;

/// The whole report. It fits one screen unless something is unfolded.
pub fn terminal(run: &Run, palette: Palette, unfold: &Unfold) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    let mut line = |label: &'static str, content: &str| rows.push((label, content.to_owned()));
    if let Some(refusal) = &run.out_of_memory {
        out_of_memory(refusal, run.anatomy.as_ref(), &mut line);
    }
    if let Some(peak) = &run.peak {
        peaks(peak, run.card.as_ref(), &mut line);
    }
    for row in run.deferred.iter().flat_map(|deferred| sentence(&streams(deferred), COLUMNS)) {
        line("", &row);
    }
    if let Some(cause) = run.anatomy.as_ref().and_then(cause) {
        line("", &cause);
    }
    if let Some(floor) = run.floor_bytes {
        let floor = bytes::text(floor);
        line("", &format!("a card of {floor} would still do (replayed, context included)"));
    }
    if let Some(against) = &run.against {
        for (label, row) in baseline::rows(against) {
            line(label, &row);
        }
    }
    if !run.fits_on.is_empty() {
        let cards: Vec<String> = run
            .fits_on
            .iter()
            .map(|card| format!("{} ({})", card.name, bytes::text(card.memory_bytes)))
            .collect();
        line("fits on", &format!("{}, and larger", cards.join(", ")));
    }
    if let Some(ranks) = &run.ranks {
        let labels = std::iter::once("ranks").chain(std::iter::repeat(""));
        rows.extend(labels.zip(ranks::rows(ranks, *unfold == Unfold::all())));
    }
    let mut end: Vec<(&str, String)> = Vec::new();
    let answers = causes::answers(&run.answers);
    end.extend(std::iter::once("asked").chain(std::iter::repeat("")).zip(answers));
    end.push(("run", how(run)));
    end.extend(run.notes.iter().map(|note| ("note", note.clone())));
    let room = SCREEN.saturating_sub(1 + rows.len() + end.len());
    for Section { label, rows: section } in holders(run, unfold, room) {
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        rows.extend(labels.zip(section));
    }
    let style = palette.label;
    let rows = rows.into_iter().chain(end).map(|(label, content)| {
        format!("{style}{label:LABEL_WIDTH$}{style:#}{content}").trim_end().to_owned() + "\n"
    });
    rows.fold(verdict(run, palette), |text, row| text + &row)
}

/// Who held the memory where it ran out, else at the peak.
fn holders(run: &Run, unfold: &Unfold, room: usize) -> Vec<Section> {
    let Some(anatomy) = &run.anatomy else { return Vec::new() };
    let refusal = anatomy.out_of_memory.as_ref().filter(|_| run.out_of_memory.is_some());
    let at = refusal.map_or(&anatomy.allocated_peak, |refusal| &refusal.at);
    sections(anatomy, at, &run.findings, unfold, room)
}

/// The verdict as one line of plain text: `FITS  …`.
pub fn headline(run: &Run) -> String {
    verdict(run, Palette::plain()).trim_end().to_owned()
}

fn verdict(run: &Run, palette: Palette) -> String {
    let needs = run.peak.as_ref().map(|peak| bytes::text(peak.device_bytes));
    let (style, word, sentence) = match run.verdict {
        Verdict::ScriptFailed => {
            (palette.bad, "SCRIPT FAILED", run.failure.clone().unwrap_or_default())
        }
        Verdict::DoesNotFit => (palette.bad, "DOES NOT FIT", does_not_fit(run)),
        Verdict::Grew => {
            (palette.bad, "GREW", run.against.as_ref().map(baseline::grew).unwrap_or_default())
        }
        Verdict::Fits => {
            let sentence = match (&run.card, needs) {
                (_, None) => "the script did not use the GPU".to_owned(),
                (None, Some(needs)) => format!("needs {needs} of a card's memory"),
                (Some(card), Some(needs)) => format!(
                    "{} has {}: the run needs {needs}, {} stay free",
                    card.title,
                    bytes::text(card.memory_bytes),
                    bytes::text(free_bytes(card, run)),
                ),
            };
            (palette.good, "FITS", sentence)
        }
    };
    format!("{style}{word}{style:#}  {sentence}\n")
}

fn free_bytes(card: &Card, run: &Run) -> u64 {
    card.memory_bytes.saturating_sub(run.peak.as_ref().map_or(0, |peak| peak.device_bytes))
}

fn does_not_fit(run: &Run) -> String {
    if let (None, Some(budget), Some(peak)) = (&run.out_of_memory, run.budget_bytes, &run.peak) {
        return format!(
            "the run needs {}, over the budget of {}",
            bytes::text(peak.device_bytes),
            bytes::text(budget)
        );
    }
    let card = run.card.as_ref().map_or("the card".to_owned(), |card| {
        format!("{} with {}", card.title, bytes::text(card.memory_bytes))
    });
    match &run.out_of_memory {
        Some(refusal) => {
            format!("{card} ran out of memory{}", when(&refusal.phase, refusal.step))
        }
        None => format!("{card} ran out of memory"),
    }
}

/// ` in backward, step 2`; nothing where the phase is not known.
pub(crate) fn when(phase: &str, step: u64) -> String {
    match phase {
        "" => String::new(),
        "construction" => " in construction, before the first step".to_owned(),
        _ => format!(" in {phase}, step {step}"),
    }
}

fn out_of_memory(
    refusal: &OutOfMemory,
    anatomy: Option<&Anatomy>,
    line: &mut impl FnMut(&'static str, &str),
) {
    let place = match (&refusal.file, refusal.line) {
        (Some(file), Some(number)) => format!(" at {file}:{number}"),
        _ => String::new(),
    };
    let tried = bytes::text(refusal.tried_bytes);
    let free = refusal.free_bytes.map(|free| format!(" with {} free", bytes::text(free)));
    let moment = anatomy.and_then(|anatomy| anatomy.out_of_memory.as_ref());
    let by = moment.map(|moment| operator(&moment.origin)).unwrap_or_default();
    line("tried", &format!("{tried}{by}{}{place}", free.unwrap_or_default()));
    let why = refusal.shortage.as_ref().map(|shortage| sentence(&why(shortage), COLUMNS));
    for (index, row) in why.into_iter().flatten().enumerate() {
        line(if index == 0 { "why" } else { "" }, &row);
    }
    if !refusal.message.is_empty() {
        line("PyTorch", refusal.message.lines().next().unwrap_or_default());
    }
}

fn peaks(peak: &Peak, card: Option<&Card>, line: &mut impl FnMut(&'static str, &str)) {
    let allocated = &peak.allocated;
    if 0 < allocated.bytes {
        let requested = match peak.requested.bytes {
            0 => String::new(),
            bytes => format!(" (requested {})", bytes::text(bytes)),
        };
        let when = when(&allocated.phase, allocated.step);
        line("peak", &format!("allocated {}{when}{requested}", bytes::text(allocated.bytes)));
    }
    let reserved = &peak.reserved;
    let mut text =
        format!("reserved {}{}", bytes::text(reserved.bytes), when(&reserved.phase, reserved.step));
    if let Some(card) = card {
        let known = if card.context_assumed { "assumed" } else { "measured on such a card" };
        let nccl = match peak.nccl_bytes {
            0 => String::new(),
            nccl => format!(" + NCCL {} (modelled)", bytes::text(nccl)),
        };
        text += &format!(
            " + context {} ({known}){nccl} = {}",
            bytes::text(card.context_bytes),
            bytes::text(peak.device_bytes)
        );
    }
    line(if 0 < allocated.bytes { "" } else { "peak" }, &text);
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

fn how(run: &Run) -> String {
    let steps = match run.steps {
        0 => "no optimizer step".to_owned(),
        1 => "1 step".to_owned(),
        steps => format!("{steps} steps"),
    };
    let end = if run.stopped { ", then stopped" } else { "" };
    let mut text = format!("{steps}{end} · {:.1} s", run.wall_seconds);
    if !run.software.torch.is_empty() {
        text += &format!(" · torch {}, Python {}", run.software.torch, run.software.python);
    }
    text += match run.workspaces {
        Workspaces::Exact => " · workspaces exact",
        Workspaces::Modelled => " · workspaces modelled",
        Workspaces::None => "",
    };
    if run.workspaces == Workspaces::Exact && !run.software.cudnn.is_empty() {
        text += &format!(" (cuDNN {})", run.software.cudnn);
    }
    text
}
