//! The report as text: the verdict first, then what it rests on.

use anatomy::Anatomy;
use anstyle::{AnsiColor, Style};

use crate::baseline;
use crate::bytes;
use crate::explain::{by, cause, operator};
use crate::lines::Lines;
use crate::processes;
use crate::ranks;
use crate::sections::columns::sentence;
use crate::sections::{COLUMNS, SCREEN, Section, Unfold, causes, sections};
use crate::verdict::verdict;
use crate::whole;
use crate::why::why;
use crate::workspaces;
use gpus::Card;
use study::{Beyond, Deferred, Fit, FitsOn, OutOfMemory, Peak, Run, Verdict};

/// Styles; plain text is readable without them.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    pub(crate) good: Style,
    pub(crate) bad: Style,
    pub(crate) warn: Style,
    pub(crate) label: Style,
}

impl Palette {
    /// For a terminal.
    pub fn coloured() -> Palette {
        Palette {
            good: AnsiColor::Green.on_default().bold(),
            bad: AnsiColor::Red.on_default().bold(),
            warn: AnsiColor::Yellow.on_default().bold(),
            label: Style::new().dimmed(),
        }
    }

    /// For files and pipes.
    pub fn plain() -> Palette {
        let plain = Style::new();
        Palette { good: plain, bad: plain, warn: plain, label: plain }
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
    needs(run, &mut line);
    let texts = whole::rows(run);
    let rows_of_whole = texts.iter().flat_map(|text| sentence(text, COLUMNS));
    let labels = std::iter::once("whole").chain(std::iter::repeat(""));
    labels.zip(rows_of_whole).for_each(|(label, row)| line(label, &row));
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
    end.extend(run.next.iter().map(|command| ("next", command.clone())));
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

/// What it needs; if it does not fit, what it would need.
fn needs(run: &Run, line: &mut dyn FnMut(&'static str, &str)) {
    if let Some(need) = run.needed().filter(|_| run.verdict == Verdict::Fits) {
        let smallest = bytes::text_up(need.bytes);
        let known = need.known;
        line(
            "need",
            &format!("smallest GPU that fits: {smallest} with the CUDA context ({known})"),
        );
    }
    if let Some(beyond) = &run.beyond {
        let labels = std::iter::once("no limit").chain(std::iter::repeat(""));
        let rows = sentence(&beyond_sentence(beyond), COLUMNS);
        labels.zip(rows).for_each(|(label, row)| line(label, &row));
    }
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
    let run = match cards.iter().filter(|card| card.known == Fit::Run).count() {
        0 => String::new(),
        1 => "; the script was run on the first".to_owned(),
        count => format!("; the script was run on {count} of them"),
    };
    names.join(", ") + &more + &replayed + &run
}

/// Who held the memory where it ran out, else at the peak.
fn holders(run: &Run, unfold: &Unfold, room: usize) -> Vec<Section> {
    let Some(anatomy) = run.anatomy() else { return Vec::new() };
    let refusal = anatomy.out_of_memory.as_ref().filter(|_| run.out_of_memory.is_some());
    let at = refusal.map_or(&anatomy.allocated_peak, |refusal| &refusal.at);
    sections(anatomy, at, (run.findings(), run.suspects()), unfold, room)
}

/// ` in backward, step 2`; nothing where the phase is not known.
pub(crate) fn when(phase: &str, step: u64) -> String {
    match phase {
        "" => String::new(),
        "construction" => " in construction, before the first step".to_owned(),
        _ => format!(" in {phase}, step {step}"),
    }
}

/// What the run would have held on a GPU with memory enough.
fn beyond_sentence(beyond: &Beyond) -> String {
    let Beyond { need, peak, raised_by, cause, failure } = beyond;
    if need.is_none() {
        let why = failure.as_deref().unwrap_or("it did not come to its end");
        return format!("run again without a limit: {why}; what it needs is not known");
    }
    let peak_bytes = bytes::text(peak.bytes);
    let largest = cause.as_ref().map_or(String::new(), |(title, bytes)| {
        format!("; largest cause: {title}, {}", bytes::text(*bytes))
    });
    let when = when(&peak.phase, peak.step);
    let raised = raised_by.as_ref().map(by).filter(|by| !by.is_empty());
    let raised = raised.map_or(String::new(), |by| format!(", raised{by}"));
    format!("run again without a limit: {peak_bytes} allocated at its peak{when}{raised}{largest}")
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
    let is_short = run.whole.as_ref().is_some_and(|whole| whole.is_reported);
    let kind = if is_short { " of the shortened training" } else { "" };
    let mut text = format!("{steps}{kind}{end} · {:.1} s", run.wall_seconds);
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
