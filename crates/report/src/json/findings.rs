//! The versioned mirror of findings.

use serde::Serialize;

use super::body::known;

#[derive(Serialize)]
pub(crate) struct Finding<'a> {
    id: &'a str,
    title: &'a str,
    bytes: u64,
    /// Of what these bytes are a part: `allocated`, `reserved`.
    of: &'static str,
    /// Whether no other finding counts them.
    counted: bool,
    explanation: &'a str,
    /// Beneath the evidence in the short report: why no fused kernel was taken, or `a guess: 16,384 = batch 128 × …`.
    note: Option<&'a str>,
    scales: &'a str,
    evidence: Vec<Evidence<'a>>,
    remedies: Vec<Remedy<'a>>,
}

#[derive(Serialize)]
struct Evidence<'a> {
    bytes: u64,
    count: u64,
    dtype: Option<&'a str>,
    shape: Option<&'a [u64]>,
    what: &'a str,
    module: Option<&'a str>,
    operator: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    library_file: Option<&'a str>,
    library_line: Option<u32>,
}

#[derive(Serialize)]
struct Remedy<'a> {
    id: &'a str,
    label: &'static str,
    change: &'a str,
}

pub(crate) fn findings(list: &[diagnose::Finding]) -> Vec<Finding<'_>> {
    list.iter().map(finding).collect()
}

fn finding(finding: &diagnose::Finding) -> Finding<'_> {
    let remedies = finding.remedies.iter();
    Finding {
        id: finding.id,
        title: &finding.title,
        bytes: finding.bytes,
        of: finding.of.name(),
        counted: finding.counted,
        explanation: &finding.explanation,
        note: known(&finding.note),
        scales: &finding.scales,
        evidence: finding.evidence.iter().map(evidence).collect(),
        remedies: remedies
            .map(|remedy| Remedy {
                id: remedy.id,
                label: remedy.label.name(),
                change: &remedy.change,
            })
            .collect(),
    }
}

/// Often blamed, and not the cause.
#[derive(Serialize)]
pub(crate) struct SuspectRow {
    name: &'static str,
    bytes: u64,
    /// Of what these bytes are a part: `allocated`, `reserved`.
    of: &'static str,
}

pub(crate) fn suspects(list: &[diagnose::Suspect]) -> Vec<SuspectRow> {
    let row =
        |it: &diagnose::Suspect| SuspectRow { name: it.name, bytes: it.bytes, of: it.of.name() };
    list.iter().map(row).collect()
}

/// What was asked, and the answer.
#[derive(Serialize)]
pub(crate) struct AskedRow<'a> {
    question: &'a str,
    /// `none`, `worse`, `lowers`, `at_most`, `fact` or `unknown`: of the allocated peak.
    effect: &'static str,
    at_most_bytes: Option<u64>,
    /// How it is known: `measured` by a trial or in the run itself, `derived` from it, `unknown`.
    known: &'static str,
    /// Peaks of a trial, both without a limit of memory.
    tried: Option<TriedRow>,
    label: Option<&'static str>,
    why: &'a str,
}

/// The script as it is, and with the change.
#[derive(Serialize)]
struct TriedRow {
    before_allocated_bytes: u64,
    after_allocated_bytes: u64,
    before_reserved_bytes: u64,
    after_reserved_bytes: u64,
}

pub(crate) fn answers(list: &[diagnose::Answer]) -> Vec<AskedRow<'_>> {
    list.iter().map(answer).collect()
}

fn answer(row: &diagnose::Answer) -> AskedRow<'_> {
    let diagnose::Answer { question, effect, label, why, .. } = row;
    let (at_most_bytes, tried) = match effect {
        diagnose::Effect::AtMost(bytes) => (Some(*bytes), None),
        diagnose::Effect::Measured(change) => (None, Some(TriedRow::of(change))),
        _ => (None, None),
    };
    AskedRow {
        question,
        effect: effect.name(),
        at_most_bytes,
        known: effect.known(),
        tried,
        label: label.map(|label| label.name()),
        why,
    }
}

impl TriedRow {
    fn of(change: &diagnose::ask::Change) -> TriedRow {
        let diagnose::ask::Change { before, after } = change;
        TriedRow {
            before_allocated_bytes: before.allocated,
            after_allocated_bytes: after.allocated,
            before_reserved_bytes: before.reserved,
            after_reserved_bytes: after.reserved,
        }
    }
}

fn evidence(row: &diagnose::Evidence) -> Evidence<'_> {
    Evidence {
        bytes: row.bytes,
        count: row.count,
        dtype: known(&row.dtype),
        shape: known(&row.dtype).map(|_| &row.shape[..]),
        what: &row.what,
        module: known(&row.module),
        operator: known(&row.operator),
        file: known(&row.file),
        line: known(&row.file).map(|_| row.line),
        library_file: known(&row.library.file),
        library_line: known(&row.library.file).map(|_| row.library.line),
    }
}
