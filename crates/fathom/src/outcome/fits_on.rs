//! On which cards of the catalogue a run without a card would fit.
//!
//! A card is named only if what is known of the run holds for it: torch has kernels that run on it, and its
//! memory less its own context has room for what the run needs. Where cuDNN's workspaces are part of the run,
//! they are those of the chip that stood in for a card: on others they differ, and the run fits them likely.

use gpus::Card;
use study::{Fit, FitsOn, Run};

/// The cards, by memory.
pub(super) fn fits_on(run: &Run, stand_in: &Card, targets: &[String]) -> Vec<FitsOn> {
    let Some(peak) = &run.peak else { return Vec::new() };
    // What a replay found to be enough, without the context of the card that stood in; it is of one process.
    let is_alone = run.processes.len() <= 1;
    let floor = run.floor_bytes.filter(|_| is_alone);
    let replayed = floor.map(|floor| floor.saturating_sub(stand_in.context_bytes));
    let known = |card: &Card| {
        let has_kernels = gpus::has_kernels(targets, card.compute_capability);
        let room = card.usable_bytes();
        // Each process with a context of its own.
        let has_room = peak.on_card(card.context_bytes) <= card.memory_bytes;
        let by_replay = replayed.is_some_and(|need| need <= room);
        match () {
            () if has_kernels == Some(false) => None,
            () if !has_room && !by_replay => None,
            () if !run.workspaces.is_empty() && !card.has_chip_of(stand_in) => Some(Fit::Likely),
            () if has_kernels.is_none() => Some(Fit::Likely),
            () if !has_room => Some(Fit::Replayed),
            () => Some(Fit::Measured),
        }
    };
    // Its own context on each card, and the least that is known to do.
    let need = |card: &Card| {
        let taken = peak.on_card(card.context_bytes);
        replayed.map_or(taken, |need| taken.min(need + card.context_bytes))
    };
    let mut cards: Vec<FitsOn> = gpus::cards()
        .iter()
        .filter_map(|card| {
            let (name, memory_bytes) = (card.name.to_owned(), card.memory_bytes);
            let need = need(card);
            let is_tight = run.is_tight_on(card, need);
            known(card).map(|known| FitsOn { name, memory_bytes, known, is_tight })
        })
        .collect();
    cards.sort_by_key(|card| card.memory_bytes);
    cards
}
