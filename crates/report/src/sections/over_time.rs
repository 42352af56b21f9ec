//! Phases with their own peaks, and what grows with every step.

use anatomy::{Anatomy, PhasePeak};

use super::columns::place;
use crate::bytes;

/// Places that grow on one screen.
const SITES: usize = 2;
/// Phases in one table, and columns of each.
const PHASES: usize = 5;
const WIDTH: usize = 16;

/// Every phase of every step, if these are `most` rows or fewer; else a table of the first step and the last.
pub(super) fn phases(anatomy: &Anatomy, most: Option<usize>) -> Vec<String> {
    let rows = anatomy.phases.iter().filter(|row| row.when.phase.is_some());
    if most.is_none_or(|most| rows.clone().count() <= most) {
        return rows.map(full).collect();
    }
    let steps = anatomy.first_step.iter().chain(&anatomy.steady_step).map(|step| step.step);
    let steps: Vec<u32> = steps.collect();
    let mut shown: Vec<&PhasePeak> = Vec::new();
    for row in rows.clone().filter(|row| steps.contains(&row.when.step)) {
        if shown.iter().all(|other| other.when.phase != row.when.phase) {
            shown.push(row);
        }
    }
    shown.truncate(PHASES);
    let head: String = shown
        .iter()
        .map(|row| format!("{:>WIDTH$}", name(row).replace("before ", "pre-")))
        .collect();
    let line = |step: u32| {
        let cell = |column: &&PhasePeak| {
            let is_it =
                |row: &&PhasePeak| (row.when.phase, row.when.step) == (column.when.phase, step);
            let size = rows.clone().find(is_it).map(|row| bytes::text(row.allocated));
            format!("{:>WIDTH$}", size.unwrap_or_default())
        };
        let cells: String = shown.iter().map(cell).collect();
        format!("step {step:<4}{cells}").trim_end().to_owned()
    };
    let head = (!shown.is_empty()).then(|| format!("{:9}{head}", ""));
    head.into_iter().chain(steps.into_iter().map(line)).collect()
}

fn full(row: &PhasePeak) -> String {
    format!(
        "step {:<4} {:<18} allocated {:>11}  reserved {:>11}",
        row.when.step,
        name(row),
        bytes::text(row.allocated),
        bytes::text(row.reserved)
    )
}

fn name(row: &PhasePeak) -> String {
    row.when.phase.map_or_else(String::new, |phase| phase.name().replace('_', " "))
}

/// Who holds what every step leaves behind.
pub(super) fn growth(anatomy: &Anatomy) -> Vec<String> {
    let growth = &anatomy.growth;
    let sites = growth.sites.iter().take(SITES).map(|site| {
        let origin = &site.origin;
        let operator = if origin.operator.is_empty() { &origin.node } else { &origin.operator };
        let place = match place(&origin.file, origin.line) {
            place if place.is_empty() => "an unknown line".to_owned(),
            place => place,
        };
        let operator = if operator.is_empty() { String::new() } else { format!(" by {operator}") };
        let blocks = if site.count == 1 { "block" } else { "blocks" };
        let text = format!(
            "{} more every step, made at {place}{operator}: {} {blocks}, {} by now",
            bytes::text(site.bytes_per_step),
            site.count,
            bytes::text(site.bytes),
        );
        let held = (!site.holder.is_empty()).then(|| format!("  held by {}", site.holder));
        std::iter::once(text).chain(held).collect::<Vec<_>>()
    });
    sites.flatten().collect()
}
