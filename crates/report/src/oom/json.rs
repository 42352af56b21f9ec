//! `fathom.oom/1`. Amounts have the bytes that the text says, and the range that its rounding leaves open.

use std::collections::BTreeMap;

use oom::{Amount, Ledger};
use serde::Serialize;
use serde_json::{Value, json as value};

use study::Sought;

use super::{Entry, Texts, sentences, verdict, why};

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    verdict: Option<String>,
    family: Option<&'static str>,
    memory: Option<&'static str>,
    sure: Option<bool>,
    /// The user's line that asked.
    asked_at: Option<Value>,
    cause: Option<&'static str>,
    tried_bytes: Option<u64>,
    capacity_bytes: Option<u64>,
    free_bytes: Option<u64>,
    allocated_bytes: Option<u64>,
    reserved_bytes: Option<u64>,
    reserved_unallocated_bytes: Option<u64>,
    this_process_bytes: Option<u64>,
    other_processes_bytes: Option<u64>,
    candidates: Vec<Value>,
    /// The candidates are usual shapes, not made of dimensions that were given.
    guessed: bool,
    /// One size of the candidates was not given, and is solved for.
    solved: bool,
    refuted: Vec<Value>,
    advice: Vec<Value>,
    ledger: Vec<Value>,
    reconciliation: Option<Value>,
    found: Option<Value>,
    accounts: Vec<Value>,
    next: Vec<Value>,
}

/// The answer as JSON, with a line break at the end.
pub fn json(texts: &Texts) -> String {
    let entry = texts.main();
    let figures = entry.map(|entry| entry.account.figures.clone()).unwrap_or_default();
    let bytes = |amount: Option<Amount>| amount.map(Amount::middle);
    let others = entry.and_then(|entry| entry.balance.others).map(|(others, _)| others);
    let solution = texts.solution.as_ref();
    let report = Report {
        schema: "fathom.oom/1",
        verdict: entry.map(verdict::verdict),
        family: entry.map(|entry| entry.account.family.id),
        memory: entry.map(|entry| entry.account.memory.name()),
        sure: entry.map(|entry| entry.account.sure),
        asked_at: entry.and_then(|entry| frame(entry.account.traceback.as_ref()?.user()?)),
        cause: entry.map(|entry| entry.balance.cause.name()),
        tried_bytes: bytes(entry.and_then(|entry| entry.account.tried())),
        capacity_bytes: bytes(figures.capacity),
        free_bytes: bytes(figures.free),
        allocated_bytes: bytes(figures.allocated),
        reserved_bytes: bytes(figures.reserved),
        reserved_unallocated_bytes: bytes(figures.unallocated),
        this_process_bytes: bytes(figures.this_process),
        other_processes_bytes: bytes(others),
        candidates: solution.map(candidates).unwrap_or_default(),
        guessed: solution.is_some_and(|solution| solution.guessed),
        solved: solution.is_some_and(|solution| solution.solved),
        refuted: refuted(texts),
        advice: entry.map(advice).unwrap_or_default(),
        ledger: entry.map(|entry| ledger(&entry.balance.ledger)).unwrap_or_default(),
        reconciliation: texts.reconciliation.as_ref().map(|all| {
            let wrong = all.contradictions.iter().map(|wrong| {
                value!({"larger": wrong.larger, "smaller": wrong.smaller, "by_bytes": wrong.by.middle()})
            });
            value!({"ledger": ledger(&all.ledger), "contradictions": wrong.collect::<Vec<_>>()})
        }),
        found: texts.sought.as_ref().map(found),
        accounts: texts.entries.iter().map(account).collect(),
        next: texts
            .next
            .iter()
            .map(|next| value!({"why": next.why, "command": next.command}))
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&report).expect("plain data serialises");
    text.push('\n');
    text
}

/// `{"bytes": …, "low": …, "high": …}`
fn amount(amount: Option<Amount>) -> Value {
    amount.map_or(
        Value::Null,
        |amount| value!({"bytes": amount.middle(), "low": amount.low, "high": amount.high}),
    )
}

fn candidates(solution: &oom::Solution) -> Vec<Value> {
    let row = |candidate: &oom::Candidate| {
        value!({
            "shape": candidate.shape.0,
            "dtype": candidate.dtype.name,
            "expression": candidate.expression(),
            "bytes": candidate.bytes,
        })
    };
    solution.candidates.iter().map(row).collect()
}

fn refuted(texts: &Texts) -> Vec<Value> {
    let row = |claim: &oom::Refutation| {
        let sizes =
            claim.bytes.iter().map(|(dtype, all)| value!({"dtype": dtype.name, "bytes": all}));
        value!({
            "shape": claim.shape.0,
            "fits": claim.fits.map(|dtype| dtype.name),
            "bytes": sizes.collect::<Vec<_>>(),
            "multiple": claim.multiple.map(|(times, _)| times),
        })
    };
    texts.claims.iter().map(row).collect()
}

fn advice(entry: &Entry) -> Vec<Value> {
    let row = |advice: &oom::Advice| {
        value!({
            "id": advice.remedy.name(),
            "in_message": advice.said.is_some(),
            "helps": advice.helps.name(),
            "reach": amount(advice.reach),
            "gap": amount(advice.gap),
            "known": advice.known.name(),
            "text": sentences::advice(advice, &entry.account),
        })
    };
    entry.advice.iter().map(row).collect()
}

fn ledger(rows: &Ledger) -> Vec<Value> {
    let row = |row: &oom::Row| {
        value!({
            "name": row.name,
            "bytes": row.amount.middle(),
            "low": row.amount.low,
            "high": row.amount.high,
            "known": row.known.name(),
            "depth": row.depth,
        })
    };
    rows.iter().map(row).collect()
}

fn account(entry: &Entry) -> Value {
    let account = &entry.account;
    let figures = &account.figures;
    let processes = account.processes.iter().map(|process| {
        value!({"pid": process.pid, "name": process.name, "memory": amount(Some(process.memory))})
    });
    value!({
        "file": entry.file,
        "line": account.line,
        "times": account.times,
        "family": account.family.id,
        "kind": account.kind.name(),
        "memory": account.memory.name(),
        "sure": account.sure,
        "other_error": account.other_error,
        "rank": account.rank,
        "means": account.family.means,
        "why": why::why(entry),
        "facts": oom::facts(account, entry.balance.cause).into_iter().map(|fact| {
            value!({"says": fact.says, "source": fact.source})
        }).collect::<Vec<_>>(),
        "asked_at": account.traceback.as_ref().and_then(|calls| frame(calls.user()?)),
        "through": account.traceback.as_ref().and_then(|calls| frame(calls.library()?)),
        "counts": account.counts.iter().map(|count| (count.name, count.value)).collect::<BTreeMap<_, _>>(),
        "device": account.device,
        "card": account.card,
        "cause": entry.balance.cause.name(),
        "tried": amount(account.tried()),
        "capacity": amount(figures.capacity),
        "free": amount(figures.free),
        "allocated": amount(figures.allocated),
        "reserved": amount(figures.reserved),
        "reserved_unallocated": amount(figures.unallocated),
        "private_pools": amount(figures.private_pools),
        "this_process": amount(figures.this_process),
        "limit": amount(figures.limit),
        "planned": amount(figures.planned),
        "used": amount(figures.used),
        "peak_allocated": amount(figures.peak_allocated),
        "peak_reserved": amount(figures.peak_reserved),
        "processes": processes.collect::<Vec<_>>(),
        "tensor": account.tensor.as_ref().map(|tensor| {
            value!({"shape": tensor.shape, "dtype": tensor.dtype, "bytes": tensor.bytes()})
        }),
    })
}

fn frame(frame: &oom::Frame) -> Option<Value> {
    Some(value!({
        "file": frame.file,
        "line": frame.line,
        "function": frame.function,
        "source": frame.source,
    }))
}

fn found(sought: &Sought) -> Value {
    let origin = |origin: &anatomy::Origin| {
        value!({
            "module": origin.module,
            "operator": if origin.operator.is_empty() { &origin.node } else { &origin.operator },
            "file": origin.file,
            "line": origin.line,
        })
    };
    let allocation = |alike: &anatomy::Alike| {
        let tensor = &alike.first;
        value!({
            "count": alike.count,
            "bytes": tensor.bytes,
            "shape": tensor.shape,
            "dtype": tensor.dtype,
            "step": tensor.born.step,
            "phase": tensor.born.phase.map(|phase| phase.name()),
            "origin": origin(&tensor.origin),
        })
    };
    let list = |all: &[anatomy::Alike]| all.iter().map(allocation).collect::<Vec<_>>();
    value!({
        "memory_bytes": sought.memory_bytes,
        "torch": sought.torch,
        "steps": sought.steps,
        "refused": sought.refused.as_ref().map(|refused| {
            value!({"bytes": refused.bytes, "origin": origin(&refused.origin)})
        }),
        "matches": list(&sought.matches),
        "nearest": list(&sought.nearest),
    })
}
