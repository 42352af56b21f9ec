//! `fathom.report/1`: fields are only ever added.

mod against;
mod body;
mod explain;
mod findings;
mod fragments;

use serde::Serialize;

pub use explain::explain;

use against::Against;
use body::{Body, Held, OriginRow, place};
pub(crate) use body::{LARGEST, known};
use findings::{AskedRow, Finding, SuspectRow, answers, findings, suspects};

use crate::processes::JsonProcess;
use crate::ranks::{self, JsonRank, JsonWorld};
use crate::verdict::headline;
use crate::whole::JsonWhole;
use crate::why::why;
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
    /// Commands that go on from here.
    next: &'a [String],
    /// Why the verdict does not say all.
    warnings: &'a [String],
    notes: &'a [String],
}

/// The smallest GPU on which the run goes through, context included.
#[derive(Serialize)]
struct Need {
    bytes: u64,
    /// `run`, `enough`, `replay` or `taken`.
    known: &'static str,
    /// How far a real card may be off.
    error_bytes: u64,
}

impl Need {
    fn of(run: &Run, need: study::Need) -> Need {
        let error_bytes = run.error_of(need.bytes);
        Need { bytes: need.bytes, known: need.known.name(), error_bytes }
    }
}

#[derive(Serialize)]
struct Beyond<'a> {
    need: Option<Need>,
    allocated_bytes: u64,
    phase: &'a str,
    step: u64,
    raised_by: Option<String>,
    cause: Option<&'a str>,
    failure: Option<&'a str>,
}

impl<'a> Beyond<'a> {
    fn of(run: &Run, beyond: &'a study::Beyond) -> Beyond<'a> {
        let raised_by = beyond.raised_by.as_ref().map(crate::explain::by);
        Beyond {
            need: beyond.need.map(|need| Need::of(run, need)),
            allocated_bytes: beyond.peak.bytes,
            phase: &beyond.peak.phase,
            step: beyond.peak.step,
            raised_by: raised_by.map(|by| by.trim_start().to_owned()),
            cause: beyond.cause.as_ref().map(|(title, _)| title.as_str()),
            failure: beyond.failure.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct Gpu<'a> {
    name: &'a str,
    title: &'a str,
    memory_bytes: u64,
    /// What other programs hold of it.
    used_bytes: u64,
    context_bytes: u64,
    context_known: &'static str,
    /// The least and the most that one process was seen to take of such a card beside PyTorch's own memory.
    context_range_bytes: [u64; 2],
    compute_capability: String,
    /// Whether the script's torch has kernels that run on it.
    has_kernels: Option<bool>,
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
    /// Without work areas that PyTorch goes on without; only if there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    hard_allocated_bytes: Option<u64>,
    reserved_bytes: u64,
    /// All processes together, contexts included.
    device_bytes: u64,
    /// The process that the rest is about, its context included.
    process_bytes: u64,
    /// Modelled; part of `device_bytes`.
    nccl_bytes: u64,
    step: u64,
    phase: &'a str,
    #[serde(flatten)]
    origin: OriginRow<'a>,
    reserved_step: u64,
    reserved_phase: &'a str,
    /// Who raised the reserved peak.
    reserved_by: Option<OriginRow<'a>>,
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
    fn of(deferred: &study::Deferred) -> Deferred {
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
pub(crate) struct Unfinished<'a> {
    /// `interrupted`, `timed_out`.
    reason: &'static str,
    signal: Option<&'a str>,
    after_seconds: f64,
}

impl<'a> Unfinished<'a> {
    pub(crate) fn of(unfinished: &'a study::Unfinished) -> Unfinished<'a> {
        Unfinished {
            reason: unfinished.verdict().name(),
            signal: unfinished.signal.as_deref(),
            after_seconds: (unfinished.seconds * 1000.0).round() / 1000.0,
        }
    }
}

#[derive(Serialize)]
struct Unattributed<'a> {
    bytes: u64,
    why: &'a str,
}

#[derive(Serialize)]
struct MostNeeded<'a> {
    device_bytes: Option<u64>,
    fits: bool,
    is_same: bool,
    failure: Option<&'a str>,
}

#[derive(Serialize)]
struct Decided<'a> {
    operator: &'a str,
    file: Option<&'a str>,
    line: Option<u64>,
    library_file: Option<&'a str>,
    library_line: Option<u64>,
    why: &'a str,
    assumed: &'a str,
    count: u64,
}

impl<'a> Decided<'a> {
    fn of(decision: &'a study::Decision) -> Decided<'a> {
        let (place, library) = (decision.place.as_ref(), decision.library.as_ref());
        Decided {
            operator: &decision.operator,
            file: place.map(|(file, _)| file.as_str()),
            line: place.map(|(_, line)| *line),
            library_file: library.map(|(file, _)| file.as_str()),
            library_line: library.map(|(_, line)| *line),
            why: &decision.why,
            assumed: &decision.assumed,
            count: decision.count,
        }
    }
}

#[derive(Serialize)]
struct FitsOn<'a> {
    name: &'a str,
    memory_bytes: u64,
    /// `measured`, `replayed` or `likely`.
    known: &'static str,
}

/// Work areas of one kind of call.
#[derive(Serialize)]
struct Workspace {
    kind: &'static str,
    /// `exact`, `modelled`, `measured` or `unknown`.
    known: &'static str,
    calls: Option<u64>,
    largest_bytes: Option<u64>,
    /// Of the allocated peak.
    peak_bytes: Option<u64>,
}

impl Workspace {
    fn of(row: workspaces::Row) -> Workspace {
        let workspaces::Row { kind, known, calls, largest_bytes, peak_bytes } = row;
        Workspace { kind, known, calls, largest_bytes, peak_bytes }
    }
}

impl<'a> Gpu<'a> {
    fn of(card: &'a gpus::Card, has_kernels: Option<bool>) -> Gpu<'a> {
        let (major, minor) = card.compute_capability;
        let range = card.context_range();
        Gpu {
            name: card.name,
            title: card.shown_title(),
            memory_bytes: card.memory_bytes,
            used_bytes: card.used_bytes,
            context_bytes: card.context_bytes,
            context_known: if card.is_context_assumed() { "assumed" } else { "measured" },
            context_range_bytes: [range.low, range.high],
            compute_capability: format!("{major}.{minor}"),
            has_kernels,
        }
    }
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
        software: Software {
            torch: &run.software.torch,
            cuda: &run.software.cuda,
            cudnn: &run.software.cudnn,
            python: &run.software.python,
            workspaces: workspaces::known(&run.workspaces),
        },
        steps: run.steps,
        stopped: run.stopped,
        wall_seconds: (run.wall_seconds * 1000.0).round() / 1000.0,
        peak: peak(run),
        processes: run.processes.iter().map(JsonProcess::of).collect(),
        floor_bytes: run.floor_bytes,
        need: went_through(run).map(|need| Need::of(run, need)),
        beyond: run.beyond.as_ref().map(|beyond| Beyond::of(run, beyond)),
        body: run.anatomy().map(Body::of).unwrap_or_default(),
        findings: findings(run.findings()),
        not_the_cause: suspects(run.suspects()),
        answers: answers(&run.answers),
        out_of_memory: out_of_memory(run),
        budget_bytes: run.budget_bytes,
        baseline: run.against.as_ref().map(Against::of),
        failure: run.failure.as_deref(),
        unfinished: run.unfinished.as_ref().map(Unfinished::of),
        most: run.most.as_ref().map(|most| MostNeeded {
            device_bytes: most.device_bytes,
            fits: most.fits,
            is_same: most.is_same,
            failure: most.failure.as_deref(),
        }),
        decisions: run.decisions.iter().chain(&run.modelled).map(Decided::of).collect(),
        unattributed: run
            .unattributed
            .as_ref()
            .map(|rest| Unattributed { bytes: rest.bytes, why: &rest.why }),
        fits_on: run
            .fits_on
            .iter()
            .map(|card| FitsOn {
                name: &card.name,
                memory_bytes: card.memory_bytes,
                known: card.known.name(),
            })
            .collect(),
        workspaces: workspaces::rows(run).into_iter().map(Workspace::of).collect(),
        world,
        ranks: ranks.unwrap_or_default(),
        deferred_frees: run.deferred().as_ref().map(Deferred::of),
        whole: JsonWhole::of(run),
        next: &run.next,
        warnings: &run.warnings,
        notes: &run.notes,
    };
    let mut text = serde_json::to_string_pretty(&report).expect("plain data serialises");
    text.push('\n');
    text
}

/// What a run that ran out or was broken off had by then is no need.
fn went_through(run: &Run) -> Option<study::Need> {
    let is_whole = run.out_of_memory.is_none() && run.failure.is_none();
    run.needed().filter(|_| is_whole)
}

fn peak(run: &Run) -> Option<Peak<'_>> {
    let anatomy = run.anatomy();
    let cause = anatomy.and_then(|anatomy| anatomy.allocated_peak.raised_by.as_ref());
    run.peak.as_ref().map(|peak| Peak {
        requested_bytes: peak.requested.bytes,
        allocated_bytes: peak.allocated.bytes,
        hard_allocated_bytes: anatomy
            .map(|anatomy| anatomy.hard_allocated)
            .filter(|hard| *hard < peak.allocated.bytes),
        reserved_bytes: peak.reserved.bytes,
        device_bytes: peak.device_bytes,
        process_bytes: peak.process_bytes,
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
    let moment = run.anatomy().and_then(|anatomy| anatomy.out_of_memory.as_ref());
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
