//! Short answers of the JSON that commands write.

use anatomy::bytes;
use serde_json::Value;

use super::outputs::{Answered, Cause, Delta, Number, Peak, Plan, Point, RunOutput, Share};

/// Rows of a list, at most.
const ROWS: usize = 6;

/// A field, by `/`; null where there is none.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    value.pointer(path).unwrap_or(&Value::Null)
}

pub(super) fn text(value: &Value, path: &str) -> String {
    maybe(value, path).unwrap_or_default()
}

pub(super) fn maybe(value: &Value, path: &str) -> Option<String> {
    at(value, path).as_str().map(str::to_owned)
}

pub(super) fn rows<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn texts(value: &Value, path: &str) -> Vec<String> {
    rows(value, path).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(super) fn number(value: &Value, path: &str, known: &'static str) -> Option<Number> {
    at(value, path).as_u64().map(|size| Number { bytes: size, shown: bytes::text(size), known })
}

/// The same; nothing is known where there is none.
pub(super) fn number_or_unknown(value: &Value, path: &str, known: &'static str) -> Number {
    let unknown = || Number { bytes: 0, shown: "not known".to_owned(), known: "unknown" };
    number(value, path, known).unwrap_or_else(unknown)
}

/// `fathom.report/1`.
pub(super) fn run(report: &Value, printed: &str) -> RunOutput {
    let has_failed = !at(report, "/failure").is_null();
    let would_need = number(report, "/beyond/need/bytes", "measured");
    let fits_on = rows(report, "/fits_on").iter();
    let fits_on = fits_on.map(|row| format!("{} ({})", text(row, "/name"), text(row, "/known")));
    RunOutput {
        headline: text(report, "/headline"),
        judgement: text(report, "/judgement"),
        gpu: maybe(report, "/gpu/title"),
        peak: peak(report),
        need: number(report, "/need/bytes", known_need(&text(report, "/need/known"))),
        would_need,
        causes: causes(report),
        categories: categories(report),
        lines: lines(report),
        not_the_cause: shares(rows(report, "/not_the_cause"), "/name"),
        answers: answers(report),
        fits_on: fits_on.take(ROWS).collect(),
        failure: maybe(report, "/failure"),
        printed: has_failed.then(|| printed.to_owned()),
        next: texts(report, "/next"),
        notes: [texts(report, "/warnings"), texts(report, "/notes")].concat(),
    }
}

/// A need that a run confirmed was measured; one by replay is derived from one.
fn known_need(word: &str) -> &'static str {
    match word {
        "run" | "enough" | "taken" => "measured",
        _ => "derived",
    }
}

fn peak(report: &Value) -> Option<Peak> {
    if at(report, "/peak").is_null() {
        return None;
    }
    // PyTorch's part is measured; the context beside it is the catalogue's, or of no known card.
    let context = match at(report, "/gpu/context_known").as_str() {
        Some("measured") => "modelled",
        _ => "assumed",
    };
    Some(Peak {
        allocated: number_or_unknown(report, "/peak/allocated_bytes", "measured"),
        reserved: number_or_unknown(report, "/peak/reserved_bytes", "measured"),
        device: number_or_unknown(report, "/peak/device_bytes", context),
        phase: maybe(report, "/peak/phase"),
    })
}

pub(super) fn causes(report: &Value) -> Vec<Cause> {
    // Who holds a byte was recorded, or inferred, as of a snapshot.
    let is_inferred = text(report, "/schema").starts_with("fathom.explain")
        && !texts(report, "/notes").is_empty();
    let known = if is_inferred { "derived" } else { "measured" };
    let cause = |row: &Value| Cause {
        title: text(row, "/title"),
        size: number_or_unknown(row, "/bytes", known),
        counted: at(row, "/counted").as_bool().unwrap_or(false),
        explanation: text(row, "/explanation"),
        grows_with: text(row, "/scales"),
        line: rows(row, "/evidence").first().and_then(place),
        remedies: rows(row, "/remedies").iter().map(remedy).collect(),
    };
    rows(report, "/findings").iter().take(ROWS).map(cause).collect()
}

fn remedy(row: &Value) -> String {
    format!("{} ({}): {}", text(row, "/id"), text(row, "/label"), text(row, "/change"))
}

/// `train.py:12`
fn place(row: &Value) -> Option<String> {
    let file = maybe(row, "/file").filter(|file| !file.is_empty())?;
    Some(format!("{file}:{}", at(row, "/line").as_u64().unwrap_or(0)))
}

pub(super) fn categories(report: &Value) -> Vec<Share> {
    let Some(held) = at(report, "/categories").as_object() else {
        return shares(rows(report, "/categories"), "/name");
    };
    let mut shares: Vec<Share> = held
        .iter()
        .filter_map(|(name, held)| Some((name, held.as_u64()?)))
        .filter(|(_, held)| *held != 0)
        .map(|(name, held)| Share {
            name: name.clone(),
            size: Number { bytes: held, shown: bytes::text(held), known: "measured" },
        })
        .collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.size.bytes));
    shares.truncate(ROWS);
    shares
}

pub(super) fn lines(report: &Value) -> Vec<Share> {
    let named = |row: &Value| {
        let source = text(row, "/source");
        let name = format!("{} {}", place(row)?, source.trim());
        Some(Share { name: name.trim().to_owned(), size: number(row, "/bytes", "measured")? })
    };
    rows(report, "/lines").iter().filter_map(named).take(ROWS).collect()
}

fn shares(rows: &[Value], name: &str) -> Vec<Share> {
    let share = |row: &Value| {
        Some(Share { name: maybe(row, name)?, size: number(row, "/bytes", "measured")? })
    };
    rows.iter().filter_map(share).take(ROWS).collect()
}

pub(super) fn answers(report: &Value) -> Vec<Answered> {
    let answer = |row: &Value| Answered {
        question: text(row, "/question"),
        effect: text(row, "/effect"),
        known: text(row, "/known"),
        at_most: number(row, "/at_most_bytes", "derived"),
        before: number(row, "/tried/before_allocated_bytes", "measured"),
        after: number(row, "/tried/after_allocated_bytes", "measured"),
        changes_results: maybe(row, "/label"),
        why: text(row, "/why"),
    };
    rows(report, "/answers").iter().map(answer).collect()
}

/// A plan of `fathom.fit/1`.
pub(super) fn plan(row: &Value) -> Plan {
    let lever = |row: &Value| match at(row, "/lever").as_str().or(row.as_str()) {
        Some(name) => name.to_owned(),
        None => row.to_string(),
    };
    Plan {
        levers: rows(row, "/levers").iter().map(lever).collect(),
        verdict: text(row, "/verdict"),
        label: text(row, "/label"),
        // The context is not PyTorch's.
        device: number_or_unknown(row, "/device_bytes", "modelled"),
        cost_ratio: at(row, "/cost/flops_ratio").as_f64(),
        patch: text(row, "/patch"),
    }
}

/// A point of `fathom.sweep/1`.
pub(super) fn point(row: &Value) -> Point {
    let values = at(row, "/values").as_object();
    let values = values.into_iter().flatten();
    let values: Vec<String> = values
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    Point {
        values: values.join(" "),
        gpu: text(row, "/gpu"),
        verdict: text(row, "/verdict"),
        device: number_or_unknown(row, "/device_bytes", "modelled"),
        allocated: number_or_unknown(row, "/peak_allocated_bytes", "measured"),
        failure: maybe(row, "/failure"),
    }
}

/// Rows of `fathom.diff/1` that changed most.
pub(super) fn deltas(report: &Value, path: &str) -> Vec<Delta> {
    let delta = |row: &Value| Delta {
        name: maybe(row, "/name")
            .or_else(|| maybe(row, "/path"))
            .or_else(|| place(row))
            .unwrap_or_else(|| "(not known)".to_owned()),
        before: at(row, "/a_bytes").as_u64().unwrap_or(0),
        after: at(row, "/b_bytes").as_u64().unwrap_or(0),
        delta: at(row, "/delta_bytes").as_i64().unwrap_or(0),
    };
    let mut deltas: Vec<Delta> =
        rows(report, path).iter().map(delta).filter(|row| row.delta != 0).collect();
    deltas.sort_by_key(|row| std::cmp::Reverse(row.delta.unsigned_abs()));
    deltas.truncate(ROWS);
    deltas
}

/// Rows as they are, in one line each: for what an agent reads and no program counts with.
pub(super) fn plain(report: &Value, path: &str) -> Vec<String> {
    rows(report, path).iter().map(Value::to_string).collect()
}
