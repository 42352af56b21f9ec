//! `fathom.report/1`: fields are only ever added.

mod against;
mod body;
mod explain;
mod findings;
mod fragments;

use serde::Serialize;

pub use explain::explain;

use against::Against;
use body::{Body, Held, Place, place};
pub(crate) use body::{LARGEST, known};
use findings::{Answer, Finding, answers, findings};

use crate::ranks::{self, JsonRank, JsonWorld};
use crate::run::{Run, Workspaces};
use crate::terminal::headline;
use crate::why::why;

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    verdict: &'static str,
    exit_code: i32,
    /// The first line of the text.
    headline: String,
    gpu: Option<Gpu<'a>>,
    software: Software<'a>,
    steps: u64,
    stopped: bool,
    wall_seconds: f64,
    peak: Option<Peak<'a>>,
    floor_bytes: Option<u64>,
    #[serde(flatten)]
    body: Body<'a>,
    findings: Vec<Finding<'a>>,
    answers: Vec<Answer<'a>>,
    out_of_memory: Option<OutOfMemory<'a>>,
    budget_bytes: Option<u64>,
    baseline: Option<Against<'a>>,
    failure: Option<&'a str>,
    fits_on: Vec<FitsOn<'a>>,
    /// The world that the run is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<JsonWorld>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ranks: Vec<JsonRank<'a>>,
    /// Only if frees waited for other streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    deferred_frees: Option<Deferred>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Gpu<'a> {
    name: &'a str,
    title: &'a str,
    memory_bytes: u64,
    context_bytes: u64,
    context_known: &'static str,
    compute_capability: String,
}

#[derive(Serialize)]
struct Software<'a> {
    torch: &'a str,
    cuda: &'a str,
    cudnn: &'a str,
    python: &'a str,
    workspaces: &'static str,
}

#[derive(Serialize)]
struct Peak<'a> {
    requested_bytes: u64,
    allocated_bytes: u64,
    reserved_bytes: u64,
    device_bytes: u64,
    /// Modelled; part of `device_bytes`.
    nccl_bytes: u64,
    step: u64,
    phase: &'a str,
    #[serde(flatten)]
    origin: Place<'a>,
    reserved_step: u64,
    reserved_phase: &'a str,
    /// Who raised the reserved peak.
    reserved_by: Option<Place<'a>>,
}

/// Two ends of one range; what is allocated is the same at both.
#[derive(Serialize)]
struct Deferred {
    count: usize,
    at_once: Streams,
    late: Streams,
    most_waiting_bytes: u64,
    late_fits: bool,
}

#[derive(Serialize)]
struct Streams {
    reserved_bytes: u64,
    active_bytes: u64,
    known: &'static str,
}

impl Deferred {
    fn of(deferred: &crate::run::Deferred) -> Deferred {
        let streams = |[reserved_bytes, active_bytes]: [u64; 2], known| Streams {
            reserved_bytes,
            active_bytes,
            known,
        };
        Deferred {
            count: deferred.frees,
            at_once: streams(deferred.at_once, "measured"),
            late: streams(deferred.late, "modelled"),
            most_waiting_bytes: deferred.most_waiting,
            late_fits: deferred.late_fits,
        }
    }
}

#[derive(Serialize)]
struct OutOfMemory<'a> {
    tried_bytes: u64,
    free_bytes: Option<u64>,
    step: u64,
    phase: &'a str,
    module: Option<&'a str>,
    operator: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u64>,
    message: &'a str,
    /// Why there was no room, in words.
    reason: Option<String>,
    /// What was alive then.
    held: Option<Held<'a>>,
}

#[derive(Serialize)]
struct FitsOn<'a> {
    name: &'a str,
    memory_bytes: u64,
}

/// The run as JSON, with a line break at the end.
pub fn json(run: &Run) -> String {
    let (world, ranks) = run.ranks.as_ref().map(ranks::json).unzip();
    let report = Report {
        schema: "fathom.report/1",
        verdict: run.verdict.name(),
        exit_code: run.exit_code,
        headline: headline(run),
        gpu: run.card.as_ref().map(|card| Gpu {
            name: &card.name,
            title: &card.title,
            memory_bytes: card.memory_bytes,
            context_bytes: card.context_bytes,
            context_known: if card.context_assumed { "assumed" } else { "measured" },
            compute_capability: format!(
                "{}.{}",
                card.compute_capability.0, card.compute_capability.1
            ),
        }),
        software: Software {
            torch: &run.software.torch,
            cuda: &run.software.cuda,
            cudnn: &run.software.cudnn,
            python: &run.software.python,
            workspaces: match run.workspaces {
                Workspaces::Exact => "exact",
                Workspaces::Modelled => "modelled",
                Workspaces::None => "none",
            },
        },
        steps: run.steps,
        stopped: run.stopped,
        wall_seconds: (run.wall_seconds * 1000.0).round() / 1000.0,
        peak: peak(run),
        floor_bytes: run.floor_bytes,
        body: run.anatomy.as_ref().map(Body::of).unwrap_or_default(),
        findings: findings(&run.findings),
        answers: answers(&run.answers),
        out_of_memory: out_of_memory(run),
        budget_bytes: run.budget_bytes,
        baseline: run.against.as_ref().map(Against::of),
        failure: run.failure.as_deref(),
        fits_on: run
            .fits_on
            .iter()
            .map(|card| FitsOn { name: &card.name, memory_bytes: card.memory_bytes })
            .collect(),
        world,
        ranks: ranks.unwrap_or_default(),
        deferred_frees: run.deferred.as_ref().map(Deferred::of),
        notes: &run.notes,
    };
    let mut text = serde_json::to_string_pretty(&report).expect("plain data serialises");
    text.push('\n');
    text
}

fn peak(run: &Run) -> Option<Peak<'_>> {
    let anatomy = run.anatomy.as_ref();
    let cause = anatomy.and_then(|anatomy| anatomy.allocated_peak.raised_by.as_ref());
    run.peak.as_ref().map(|peak| Peak {
        requested_bytes: peak.requested.bytes,
        allocated_bytes: peak.allocated.bytes,
        reserved_bytes: peak.reserved.bytes,
        device_bytes: peak.device_bytes,
        nccl_bytes: peak.nccl_bytes,
        step: peak.allocated.step,
        phase: &peak.allocated.phase,
        origin: cause.map(place).unwrap_or_default(),
        reserved_step: peak.reserved.step,
        reserved_phase: &peak.reserved.phase,
        reserved_by: anatomy
            .and_then(|anatomy| anatomy.reserved_peak.raised_by.as_ref())
            .map(place),
    })
}

fn out_of_memory(run: &Run) -> Option<OutOfMemory<'_>> {
    let moment = run.anatomy.as_ref().and_then(|anatomy| anatomy.out_of_memory.as_ref());
    run.out_of_memory.as_ref().map(|refusal| OutOfMemory {
        tried_bytes: refusal.tried_bytes,
        free_bytes: refusal.free_bytes,
        step: refusal.step,
        phase: &refusal.phase,
        module: moment.and_then(|moment| place(&moment.origin).module),
        operator: moment.and_then(|moment| place(&moment.origin).operator),
        file: refusal.file.as_deref(),
        line: refusal.line,
        message: &refusal.message,
        reason: refusal.shortage.as_ref().map(why),
        held: moment.map(|moment| Held::of(&moment.at)),
    })
}
