//! Ranks side by side: which needs most, and what it has more than the others.

use serde::Serialize;

use crate::bytes;
use study::{Rank, Ranks};

/// Rows of the table that are shown unless everything is asked for.
const SHOWN: usize = 8;

/// Categories that are named as the reason why one rank needs more.
const NAMED: usize = 3;

/// The rows of a table, the first with the world.
pub(crate) fn rows(ranks: &Ranks, is_all: bool) -> Vec<String> {
    let Ranks { world_size, per_node, worst, rows } = ranks;
    let nodes = world_size / per_node.max(&1);
    let about = format!(
        "{world_size} on {nodes} × {per_node} cards; {} ran, and what follows is rank {worst}",
        rows.len()
    );
    let mut text = vec![about];
    if rows.len() < 2 {
        return text;
    }
    text.push(format!(
        "{:>6}  {:>11}  {:>11}  {:>11}  peak in",
        "rank", "allocated", "reserved", "card"
    ));
    let shown = if is_all { rows.len() } else { SHOWN };
    for row in rows.iter().take(shown) {
        let [allocated, reserved, device] = row.peaks.map(bytes::text);
        let asked = if row.is_asked { "" } else { "  (ran for what it sends)" };
        text.push(format!(
            "{:>6}  {allocated:>11}  {reserved:>11}  {device:>11}  {}{asked}",
            row.rank, row.phase
        ));
    }
    if shown < rows.len() {
        text.push(format!("… {} more", rows.len() - shown));
    }
    text.extend(why_worst(ranks));
    text
}

/// What the worst rank has more than the one that needs least.
fn why_worst(ranks: &Ranks) -> Option<String> {
    let worst = ranks.rows.iter().find(|row| row.rank == ranks.worst)?;
    let least = ranks.rows.iter().min_by_key(|row| row.peaks[2])?;
    let more = worst.peaks[2].saturating_sub(least.peaks[2]);
    if ranks.rows.iter().all(|row| row.peaks[2] == least.peaks[2]) {
        return Some("all of them need the same".to_owned());
    }
    // A rank that failed is the worst, though others got further and needed more.
    if more == 0 {
        return None;
    }
    let of = |row: &Rank, name: &str| {
        row.categories.iter().find(|(other, _)| *other == name).map_or(0, |(_, bytes)| *bytes)
    };
    let mut reasons: Vec<(u64, &str)> = worst
        .categories
        .iter()
        .map(|&(name, bytes)| (bytes.saturating_sub(of(least, name)), name))
        .filter(|(bytes, _)| 0 < *bytes)
        .collect();
    reasons.sort_unstable_by(|a, b| b.cmp(a));
    let reasons: Vec<String> = reasons
        .iter()
        .take(NAMED)
        .map(|(bytes, name)| format!("{name} +{}", bytes::text(*bytes)))
        .collect();
    let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    Some(format!(
        "rank {} needs {} more than rank {}{why}",
        worst.rank,
        bytes::text(more),
        least.rank
    ))
}

#[derive(Serialize)]
pub(crate) struct JsonWorld {
    size: u32,
    gpus_per_node: u32,
    nodes: u32,
    worst_rank: u32,
}

#[derive(Serialize)]
pub(crate) struct JsonRank<'a> {
    rank: u32,
    asked: bool,
    verdict: &'static str,
    steps: u64,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
    device_bytes: u64,
    phase: &'a str,
    step: u64,
    categories: Vec<JsonCategory>,
    wall_seconds: f64,
}

#[derive(Serialize)]
struct JsonCategory {
    name: &'static str,
    bytes: u64,
}

pub(crate) fn json(ranks: &Ranks) -> (JsonWorld, Vec<JsonRank<'_>>) {
    let world = JsonWorld {
        size: ranks.world_size,
        gpus_per_node: ranks.per_node,
        nodes: ranks.world_size / ranks.per_node.max(1),
        worst_rank: ranks.worst,
    };
    let rows = ranks.rows.iter().map(|row| JsonRank {
        rank: row.rank,
        asked: row.is_asked,
        verdict: row.verdict,
        steps: row.steps,
        peak_allocated_bytes: row.peaks[0],
        peak_reserved_bytes: row.peaks[1],
        device_bytes: row.peaks[2],
        phase: &row.phase,
        step: row.step,
        categories: row
            .categories
            .iter()
            .map(|&(name, bytes)| JsonCategory { name, bytes })
            .collect(),
        wall_seconds: (row.wall_seconds * 1000.0).round() / 1000.0,
    });
    (world, rows.collect())
}
