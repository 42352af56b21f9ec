//! One recording, ready to be drawn: columns of numbers and a header that says what they are.

use allocator::Timeline;
use anatomy::Anatomy;
use anatomy::lives::{Lives, NEVER};
use recording::{Phase, Recording};
use serde::Serialize;

use crate::buckets::Buckets;
use crate::clock::Clock;
use crate::digest::base64;
use crate::groups::{Dimension, dimensions};
use crate::kinds::Kinds;
use crate::pack::{Column, Columns};
use crate::segments;

/// Blocks that are drawn one by one are at least this part of the peak, and this many.
const TALL_PART: u64 = 400;
const TALL_MOST: usize = 3000;

/// A recording, packed.
#[derive(Clone, Debug)]
pub struct Story {
    /// Deflated and in base64.
    pub(crate) packed: String,
}

/// What the scripts read first.
#[derive(Serialize)]
struct Header<'a> {
    ticks: u32,
    changes: u32,
    events: usize,
    peak_tick: u32,
    reserved_peak_tick: u32,
    refused_tick: Option<u32>,
    bucket: u32,
    phases: Vec<&'static str>,
    dimensions: &'a [Dimension],
    texts: &'a [&'a str],
    columns: &'a [Column],
}

impl Story {
    /// The story of a recording, its timeline and its anatomy. Files below `folder`, which ends in a
    /// slash, are named from there, as they are in the anatomy.
    pub fn of(
        recording: &Recording,
        timeline: &Timeline,
        anatomy: &Anatomy,
        folder: &str,
    ) -> Story {
        let lives = Lives::of(recording, timeline);
        let clock = Clock::of(&lives, timeline.moments.len());
        let mut kinds = Kinds::new(recording, folder);
        let kind_of: Vec<u32> = lives.list.iter().map(|life| kinds.of(life)).collect();
        let by = dimensions(&kinds, &anatomy.allocated_peak);
        let buckets = Buckets::of(&lives, &kind_of, &clock, &by);
        let mut columns = Columns::default();
        add_lives(&mut columns, &lives, &kind_of, &clock);
        add_kinds(&mut columns, &kinds, &by);
        add_spans(&mut columns, &lives, &clock);
        add_segments(&mut columns, timeline, &clock);
        add_buckets(&mut columns, &buckets, &by);
        columns.delta("tall", tall(&lives, anatomy.allocated_peak.allocated));
        let header = Header {
            ticks: clock.last(),
            changes: clock.tick(usize::MAX),
            events: timeline.moments.len(),
            peak_tick: clock.tick(anatomy.allocated_peak.time),
            reserved_peak_tick: clock.seen(anatomy.reserved_peak.time),
            refused_tick: anatomy.out_of_memory.as_ref().map(|at| clock.seen(at.at.time)),
            bucket: buckets.size,
            phases: Phase::ALL.iter().map(|phase| phase.name()).collect(),
            dimensions: &by,
            texts: &kinds.texts.list,
            columns: &columns.list,
        };
        let header = serde_json::to_vec(&header).expect("plain data serialises");
        Story { packed: base64(&columns.deflate(&header)) }
    }

    /// How large it is in a page.
    pub fn bytes(&self) -> usize {
        self.packed.len()
    }
}

/// Ends are counted from the beginning plus one, so that 0 says never.
fn add_lives(columns: &mut Columns, lives: &Lives, kinds: &[u32], clock: &Clock) {
    let list = || lives.list.iter();
    let span = |from: u32, to: u32| u64::from(to.saturating_sub(from)) + 1;
    columns.delta("born", list().map(|life| u64::from(clock.tick(life.born))));
    let lasts = list().map(|life| match life.freed {
        NEVER => 0,
        freed => span(clock.tick(life.born), clock.tick(freed)),
    });
    columns.plain("span", lasts);
    // A block that no stream uses returns with its free, before anything else happens.
    let waits = list().map(|life| match (clock.tick(life.freed), life.returned) {
        (_, NEVER) => 0,
        (freed, returned) if clock.tick(returned) == freed => 1,
        (freed, returned) => span(freed, clock.seen(returned)),
    });
    columns.plain("wait", waits);
    columns.plain("block", list().map(|life| life.block));
    columns.plain("slack", list().map(|life| life.block - life.requested));
    columns.delta("address", list().map(|life| life.address));
    columns.plain("kind", kinds.iter().map(|kind| u64::from(*kind)));
}

fn add_kinds(columns: &mut Columns, kinds: &Kinds<'_>, by: &[Dimension]) {
    let list = || kinds.list.iter();
    columns.delta("kind.module", list().map(|kind| u64::from(kind.module)));
    columns.delta("kind.operator", list().map(|kind| u64::from(kind.operator)));
    columns.delta("kind.place", list().map(|kind| u64::from(kind.place)));
    columns.delta("kind.name", list().map(|kind| u64::from(kind.name)));
    columns.delta("kind.tensor", list().map(|kind| u64::from(kind.tensor)));
    columns.delta("kind.holder", list().map(|kind| u64::from(kind.holder)));
    for dimension in by {
        let bands = dimension.of_kind.iter().map(|band| u64::from(*band));
        columns.plain(&format!("band.{}", dimension.name), bands);
    }
    let places = || kinds.places.iter();
    columns.plain("place.caller", places().map(|place| u64::from(place.caller)));
    columns.plain("place.file", places().map(|place| u64::from(place.file)));
    columns.plain("place.line", places().map(|place| u64::from(place.line)));
    columns.plain("place.function", places().map(|place| u64::from(place.function)));
}

fn add_spans(columns: &mut Columns, lives: &Lives, clock: &Clock) {
    let spans = || lives.spans.iter();
    columns.delta("span.from", spans().map(|span| u64::from(clock.seen(span.from))));
    let number = |phase: Option<Phase>| phase.map_or(0, |phase| phase as u64 + 1);
    columns.plain("span.phase", spans().map(|span| number(span.when.phase)));
    columns.plain("span.step", spans().map(|span| u64::from(span.when.step)));
}

fn add_segments(columns: &mut Columns, timeline: &Timeline, clock: &Clock) {
    let ranges = segments::ranges(timeline, clock);
    let list = || ranges.iter();
    columns.delta("segment.address", list().map(|range| range.address));
    columns.plain("segment.size", list().map(|range| range.size));
    columns.plain("segment.stream", list().map(|range| range.stream));
    columns.plain("segment.pool", list().map(|range| u64::from(range.pool.0)));
    columns.plain("segment.pool2", list().map(|range| u64::from(range.pool.1)));
    columns.plain("segment.expandable", list().map(|range| u64::from(range.expandable)));
    columns.delta("segment.born", list().map(|range| u64::from(range.born)));
    let end = |range: &segments::Range| range.gone.map_or(0, |gone| u64::from(gone) + 1);
    columns.plain("segment.gone", list().map(end));
    let reserved = segments::reserved(timeline, clock);
    columns.delta("reserved.tick", reserved.iter().map(|(tick, _)| u64::from(*tick)));
    columns.delta("reserved.bytes", reserved.iter().map(|(_, bytes)| *bytes));
}

fn add_buckets(columns: &mut Columns, buckets: &Buckets, by: &[Dimension]) {
    columns.delta("bucket.shown", buckets.shown.iter().map(|tick| u64::from(*tick)));
    for (dimension, bands) in by.iter().zip(&buckets.bands) {
        // Band after band: a band is most like itself a bucket before.
        let all = bands.iter().flatten().copied();
        columns.delta(&format!("bucket.{}", dimension.name), all);
    }
}

/// Lives that are high enough to be seen one by one, in the order of birth.
fn tall(lives: &Lives, peak: u64) -> Vec<u64> {
    let least = (peak / TALL_PART).max(1);
    let mut tall: Vec<usize> =
        (0..lives.list.len()).filter(|index| least <= lives.list[*index].block).collect();
    tall.sort_by_key(|index| std::cmp::Reverse(lives.list[*index].block));
    tall.truncate(TALL_MOST);
    tall.sort_unstable();
    tall.into_iter().map(|index| index as u64).collect()
}
