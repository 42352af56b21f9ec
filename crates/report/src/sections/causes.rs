//! Root causes: what explains the bytes, and what may be done.

use std::collections::BTreeSet;

use diagnose::{Answer, Effect, Evidence, Finding, Remedy, Suspect, Whole};

use super::columns::{begin, end, file_name, place, share};
use crate::bytes;

/// Causes with the remarks, unless all are wanted; and remedies.
const CAUSES: usize = 3;
const OFFERED: usize = 3;
/// Columns before a title, and of the indent below it.
const INDENT: usize = 18;

/// The largest in two rows each; or all in full. Shares are of `allocated` bytes, or of what was `reserved`.
pub(super) fn causes(
    findings: &[Finding],
    whole: (u64, u64),
    columns: usize,
    is_full: bool,
) -> Vec<String> {
    if is_full {
        return findings.iter().flat_map(|finding| full(finding, whole)).collect();
    }
    let (counted, remarks): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.counted);
    // A remark takes the place of a cause that is not there.
    let shown = counted.into_iter().take(CAUSES).chain(remarks).take(CAUSES);
    let rows = shown.flat_map(|finding| {
        let proof = finding.evidence.first().map(|first| format!("    {}", short(first)));
        let note = (!finding.note.is_empty()).then(|| format!("    {}", finding.note));
        std::iter::once(row(finding, whole)).chain(proof).chain(note)
    });
    rows.map(|row| begin(&row, columns).trim_end().to_owned()).collect()
}

/// One line with the usual suspects and how little they are: as many as fit into it, or all.
pub(super) fn not_the_cause(
    suspects: &[Suspect],
    (allocated, reserved): (u64, u64),
    columns: usize,
    is_full: bool,
) -> Option<String> {
    let named = suspects.iter().map(|suspect| {
        let whole = if suspect.of == Whole::Reserved { reserved } else { allocated };
        match suspect.bytes {
            0 => format!("{} none", suspect.name),
            size if is_full => {
                format!("{} {}, {}", suspect.name, bytes::text(size), share(size, whole))
            }
            size => format!("{} {}", suspect.name, bytes::text(size)),
        }
    });
    let separator = if is_full { "; " } else { ", " };
    let longer = |row: String, next: String| match row.is_empty() {
        true => format!("not the cause: {next}"),
        false => format!("{row}{separator}{next}"),
    };
    let rows = named.scan(String::new(), |row, next| {
        *row = longer(std::mem::take(row), next);
        Some(row.clone())
    });
    let fits = |row: &String| is_full || row.chars().count() <= columns;
    rows.enumerate().take_while(|(index, row)| *index == 0 || fits(row)).last().map(|(_, row)| row)
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
    offered.truncate(OFFERED);
    let groups = offered.chunk_by(|(one, _), (next, _)| one.label == next.label).map(|group| {
        let named: Vec<&str> = group.iter().map(|(remedy, _)| remedy.id).collect();
        let label = group.first().map_or("", |(remedy, _)| remedy.label.name());
        format!("{} ({label})", named.join(", "))
    });
    let groups: Vec<String> = groups.collect();
    let more = if rest == 0 { String::new() } else { format!("; {rest} more") };
    match groups.is_empty() {
        true => Vec::new(),
        false => vec![format!("options, not tested yet: {}{more}", groups.join("; "))],
    }
}

/// `--ask`: what a remedy could do.
pub(crate) fn answers(answers: &[Answer]) -> Vec<String> {
    let rows = answers.iter().map(|answer| {
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
        format!("{asked}{label}: {effect}{}", answer.why)
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
    format!("{:>10} {part:>6} {}", bytes::text(finding.bytes), finding.title)
}

/// `3 × float32[2, 3] at net.py:12 in down1`: of the evidence what finds the line.
fn short(evidence: &Evidence) -> String {
    let line = match place(&evidence.file, evidence.line) {
        line if line.is_empty() => line,
        line => format!(" at {}", file_name(&line)),
    };
    let module = match evidence.module.as_str() {
        "" => String::new(),
        module => format!(" in {module}"),
    };
    let what = match shape(evidence) {
        shape if shape.is_empty() => format!("{} × {}", evidence.count, evidence.what),
        shape => format!("{} × {}", evidence.count, shape.trim_end()),
    };
    format!("{what}{line}{module}")
}

fn full(finding: &Finding, whole: (u64, u64)) -> Vec<String> {
    let mut rows = vec![row(finding, whole)];
    let mut say = |text: &str| rows.push(format!("{:INDENT$}{text}", ""));
    say(&finding.explanation);
    if !finding.note.is_empty() && !finding.explanation.contains(&finding.note) {
        say(&finding.note);
    }
    say(&format!("grows with {}", finding.scales));
    finding.evidence.iter().for_each(|evidence| say(&proof(evidence)));
    for remedy in &finding.remedies {
        say(&format!("try {} ({}): {}", remedy.id, remedy.label.name(), remedy.change));
    }
    rows
}

/// `3 × float32[2, 3] ConvolutionBackward0.input in down1 at net.py:12: 1.00 GiB`
fn proof(evidence: &Evidence) -> String {
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
    format!("{} × {}{}{module}{line}: {size}", evidence.count, shape(evidence), evidence.what)
}

/// `float32[2, 3] `; nothing where it is not known.
fn shape(evidence: &Evidence) -> String {
    let sizes: Vec<String> = evidence.shape.iter().map(u64::to_string).collect();
    match evidence.dtype.as_str() {
        "" => String::new(),
        dtype => format!("{dtype}[{}] ", sizes.join(", ")),
    }
}
