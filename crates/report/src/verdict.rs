//! The first line: the answer to "will it fit", with its margin.

use anstyle::Style;
use gpus::Card;
use study::{Judgement, NeedKnown, RestsOn, Run, Unfinished, Verdict, memory_text};

use crate::assumed::condition;
use crate::baseline;
use crate::bytes;
use crate::lines::{Lines, visible};
use crate::moment::when;
use crate::reader::Reader;
use crate::sections::columns::count;
use crate::whole::{looked_at, when_short};

/// The verdict as one line of plain text: `FITS  …`.
pub fn headline(run: &Run) -> String {
    let (_, word, sentence) = whole_answer(run, Reader::plain(0));
    format!("{word}  {}", visible(&sentence)).trim_end().to_owned()
}

/// The same for a reader, however wide the terminal is.
pub fn answer(run: &Run, reader: Reader) -> String {
    let mut lines = Lines::new(reader);
    let (style, word, sentence) = whole_answer(run, reader);
    lines.styled(style, word, &format!("  {sentence}"));
    lines.text()
}

/// The verdict with what else the run takes, which below a verdict has a row of its own.
fn whole_answer(run: &Run, reader: Reader) -> (Style, &'static str, String) {
    let (style, word, sentence) = verdict(run, reader);
    let need = run.needed().filter(|_| run.verdict == Verdict::Fits && run.decisions.is_empty());
    let cached = need.filter(|need| takes_more(run, need.bytes)).map(|_| {
        let taken = run.peak.as_ref().map_or(0, |peak| peak.device_bytes);
        format!("; takes up to {} as cache if there is room", bytes::text(taken))
    });
    (style, word, sentence + &cached.unwrap_or_default())
}

/// Its style, its word and a sentence, with what it depends on.
pub(crate) fn verdict(run: &Run, reader: Reader) -> (Style, &'static str, String) {
    let (style, word) = word(run.judgement(), reader);
    let mut sentence = sentence(run);
    // One that does not fit would not run either: the warning says why.
    if run.has_kernels == Some(false) && run.verdict != Verdict::DoesNotFit {
        sentence += "; this torch has no kernels for it";
    }
    let Some((first, places)) = run.decisions.first().zip(run.unknown_places()) else {
        return (style, word, sentence);
    };
    let condition = condition(Some(&places));
    let sentence = match run.verdict {
        Verdict::Fits => fits_if(run, (&places, &condition), sentence),
        Verdict::ScriptFailed => {
            format!("after {first} read values that are not known: {sentence}")
        }
        _ => format!("{sentence}; if {condition}"),
    };
    (style, word, sentence)
}

pub(crate) fn word(judgement: Judgement, reader: Reader) -> (Style, &'static str) {
    match judgement {
        Judgement::Fits => (reader.good, "FITS"),
        Judgement::Tight => (reader.warn, "TIGHT"),
        Judgement::Needs => (reader.good, "NEEDS"),
        Judgement::Depends => (reader.warn, "DEPENDS"),
        Judgement::NotMeasured => (reader.warn, "NOT MEASURED"),
        Judgement::DoesNotFit => (reader.bad, "DOES NOT FIT"),
        Judgement::Grew => (reader.bad, "GREW"),
        Judgement::ScriptFailed => (reader.bad, "SCRIPT FAILED"),
        Judgement::Interrupted => (reader.bad, "INTERRUPTED"),
        Judgement::TimedOut => (reader.bad, "TIMED OUT"),
    }
}

/// A run that went through with what was assumed: the most that can be given says more, if it was tried.
fn fits_if(run: &Run, (places, condition): (&str, &str), sentence: String) -> String {
    // What each run took: that of the other one was not searched for what it needs.
    let least = run.peak.as_ref().map_or(0, |peak| peak.device_bytes);
    // Without a GPU there is nothing that it could fit.
    let fits_if = if run.card.is_some() { "fits if" } else { "if" };
    match run.rests_on() {
        RestsOn::Nothing => sentence,
        RestsOn::Range(most) if most == least => {
            format!("{sentence}, independent of what {places} gives")
        }
        RestsOn::Range(most) => {
            let [low, high] = [least.min(most), least.max(most)].map(bytes::text);
            let range = format!("between {low} and {high}");
            match &run.card {
                None => format!("{range}, by what {places} gives"),
                Some(card) => {
                    let (name, memory) = on(card);
                    format!("{name}: needs {range} of {memory}, by what {places} gives")
                }
            }
        }
        RestsOn::Little => {
            format!("{fits_if} {places} gives little enough, and not if it gives more: {sentence}")
        }
        RestsOn::Assumption => format!("{fits_if} {condition}: {sentence}"),
    }
}

/// What is said without a thought for values that are not known.
fn sentence(run: &Run) -> String {
    match run.verdict {
        Verdict::ScriptFailed => run.failure.clone().unwrap_or_default(),
        Verdict::DoesNotFit => does_not_fit(run),
        Verdict::Interrupted | Verdict::TimedOut => unfinished(run),
        Verdict::Grew => run.against.as_ref().map(baseline::grew).unwrap_or_default(),
        Verdict::Fits => went_through(run),
    }
}

/// `RTX 3060 12 GB: needs 11.40 ± 0.20 of 11.76 GiB (0.36 GiB free)`.
fn went_through(run: &Run) -> String {
    let Some(need) = run.needed() else {
        return "the script did not use the GPU".to_owned();
    };
    let needs = bytes::with_error(need.bytes, run.error_bytes());
    let answer = match (&run.card, run.budget_bytes) {
        (Some(card), _) => {
            let (name, _) = on(card);
            let memory = bytes::text(card.memory_bytes);
            let free = bytes::text(card.available_bytes().saturating_sub(need.bytes));
            let others = match card.used_bytes {
                0 => String::new(),
                used => format!(", {} in use by others", bytes::text(used)),
            };
            format!("{name}: needs {} of {memory} ({free} free{others})", short(&needs, &memory))
        }
        (None, Some(budget)) => format!("needs {needs}, the budget is {}", bytes::text(budget)),
        (None, None) => needs,
    };
    match later(run) {
        later if later.is_empty() => answer,
        later => format!("{answer}; {later}"),
    }
}

/// What depends on steps and batches that were not run.
pub(crate) fn later(run: &Run) -> String {
    let parts = [unreached(run), vary(run), unseen(run), grows(run)];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("; ")
}

/// Evaluations that nothing has run.
fn unreached(run: &Run) -> String {
    let places = run.whole.as_ref().map_or_else(Vec::new, |whole| whole.unreached().to_vec());
    let places = study::places(places).unwrap_or_default();
    if places.is_empty() { places } else { format!("the evaluation at {places} was not reached") }
}

/// Batches of other sizes than those that were looked at.
fn vary(run: &Run) -> String {
    let batches = run.whole.iter().flat_map(|whole| &whole.batches);
    let mut parts = batches.filter_map(|each| match &each.varies {
        Some(varies) if !varies.was_run && each.count.is_some() => {
            Some("batches vary in size, the largest was not run".to_owned())
        }
        Some(_) if !each.are_all_looked_at() => {
            Some(format!("batches vary in size, {} looked at", looked_at(each)))
        }
        _ => None,
    });
    parts.next().unwrap_or_default()
}

/// What every step leaves behind, and how long there is room for it.
fn grows(run: &Run) -> String {
    let more = bytes::text(run.grows_bytes());
    match run.full_after() {
        Some(steps) => {
            format!("every step keeps {more} more: full after {} steps", count(steps))
        }
        None if run.card.is_none() && run.budget_bytes.is_none() && run.grows_much() => {
            format!("every step keeps {more} more")
        }
        None => String::new(),
    }
}

/// What an evaluation would take besides, of which only a few batches were run.
fn unseen(run: &Run) -> String {
    match run.unseen_bytes() {
        0 => String::new(),
        more => format!(
            "an evaluation of all its batches would take at least {} more",
            bytes::text(more)
        ),
    }
}

/// `11.40 ± 0.20` where `11.76 GiB` follows: the unit once.
fn short<'a>(needs: &'a str, memory: &str) -> &'a str {
    let unit = [" GiB", " MiB"].into_iter().find(|unit| memory.ends_with(unit));
    unit.and_then(|unit| needs.strip_suffix(unit)).unwrap_or(needs)
}

/// Whether what PyTorch keeps beyond the need is worth a word.
pub(crate) fn takes_more(run: &Run, need: u64) -> bool {
    need + need / 10 < run.peak.as_ref().map_or(0, |peak| peak.device_bytes)
}

fn on(card: &Card) -> (&'static str, String) {
    let name = if card.is_nameless() { "a GPU" } else { card.shown_title() };
    (name, memory_text(card.memory_bytes, card.used_bytes))
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

/// How a moment of it is named.
pub(crate) fn when_of(run: &Run) -> fn(&str, u64) -> String {
    let is_short = run.whole.as_ref().is_some_and(|whole| whole.is_reported);
    if is_short { when_short } else { when }
}

fn does_not_fit(run: &Run) -> String {
    if let (None, Some(budget), Some(need)) = (&run.out_of_memory, run.budget_bytes, run.needed()) {
        let needs = bytes::with_error(need.bytes, run.error_bytes());
        return format!("needs {needs}, over the budget of {}", bytes::text(budget));
    }
    let card = run.card.as_ref().map(on);
    let ran_out = run
        .out_of_memory
        .as_ref()
        .map_or(String::new(), |refusal| when_of(run)(&refusal.phase, refusal.step));
    let need = run.beyond.as_ref().and_then(|beyond| beyond.need);
    match (need.zip(run.card.as_ref()), card) {
        // It takes by what there is, or was unlucky with how its memory lay: more room is not what it needs.
        (Some((need, of)), Some((name, memory))) if need.bytes <= of.available_bytes() => {
            let smaller = match need.known {
                NeedKnown::Run | NeedKnown::Enough => {
                    format!("; on a GPU of {} it goes through", bytes::text(need.bytes))
                }
                NeedKnown::Replay | NeedKnown::Taken => String::new(),
            };
            format!("{name} with {memory} ran out of memory{ran_out}{smaller}")
        }
        (Some((need, of)), Some((name, memory))) => {
            let needs = bytes::with_error(need.bytes, run.error_of(need.bytes));
            let more = bytes::text(need.bytes.saturating_sub(of.available_bytes()));
            format!(
                "{name}: needs {needs}, {more} more than its {memory}; ran out of memory{ran_out}"
            )
        }
        (_, Some((name, memory))) => format!("{name} with {memory} ran out of memory{ran_out}"),
        (_, None) => format!("the card ran out of memory{ran_out}"),
    }
}
