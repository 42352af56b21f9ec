//! The first line: the answer to "will it fit", with its margin.

use anstyle::Style;
use gpus::Card;
use study::{Judgement, RestsOn, Run, Unfinished, Verdict, memory_text};

use crate::assumed::condition;
use crate::baseline;
use crate::bytes;
use crate::lines::visible;
use crate::terminal::{Palette, when};
use crate::whole::when_short;

/// The verdict as one line of plain text: `FITS  …`.
pub fn headline(run: &Run) -> String {
    let (_, word, sentence) = verdict(run, Palette::plain());
    format!("{word}  {}", visible(&sentence)).trim_end().to_owned()
}

/// Its style, its word and a sentence, with what it depends on.
pub(crate) fn verdict(run: &Run, palette: Palette) -> (Style, &'static str, String) {
    let (style, word) = word(run.judgement(), palette);
    let mut sentence = sentence(run);
    if run.has_kernels == Some(false) {
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

pub(crate) fn word(judgement: Judgement, palette: Palette) -> (Style, &'static str) {
    match judgement {
        Judgement::Fits => (palette.good, "FITS"),
        Judgement::Tight => (palette.warn, "TIGHT"),
        Judgement::Needs => (palette.good, "NEEDS"),
        Judgement::Depends => (palette.warn, "DEPENDS"),
        Judgement::NotMeasured => (palette.warn, "NOT MEASURED"),
        Judgement::DoesNotFit => (palette.bad, "DOES NOT FIT"),
        Judgement::Grew => (palette.bad, "GREW"),
        Judgement::ScriptFailed => (palette.bad, "SCRIPT FAILED"),
        Judgement::Interrupted => (palette.bad, "INTERRUPTED"),
        Judgement::TimedOut => (palette.bad, "TIMED OUT"),
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
        RestsOn::Range(most) if most == least => format!("{sentence}, whatever {places} gives"),
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
            format!("{fits_if} {places} gives little enough, and not if it gives all: {sentence}")
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
    answer + &cached(run, need.bytes) + &unseen(run)
}

/// What an evaluation would take besides, of which only a few batches were run.
fn unseen(run: &Run) -> String {
    match run.unseen_bytes() {
        0 => String::new(),
        more => format!("; an evaluation of all its batches would take {} more", bytes::text(more)),
    }
}

/// `11.40 ± 0.20` where `11.76 GiB` follows: the unit once.
fn short<'a>(needs: &'a str, memory: &str) -> &'a str {
    let unit = [" GiB", " MiB"].into_iter().find(|unit| memory.ends_with(unit));
    unit.and_then(|unit| needs.strip_suffix(unit)).unwrap_or(needs)
}

/// What PyTorch keeps beyond the need, if it is worth a word.
fn cached(run: &Run, need: u64) -> String {
    let taken = run.peak.as_ref().map_or(0, |peak| peak.device_bytes);
    match need + need / 10 < taken {
        true => format!("; takes up to {} as cache if there is room", bytes::text(taken)),
        false => String::new(),
    }
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
fn when_of(run: &Run) -> fn(&str, u64) -> String {
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
