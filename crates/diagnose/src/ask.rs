//! Remedies that people believe in, checked against what was measured.
//!
//! [`ask`] takes a remedy in a user's words (`empty_cache`, `checkpoint encoder.blocks`, `head_dim 32`)
//! and says what it could do to this peak: nothing, the opposite, or at most so many bytes. It tries
//! nothing; what it says follows from who holds the peak.

use anatomy::{Anatomy, bytes};
use recording::{Category, Phase};

use crate::detectors;
use crate::finding::{Finding, Whole};
use crate::label::Label;
use crate::remedies::{Row, row};
use crate::scene::sum;

/// What a remedy could do to the allocated peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it is about something else.
    None,
    /// It makes it larger.
    Worse,
    /// It lowers it by no more than this.
    AtMost(u64),
    /// That does not follow from what was measured.
    Unknown,
}

impl Effect {
    pub fn name(self) -> &'static str {
        match self {
            Effect::None => "none",
            Effect::Worse => "worse",
            Effect::AtMost(_) => "at_most",
            Effect::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// As it was asked.
    pub question: String,
    /// What it could do.
    pub effect: Effect,
    /// How far it changes results; `None` if the question was not understood.
    pub label: Option<Label>,
    /// Why, with numbers of this run.
    pub why: String,
}

/// What is asked about, and of what: `checkpoint` and `encoder.blocks`.
struct Question<'a> {
    anatomy: &'a Anatomy,
    findings: &'a [Finding],
    object: &'a str,
}

type Reply = fn(&Question<'_>) -> (Effect, Label, String);

/// Words that name a remedy, without spaces, dots and underscores; the first that a question contains.
#[rustfmt::skip]
const REMEDIES: &[(&[&str], Reply)] = &[
    (&["emptycache", "gccollect", "clearcache", "clearthecache"], cache),
    (&["headdim"], head_dim),
    (&["expandablesegments", "maxsplitsize", "allocconf", "garbagecollectionthreshold"], allocator),
    (&["numworkers", "pinmemory", "prefetchfactor", "swap"], host),
    (&["checkpoint"], checkpoint),
    (&["accumul"], accumulation),
    (&["8bit"], eight_bits),
    (&["adafactor", "sgd", "lion"], optimizer),
    (&["foreach"], foreach),
    (&["fused"], fused),
    (&["ema", "teacher", "average"], copies),
    (&["freez", "frozen", "requiresgrad"], freezing),
    (&["amp", "autocast", "fp16", "bf16", "half", "mixedprecision"], precision),
    (&["zerograd", "settonone"], zero_grad),
    (&["benchmark", "channelslast"], workspace),
    (&["flash", "sdpa", "xformers", "scaleddotproduct", "attention"], attention),
    (&["batch"], batch),
    (&["resolution", "imagesize", "frames", "tokens", "groups", "points"], inputs),
];

/// Answers a question about the peak of a run.
pub fn ask(anatomy: &Anatomy, findings: &[Finding], question: &str) -> Answer {
    let (remedy, object) =
        question.trim().split_once([' ', '=', ':']).unwrap_or((question.trim(), ""));
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let (whole, first) = (plain(question), plain(remedy));
    let matching = |text: &str| {
        REMEDIES.iter().find(|(words, _)| words.iter().any(|word| text.contains(word)))
    };
    let Some((_, reply)) = matching(&first).or_else(|| matching(&whole)) else {
        return Answer {
            question: question.to_owned(),
            effect: Effect::Unknown,
            label: None,
            why: "no such remedy is known here: `fathom run` with the change made measures it"
                .to_owned(),
        };
    };
    let (effect, label, why) = reply(&Question { anatomy, findings, object: object.trim() });
    Answer { question: question.to_owned(), effect, label: Some(label), why }
}

impl Question<'_> {
    /// Bytes of a category at the allocated peak.
    fn of(&self, category: Category) -> u64 {
        self.anatomy.allocated_peak.categories.of(category)
    }

    fn finding(&self, id: &str) -> Option<&Finding> {
        debug_assert!(detectors::TABLE.iter().any(|row| row.id == id), "{id}");
        self.findings.iter().find(|finding| finding.id == id)
    }

    /// How far a change of the table goes with this model.
    fn label(&self, of: &Row) -> Label {
        of.remedy(self.anatomy).label
    }

    /// The peak in words.
    fn moment(&self) -> String {
        let peak = &self.anatomy.allocated_peak;
        let phase = peak.when.phase.map_or("an unknown phase", |phase| phase.name());
        let module = peak.raised_by.as_ref().map_or("", |origin| origin.module.as_str());
        let of = if module.is_empty() { String::new() } else { format!(", {module}") };
        format!("the peak of {} is in {}{of}", bytes::text(peak.allocated), phase.replace('_', " "))
    }

    /// Things made by the passes, which follow the data.
    fn of_data(&self) -> u64 {
        let kinds =
            [Category::Activations, Category::Temporaries, Category::Inputs, Category::Workspace];
        sum(kinds.into_iter().map(|kind| self.of(kind)))
    }
}

fn cache(question: &Question<'_>) -> (Effect, Label, String) {
    let gap = question.findings.iter().find(|finding| finding.of == Whole::Reserved);
    let more = gap.map_or("nothing worth naming".to_owned(), |gap| bytes::text(gap.bytes));
    let why = format!(
        "it gives back memory that no tensor uses, and PyTorch does that by itself before it runs out. \
         The allocated peak stays {}; {more} is reserved beyond it",
        bytes::text(question.anatomy.allocated_peak.allocated)
    );
    (Effect::None, Label::Exact, why)
}

fn allocator(question: &Question<'_>) -> (Effect, Label, String) {
    let (effect, _, why) = cache(question);
    let why = why.replace(
        "it gives back memory that no tensor uses, and PyTorch does that by itself before it runs out. ",
        "it changes where blocks lie, not how many there are; `fathom replay` tries it. ",
    );
    (effect, question.label(const { row("allocator") }), why)
}

fn host(_: &Question<'_>) -> (Effect, Label, String) {
    (Effect::None, Label::Exact, "that is the host's memory, not the card's".to_owned())
}

fn head_dim(question: &Question<'_>) -> (Effect, Label, String) {
    match question.finding("attention-matrices") {
        Some(finding) => (
            Effect::Worse,
            Label::ChangesFunction,
            format!(
                "the matrices of attention take {} for each head's tokens × tokens: smaller heads are more \
                 heads, and half the width doubles the matrices",
                bytes::text(finding.bytes)
            ),
        ),
        None => (
            Effect::None,
            Label::ChangesFunction,
            "no matrix of attention is written out at the peak, so the width of a head changes nothing there"
                .to_owned(),
        ),
    }
}

fn checkpoint(question: &Question<'_>) -> (Effect, Label, String) {
    let peak = &question.anatomy.allocated_peak;
    let (object, label) = (question.object, question.label(const { row("checkpoint") }));
    let saved = match object {
        "" => question.of(Category::Activations),
        path => match peak.modules.iter().find(|module| module.path == path) {
            Some(module) => module.saved,
            None if question.anatomy.modules.iter().any(|(known, _)| known == path) => 0,
            None => {
                let why = format!("no module `{path}` was seen: `--modules` lists them");
                return (Effect::Unknown, label, why);
            }
        },
    };
    let what = if object.is_empty() { "the model" } else { object };
    if u128::from(saved) * 100 < u128::from(peak.allocated) {
        let why = format!("{}: there {what} keeps {}", question.moment(), bytes::text(saved));
        return (Effect::None, label, why);
    }
    let why = format!(
        "{what} keeps {} at the peak; computing it again brings back what one checkpointed block keeps, all \
         of it if it is one block",
        bytes::text(saved)
    );
    (Effect::AtMost(saved), label, why)
}

fn accumulation(question: &Question<'_>) -> (Effect, Label, String) {
    let gradients =
        question.anatomy.parameters.map_or(0, |counts| counts.trainable.saturating_mul(4));
    let why = format!(
        "with the same batch a step it only adds: from the second batch on gradients ({} in float32) lie under \
         the forward pass. It lowers the peak only through the smaller batch that it allows",
        bytes::text(gradients)
    );
    let is_worse = question.anatomy.allocated_peak.when.phase == Some(Phase::Forward);
    let effect = if is_worse { Effect::Worse } else { Effect::None };
    (effect, question.label(const { row("accumulate") }), why)
}

fn optimizer(question: &Question<'_>) -> (Effect, Label, String) {
    let state = question.of(Category::Optimizer);
    let why = format!("the optimizer's state takes {} at the peak", bytes::text(state));
    (Effect::AtMost(state), question.label(const { row("adafactor") }), why)
}

fn eight_bits(question: &Question<'_>) -> (Effect, Label, String) {
    let (_, _, why) = optimizer(question);
    let most = question.of(Category::Optimizer) / 4 * 3;
    (Effect::AtMost(most), question.label(const { row("8bit-optimizer") }), why)
}

fn fused(question: &Question<'_>) -> (Effect, Label, String) {
    if question.object.contains("attention") {
        return attention(question);
    }
    of_step(question, const { row("fused-optimizer") })
}

fn foreach(question: &Question<'_>) -> (Effect, Label, String) {
    of_step(question, const { row("no-foreach") })
}

/// Changes of how the optimizer steps.
fn of_step(question: &Question<'_>, change: &Row) -> (Effect, Label, String) {
    let (effect, why) = match question.finding("optimizer-temporaries") {
        Some(Finding { bytes, .. }) => {
            let size = bytes::text(*bytes);
            (
                Effect::AtMost(*bytes),
                format!("temporaries of the optimizer's step take {size} at the peak"),
            )
        }
        None => (Effect::None, format!("{}, not in the optimizer's step", question.moment())),
    };
    (effect, question.label(change), why)
}

fn copies(question: &Question<'_>) -> (Effect, Label, String) {
    let copies = question.of(Category::ModelCopies);
    let why = format!("copies of the model take {} at the peak", bytes::text(copies));
    let effect = if copies == 0 { Effect::None } else { Effect::AtMost(copies) };
    (effect, question.label(const { row("ema-cpu") }), why)
}

fn freezing(question: &Question<'_>) -> (Effect, Label, String) {
    let kinds = [Category::Gradients, Category::Optimizer, Category::Activations];
    let most: u64 = sum(kinds.into_iter().map(|kind| question.of(kind)));
    let why = format!(
        "what is frozen has no gradient and no optimizer state, and keeps nothing if nothing before it is \
         trained; gradients, optimizer state and activations are {} here. Weights stay",
        bytes::text(most)
    );
    (Effect::AtMost(most), question.label(const { row("freeze") }), why)
}

fn precision(question: &Question<'_>) -> (Effect, Label, String) {
    let half = question.of(Category::Activations) / 2 + question.of(Category::Temporaries) / 2;
    let casts = question.anatomy.parameters.map_or(0, |counts| counts.total.saturating_mul(2));
    let why = format!(
        "autocast halves at most what float32 activations and temporaries take, less where layers stay in \
         float32, and adds casts of the weights, up to {}",
        bytes::text(casts)
    );
    (Effect::AtMost(half), question.label(const { row("amp-bf16") }), why)
}

fn zero_grad(question: &Question<'_>) -> (Effect, Label, String) {
    let (effect, why) = match question.finding("gradients-in-forward") {
        Some(Finding { bytes, .. }) => {
            let size = bytes::text(*bytes);
            (
                Effect::AtMost(*bytes),
                format!("gradients take {size} under the forward pass at the peak"),
            )
        }
        None => {
            (Effect::None, format!("{}, where gradients are not in the way", question.moment()))
        }
    };
    (effect, question.label(const { row("zero-grad") }), why)
}

fn workspace(question: &Question<'_>) -> (Effect, Label, String) {
    let space = question.of(Category::Workspace);
    let why = format!("libraries' scratch memory takes {} at the peak", bytes::text(space));
    let effect = if space == 0 { Effect::None } else { Effect::AtMost(space) };
    (effect, question.label(const { row("channels-last") }), why)
}

fn attention(question: &Question<'_>) -> (Effect, Label, String) {
    let (effect, why) = match question.finding("attention-matrices") {
        Some(Finding { bytes, .. }) => {
            let size = bytes::text(*bytes);
            (Effect::AtMost(*bytes), format!("the matrices of attention take {size} at the peak"))
        }
        None => {
            (Effect::None, "no matrix of attention worth naming is alive at the peak".to_owned())
        }
    };
    (effect, question.label(const { row("fused-attention") }), why)
}

fn batch(question: &Question<'_>) -> (Effect, Label, String) {
    let data = question.of_data();
    let rest = question.anatomy.allocated_peak.allocated.saturating_sub(data);
    let why = format!(
        "activations, temporaries, inputs and workspaces follow the data: {}. The other {} stay whatever the \
         batch",
        bytes::text(data),
        bytes::text(rest)
    );
    (Effect::AtMost(data), question.label(const { row("batch") }), why)
}

fn inputs(question: &Question<'_>) -> (Effect, Label, String) {
    let (effect, _, why) = batch(question);
    (effect, question.label(const { row("inputs") }), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(question: &str, findings: &[Finding]) -> Answer {
        ask(&Anatomy::default(), findings, question)
    }

    #[test]
    fn clearing_the_cache_never_lowers_the_allocated_peak() {
        for question in ["empty_cache", "torch.cuda.empty_cache()", "gc.collect", "clear the cache"]
        {
            assert_eq!(asked(question, &[]).effect, Effect::None, "{question}");
        }
    }

    #[test]
    fn smaller_heads_double_the_matrices_of_naive_attention() {
        let matrices = Finding { id: "attention-matrices", bytes: 1 << 30, ..Finding::default() };
        assert_eq!(asked("head_dim 32", std::slice::from_ref(&matrices)).effect, Effect::Worse);
        assert_eq!(asked("head_dim=32", &[]).effect, Effect::None);
        assert_eq!(asked("flash attention", &[matrices]).effect, Effect::AtMost(1 << 30));
    }

    /// An answer goes as far as the remedy or the lever of that name.
    #[test]
    fn labels_are_those_of_the_table() {
        let label = |question: &str| asked(question, &[]).label.unwrap();
        assert_eq!(label("checkpoint"), Label::Exact);
        assert_eq!(label("foreach=False"), Label::Exact);
        assert_eq!(label("zero_grad"), Label::Exact);
        assert_eq!(label("fused=True"), Label::NumericallyEqual);
        assert_eq!(label("8bit adam"), Label::ChangesTraining);
        assert_eq!(label("batch 8"), Label::ChangesStatistics);
        assert_eq!(label("resolution 224"), Label::ChangesFunction);
    }

    #[test]
    fn what_is_not_known_is_said() {
        let answer = asked("pray", &[]);
        assert_eq!((answer.effect, answer.label), (Effect::Unknown, None));
        assert_eq!(asked("checkpoint no.such.module", &[]).effect, Effect::Unknown);
    }
}
