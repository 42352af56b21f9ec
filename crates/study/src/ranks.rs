//! Ranks of one world, side by side.

use crate::run::Run;

#[derive(Clone, Debug)]
pub struct Rank {
    pub rank: u32,
    /// Whether it was asked for; others ran because one needed what they know.
    pub is_asked: bool,
    /// Fits or not.
    pub verdict: &'static str,
    /// Optimizer steps taken.
    pub steps: u64,
    /// Peaks, as PyTorch counts them, and the card's own count.
    pub peaks: [u64; 3],
    /// When the allocated peak was.
    pub phase: String,
    pub step: u64,
    /// Bytes at the allocated peak by category; they sum to it.
    pub categories: Vec<(&'static str, u64)>,
    /// From start to end.
    pub wall_seconds: f64,
}

/// The ranks of a run.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// How many there are in all.
    pub world_size: u32,
    /// Cards of a node.
    pub per_node: u32,
    /// Whom the report is about.
    pub worst: u32,
    /// Those that ran, by number.
    pub rows: Vec<Rank>,
}

impl Rank {
    /// One rank's row.
    pub fn of(rank: u32, is_asked: bool, run: &Run) -> Rank {
        let peak = run.peak.clone().unwrap_or_default();
        let at = run.anatomy().map(|anatomy| &anatomy.allocated_peak);
        Rank {
            rank,
            is_asked,
            verdict: run.verdict_name(),
            steps: run.steps,
            peaks: [peak.allocated.bytes, peak.reserved.bytes, peak.device_bytes],
            phase: peak.allocated.phase,
            step: peak.allocated.step,
            categories: at.map(|at| at.categories.iter().collect()).unwrap_or_default(),
            wall_seconds: run.wall_seconds,
        }
    }
}
