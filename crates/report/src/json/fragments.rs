//! The versioned mirror of memory in pieces.

use serde::Serialize;

use crate::why::why;
use study::fragments::{Fragments as Pieces, Pool, PoolUse, SettingsTrial, Shortage as Short};

#[derive(Serialize)]
pub(crate) struct Fragments<'a> {
    /// `out_of_memory` or `allocated_peak`: when it was like this.
    at: &'static str,
    pools: Vec<Row>,
    shortage: Option<Shortage<'a>>,
}

#[derive(Serialize)]
struct Row {
    kind: &'static str,
    stream: u64,
    /// A private pool, as PyTorch numbers it; [0, 0] is the default pool.
    pool: (u32, u32),
    segments: usize,
    reserved_bytes: u64,
    allocated_bytes: u64,
    waiting_bytes: u64,
    free_bytes: u64,
    free_blocks: usize,
    largest_free_bytes: u64,
    releasable_bytes: u64,
}

#[derive(Serialize)]
struct Shortage<'a> {
    cause: &'static str,
    /// The same in words.
    reason: String,
    request_bytes: u64,
    segment_bytes: u64,
    card_free_bytes: u64,
    own: Row,
    other_streams_free_bytes: u64,
    other_streams_largest_bytes: u64,
    other_kind_free_bytes: u64,
    other_pools_free_bytes: u64,
    missing_bytes: u64,
    /// Settings under which a replay met the request; null if none did.
    remedy: Option<&'a str>,
    trials: Vec<Trial<'a>>,
}

#[derive(Serialize)]
struct Trial<'a> {
    settings: &'a str,
    met: bool,
    /// Whether blocks older than the recording had to be laid out by a model.
    modelled: bool,
}

impl<'a> Fragments<'a> {
    pub(crate) fn of(pieces: &'a Pieces) -> Fragments<'a> {
        let failed = pieces.shortage.is_some();
        Fragments {
            at: if failed { "out_of_memory" } else { "allocated_peak" },
            pools: pieces.pools.iter().map(row).collect(),
            shortage: pieces.shortage.as_ref().map(shortage),
        }
    }
}

fn row(row: &PoolUse) -> Row {
    let Pool { private, large, stream } = row.pool;
    Row {
        kind: if large { "large" } else { "small" },
        stream,
        pool: private,
        segments: row.segments,
        reserved_bytes: row.reserved_bytes,
        allocated_bytes: row.allocated_bytes,
        waiting_bytes: row.waiting_bytes,
        free_bytes: row.free_bytes,
        free_blocks: row.free_blocks,
        largest_free_bytes: row.largest_free_bytes,
        releasable_bytes: row.releasable_bytes,
    }
}

fn shortage(short: &Short) -> Shortage<'_> {
    Shortage {
        cause: short.cause.name(),
        reason: why(short),
        request_bytes: short.request_bytes,
        segment_bytes: short.segment_bytes,
        card_free_bytes: short.card_free_bytes,
        own: row(&short.own),
        other_streams_free_bytes: short.other_streams_free_bytes,
        other_streams_largest_bytes: short.other_streams_largest_bytes,
        other_kind_free_bytes: short.other_kind_free_bytes,
        other_pools_free_bytes: short.other_pools_free_bytes,
        missing_bytes: short.missing_bytes,
        remedy: short.remedy().map(|trial| trial.settings.as_str()),
        trials: short.trials.iter().map(trial).collect(),
    }
}

fn trial(trial: &SettingsTrial) -> Trial<'_> {
    Trial { settings: &trial.settings, met: trial.met, modelled: trial.modelled }
}
