//! The report as text: the verdict first, then what it rests on.

use anatomy::Anatomy;
use anstyle::{AnsiColor, Style};

use crate::baseline;
use crate::bytes;
use study::RestsOn;

use crate::assumed::condition;
use crate::explain::{cause, operator};
use crate::lines::{Lines, visible};
use crate::processes;
use crate::ranks;
use crate::sections::columns::sentence;
use crate::sections::{COLUMNS, SCREEN, Section, Unfold, causes, sections};
use crate::why::why;
use crate::workspaces;
use gpus::Card;
use study::{Deferred, Fit, FitsOn, OutOfMemory, Peak, Run, Unfinished, Verdict, memory_text};

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

/// The whole report. It fits one screen unless something is unfolded.
pub fn terminal(run: &Run, palette: Palette, unfold: &Unfold) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    let mut line = |label: &'static str, content: &str| rows.push((label, content.to_owned()));
    for warning in &run.warnings {
        let labels = std::iter::once("warning").chain(std::iter::repeat(""));
        labels.zip(sentence(warning, COLUMNS)).for_each(|(label, row)| line(label, &row));
    }
    if let Some(refusal) = &run.out_of_memory {
        out_of_memory(refusal, run.anatomy(), &mut line);
    }
    if let Some(peak) = &run.peak {
        peaks(peak, run.card.as_ref(), &mut line);
    }
    for row in run.deferred().iter().flat_map(|deferred| sentence(&streams(deferred), COLUMNS)) {
        line("", &row);
    }
    if let Some(unattributed) = &run.unattributed {
        let bytes = bytes::text(unattributed.bytes);
        let text = format!("{bytes} of it not attributed: {}", unattributed.why);
        sentence(&text, COLUMNS).iter().for_each(|row| line("", row));
    }
    if let Some(cause) = run.anatomy().and_then(cause) {
        line("", &cause);
    }
    if let Some(floor) = run.floor_bytes {
        let floor = bytes::text_up(floor);
        let with = match run.card.as_ref().is_some_and(|card| card.used_bytes != 0) {
            true => "context and other programs included",
            false => "context included",
        };
        line("", &format!("a card of {floor} would still do (replayed, {with})"));
    }
    if let Some(against) = &run.against {
        for (label, row) in baseline::rows(against) {
            line(label, &row);
        }
    }
    let (likely, certain): (Vec<&FitsOn>, Vec<&FitsOn>) =
        run.fits_on.iter().partition(|card| card.known == Fit::Likely);
    if !certain.is_empty() {
        line("fits on", &smallest(&certain));
    }
    if !likely.is_empty() {
        let cards = smallest(&likely);
        line("likely", &format!("{cards}; workspaces of cuDNN differ from GPU to GPU"));
    }
    let shared = processes::rows(run, *unfold == Unfold::all());
    rows.extend(std::iter::once("shared").chain(std::iter::repeat("")).zip(shared));
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
    let mut lines = Lines::default();
    let (style, word, sentence) = verdict(run, palette);
    lines.styled(style, word, &format!("  {sentence}"));
    for (label, content) in rows.into_iter().chain(end) {
        lines.section(palette.label, label, [content]);
    }
    lines.text()
}

/// The smallest cards of a list, and how many there are beside them.
fn smallest(cards: &[&FitsOn]) -> String {
    const SHOWN: usize = 6;
    let named = |card: &&FitsOn| format!("{} ({})", card.name, bytes::text(card.memory_bytes));
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
    names.join(", ") + &more + &replayed
}

/// Who held the memory where it ran out, else at the peak.
fn holders(run: &Run, unfold: &Unfold, room: usize) -> Vec<Section> {
    let Some(anatomy) = run.anatomy() else { return Vec::new() };
    let refusal = anatomy.out_of_memory.as_ref().filter(|_| run.out_of_memory.is_some());
    let at = refusal.map_or(&anatomy.allocated_peak, |refusal| &refusal.at);
    sections(anatomy, at, run.findings(), unfold, room)
}

/// The verdict as one line of plain text: `FITS  …`.
pub fn headline(run: &Run) -> String {
    let (_, word, sentence) = verdict(run, Palette::plain());
    format!("{word}  {}", visible(&sentence)).trim_end().to_owned()
}

/// Its style, its word and a sentence, with what it depends on.
fn verdict(run: &Run, palette: Palette) -> (Style, &'static str, String) {
    let (style, word, mut sentence) = plain_verdict(run, palette);
    if run.has_kernels == Some(false) {
        sentence += "; this torch has no kernels for it";
    }
    let Some((first, places)) = run.decisions.first().zip(run.unknown_places()) else {
        return (style, word, sentence);
    };
    let condition = condition(Some(&places));
    match run.verdict {
        Verdict::Fits => fits_if(run, palette, (&places, &condition), sentence),
        Verdict::ScriptFailed => {
            let why = format!("after {first} read values that are not known: {sentence}");
            (style, word, why)
        }
        _ => (style, word, format!("{sentence}; if {condition}")),
    }
}

/// A run that fits with what was assumed: the most that can be given says more, if it was tried.
fn fits_if(
    run: &Run,
    palette: Palette,
    (places, condition): (&str, &str),
    sentence: String,
) -> (Style, &'static str, String) {
    let least = run.peak.as_ref().map_or(0, |peak| peak.device_bytes);
    match run.rests_on() {
        RestsOn::Nothing => (palette.good, "FITS", sentence),
        RestsOn::Range(most) => {
            let range = format!("between {} and {}", bytes::text(least), bytes::text(most));
            let on = run.card.as_ref().map_or(String::new(), |card| {
                let memory = memory_text(card.memory_bytes, card.used_bytes);
                format!("{} has {memory}: ", card.shown_title())
            });
            let range = if most <= least { bytes::text(least) } else { range };
            let sentence = format!("{on}the run needs {range}, by what {places} gives");
            (palette.good, "FITS", sentence)
        }
        RestsOn::Little => {
            let little = format!("{places} gives little enough, and not if it gives all");
            (palette.label, "FITS IF", format!("{little}: {sentence}"))
        }
        RestsOn::Assumption => (palette.label, "FITS IF", format!("{condition}: {sentence}")),
    }
}

fn plain_verdict(run: &Run, palette: Palette) -> (Style, &'static str, String) {
    let needs = run.peak.as_ref().map(|peak| bytes::text(peak.device_bytes));
    match run.verdict {
        Verdict::ScriptFailed => {
            (palette.bad, "SCRIPT FAILED", run.failure.clone().unwrap_or_default())
        }
        Verdict::DoesNotFit => (palette.bad, "DOES NOT FIT", does_not_fit(run)),
        Verdict::Interrupted => (palette.bad, "INTERRUPTED", unfinished(run)),
        Verdict::TimedOut => (palette.bad, "TIMED OUT", unfinished(run)),
        Verdict::Grew => {
            (palette.bad, "GREW", run.against.as_ref().map(baseline::grew).unwrap_or_default())
        }
        Verdict::Fits => {
            let sentence = match (&run.card, needs) {
                (_, None) => "the script did not use the GPU".to_owned(),
                (None, Some(needs)) => format!("needs {needs} of a card's memory"),
                (Some(card), Some(needs)) => format!(
                    "{} has {}: the run needs {needs}, {} stay free",
                    card.shown_title(),
                    memory_text(card.memory_bytes, card.used_bytes),
                    bytes::text(free_bytes(card, run)),
                ),
            };
            (palette.good, "FITS", sentence)
        }
    }
}

/// `after 8 s with 1 step taken: 10.02 GiB were needed by then`.
fn unfinished(run: &Run) -> String {
    let how = run.unfinished.as_ref().map(Unfinished::how).unwrap_or_default();
    let by_then = match (&run.peak, run.wall_seconds) {
        (_, 0.0) => String::new(),
        (None, _) => ": the GPU was not used by then".to_owned(),
        (Some(peak), _) => {
            let steps = match run.steps {
                1 => "1 step".to_owned(),
                steps => format!("{steps} steps"),
            };
            let needed = bytes::text(peak.device_bytes);
            format!(" with {steps} taken: {needed} were needed by then")
        }
    };
    format!("{how}{by_then}")
}

fn free_bytes(card: &Card, run: &Run) -> u64 {
    card.available_bytes().saturating_sub(run.peak.as_ref().map_or(0, |peak| peak.device_bytes))
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
        format!("{} with {}", card.shown_title(), memory_text(card.memory_bytes, card.used_bytes))
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
    let when = when(&reserved.phase, reserved.step);
    let mut parts = vec![format!("reserved {}{when}", bytes::text(reserved.bytes))];
    let uncounted = peak.uncounted_bytes();
    if uncounted != 0 && reserved.bytes == 0 {
        parts = vec![format!("held {} that PyTorch does not count", bytes::text(uncounted))];
    } else if uncounted != 0 {
        parts.push(format!("outside of PyTorch's count {}", bytes::text(uncounted)));
    }
    if let Some(card) = card {
        let known = if card.is_context_assumed() { "assumed" } else { "measured on such a card" };
        parts.push(format!("context {} ({known})", bytes::text(card.context_bytes)));
        if peak.nccl_bytes != 0 {
            parts.push(format!("NCCL {} (modelled)", bytes::text(peak.nccl_bytes)));
        }
    }
    let sum = match card {
        Some(_) => format!(" = {}", bytes::text(peak.process_bytes)),
        None => String::new(),
    };
    let text = format!("{}{sum}", parts.join(" + "));
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
    let known = workspaces::known(&run.workspaces);
    text += match known {
        "none" => "",
        "mixed" => " · workspaces partly exact",
        "exact" => " · workspaces exact",
        _ => " · workspaces modelled",
    };
    if matches!(known, "exact" | "mixed") && !run.software.cudnn.is_empty() {
        text += &format!(" (cuDNN {})", run.software.cudnn);
    }
    text
}
