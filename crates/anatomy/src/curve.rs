//! Categories at every event.

use recording::Recording;

use crate::categories::Categories;
use crate::lives::Lives;
use allocator::Timeline;

/// For each event of the timeline in order: its index, and the bytes of each category after it.
pub fn curve(recording: &Recording, timeline: &Timeline) -> Vec<(usize, Categories)> {
    let lives = Lives::of(recording, timeline);
    over(&lives, timeline.moments.len()).collect()
}

/// As [`curve`], of lives that are known, without a list.
pub fn over(lives: &Lives, events: usize) -> impl Iterator<Item = (usize, Categories)> + '_ {
    let mut births = lives.list.iter().peekable();
    let mut frees = lives.frees.iter().map(|life| &lives.list[*life as usize]).peekable();
    let mut bytes = Categories::default();
    (0..=events).filter_map(move |time| {
        while let Some(life) = births.next_if(|life| life.born <= time) {
            bytes.add(life.category, life.requested, life.block);
        }
        while let Some(life) = frees.next_if(|life| life.freed <= time) {
            bytes.take(life.category, life.requested, life.block);
        }
        time.checked_sub(1).map(|index| (index, bytes))
    })
}
