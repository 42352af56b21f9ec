//! `fathom.explain/1`: a recording taken apart, in the manner of `fathom.report/1`.

use serde::Serialize;

use super::body::{Body, Held, OriginRow, place};
use super::findings::{AskedRow, Finding, SuspectRow, answers, findings, suspects};
use super::fragments::Fragments;
use crate::explain::Explanation;
use crate::why::why;

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    file: &'a str,
    device: u32,
    torch: &'a str,
    events: usize,
    complete: bool,
    peak: Peak<'a>,
    #[serde(flatten)]
    body: Body<'a>,
    /// By what categories are known, where nobody recorded them; a name of "" is what has none.
    evidence: Vec<EvidenceRow<'a>>,
    findings: Vec<Finding<'a>>,
    not_the_cause: Vec<SuspectRow>,
    answers: Vec<AskedRow<'a>>,
    out_of_memory: Option<OutOfMemory<'a>>,
    /// At the failed request, else at the peak; null if the replay does not come that far.
    fragments: Option<Fragments<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct EvidenceRow<'a> {
    name: &'a str,
    bytes: u64,
    count: u64,
}

#[derive(Serialize)]
struct Peak<'a> {
    requested_bytes: u64,
    allocated_bytes: u64,
    reserved_bytes: u64,
    step: Option<u32>,
    phase: Option<&'static str>,
    #[serde(flatten)]
    origin: OriginRow<'a>,
}

#[derive(Serialize)]
struct OutOfMemory<'a> {
    tried_bytes: u64,
    free_bytes: u64,
    #[serde(flatten)]
    origin: OriginRow<'a>,
    /// Why there was no room, in words.
    reason: Option<String>,
    held: Held<'a>,
}

/// The explanation as JSON, with a line break at the end.
pub fn explain(explanation: &Explanation) -> String {
    let anatomy = &explanation.study.anatomy;
    let peak = &anatomy.allocated_peak;
    let shortage = explanation.study.fragments.as_ref().and_then(|pieces| pieces.shortage.as_ref());
    let report = Report {
        schema: "fathom.explain/1",
        file: &explanation.file,
        device: explanation.study.device,
        torch: &explanation.study.torch,
        events: anatomy.events,
        complete: explanation.study.is_whole,
        peak: Peak {
            requested_bytes: peak.requested,
            allocated_bytes: peak.allocated,
            reserved_bytes: anatomy.reserved_peak.reserved,
            step: (peak.when.step != 0).then_some(peak.when.step),
            phase: peak.when.phase.map(|phase| phase.name()),
            origin: peak.raised_by.as_ref().map(place).unwrap_or_default(),
        },
        body: Body::of(anatomy),
        evidence: peak
            .evidence
            .iter()
            .map(|row| EvidenceRow { name: &row.name, bytes: row.bytes, count: row.count })
            .collect(),
        findings: findings(&explanation.study.findings),
        not_the_cause: suspects(&explanation.study.suspects),
        answers: answers(&explanation.answers),
        out_of_memory: anatomy.out_of_memory.as_ref().map(|refusal| OutOfMemory {
            tried_bytes: refusal.tried_bytes,
            free_bytes: refusal.free_bytes,
            origin: place(&refusal.origin),
            reason: shortage.map(why),
            held: Held::of(&refusal.at),
        }),
        fragments: explanation.study.fragments.as_ref().map(Fragments::of),
        notes: &explanation.study.notes,
    };
    let mut text = serde_json::to_string_pretty(&report).expect("plain data serialises");
    text.push('\n');
    text
}
