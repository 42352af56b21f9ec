//! What grows with every step, and who holds it.
//!
//! What is alive is looked at once a step, at the same point of each: when its optimizer begins, or
//! its backward pass where there is no optimizer, its first model where there is neither. Allocations are put together by the place that makes
//! them: the user's line, module and operator. A place grows if its blocks become more, never fewer,
//! in the first half of the steps and in the second; or if their bytes grow by the same amount every
//! time, as those of a tensor do to which each step appends. What a step
//! replaces, what the first step makes for all later ones, and a window of the last few steps that is
//! full do not count.

use std::collections::HashMap;

use recording::{Category, OwnerId, Phase, TextId};

use crate::anatomy::{Growth, GrowthSite};
use crate::dissection::Knife;
use crate::lives::{Life, Lives, Span};

/// Fewer steps tell nothing.
const FEWEST: usize = 3;
/// More are not looked at: long runs are sampled evenly.
const MOST: usize = 17;

/// Blocks of one place at each of the steps.
#[derive(Clone, Default)]
struct Site {
    bytes: Vec<u64>,
    count: Vec<u64>,
    example: Option<Life>,
}

/// Compares the steps.
pub(crate) fn growth(lives: &Lives, knife: &Knife<'_>) -> Growth {
    let times = sample(&points(&lives.spans));
    let compared = Growth { steps: times.len(), ..Growth::default() };
    let (Some((_, last)), true) = (times.last(), FEWEST <= times.len()) else { return compared };
    let middle = times.len() / 2;
    let passed = u64::from(last - times[middle].1).max(1);
    let mut found: Vec<GrowthSite> = Vec::new();
    for site in sites(lives, knife, &times).into_values().filter(|site| site.grows(middle)) {
        let (Some(bytes), Some(count)) = (site.bytes.last(), site.count.last()) else { continue };
        let owner = site.example.map_or(OwnerId(0), |life| life.owner);
        found.push(GrowthSite {
            origin: knife.origin(owner),
            category: site.example.map_or(Category::Unknown, |life| life.category),
            holder: site.example.map_or("", |life| knife.text(life.holder)).to_owned(),
            bytes_per_step: (bytes - site.bytes[middle]) / passed,
            bytes: *bytes,
            count: *count,
        });
    }
    found.sort_by(|a, b| {
        let key = |site: &GrowthSite| (site.origin.file.clone(), site.origin.line);
        b.bytes_per_step.cmp(&a.bytes_per_step).then_with(|| key(a).cmp(&key(b)))
    });
    Growth {
        bytes_per_step: found.iter().map(|site| site.bytes_per_step).sum(),
        sites: found,
        ..compared
    }
}

/// The same point of each step: (time, step).
fn points(spans: &[Span]) -> Vec<(usize, u32)> {
    let of = |phase: Phase| {
        let mut points: Vec<(usize, u32)> = Vec::new();
        for span in spans.iter().filter(|span| span.when.phase == Some(phase)) {
            if points.last().is_none_or(|(_, step)| *step < span.when.step) {
                points.push((span.from, span.when.step));
            }
        }
        points
    };
    let phases = [Phase::Optimizer, Phase::Backward, Phase::Inference].into_iter();
    phases.map(of).find(|points| !points.is_empty()).unwrap_or_default()
}

/// At most [`MOST`] of them, with the first and the last.
fn sample(points: &[(usize, u32)]) -> Vec<(usize, u32)> {
    if points.len() <= MOST {
        return points.to_vec();
    }
    (0..MOST).map(|index| points[index * (points.len() - 1) / (MOST - 1)]).collect()
}

type Key = (TextId, u32, TextId, TextId);

fn sites(lives: &Lives, knife: &Knife<'_>, times: &[(usize, u32)]) -> HashMap<Key, Site> {
    // Parameters and what belongs to them are as many as the model has.
    let lasting = [Category::Weights, Category::Gradients, Category::Optimizer];
    let mut sites: HashMap<Key, Site> = HashMap::new();
    for life in lives.list.iter().filter(|life| !lasting.contains(&life.category)) {
        let first = times.partition_point(|(time, _)| *time < life.born);
        let end = times.partition_point(|(time, _)| *time < life.freed);
        if first < end {
            let site = sites.entry(knife.site(life.owner)).or_default();
            site.bytes.resize(times.len(), 0);
            site.count.resize(times.len(), 0);
            site.bytes[first..end].iter_mut().for_each(|bytes| *bytes += life.block);
            site.count[first..end].iter_mut().for_each(|count| *count += 1);
            // Of the newest it may not be said yet what holds it.
            if life.holder != TextId(0) || site.example.is_none_or(|old| old.holder == TextId(0)) {
                site.example = Some(*life);
            }
        }
    }
    sites
}

impl Site {
    fn grows(&self, middle: usize) -> bool {
        let (Some(first), Some(last)) = (self.count.first(), self.count.last()) else {
            return false;
        };
        let is_more =
            self.count.is_sorted() && first < &self.count[middle] && &self.count[middle] < last;
        let gains: Vec<i128> =
            self.bytes.windows(2).map(|pair| i128::from(pair[1]) - i128::from(pair[0])).collect();
        let is_even = gains.iter().all(|gain| 0 < *gain && *gain == gains[0]);
        let has_bytes = self.bytes[middle] < self.bytes[self.bytes.len() - 1];
        has_bytes && (is_more || is_even)
    }
}
