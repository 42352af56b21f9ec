//! What a shortened training showed: the row `whole` of the text, and `whole` of the JSON.

use serde::Serialize;
use study::{BatchOrder, Batches, Phase, PhaseSeen, Run, Varies, Whole, WholeCame};

use crate::bytes;

/// Sentences, each a paragraph of its own.
pub(crate) fn rows(run: &Run, is_all: bool) -> Vec<String> {
    let Some(whole) = &run.whole else { return Vec::new() };
    let mut rows = vec![came(whole, is_all)];
    match (unseen(whole), rows.last_mut()) {
        (Some(unseen), Some(first)) if !is_all => *first += &format!("; {unseen}"),
        (unseen, _) => rows.extend(unseen),
    }
    rows.extend(orders(whole));
    // An evaluation makes its loader anew each time.
    for row in whole.batches.iter().filter_map(sizes) {
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    if 0 < run.unseen_bytes() {
        rows.extend(whole.batches.iter().filter_map(grows));
    }
    if !whole.refused.is_empty() {
        let refused = whole.refused.join(", ");
        rows.push(format!(
            "a shortened training starts no programs and connects to nothing: {refused} refused"
        ));
    }
    rows
}

/// `shortened training, 104 steps: new evaluation 3.20 GiB`, or every phase.
fn came(whole: &Whole, is_all: bool) -> String {
    let steps = steps(whole.steps);
    let phase = |row: &PhaseSeen| {
        let new = if row.plain.is_none() { " (new)" } else { "" };
        format!("{} {}{new}", words(row.phase), bytes::text(row.allocated))
    };
    let shown = whole.phases.iter().filter(|row| is_all || row.plain.is_none());
    let phases: Vec<String> = shown.map(phase).collect();
    if phases.is_empty() && matches!(whole.came, WholeCame::Through) {
        let end = if whole.has_ended { ", to the script's end" } else { "" };
        return format!("no new phase in {steps}{end}");
    }
    let phases = phases.join(", ");
    match &whole.came {
        WholeCame::Through if whole.has_ended => {
            format!("shortened training, to the script's end after {steps}: {phases}")
        }
        WholeCame::Through => format!("shortened training, {steps}: {phases}"),
        WholeCame::RanOut => format!("shortened training, out of memory after {steps}: {phases}"),
        WholeCame::Failed(why) => format!("the shortened training failed after {steps}: {why}"),
        WholeCame::NotRun(why) => format!("no shortened training was run: {why}"),
    }
}

/// `5 orders of batches: peaks of 1.02 to 1.80 GiB, median 1.31 GiB; the largest in step 7, batch 8192 × 512`.
fn orders(whole: &Whole) -> Option<String> {
    let mut peaks: Vec<&BatchOrder> = whole.orders.iter().collect();
    peaks.sort_by_key(|order| (order.ran_out, order.allocated));
    let (least, most) = peaks.first().zip(peaks.last())?;
    let [least, median] = [least, &peaks[peaks.len() / 2]].map(|it| bytes::text(it.allocated));
    let batch = match most.batch.is_empty() {
        true => String::new(),
        false => format!(", batch {}", shape(&most.batch)),
    };
    let out = peaks.iter().filter(|order| order.ran_out).count();
    let out = if out == 0 { String::new() } else { format!("; out of memory in {out} of them") };
    Some(format!(
        "{} orders of batches: peaks of {least} to {}, median {median}; the largest in step {}{batch}{out}",
        peaks.len(),
        bytes::text(most.allocated),
        most.step
    ))
}

fn steps(count: u64) -> String {
    if count == 1 { "1 step".to_owned() } else { format!("{count} steps") }
}

/// What is not part of the answer.
fn unseen(whole: &Whole) -> Option<String> {
    let is_known = matches!(whole.came, WholeCame::Through | WholeCame::RanOut);
    if whole.is_inference() && !whole.has_ended {
        return Some("not seen: what the script does after these calls".to_owned());
    }
    let names: Vec<String> = whole.unseen().into_iter().map(words).collect();
    match (names.is_empty(), is_known) {
        (true, _) => None,
        (false, true) => Some(format!("not seen: {}", names.join(", "))),
        (false, false) => {
            Some(format!("the answer is of the first steps; not seen: {}", names.join(", ")))
        }
    }
}

/// The sizes of batches, where they vary.
fn sizes(batches: &Batches) -> Option<String> {
    let Varies { tensor, smallest, largest, was_run } = batches.varies.as_ref()?;
    let kind = if batches.is_evaluation { "batches of the evaluation" } else { "batches" };
    let looked_at = looked_at(batches);
    let run = match (was_run, batches.is_evaluation) {
        (false, _) => "the largest was not run again",
        (true, true) => "the largest was run",
        (true, false) => "the largest was run after the first step",
    };
    Some(format!(
        "{kind} vary: `{tensor}` {} to {} in {looked_at} looked at; {run}",
        shape(smallest),
        shape(largest)
    ))
}

/// `32 of 5000`.
pub(crate) fn looked_at(batches: &Batches) -> String {
    match batches.count {
        Some(count) if batches.are_all_looked_at() => format!("all {count}"),
        Some(count) => format!("{} of {count}", batches.looked_at),
        None => format!("the first {}", batches.looked_at),
    }
}

fn shape(sizes: &[u64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    sizes.join(" × ")
}

/// What an evaluation keeps of each batch, where not all were run.
fn grows(batches: &Batches) -> Option<String> {
    let count = batches.count.filter(|_| batches.unseen_bytes() != 0)?;
    Some(format!(
        "each batch of the evaluation leaves {} on the GPU; {} of {count} were run, all would take {} more",
        bytes::text(batches.grows),
        batches.given,
        bytes::text(batches.unseen_bytes())
    ))
}

fn words(phase: Phase) -> String {
    phase.name().replace('_', " ")
}

/// ` in evaluation, after step 2 of the shortened training`.
pub(crate) fn when_short(phase: &str, step: u64) -> String {
    match phase {
        "" | "construction" => crate::moment::when(phase, step),
        "evaluation" | "saving" if 1 < step => {
            format!(" in {phase}, after step {} of the shortened training", step - 1)
        }
        _ => format!(" in {phase}, step {step} of the shortened training"),
    }
}

#[derive(Serialize)]
pub(crate) struct JsonWhole<'a> {
    /// `through`, `ran_out`, `failed` or `not_run`.
    came: &'static str,
    why: Option<&'a str>,
    is_reported: bool,
    steps: u64,
    has_ended: bool,
    phases: Vec<JsonPhase>,
    unseen: Vec<&'static str>,
    /// Lines of the script that begin an evaluation and were not reached.
    unreached: &'a [String],
    batches: Vec<JsonBatches<'a>>,
    unseen_bytes: u64,
    refused: &'a [String],
    /// With `--batch-order shuffle`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    orders: Vec<JsonOrder<'a>>,
}

#[derive(Serialize)]
struct JsonOrder<'a> {
    seed: u64,
    peak_allocated_bytes: u64,
    device_bytes: u64,
    peak_step: u64,
    largest_batch: &'a [u64],
    ran_out: bool,
}

impl<'a> JsonOrder<'a> {
    fn of(order: &'a BatchOrder) -> JsonOrder<'a> {
        JsonOrder {
            seed: order.seed,
            peak_allocated_bytes: order.allocated,
            device_bytes: order.device,
            peak_step: order.step,
            largest_batch: &order.batch,
            ran_out: order.ran_out,
        }
    }
}

#[derive(Serialize)]
struct JsonPhase {
    name: &'static str,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
    /// In the plain run.
    plain_allocated_bytes: Option<u64>,
}

#[derive(Serialize)]
struct JsonBatches<'a> {
    is_evaluation: bool,
    count: Option<u64>,
    given: u64,
    looked_at: u64,
    varies: Option<&'a str>,
    smallest: &'a [u64],
    largest: &'a [u64],
    was_largest_run: bool,
    grows_bytes: u64,
}

impl<'a> JsonWhole<'a> {
    pub(crate) fn of(run: &'a Run) -> Option<JsonWhole<'a>> {
        let whole = run.whole.as_ref()?;
        let phase = |row: &PhaseSeen| JsonPhase {
            name: row.phase.name(),
            peak_allocated_bytes: row.allocated,
            peak_reserved_bytes: row.reserved,
            plain_allocated_bytes: row.plain,
        };
        Some(JsonWhole {
            came: whole.came.name(),
            why: whole.came.why(),
            is_reported: whole.is_reported,
            steps: whole.steps,
            has_ended: whole.has_ended,
            phases: whole.phases.iter().map(phase).collect(),
            unseen: whole.unseen().into_iter().map(Phase::name).collect(),
            unreached: whole.unreached(),
            batches: whole.batches.iter().map(JsonBatches::of).collect(),
            unseen_bytes: run.unseen_bytes(),
            refused: &whole.refused,
            orders: whole.orders.iter().map(JsonOrder::of).collect(),
        })
    }
}

impl<'a> JsonBatches<'a> {
    fn of(batches: &'a Batches) -> JsonBatches<'a> {
        let varies = batches.varies.as_ref();
        JsonBatches {
            is_evaluation: batches.is_evaluation,
            count: batches.count,
            given: batches.given,
            looked_at: batches.looked_at,
            varies: varies.map(|varies| varies.tensor.as_str()),
            smallest: varies.map_or(&[], |varies| &varies.smallest),
            largest: varies.map_or(&[], |varies| &varies.largest),
            was_largest_run: varies.is_some_and(|varies| varies.was_run),
            grows_bytes: batches.grows,
        }
    }
}
