//! Texts explained, for people: the verdict, whose the memory was, which advice helps, what it can be.

use anatomy::Alike;
use anstyle::Style;
use oom::reconcile::{Contradiction, Reconciliation};
use oom::{Amount, Cause, Known, Ledger, Memory, Refutation, Row, Solution};

use study::Sought;

use super::{Entry, Texts, sentences, verdict, why};
use crate::bytes;
use crate::explain::operator;
use crate::lines::{LABEL_WIDTH, Lines};
use crate::reader::Reader;
use crate::sections::Section;
use crate::sections::columns::{bar, begin, place, share};

/// Columns of a row's name, at least and at most; of its share, of what stands between two; of its bar.
const NAME: usize = 20;
const LONGEST_NAME: usize = 40;
const SHARE: usize = 5;
const GAP: usize = 2;
const SHORTEST_BAR: u64 = 8;
const BAR: u64 = 32;

/// Columns of an allocation in one row.
const ROW: usize = 70;

/// Entries that are shown beside the main one.
const OTHERS: usize = 6;

/// The whole answer.
pub fn terminal(texts: &Texts, reader: Reader) -> String {
    let mut sections = Vec::new();
    if let Some(entry) = texts.main() {
        sections.push(Section { label: "asked", rows: sentences(asked(entry)) });
        sections.push(Section { label: "why", rows: sentences(why::why(entry)) });
        sections.push(Section {
            label: whose(entry.account.memory),
            rows: ledger(&entry.balance.ledger, reader),
        });
        sections.push(Section { label: "", rows: processes(texts) });
        let advice = entry.advice.iter().map(|advice| sentences::advice(advice, &entry.account));
        sections.push(Section { label: "advice", rows: sentences(advice) });
        sections.push(Section { label: "known", rows: sentences(sentences::facts(entry)) });
    }
    sections.extend(texts.sought.as_ref().map(sought));
    sections.extend(texts.solution.as_ref().map(shapes));
    let tried = texts.main().and_then(|entry| entry.account.tried());
    let claims = texts.claims.iter().map(|claim| claimed(claim, tried));
    sections.push(Section { label: "claim", rows: sentences(claims) });
    if let Some(reconciliation) = &texts.reconciliation {
        sections.push(Section { label: "figures", rows: ledger(&reconciliation.ledger, reader) });
        sections.push(Section { label: "", rows: sentences(notes(reconciliation, texts)) });
    }
    sections.push(Section { label: "also", rows: others(texts) });
    sections.push(Section {
        label: "next",
        rows: texts.next.iter().map(ToString::to_string).collect(),
    });
    let mut lines = Lines::new(reader);
    let (style, word, sentence) = heading(texts, reader);
    lines.answer(style, word, &sentence);
    for Section { label, rows } in sections {
        lines.section(reader.label, label, rows);
    }
    lines.text()
}

fn heading(texts: &Texts, reader: Reader) -> (Style, &'static str, String) {
    let Some(entry) = texts.main() else {
        return match texts.reconciliation.as_ref().is_some_and(|all| !all.contradictions.is_empty())
        {
            true => (reader.bad, "CONTRADICTION", "these figures cannot all be right".to_owned()),
            false => (reader.good, "EXPLAINED", "the figures, line by line".to_owned()),
        };
    };
    let (style, word) = match entry.balance.cause {
        _ if !entry.account.kind.is_refusal() => (reader.good, "IN USE"),
        Cause::NotMemory => (reader.bad, "NOT MEMORY"),
        Cause::Warning => (reader.good, "A WARNING"),
        _ if !entry.account.sure => (reader.bad, "PERHAPS OUT OF MEMORY"),
        _ => (reader.bad, "OUT OF MEMORY"),
    };
    let refused = texts.entries.iter().filter(|entry| entry.account.kind.is_refusal());
    let first = match (refused.count(), sentences::place(&entry.account)) {
        (0 | 1, _) if entry.account.rank.is_none() => String::new(),
        (0 | 1, Some(place)) => format!("{place}: "),
        (many, Some(place)) => format!("{place}, the first of {many}: "),
        (many, None) => format!("the first of {many}: "),
    };
    (style, word, format!("{first}{}", verdict::verdict(entry)))
}

/// The user's line that asked, and the library's line below it.
fn asked(entry: &Entry) -> Vec<String> {
    let Some(traceback) = &entry.account.traceback else { return Vec::new() };
    let user = traceback.user().map(sentences::frame);
    let library = traceback.library().map(|frame| match user.is_some() {
        true => format!("through {}", sentences::frame(frame)),
        false => sentences::frame(frame),
    });
    user.into_iter().chain(library).collect()
}

fn sentences(all: impl IntoIterator<Item = String>) -> Vec<String> {
    all.into_iter().collect()
}

/// What the rows below it sum to.
fn whose(memory: Memory) -> &'static str {
    match memory {
        Memory::Host | Memory::Shared => "host",
        _ => "card",
    }
}

/// A total and its parts, each with its share; a part whose total is not known has none.
fn ledger(rows: &Ledger, reader: Reader) -> Vec<String> {
    let columns = Columns::of(rows, reader);
    let mut total = None;
    let mut lines = Vec::new();
    for row in rows {
        if row.depth == 0 {
            total = Some(row.amount.middle()).filter(|bytes| *bytes != 0);
            lines.push(headed(row));
        } else {
            lines.push(columns.part(row, total));
        }
    }
    lines
}

/// Nothing, if it was measured; how it is known, if not.
fn known(row: &Row) -> String {
    if row.known == Known::Measured { String::new() } else { format!("  {}", row.known.name()) }
}

fn headed(row: &Row) -> String {
    let size = sentences::amount(row.amount);
    match row.name {
        "card" => format!("{size}{}", known(row)),
        name => format!("{} {size}{}", sentences::row(name), known(row)),
    }
}

/// How wide the columns of a ledger are: the bars take what names and sizes leave of a line.
struct Columns {
    name: usize,
    size: usize,
    share: usize,
    bar: u64,
}

impl Columns {
    fn of(rows: &Ledger, reader: Reader) -> Columns {
        let widest = |width: fn(&Row) -> usize| rows.iter().map(width).max().unwrap_or(0);
        let name = widest(|row| named(row).chars().count()).clamp(NAME, LONGEST_NAME) + 2;
        let size = widest(|row| sentences::amount(row.amount).chars().count());
        let said = widest(|row| known(row).chars().count());
        let left = reader.columns.saturating_sub(LABEL_WIDTH + name + size + said);
        let share = if GAP + SHARE <= left { SHARE } else { 0 };
        let bar = left.saturating_sub(GAP + SHARE + GAP) as u64;
        Columns { name, size, share, bar: if bar < SHORTEST_BAR { 0 } else { bar.min(BAR) } }
    }

    fn part(&self, row: &Row, total: Option<u64>) -> String {
        let total = total.filter(|_| self.share != 0);
        let share = total.map_or(String::new(), |total| share(row.amount.middle(), total));
        let bar = match total.filter(|_| row.depth == 1 && self.bar != 0) {
            Some(total) => bar(row.amount.middle(), total, self.bar),
            None => String::new(),
        };
        let (name, size) = (begin(&named(row), self.name), sentences::amount(row.amount));
        let (wide, narrow) = (self.size, self.share);
        let line = format!("{name}{size:>wide$}  {share:>narrow$}  {bar}");
        format!("{}{}", line.trim_end(), known(row))
    }
}

fn named(row: &Row) -> String {
    format!("{}{}", "  ".repeat(row.depth.into()), sentences::row(row.name))
}

/// Processes that the text lists.
fn processes(texts: &Texts) -> Vec<String> {
    let Some(entry) = texts.main() else { return Vec::new() };
    let listed = entry.account.processes.iter().enumerate().map(|(index, process)| {
        let is_own = entry.balance.this_process == Some(index);
        let own = if is_own { ": this one, seen from outside its container" } else { "" };
        let name =
            if process.name.is_empty() { String::new() } else { format!(" {}", process.name) };
        format!("  process {}{name} has {}{own}", process.pid, sentences::amount(process.memory))
    });
    listed.collect()
}

fn shapes(solution: &Solution) -> Section {
    let is_guess = solution.guessed && !solution.candidates.is_empty();
    let label = if is_guess { "guess" } else { "shape" };
    let mut rows: Vec<String> = Vec::new();
    for candidate in &solution.candidates {
        let size = bytes::text(candidate.bytes);
        let text = format!(
            "{} {} = {size}: {}",
            candidate.shape,
            candidate.dtype.name,
            candidate.expression()
        );
        rows.push(text);
    }
    let combinations = solution.combinations;
    let missed = match combinations {
        0 => String::new(),
        _ => format!("none of {combinations} combinations of the dimensions has this size"),
    };
    match () {
        () if solution.guessed && is_guess => {
            rows.push(
                "usual shapes of this size, guessed: `--dims batch=4,tokens=1024` finds yours"
                    .to_owned(),
            );
        }
        () if solution.guessed => rows.push("no usual shape has this size".to_owned()),
        () if solution.solved && !solution.candidates.is_empty() => {
            rows.extend(Some(missed).filter(|missed| !missed.is_empty()));
            rows.push(
                "the last size was not given: it is the one that makes the bytes right".to_owned(),
            );
        }
        () if solution.solved => {
            rows.push(if missed.is_empty() {
                "no size makes the bytes right".to_owned()
            } else {
                missed
            });
        }
        () if combinations == 0 => {}
        () => {
            let end = if solution.complete { "" } else { "; not all were tried" };
            let fitting = solution.fitting;
            rows.push(format!(
                "{fitting} of {combinations} combinations times five dtypes have this size{end}"
            ));
        }
    }
    Section { label, rows }
}

fn claimed(claim: &Refutation, tried: Option<Amount>) -> String {
    let tried = tried.map_or("what was tried".to_owned(), sentences::amount);
    if let Some(dtype) = claim.fits {
        return format!("{} is {tried} in {}", claim.shape, dtype.name);
    }
    let sizes: Vec<String> = claim
        .bytes
        .iter()
        .map(|(dtype, all)| {
            format!("{} {}", dtype.name, all.map_or("too much".to_owned(), bytes::text))
        })
        .collect();
    let multiple = claim
        .multiple
        .map(|(times, dtype)| format!("; {tried} would be {times} times its {}", dtype.name));
    let multiple = multiple.unwrap_or_default();
    format!("{} is not {tried} in any dtype: {}{multiple}", claim.shape, sizes.join(", "))
}

fn notes(reconciliation: &Reconciliation, texts: &Texts) -> Vec<String> {
    let alone = reconciliation.is_smi_alone();
    let contradiction = |wrong: &Contradiction| {
        let (larger, smaller) = (sentences::row(wrong.larger), sentences::row(wrong.smaller));
        let by = sentences::amount(wrong.by);
        format!("contradiction: {larger} exceeds {smaller} by {by}, and is a part of it")
    };
    let mut notes: Vec<String> = reconciliation.contradictions.iter().map(contradiction).collect();
    if alone {
        notes.push(
            "nvidia-smi counts all processes, their contexts and what PyTorch keeps free for itself: how much of \
             it tensors take, it does not know. `torch.cuda.max_memory_allocated()` and `max_memory_reserved()` of \
             the process do"
                .to_owned(),
        );
    }
    if let Some(card) = &texts.card {
        notes.push(format!(
            "context: what a process takes from `{card}` before its first tensor, in the catalogue; it \
             grows with the libraries that are loaded"
        ));
    }
    notes
}

/// The other messages and tables, briefly.
fn others(texts: &Texts) -> Vec<String> {
    let all = texts.entries.len().saturating_sub(1);
    let times = texts.main().map_or(1, |entry| entry.account.times);
    let mut rows: Vec<String> = Vec::new();
    if 1 < times {
        rows.push(format!("the same message {times} times"));
    }
    let is_one_file = texts.entries.windows(2).all(|pair| pair[0].file == pair[1].file);
    for entry in texts.entries.iter().skip(1).take(OTHERS) {
        let file = if is_one_file { "line ".to_owned() } else { format!("{}:", entry.file) };
        let rank = entry.account.rank.and_then(|_| sentences::place(&entry.account));
        let rank = rank.map_or(String::new(), |rank| format!("{rank}: "));
        let text = format!("{file}{}: {rank}{}", entry.account.line, verdict::verdict(entry));
        rows.push(text);
    }
    if OTHERS < all {
        rows.push(format!("… {} more", all - OTHERS));
    }
    rows
}

/// What a run on the phantom says about the size that was tried.
fn sought(sought: &Sought) -> Section {
    let on = match sought.memory_bytes {
        Some(bytes) => format!("a phantom of {}", bytes::text(bytes)),
        None => "a phantom with unlimited memory".to_owned(),
    };
    let mut rows = Vec::new();
    if let Some(refused) = &sought.refused {
        let place = place(&refused.origin.file, refused.origin.line);
        let size = bytes::text(refused.bytes);
        rows.push(format!(
            "on {on} the same request fails: {size}{} at {place}",
            operator(&refused.origin)
        ));
    }
    match sought.matches.is_empty() {
        false => {
            let what = if sought.by_segment { "that want such a segment" } else { "of this size" };
            rows.push(format!("allocations {what} on {on}, {} steps:", sought.steps));
            rows.extend(sought.matches.iter().flat_map(allocation));
        }
        true if sought.refused.is_none() => {
            rows.push(format!(
                "no allocation on {on} has this size in {} steps; nearest:",
                sought.steps
            ));
            rows.extend(sought.nearest.iter().flat_map(allocation));
        }
        true => {}
    }
    Section { label: "found", rows }
}

/// `12 × 64.0 MiB  float32[4, 16, 512, 512]  by softmax in layers.{0-11}.attn at model.py:40`, in two rows
/// if it is long.
fn allocation(alike: &Alike) -> Vec<String> {
    let tensor = &alike.first;
    let times = if alike.count == 1 { String::new() } else { format!("{} × ", alike.count) };
    let shape = match tensor.dtype.is_empty() {
        true => String::new(),
        false => format!("  {}{}", tensor.dtype, oom::Shape(tensor.shape.clone())),
    };
    let place = place(&tensor.origin.file, tensor.origin.line);
    let at = if place.is_empty() { place } else { format!(" at {place}") };
    let what = format!("  {times}{}{shape}", bytes::text(tensor.bytes));
    let who = format!("{}{at}", operator(&tensor.origin));
    match what.chars().count() + 1 + who.chars().count() <= ROW {
        true => vec![format!("{what} {who}")],
        false => vec![what, format!("     {who}")],
    }
}
