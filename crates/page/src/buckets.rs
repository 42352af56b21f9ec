//! The stacked curves at a coarse scale. A bucket of ticks is shown by the one at which most was
//! allocated: its bands are those of one true moment, and no peak is lost.

use anatomy::lives::{Lives, NEVER};

use crate::clock::Clock;
use crate::groups::{Dimension, of_phase, rounding};

/// At most this many buckets: more than a screen has columns.
const MOST: u32 = 8192;

/// One number for each bucket and band.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    /// Ticks in a bucket: a power of two.
    pub(crate) size: u32,
    /// For each bucket the tick that shows it.
    pub(crate) shown: Vec<u32>,
    /// For each dimension and each of its bands: bytes at those ticks.
    pub(crate) bands: Vec<Vec<Vec<u64>>>,
}

/// What happens at a tick.
#[derive(Clone, Copy)]
enum Change {
    Born(u32),
    Freed(u32),
}

impl Buckets {
    /// The curves of a recording; `kinds` gives the kind of each life.
    pub(crate) fn of(lives: &Lives, kinds: &[u32], clock: &Clock, by: &[Dimension]) -> Buckets {
        let changes = changes(lives, clock);
        let size = (clock.last() + 1).div_ceil(MOST).next_power_of_two();
        let shown = shown(lives, &changes, size);
        let mut bands: Vec<Vec<Vec<u64>>> =
            by.iter().map(|dimension| vec![Vec::new(); dimension.groups.len()]).collect();
        for (dimension, bands) in by.iter().zip(&mut bands) {
            let mut sums = Sums::new(lives, kinds, dimension);
            let mut next = shown.iter().copied().peekable();
            for (tick, here) in (0u32..).zip(&changes) {
                here.iter().for_each(|change| sums.apply(*change));
                if next.next_if_eq(&tick).is_some() {
                    bands.iter_mut().zip(&sums.bytes).for_each(|(band, sum)| band.push(*sum));
                }
            }
        }
        Buckets { size, shown, bands }
    }
}

/// What happens at each tick; at tick 0 all that was there before.
fn changes(lives: &Lives, clock: &Clock) -> Vec<Vec<Change>> {
    let mut changes = vec![Vec::new(); clock.last() as usize + 1];
    for (index, life) in (0u32..).zip(&lives.list) {
        changes[clock.tick(life.born) as usize].push(Change::Born(index));
        if life.freed != NEVER {
            changes[clock.tick(life.freed) as usize].push(Change::Freed(index));
        }
    }
    changes
}

/// The first tick of each bucket at which most is allocated.
fn shown(lives: &Lives, changes: &[Vec<Change>], size: u32) -> Vec<u32> {
    let mut allocated = 0u64;
    let mut best: Vec<(u64, u32)> = Vec::new();
    for (tick, here) in (0u32..).zip(changes) {
        for change in here {
            allocated = match change {
                Change::Born(life) => allocated.saturating_add(lives.list[*life as usize].block),
                Change::Freed(life) => allocated.saturating_sub(lives.list[*life as usize].block),
            };
        }
        match best.get_mut((tick / size) as usize) {
            None => best.push((allocated, tick)),
            Some(best) if best.0 < allocated => *best = (allocated, tick),
            Some(_) => {}
        }
    }
    best.into_iter().map(|(_, tick)| tick).collect()
}

/// Bytes of each band while time goes on.
struct Sums<'a> {
    lives: &'a Lives,
    kinds: &'a [u32],
    dimension: &'a Dimension,
    bytes: Vec<u64>,
}

impl<'a> Sums<'a> {
    fn new(lives: &'a Lives, kinds: &'a [u32], dimension: &'a Dimension) -> Sums<'a> {
        Sums { lives, kinds, dimension, bytes: vec![0; dimension.groups.len()] }
    }

    fn apply(&mut self, change: Change) {
        let (Change::Born(index) | Change::Freed(index)) = change;
        let life = &self.lives.list[index as usize];
        let band = match self.dimension.of_kind.get(self.kinds[index as usize] as usize) {
            Some(band) => usize::from(*band),
            None => of_phase(life),
        };
        // Among categories, what a block has beyond its request is a band of its own.
        let parts = match self.dimension.name {
            "category" => [(band, life.requested), (rounding(), life.block - life.requested)],
            _ => [(band, life.block), (0, 0)],
        };
        for (band, bytes) in parts {
            let sum = &mut self.bytes[band];
            *sum = match change {
                Change::Born(_) => sum.saturating_add(bytes),
                Change::Freed(_) => sum.saturating_sub(bytes),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use allocator::{Settings, reproduce};
    use recording::text;

    use super::*;
    use crate::groups::dimensions;
    use crate::kinds::Kinds;

    /// Three blocks, two with rounding; two of them go.
    const PROGRAM: &str = r#"
torch 2.15.0
segment_alloc 0x1000000 20971520
alloc 0x1000000 4194300
alloc 0x1400000 2097152
free_requested 0x1000000 4194300
free_completed 0x1000000 4194300
alloc 0x1000000 1500000
free_requested 0x1400000 2097152
free_completed 0x1400000 2097152
"#;

    #[test]
    fn bands_sum_to_what_is_allocated() {
        let recording = text::recording(PROGRAM.trim_start()).unwrap();
        let settings = Settings::of(&recording.about).unwrap();
        let result = reproduce(&recording, &settings);
        assert_eq!(result.difference, None);
        let lives = Lives::of(&recording, &result.timeline);
        let clock = Clock::of(&lives, result.timeline.moments.len());
        let mut kinds = Kinds::new(&recording, "");
        let of_lives: Vec<u32> = lives.list.iter().map(|life| kinds.of(life)).collect();
        let anatomy = anatomy::dissect(&recording, &result.timeline);
        let by = dimensions(&kinds, &anatomy.allocated_peak);
        let buckets = Buckets::of(&lives, &of_lives, &clock, &by);
        assert_eq!((buckets.size, &buckets.shown[..]), (1, &[0, 1, 2, 3, 4, 5, 6][..]));
        for bands in &buckets.bands {
            let sums: Vec<u64> = (0..buckets.shown.len())
                .map(|at| bands.iter().map(|band| band[at]).sum())
                .collect();
            let mib = 1 << 20;
            let third = 1_500_160;
            assert_eq!(sums, [0, 4 * mib, 6 * mib, 2 * mib, 2 * mib + third, third, third]);
        }
        let rounded = &buckets.bands[0][rounding()];
        assert_eq!(rounded[..4], [0, 4, 4, 0]);
    }

    #[test]
    fn a_bucket_shows_its_highest_tick() {
        let recording = text::recording(PROGRAM.trim_start()).unwrap();
        let timeline = reproduce(&recording, &Settings::of(&recording.about).unwrap()).timeline;
        let lives = Lives::of(&recording, &timeline);
        let clock = Clock::of(&lives, timeline.moments.len());
        assert_eq!(shown(&lives, &changes(&lives, &clock), 4), [2, 4]);
    }
}
