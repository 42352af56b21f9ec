//! Without what PyTorch would have gone on without.

use crate::lives::Life;

/// The most bytes of blocks that are handed out at once, soft ones left out.
pub(crate) fn peak(lives: &[Life]) -> u64 {
    let mut changes: Vec<(usize, i128)> = Vec::with_capacity(2 * lives.len());
    for life in lives.iter().filter(|life| !life.is_soft) {
        changes.push((life.born, life.block.into()));
        changes.push((life.freed, -i128::from(life.block)));
    }
    // What ends at an event has ended before what begins there.
    changes.sort_unstable();
    let mut now = 0;
    let sums = changes.into_iter().map(|(_, change)| {
        now += change;
        now
    });
    sums.max().and_then(|most| u64::try_from(most).ok()).unwrap_or(0)
}
