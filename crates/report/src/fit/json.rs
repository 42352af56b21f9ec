//! `fathom.fit/1`: fields are only ever added.

use ::fit::plan::Written;
use ::fit::{Lever, Outcome};
use serde::Serialize;
use serde_json::{Value, json};

use super::Fit;
use crate::assumed::word;
use crate::trials::TrialsMirror;

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    gpu: &'a str,
    /// What a plan may take: the card without what others hold.
    budget_bytes: u64,
    memory_bytes: u64,
    used_bytes: u64,
    baseline: Baseline<'a>,
    plans: Vec<Plan>,
    chosen: Option<usize>,
    /// Where none is chosen: fits, but changes the training, which was not allowed.
    proposed: Option<usize>,
    tightest_bytes: Option<u64>,
    not_applicable: Vec<Value>,
    causes: Vec<Value>,
    trials: usize,
    remembered: usize,
    #[serde(flatten)]
    all_trials: TrialsMirror<'a>,
    exit_code: u8,
}

#[derive(Serialize)]
struct Baseline<'a> {
    /// Without an if.
    fits: bool,
    verdict: &'static str,
    failure: Option<&'a str>,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
    device_bytes: u64,
}

#[derive(Serialize)]
struct Plan {
    levers: Vec<Value>,
    label: &'static str,
    /// Without an if.
    fits: bool,
    verdict: &'static str,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
    device_bytes: u64,
    headroom_bytes: i64,
    verified: bool,
    cost: Cost,
    patch: String,
    /// Whether that is a diff which was applied to a copy and run: then the peaks are those of the copy.
    is_diff: bool,
    /// Why there is no diff.
    in_the_way: Vec<String>,
    /// More than the card has without a limit: it goes through only since PyTorch gives cached memory back.
    by_retries: bool,
}

#[derive(Serialize)]
struct Cost {
    /// Time of a step beside the script as it is; the name is older than the bytes that count now.
    flops_ratio: f64,
    known: &'static str,
}

/// The answer for programs.
pub fn json(fit: &Fit) -> String {
    let answer = &fit.answer;
    let baseline = &answer.baseline;
    let report = Report {
        schema: "fathom.fit/1",
        gpu: &fit.card,
        budget_bytes: fit.available_bytes(),
        memory_bytes: fit.memory_bytes,
        used_bytes: fit.used_bytes,
        baseline: Baseline {
            fits: answer.as_it_is == Outcome::Fits,
            verdict: word(&answer.as_it_is),
            failure: match &baseline.outcome {
                Outcome::Failed(why) => Some(why),
                _ => None,
            },
            peak_allocated_bytes: baseline.peaks.allocated,
            peak_reserved_bytes: baseline.peaks.reserved,
            device_bytes: baseline.peaks.reserved + fit.context_bytes,
        },
        plans: answer.plans.iter().map(|plan| self::plan(fit, plan)).collect(),
        chosen: answer.chosen,
        proposed: answer.proposed,
        tightest_bytes: answer
            .tightest
            .map(|index| answer.plans[index].peaks.reserved + fit.context_bytes),
        not_applicable: answer
            .not_applicable
            .iter()
            .map(|(lever, reason)| json!({"lever": lever, "reason": reason}))
            .collect(),
        causes: answer
            .causes
            .iter()
            .map(|cause| {
                let remedies: Vec<Value> = cause
                    .remedies
                    .iter()
                    .map(|(id, change)| json!({"id": id, "change": change}))
                    .collect();
                json!({"title": cause.title, "bytes": cause.bytes, "remedies": remedies})
            })
            .collect(),
        trials: fit.trials.run,
        remembered: fit.trials.remembered,
        all_trials: fit.trials.mirror(),
        exit_code: fit.exit_code(),
    };
    serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"
}

fn plan(fit: &Fit, plan: &::fit::plan::Plan) -> Plan {
    let device_bytes = plan.peaks.reserved + fit.context_bytes;
    Plan {
        levers: plan.levers.iter().map(lever).collect(),
        label: plan.label.name(),
        fits: plan.outcome == Outcome::Fits,
        verdict: word(&plan.outcome),
        peak_allocated_bytes: plan.peaks.allocated,
        peak_reserved_bytes: plan.peaks.reserved,
        device_bytes,
        headroom_bytes: fit.available_bytes() as i64 - device_bytes as i64,
        // Every plan here was run on the phantom.
        verified: true,
        cost: Cost { flops_ratio: plan.cost_ratio, known: "modelled" },
        patch: super::patch(fit, plan),
        is_diff: matches!(plan.written, Some(Written::Patch { .. })),
        in_the_way: match &plan.written {
            Some(Written::InTheWay(why)) => why.clone(),
            _ => Vec::new(),
        },
        by_retries: plan.by_retries,
    }
}

fn lever(lever: &Lever) -> Value {
    match lever {
        Lever::Plain(id) => json!({"id": id}),
        Lever::Allocator(settings) => json!({"id": "allocator", "settings": settings}),
        Lever::Selective(modules) => {
            json!({"id": "selective-checkpoint", "modules": modules})
        }
        Lever::Checkpoint(modules) => json!({"id": "checkpoint", "modules": modules}),
        Lever::Freeze(modules) => json!({"id": "freeze", "modules": modules}),
        Lever::Accumulate(parts) => json!({"id": "accumulate", "parts": parts}),
        Lever::Own(own) => {
            let (name, like, set) = (&own.name, &own.like, &own.shown);
            json!({"id": "own-setting", "name": name, "like": like, "set": set, "parts": own.parts})
        }
        Lever::Shard(count) => json!({"id": "fsdp", "gpus": count}),
        Lever::Knob { name, value } => json!({"id": "knob", "name": name, "value": value}),
    }
}
