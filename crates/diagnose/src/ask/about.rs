//! Questions that ask for no change: where the memory goes, why, and since when.

use std::collections::BTreeMap;

use anatomy::bytes;
use recording::Category;

use super::{Question, Reply, Try};
use crate::finding::Finding;
use crate::scene::sum;

/// Rows of an answer, at most.
const ROWS: usize = 4;

pub(super) fn whereabouts(question: &Question<'_>) -> Reply {
    let categories = &question.anatomy().allocated_peak.categories;
    let mut held: Vec<(&str, u64)> =
        Category::ALL.iter().map(|kind| (kind.name(), categories.of(*kind))).collect();
    held.sort_by_key(|row| std::cmp::Reverse(row.1));
    let named = held.iter().take(ROWS).filter(|row| row.1 != 0);
    let named: Vec<String> = named
        .map(|(name, held)| format!("{} {}", name.replace('_', " "), question.share(*held)))
        .collect();
    Reply::fact(format!(
        "{}: {}. Causes: {}",
        question.moment(),
        named.join("; "),
        causes(question)
    ))
}

/// The largest causes in a row.
fn causes(question: &Question<'_>) -> String {
    let counted = question.about.findings.iter().filter(|finding| finding.counted);
    let rows: Vec<String> = counted
        .take(ROWS)
        .map(|finding| format!("{} {}", finding.title, bytes::text(finding.bytes)))
        .collect();
    if rows.is_empty() { "none that has a name".to_owned() } else { rows.join("; ") }
}

pub(super) fn why(question: &Question<'_>) -> Reply {
    match question.about.findings.iter().find(|finding| finding.counted) {
        Some(finding) => {
            let Finding { title, explanation, scales, .. } = finding;
            let share = question.share(finding.bytes);
            Reply::fact(format!(
                "the largest cause is: {title}, {share}. {explanation} It grows with {scales}"
            ))
        }
        None => {
            Reply::unknown("no cause has a name here: `fathom run` records who holds the memory")
        }
    }
}

pub(super) fn leak(question: &Question<'_>) -> Reply {
    let growth = &question.anatomy().growth;
    if let Some(finding) = question.finding("growth") {
        return Reply::fact(format!("yes: {}. {}", finding.title, finding.explanation));
    }
    match growth.steps {
        0 | 1 => Reply::unknown(
            "too few steps were seen to tell: `fathom run --steps 8` shows more of them",
        ),
        steps => Reply::fact(format!(
            "no: compared at the same point of {steps} steps, nothing worth naming becomes more ({} a step)",
            bytes::text(growth.bytes_per_step)
        )),
    }
}

pub(super) fn fragmentation(question: &Question<'_>) -> Reply {
    match question.finding("fragmentation") {
        Some(finding) => Reply::fact(format!(
            "{}: {} are reserved beyond what tensors take at the allocated peak of {}. {}",
            if finding.bytes < question.allocated() / 4 {
                "a part of it, not the cause"
            } else {
                "much of it is"
            },
            bytes::text(finding.bytes),
            bytes::text(question.allocated()),
            finding.explanation
        )),
        None => {
            let reserved = question.anatomy().reserved_peak.reserved;
            let beyond = reserved.saturating_sub(question.allocated());
            Reply::fact(format!(
                "no: tensors take {} and PyTorch reserves {} beyond that",
                bytes::text(question.allocated()),
                bytes::text(beyond)
            ))
        }
    }
}

pub(super) fn line(question: &Question<'_>) -> Reply {
    let lines = question.anatomy().allocated_peak.lines.iter().filter(|line| !line.file.is_empty());
    let rows: Vec<String> = lines
        .take(ROWS)
        .map(|line| {
            format!(
                "{}:{} {}{}",
                line.file,
                line.line,
                question.share(line.bytes),
                source(&line.source)
            )
        })
        .collect();
    match rows.is_empty() {
        true => Reply::unknown("no line of the script is known here: `fathom run` records them"),
        false => Reply::fact(format!(
            "lines that allocated what is alive at the peak: {}",
            rows.join("; ")
        )),
    }
}

fn source(text: &str) -> String {
    let text: String = text.trim().chars().take(60).collect();
    if text.is_empty() { text } else { format!(" (`{text}`)") }
}

pub(super) fn layer(question: &Question<'_>) -> Reply {
    // Layers that are alike, block by block, are one row.
    let mut alike: BTreeMap<(String, &str), (u64, u64)> = BTreeMap::new();
    for module in question.anatomy().allocated_peak.modules.iter().filter(|it| !it.path.is_empty())
    {
        let row = alike.entry((pattern(&module.path), &module.class)).or_default();
        *row = (row.0.saturating_add(module.own), row.1 + 1);
    }
    let mut rows: Vec<_> = alike.into_iter().filter(|(_, (own, _))| *own != 0).collect();
    rows.sort_by_key(|(_, (own, _))| std::cmp::Reverse(*own));
    let named = rows.iter().take(ROWS).map(|((path, class), (own, count))| {
        let times = if *count == 1 { String::new() } else { format!(" ×{count}") };
        format!("{path}{times} ({class}) {}", question.share(*own))
    });
    let named: Vec<String> = named.collect();
    match named.is_empty() {
        true => Reply::unknown("no module is known here: `fathom run` records them"),
        false => Reply::fact(format!(
            "modules by what is their own at the peak: {}; `--modules` has all",
            named.join("; ")
        )),
    }
}

/// `blocks.*.mlp` of `blocks.3.mlp`.
fn pattern(path: &str) -> String {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> =
        path.split('.').map(|part| if is_number(part) { "*" } else { part }).collect();
    parts.join(".")
}

pub(super) fn tensor(question: &Question<'_>) -> Reply {
    match question.anatomy().allocated_peak.tensors.first() {
        Some(tensor) => {
            let shape = crate::phrases::tensor(&tensor.dtype, &tensor.shape);
            let place = crate::phrases::place((&tensor.origin.file, tensor.origin.line));
            let of = if tensor.origin.module.is_empty() {
                String::new()
            } else {
                format!(" of {}", tensor.origin.module)
            };
            Reply::fact(format!(
                "{shape}, {}{of}, {}{}{place}",
                tensor.category.name().replace('_', " "),
                question.share(tensor.block),
                if place.is_empty() { "" } else { ", made at " }
            ))
        }
        None => Reply::unknown("no tensor is known here"),
    }
}

pub(super) fn when(question: &Question<'_>) -> Reply {
    let step = question.anatomy().allocated_peak.when.step;
    let of = if step == 0 { String::new() } else { format!(", step {step}") };
    Reply::fact(format!("{}{of}", question.moment()))
}

/// Remedies of the causes, the mildest first.
pub(super) fn change(question: &Question<'_>) -> Reply {
    let mut offered: Vec<(&crate::Remedy, u64)> = Vec::new();
    for finding in question.about.findings {
        for remedy in &finding.remedies {
            if !offered.iter().any(|(other, _)| other.id == remedy.id) {
                offered.push((remedy, finding.bytes));
            }
        }
    }
    offered.sort_by_key(|(remedy, held)| (remedy.label, std::cmp::Reverse(*held)));
    let rows = offered.iter().take(ROWS + 2);
    let rows: Vec<String> = rows
        .map(|(remedy, held)| {
            format!("{} ({}), acts on {}", remedy.id, remedy.label, bytes::text(*held))
        })
        .collect();
    let how = "`fathom fit` tries them and measures each";
    match rows.is_empty() {
        true => Reply::unknown(format!("no cause with a remedy was found; {how}")),
        false => Reply::fact(format!("what may help, not tried here: {}; {how}", rows.join("; "))),
    }
}

pub(super) fn fits(question: &Question<'_>) -> Reply {
    let reply = Reply::unknown(
        "a run on the card tells: `fathom run --gpu NAME`, or `fathom explain`'s smallest GPU for a recording",
    );
    match card(question) {
        Some(card) => reply.tried_by(Try::Card(card)),
        None => reply,
    }
}

pub(super) fn largest_batch(question: &Question<'_>) -> Reply {
    let card = card(question).unwrap_or_else(|| "NAME".to_owned());
    let flag = if card.starts_with(|c: char| c.is_ascii_digit()) { "--memory" } else { "--gpu" };
    Reply::unknown(format!(
        "a search by runs tells: `fathom sweep --vary batch-size=1..512 {flag} {card} -- COMMAND`, for a script that has \
         such a flag or a config key (`--set batch-size='…{{}}'`)"
    ))
}

/// A size of memory, or what may be the name of a card.
fn card(question: &Question<'_>) -> Option<String> {
    let words: Vec<&str> = question.words.wholes().map(|(text, _)| text).collect();
    let size = |text: &str| {
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = text.split_at(split);
        let unit = unit.trim_start_matches(['-', ' ']).to_lowercase();
        let unit = match unit.as_str() {
            "gb" | "g" | "gbs" | "gig" | "gigs" => "GB",
            "gib" => "GiB",
            _ => return None,
        };
        (!number.is_empty()).then(|| format!("{number}{unit}"))
    };
    let name = words.iter().enumerate().find_map(|(at, word)| {
        let is_family = |word: &str| {
            let word = word.to_lowercase();
            let starts = [
                "rtx", "gtx", "a100", "h100", "h200", "v100", "t4", "l4", "l40", "a10", "a40",
                "a6000", "b200", "b100", "p100", "k80", "titan", "3090", "4090", "5090", "3080",
                "4080", "4070", "3060", "2080", "1080", "rtx3090",
            ];
            starts.iter().any(|start| word.starts_with(start))
        };
        if !is_family(word) {
            return None;
        }
        // `RTX 3090`, `RTX 4060 Ti`, `A100 80GB`.
        let mut name = word.to_string();
        for next in words.iter().skip(at + 1).take(2) {
            let is_number = next.chars().all(|c| c.is_ascii_digit()) && 3 <= next.len();
            let is_part = is_number
                || matches!(next.to_lowercase().as_str(), "ti" | "super" | "ada")
                || size(next).is_some();
            if !is_part {
                break;
            }
            name = format!("{name} {next}");
        }
        Some(name)
    });
    let apart = words.windows(2).find_map(|pair| size(&format!("{}{}", pair[0], pair[1])));
    name.or_else(|| words.iter().find_map(|word| size(word))).or(apart)
}

// -- parts of the memory ----------------------------------------------------------------------------

fn part(question: &Question<'_>, name: &str, kinds: &[Category]) -> Reply {
    let held = sum(kinds.iter().map(|kind| question.of(*kind)));
    let first = question.about.findings.iter().find(|finding| finding.counted);
    let cause = first.map_or(String::new(), |finding| {
        format!(". The largest cause is: {}, {}", finding.title, bytes::text(finding.bytes))
    });
    Reply::fact(format!("{name} take {}{cause}", question.share(held)))
}

pub(super) fn optimizer(question: &Question<'_>) -> Reply {
    let reply = part(question, "moments and other state of the optimizer", &[Category::Optimizer]);
    match question.finding("optimizer-temporaries") {
        Some(finding) => Reply {
            why: format!(
                "{}; temporaries of its step take {}",
                reply.why,
                bytes::text(finding.bytes)
            ),
            ..reply
        },
        None => reply,
    }
}

pub(super) fn gradients(question: &Question<'_>) -> Reply {
    part(question, "gradients of parameters", &[Category::Gradients])
}

pub(super) fn activations(question: &Question<'_>) -> Reply {
    part(question, "activations, kept for the backward pass,", &[Category::Activations])
}

pub(super) fn weights(question: &Question<'_>) -> Reply {
    let count = question.anatomy().parameters.map_or(String::new(), |counts| {
        format!(
            "{} parameters, {} of them trained; ",
            crate::phrases::count(counts.total),
            crate::phrases::count(counts.trainable)
        )
    });
    let reply = part(question, "weights", &[Category::Weights]);
    Reply { why: format!("{count}{}", reply.why), ..reply }
}

pub(super) fn inputs(question: &Question<'_>) -> Reply {
    part(question, "inputs", &[Category::Inputs])
}

pub(super) fn workspace(question: &Question<'_>) -> Reply {
    part(question, "work areas of libraries", &[Category::Workspace])
}

pub(super) fn temporaries(question: &Question<'_>) -> Reply {
    part(question, "temporaries", &[Category::Temporaries])
}

pub(super) fn context(question: &Question<'_>) -> Reply {
    let rows = question.anatomy().allocated_peak.ledger.iter().take(8);
    let rows: Vec<String> =
        rows.map(|row| format!("{} {}", row.part.name(), bytes::text(row.bytes))).collect();
    Reply::fact(format!(
        "what the card shows is PyTorch's memory and what lies beside it: {}; `--ledger` has all",
        rows.join("; ")
    ))
}
