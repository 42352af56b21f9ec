//! The model's size, and the ledger from the card's total down.

use anatomy::{Anatomy, Dissection, Entry, Known, Part, Saved};

use super::columns::count;
use crate::bytes;

/// How many parameters the model has.
pub(super) fn model(anatomy: &Anatomy) -> Vec<String> {
    let Some(counts) = anatomy.parameters.filter(|counts| counts.total != 0) else {
        return Vec::new();
    };
    let mut text = format!("{} parameters", count(counts.total));
    for (number, word) in [(counts.frozen, "frozen"), (counts.unused, "without a gradient")] {
        if number != 0 {
            text += &format!(", {} {word}", count(number));
        }
    }
    let mut rows = vec![text];
    rows.extend(anatomy.saved.and_then(outputs));
    rows
}

/// People add up the outputs of modules with hooks: how far that is from what autograd keeps.
fn outputs(saved: Saved) -> Option<String> {
    let ratio = saved.outputs as f64 / saved.kept as f64;
    let way = match format!("{ratio:.2}").as_str() {
        "1.00" => return None,
        _ if ratio < 1.0 => "underestimate",
        _ => "overestimate",
    };
    (saved.kept != 0 && saved.outputs != 0).then(|| {
        let (outputs, kept) = (bytes::text(saved.outputs), bytes::text(saved.kept));
        format!(
            "forward hooks would {way} activations by {ratio:.2}× ({outputs} instead of {kept})"
        )
    })
}

/// Sums: the card's, that of what PyTorch reserved, and the same at the allocated peak if it differs.
pub(super) fn ledger(anatomy: &Anatomy, at: &Dissection, is_full: bool) -> Vec<String> {
    let most = &anatomy.reserved_peak;
    if is_full {
        let mut rows = vec!["at the reserved peak".to_owned()];
        rows.extend(most.ledger.iter().map(row));
        if most.time != at.time {
            let is_peak = at.time == anatomy.allocated_peak.time;
            rows.push(if is_peak { "at the allocated peak" } else { "when it failed" }.to_owned());
            rows.extend(at.ledger.iter().map(row));
        }
        return rows;
    }
    let card = most.ledger.iter().find(|row| row.part == Part::Card);
    let mut rows = card.map(|card| sum(card, &most.ledger, 1, "")).unwrap_or_default();
    let reserved = |at: &Dissection, when: &str| {
        let whole = at.ledger.iter().find(|row| row.part == Part::Reserved);
        whole.map(|whole| sum(whole, &at.ledger, 2, when)).unwrap_or_default()
    };
    // What fills the card when most is in use says more than the moment at which the cache is largest.
    let when = match (most.reserved == at.reserved, at.time == anatomy.allocated_peak.time) {
        (true, _) => "",
        (false, true) => "allocated peak: ",
        (false, false) => "when it failed: ",
    };
    rows.extend(reserved(at, when));
    rows
}

fn sum(whole: &Entry, rows: &[Entry], depth: u8, when: &str) -> Vec<String> {
    let parts = rows.iter().filter(|row| row.part.depth() == depth && row.bytes != 0);
    // What matters most comes first: what is used, then what is not.
    let mut parts: Vec<String> = parts
        .rev()
        .map(|row| format!("{} {}", word(row.part.name()), bytes::text(row.bytes)))
        .collect();
    if let Some(first) = parts.first_mut() {
        *first =
            format!("{when}{} {} = {first}", word(whole.part.name()), bytes::text(whole.bytes));
    }
    vec![parts.join(" + ")]
}

fn row(row: &Entry) -> String {
    let known = match row.known {
        Known::Measured => "measured",
        Known::Modelled => "modelled",
        Known::Assumed => "assumed",
    };
    let indent = "  ".repeat(usize::from(row.part.depth()) + 1);
    let name = format!("{indent}{}", word(row.part.name()));
    format!("{name:<34}{:>12}  {known}", bytes::text(row.bytes))
}

/// Names of rows for people.
fn word(name: &'static str) -> &'static str {
    match name {
        "cached_segments" => "cached",
        "cached_fragments" => "fragmentation",
        "waiting" => "waiting for a stream",
        "nccl" => "NCCL",
        "others" => "other processes",
        "programs" => "other programs",
        other => other,
    }
}
