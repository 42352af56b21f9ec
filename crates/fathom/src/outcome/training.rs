//! What a training did, by the files of its folder: allocations, pace, and what it iterated over.

use std::path::Path;

use contract::files::process::{Loader, Process};
use study::{Batches, Varies};

use super::files::{Left, Seen};
use crate::here::from_here;

/// Whether the processes of two runs, by their folders, allocated the same and took as many steps.
pub(crate) fn have_same_allocations(one: &Path, other: &Path) -> bool {
    allocations(one).zip(allocations(other)).is_some_and(|(one, other)| one == other)
}

/// All bytes that the processes of a run ever allocated on cards, and how many steps they took; `None` if one of
/// them left what cannot be read.
fn allocations(folder: &Path) -> Option<Vec<(u64, u64)>> {
    let process = |seen: &Seen| {
        let process = seen.process.as_ref()?;
        Some((process.devices.iter().map(|device| device.total_bytes).sum(), process.steps_of_all))
    };
    let left = Left::read(folder);
    let mut all: Vec<(u64, u64)> = left.all.iter().filter_map(process).collect();
    all.sort_unstable();
    left.unread.is_empty().then_some(all)
}

/// How fast a script trains: backward passes of a step, and how long a step takes, in seconds.
pub(crate) fn pace(folder: &Path) -> Option<(u64, f64)> {
    let left = Left::read(folder);
    let process = left.all.first()?.process.as_ref()?;
    let passes = process.backward_passes.div_ceil(process.steps.max(1)).max(1);
    Some((passes, process.step_milliseconds as f64 / 1000.0))
}

/// What a shortened training iterated over.
pub(crate) fn iterated(folder: &Path) -> Vec<Batches> {
    first_process(folder).loaders.iter().map(batches).collect()
}

/// What a confined run was kept from.
pub(crate) fn refused(folder: &Path) -> Vec<String> {
    first_process(folder).refused
}

/// Evaluations of the script's own that a shortened training did not come to, as `train.py:12`.
pub(crate) fn unreached(folder: &Path) -> Vec<String> {
    let sites = first_process(folder).unreached.into_iter();
    sites.map(|site| format!("{}:{}", from_here(site.file), site.line)).collect()
}

/// What the first process left; nothing, if it left none.
fn first_process(folder: &Path) -> Process {
    let first = Left::read(folder).all.into_iter().next();
    first.and_then(|seen| seen.process).unwrap_or_default()
}

/// The shape of the largest batch that a shortened training gave in a step.
pub(crate) fn largest_batch(folder: &Path, step: u64) -> Vec<u64> {
    let left = Left::read(folder);
    let Some(process) = left.all.first().and_then(|seen| seen.process.as_ref()) else {
        return Vec::new();
    };
    let passes = process.backward_passes.div_ceil(process.steps.max(1)).max(1) as usize;
    let first = (step.saturating_sub(1) as usize).saturating_mul(passes);
    let training = process.loaders.iter().find(|loader| !loader.is_evaluation);
    let given = training.map_or(&[][..], |loader| &loader.sizes_given);
    let of_step = given.iter().skip(first).take(passes);
    of_step.max_by_key(|shape| shape.iter().product::<u64>()).cloned().unwrap_or_default()
}

fn batches(loader: &Loader) -> Batches {
    let varies = |tensor: &String| Varies {
        tensor: tensor.clone(),
        smallest: loader.smallest.clone(),
        largest: loader.largest.clone(),
        was_run: loader.was_largest_given,
    };
    Batches {
        is_evaluation: loader.is_evaluation,
        count: loader.batches,
        given: loader.given,
        looked_at: loader.looked_at,
        varies: loader.varies.as_ref().map(varies),
        grows: loader.grows_bytes,
    }
}
