//! `fathom.report/1`: fields are only ever added.

mod against;
mod body;
mod decisions;
mod ended;
mod explain;
mod findings;
mod fragments;
mod gpu;
mod need;
mod peak;

use serde::Serialize;

pub use explain::explain;

use against::Against;
use body::Body;
pub(crate) use body::{LARGEST, known};
use decisions::Decided;
use ended::OutOfMemory;
pub(crate) use ended::Unfinished;
use findings::{AskedRow, Finding, SuspectRow, answers, findings, suspects};
use gpu::{FitsOn, Gpu, Software};
use need::{Beyond, MostNeeded, Need};
use peak::{Deferred, Peak, Unattributed, Workspace};

use crate::processes::JsonProcess;
use crate::ranks::{self, JsonRank, JsonWorld};
use crate::verdict::headline;
use crate::whole::JsonWhole;
use crate::workspaces;
use study::Run;

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    verdict: &'static str,
    /// The first word of the headline: the verdict, and how near it is.
    judgement: &'static str,
    exit_code: i32,
    /// The first line of the text.
    headline: String,
    gpu: Option<Gpu<'a>>,
    software: Software<'a>,
    steps: u64,
    stopped: bool,
    wall_seconds: f64,
    peak: Option<Peak<'a>>,
    /// Those that used the card, whoever holds most first.
    processes: Vec<JsonProcess<'a>>,
    floor_bytes: Option<u64>,
    need: Option<Need>,
    /// The same command without a limit, if it does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    beyond: Option<Beyond<'a>>,
    #[serde(flatten)]
    body: Body<'a>,
    findings: Vec<Finding<'a>>,
    not_the_cause: Vec<SuspectRow>,
    answers: Vec<AskedRow<'a>>,
    out_of_memory: Option<OutOfMemory<'a>>,
    budget_bytes: Option<u64>,
    baseline: Option<Against<'a>>,
    failure: Option<&'a str>,
    /// What broke the run off: peaks are those until then.
    unfinished: Option<Unfinished<'a>>,
    /// What the card gave at its peak and nobody is known to hold.
    unattributed: Option<Unattributed<'a>>,
    /// Sizes and branches that depend on values which are not known, or modelled.
    decisions: Vec<Decided<'a>>,
    /// The same run with the most that such values can give.
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<MostNeeded<'a>>,
    fits_on: Vec<FitsOn<'a>>,
    /// Those alive at the peak sum to its category.
    workspaces: Vec<Workspace>,
    /// The world that the run is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<JsonWorld>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ranks: Vec<JsonRank<'a>>,
    /// Only if frees waited for other streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    deferred_frees: Option<Deferred>,
    /// What a shortened training showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<JsonWhole<'a>>,
    /// Steps after which memory that grows with each fills the room there is, if a training may have so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    full_after_steps: Option<u64>,
    /// Commands that go on from here.
    next: &'a [String],
    /// Why the verdict does not say all.
    warnings: &'a [String],
    notes: &'a [String],
}

/// The run as JSON, with a line break at the end.
pub fn json(run: &Run) -> String {
    let (world, ranks) = run.ranks.as_ref().map(ranks::json).unzip();
    let report = Report {
        schema: "fathom.report/1",
        verdict: run.verdict_name(),
        judgement: run.judgement().name(),
        exit_code: run.exit_code,
        headline: headline(run),
        gpu: run.card.as_ref().map(|card| Gpu::of(card, run.has_kernels)),
        software: Software::of(run),
        steps: run.steps,
        stopped: run.stopped,
        wall_seconds: (run.wall_seconds * 1000.0).round() / 1000.0,
        peak: Peak::of(run),
        processes: run.processes.iter().map(JsonProcess::of).collect(),
        floor_bytes: run.floor_bytes,
        need: Need::of_whole(run),
        beyond: run.beyond.as_ref().map(|beyond| Beyond::of(run, beyond)),
        body: run.anatomy().map(Body::of).unwrap_or_default(),
        findings: findings(run.findings()),
        not_the_cause: suspects(run.suspects()),
        answers: answers(&run.answers),
        out_of_memory: OutOfMemory::of(run),
        budget_bytes: run.budget_bytes,
        baseline: run.against.as_ref().map(Against::of),
        failure: run.failure.as_deref(),
        unfinished: run.unfinished.as_ref().map(Unfinished::of),
        most: run.most.as_ref().map(MostNeeded::of),
        decisions: run.decisions.iter().chain(&run.modelled).map(Decided::of).collect(),
        unattributed: run.unattributed.as_ref().map(Unattributed::of),
        fits_on: run.fits_on.iter().map(FitsOn::of).collect(),
        workspaces: workspaces::rows(run).into_iter().map(Workspace::of).collect(),
        world,
        ranks: ranks.unwrap_or_default(),
        deferred_frees: run.deferred().as_ref().map(Deferred::of),
        whole: JsonWhole::of(run),
        full_after_steps: run.full_after(),
        next: &run.next,
        warnings: &run.warnings,
        notes: &run.notes,
    };
    let mut text = serde_json::to_string_pretty(&report).expect("plain data serialises");
    text.push('\n');
    text
}
