//! Root causes: what explains the bytes, and what may be done.

use std::collections::BTreeSet;

use diagnose::{Answer, Effect, Evidence, Finding, Remedy, Suspect, Whole};

use super::COLUMNS;
use super::columns::{begin, end, place, sentence, share};
use crate::bytes;

/// Causes and remarks on one screen.
const CAUSES: usize = 4;
const REMARKS: usize = 2;
/// Rows for the explanation of the first: as many of its sentences as fit.
const EXPLAINED: usize = 3;
/// Remedies on one screen.
const OFFERED: usize = 6;
/// Columns before a title, and of the indent below it.
const INDENT: usize = 18;

/// One row each, with a word on the first; or all in full. Shares are of `allocated` bytes, or of what
/// was `reserved`.
pub(super) fn causes(findings: &[Finding], whole: (u64, u64), is_full: bool) -> Vec<String> {
    if is_full {
        return findings.iter().flat_map(|finding| full(finding, whole)).collect();
    }
    let (counted, remarks): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.counted);
    let mut rows = Vec::new();
    for (index, finding) in counted.iter().take(CAUSES).enumerate() {
        rows.push(row(finding, whole));
        if index == 0 {
            rows.extend(
                beginning(&finding.explanation).iter().map(|row| format!("{:INDENT$}{row}", "")),
            );
        }
    }
    rows.extend(remarks.iter().take(REMARKS).map(|finding| row(finding, whole)));
    rows
}

/// The sentences that fit; the first in any case, cut off if it must be.
fn beginning(text: &str) -> Vec<String> {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1).chain([text.len()]);
    let fitting = ends.map(|end| sentence(&text[..end], COLUMNS - INDENT));
    let last = fitting.take_while(|rows| rows.len() <= EXPLAINED).last();
    last.unwrap_or_else(|| {
        let mut rows = sentence(text, COLUMNS - INDENT);
        rows.truncate(EXPLAINED);
        rows.last_mut().into_iter().for_each(|row| row.push_str(" …"));
        rows
    })
}

/// One line with the usual suspects and how little they are.
pub(super) fn not_the_cause(
    suspects: &[Suspect],
    (allocated, reserved): (u64, u64),
) -> Vec<String> {
    let named = suspects.iter().map(|suspect| {
        let whole = if suspect.of == Whole::Reserved { reserved } else { allocated };
        match suspect.bytes {
            0 => format!("{} none", suspect.name),
            size => format!("{} {}, {}", suspect.name, bytes::text(size), share(size, whole)),
        }
    });
    let named: Vec<String> = named.collect();
    match named.is_empty() {
        true => Vec::new(),
        false => sentence(&format!("not the cause: {}", named.join("; ")), COLUMNS),
    }
}

/// What may be done about the causes: what changes results least first, then what acts on more bytes.
pub(super) fn remedies(findings: &[Finding]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = findings
        .iter()
        .flat_map(|finding| finding.remedies.iter().map(move |remedy| (remedy, finding.bytes)));
    let mut offered: Vec<(&Remedy, u64)> = all.filter(|(it, _)| seen.insert(it.id)).collect();
    offered.sort_by_key(|(remedy, size)| (remedy.label, std::cmp::Reverse(*size)));
    let rest = offered.len().saturating_sub(OFFERED);
    let named = offered.iter().take(OFFERED).map(|(remedy, size)| {
        format!("{} ({}, {})", remedy.id, remedy.label.name(), bytes::text(*size))
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() {
        return Vec::new();
    }
    let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    sentence(&format!("{}{more}: not tried", named.join(", ")), COLUMNS)
}

/// `--ask`: what a remedy could do.
pub(crate) fn answers(answers: &[Answer]) -> Vec<String> {
    let rows = answers.iter().flat_map(|answer| {
        let effect = match answer.effect {
            Effect::None => "does not lower the peak".to_owned(),
            Effect::Worse => "raises the peak".to_owned(),
            Effect::AtMost(size) => format!("lowers it by {} at most", bytes::text(size)),
            Effect::Measured(change) => changed(change),
            Effect::Fact => String::new(),
            Effect::Unknown => "not known".to_owned(),
        };
        let label = answer.label.map_or(String::new(), |label| format!(" ({})", label.name()));
        let effect = if effect.is_empty() { effect } else { format!("{effect}; ") };
        let asked = answer.question.trim_end_matches(['?', ':', ' ']);
        sentence(&format!("{asked}{label}: {effect}{}", answer.why), COLUMNS)
    });
    rows.collect()
}

/// What a trial gave.
fn changed(change: diagnose::ask::Change) -> String {
    let (before, after) = (change.before.allocated, change.after.allocated);
    match change.name() {
        "none" => "does not lower the peak".to_owned(),
        "lowers" => format!("lowers the peak by {}", bytes::text(before - after)),
        _ => format!("raises the peak by {}", bytes::text(after.saturating_sub(before))),
    }
}

fn row(finding: &Finding, (allocated, reserved): (u64, u64)) -> String {
    let part = match (finding.of, finding.counted) {
        (Whole::Reserved, _) => share(finding.bytes, reserved),
        (_, true) => share(finding.bytes, allocated),
        (_, false) => format!("({})", share(finding.bytes, allocated)),
    };
    let title = begin(&finding.title, COLUMNS - INDENT);
    format!("{:>10} {part:>6} {title}", bytes::text(finding.bytes)).trim_end().to_owned()
}

fn full(finding: &Finding, whole: (u64, u64)) -> Vec<String> {
    let mut rows = vec![row(finding, whole)];
    let mut say = |text: &str| {
        let words = sentence(text, COLUMNS - INDENT);
        rows.extend(words.into_iter().map(|words| format!("{:INDENT$}{words}", "")));
    };
    say(&finding.explanation);
    say(&format!("grows with {}", finding.scales));
    finding.evidence.iter().for_each(|evidence| say(&proof(evidence)));
    for remedy in &finding.remedies {
        say(&format!("try {} ({}): {}", remedy.id, remedy.label.name(), remedy.change));
    }
    rows
}

/// `3 × float32[2, 3] ConvolutionBackward0.input in down1 at net.py:12: 1.00 GiB`
fn proof(evidence: &Evidence) -> String {
    let sizes: Vec<String> = evidence.shape.iter().map(u64::to_string).collect();
    let shape = match evidence.dtype.as_str() {
        "" => String::new(),
        dtype => format!("{dtype}[{}] ", sizes.join(", ")),
    };
    let module = match evidence.module.as_str() {
        "" => String::new(),
        module => format!(" in {module}"),
    };
    let line = match place(&evidence.file, evidence.line) {
        line if line.is_empty() => line,
        line => format!(" at {}", end(&line, 40)),
    };
    let line = match place(&evidence.library.file, evidence.library.line) {
        library if library.is_empty() => line,
        library => format!("{line}, in {}", end(&library, 60)),
    };
    let size = bytes::text(evidence.bytes);
    format!("{} × {shape}{}{module}{line}: {size}", evidence.count, evidence.what)
}
