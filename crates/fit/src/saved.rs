//! What each module saves in the step of the peak, and when it is needed again: read from a recording.

use std::collections::BTreeMap;

use allocator::Timeline;
use anatomy::lives::{Life, Lives};
use recording::{Category, Event, Phase, Recording};

use crate::checkpoint::{Absence, Candidate, Step};

/// Modules that save less than this share of the peak are not worth a checkpoint.
const LEAST_SHARE: f64 = 0.002;

/// What is so many times smaller than a module's largest tensor is not its result, and not worth counting.
const SMALL: u64 = 16;

/// What one more place in the code is worth, as a share of the forward pass: of two plans that do the
/// same, the one with fewer checkpoints.
const PLACE: f64 = 0.001;

/// Classes that only hold others: they are never called.
const HOLDERS: [&str; 4] = ["ModuleList", "ModuleDict", "ParameterList", "ParameterDict"];

/// The step of the allocated peak. `flops` counts the operations of each module without those below it.
/// `None` if the recording has no backward pass.
pub fn step(
    recording: &Recording,
    timeline: &Timeline,
    flops: &BTreeMap<String, u64>,
    flops_per_byte: f64,
) -> Option<Step> {
    let lives = Lives::of(recording, timeline);
    let window = window(&lives, timeline)?;
    let alive: Vec<u64> =
        timeline.moments[window.0..window.1].iter().map(|moment| moment.allocated).collect();
    let peak = alive.iter().copied().max()?;
    let reading = Reading { recording, lives: &lives, window };
    let backward = reading.backward_times();
    let kept = reading.kept();
    let written = reading.written();
    let all_written: u64 = written.values().sum();
    let whole = flops.values().sum::<u64>() as f64 + flops_per_byte * all_written as f64;
    let roots = Roots::of(recording);
    let mut candidates = Vec::new();
    for module in &recording.modules {
        let path = recording.texts.get(module.path);
        let class = recording.texts.get(module.class);
        if path.is_empty() || HOLDERS.contains(&class) || is_single(class) {
            continue;
        }
        let below = |other: &str| roots.is_below(other, path);
        let own: Vec<&Life> =
            kept.iter().filter(|(of, _)| below(of)).map(|(_, life)| *life).collect();
        let times: Vec<usize> = {
            let mut times: Vec<usize> = backward
                .iter()
                .filter(|(of, _)| below(of))
                .flat_map(|(_, times)| times.clone())
                .collect();
            times.sort_unstable();
            times
        };
        let layers = (class == "Sequential").then(|| single_layers(recording, path)).flatten();
        let parts = layers.map(segments).unwrap_or_default();
        let absences = match parts.is_empty() {
            true => absences(&own, &times, window),
            false => reading.absences_of(path, &parts, &backward),
        };
        let bytes: u64 = absences.iter().map(|absence| absence.bytes).sum();
        if (bytes as f64) < LEAST_SHARE * peak as f64 {
            continue;
        }
        let operations: u64 =
            flops.iter().filter(|(of, _)| below(of)).map(|(_, count)| count).sum();
        let bytes_written: u64 =
            written.iter().filter(|(of, _)| below(of)).map(|(_, bytes)| bytes).sum();
        let again = flops_per_byte * bytes_written as f64 + PLACE * whole;
        let of_module = Candidate {
            path: path.to_owned(),
            class: class.to_owned(),
            keeps_products: false,
            operations,
            cost: operations as f64 + again,
            absences,
        };
        let cheap: Vec<&Life> =
            own.iter().copied().filter(|life| !reading.is_product(life)).collect();
        let without = less(self::absences(&cheap, &times, window), reading.more_products(below));
        let gained: u64 = without.iter().map(|absence| absence.bytes).sum();
        if 0 < operations && LEAST_SHARE * peak as f64 <= gained as f64 {
            candidates.push(Candidate {
                keeps_products: true,
                operations: 0,
                cost: again,
                absences: without,
                ..of_module.clone()
            });
        }
        candidates.push(of_module);
    }
    Some(Step { alive, candidates, forward_cost: whole.max(1.0) })
}

/// The events of the step in which most is allocated; it must have a backward pass.
fn window(lives: &Lives, timeline: &Timeline) -> Option<(usize, usize)> {
    let peak = (0..timeline.moments.len())
        .max_by_key(|&index| (timeline.moments[index].allocated, std::cmp::Reverse(index)))?;
    let at = lives.spans.iter().rposition(|span| span.from <= peak)?;
    let step = lives.spans[at].when.step;
    let of_step = |span: &&anatomy::lives::Span| span.when.step == step;
    if !lives.spans.iter().filter(of_step).any(|span| span.when.phase == Some(Phase::Backward)) {
        return None;
    }
    let first = lives.spans.iter().filter(of_step).map(|span| span.from).min()?;
    let end = lives.spans.iter().filter(|span| step < span.when.step).map(|span| span.from).min();
    Some((first, end.unwrap_or(timeline.moments.len()).min(timeline.moments.len())))
}

struct Reading<'a> {
    recording: &'a Recording,
    lives: &'a Lives,
    window: (usize, usize),
}

impl<'a> Reading<'a> {
    fn phase(&self, time: usize) -> Option<Phase> {
        let at = self.lives.spans.partition_point(|span| span.from <= time);
        self.lives.spans.get(at.wrapping_sub(1)).and_then(|span| span.when.phase)
    }

    fn module(&self, life: &Life) -> &'a str {
        let owner = self.recording.owners.get(life.owner.0 as usize);
        owner.map_or("", |owner| self.recording.texts.get(owner.module))
    }

    /// Lives that a forward pass of the window leaves to a backward pass, with their modules, by birth.
    fn kept(&self) -> Vec<(&'a str, &'a Life)> {
        let is_kept = |life: &&Life| {
            (self.window.0..self.window.1).contains(&life.born)
                && matches!(life.category, Category::Activations | Category::Casts)
                && life.when.phase == Some(Phase::Forward)
                && self.phase(life.freed.min(self.window.1)) != Some(Phase::Forward)
        };
        self.lives.list.iter().filter(is_kept).map(|life| (self.module(life), life)).collect()
    }

    fn is_product(&self, life: &Life) -> bool {
        let owner = self.recording.owners.get(life.owner.0 as usize);
        owner.is_some_and(|owner| diagnose::is_product(self.recording.texts.get(owner.operator)))
    }

    /// Bytes of results of products that nothing keeps as it is, and a checkpoint that keeps products would.
    fn more_products(&self, below: impl Fn(&str) -> bool) -> u64 {
        let is_one = |life: &&Life| {
            (self.window.0..self.window.1).contains(&life.born)
                && life.when.phase == Some(Phase::Forward)
                && self.phase(life.freed.min(self.window.1)) == Some(Phase::Forward)
                && self.is_product(life)
                && below(self.module(life))
        };
        self.lives.list.iter().filter(is_one).map(|life| life.block).sum()
    }

    /// Absences of some of a module's children, each range by itself.
    fn absences_of(
        &self,
        path: &str,
        parts: &[(usize, usize)],
        backward: &BTreeMap<&str, Vec<usize>>,
    ) -> Vec<Absence> {
        let kept = self.kept();
        let number = |of: &str| -> Option<usize> {
            of.strip_prefix(path)?.strip_prefix('.')?.split('.').next()?.parse().ok()
        };
        let of_part = |&(first, last): &(usize, usize)| {
            let is_here = |of: &str| number(of).is_some_and(|at| (first..=last).contains(&at));
            let own: Vec<&Life> =
                kept.iter().filter(|(of, _)| is_here(of)).map(|(_, life)| *life).collect();
            let rows = backward.iter().filter(|(of, _)| is_here(of));
            let mut times: Vec<usize> = rows.flat_map(|(_, times)| times.clone()).collect();
            times.sort_unstable();
            absences(&own, &times, self.window)
        };
        parts.iter().flat_map(of_part).collect()
    }

    /// When the backward pass makes something in a module.
    fn backward_times(&self) -> BTreeMap<&'a str, Vec<usize>> {
        let mut times: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for life in &self.lives.list {
            let is_here = (self.window.0..self.window.1).contains(&life.born);
            if is_here && life.when.phase == Some(Phase::Backward) {
                times.entry(self.module(life)).or_default().push(life.born);
            }
        }
        times
    }

    /// Bytes that the forward passes of the window write, by module.
    fn written(&self) -> BTreeMap<&'a str, u64> {
        let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
        for life in &self.lives.list {
            let is_here = (self.window.0..self.window.1).contains(&life.born);
            let is_made = matches!(
                self.recording.events.get(life.born.wrapping_sub(1)),
                Some(Event::Alloc { .. })
            );
            if is_here && is_made && life.when.phase == Some(Phase::Forward) {
                *bytes.entry(self.module(life)).or_default() += life.requested;
            }
        }
        bytes
    }
}

/// A `Sequential` of single layers is computed again in about as many parts as each has layers: of each part its first and
/// last child. `checkpoint_sequential` divides it like this, and keeps the last part as it is.
pub fn segments(children: usize) -> Vec<(usize, usize)> {
    let count = children.isqrt();
    if count < 2 {
        return Vec::new();
    }
    let size = children / count;
    (0..count - 1).map(|part| (part * size, (part + 1) * size - 1)).collect()
}

/// The number of layers of a `Sequential` whose children have none themselves.
fn single_layers(recording: &Recording, path: &str) -> Option<usize> {
    let inner = |module: &recording::Module| {
        let rest = recording.texts.get(module.path).strip_prefix(path)?.strip_prefix('.')?;
        Some(rest.parse::<usize>().ok())
    };
    let children: Option<Vec<usize>> = recording.modules.iter().filter_map(inner).collect();
    children?.into_iter().max().map(|last| last + 1)
}

/// Modules of one operator: what they save, others save too.
fn is_single(class: &str) -> bool {
    const STARTS: [&str; 5] = ["Conv", "Linear", "Embedding", "Dropout", "Identity"];
    const ACTIVATIONS: [&str; 6] = ["ReLU", "GELU", "SiLU", "Sigmoid", "Tanh", "Mish"];
    let is_norm = class.ends_with("Norm")
        || class.starts_with("BatchNorm")
        || class.starts_with("InstanceNorm");
    // `ConvBlock` and the like are the user's own.
    let is_numbered = class.ends_with(|letter: char| letter.is_ascii_digit() || letter == 'd');
    let is_basic =
        STARTS.iter().any(|start| class == *start || (class.starts_with(start) && is_numbered));
    is_norm || is_basic || ACTIVATIONS.contains(&class)
}

/// Models of the script: the main one's modules have plain paths, those of others begin with their name.
struct Roots<'a> {
    main: Option<&'a str>,
    others: Vec<&'a str>,
}

impl<'a> Roots<'a> {
    fn of(recording: &'a Recording) -> Roots<'a> {
        let of_module = |module: &recording::Module| {
            (recording.texts.get(module.path), recording.texts.get(module.class))
        };
        let all: Vec<(&str, &str)> = recording.modules.iter().map(of_module).collect();
        let is_root = |path: &str, class: &str| {
            !class.is_empty()
                && path.strip_prefix(class).is_some_and(|rest| {
                    rest.is_empty()
                        || rest.strip_prefix('#').is_some_and(|it| it.parse::<u32>().is_ok())
                })
        };
        let roots = all.iter().filter(|(path, class)| is_root(path, class)).map(|(path, _)| *path);
        let has_parts =
            |root: &&str| all.iter().any(|(path, _)| path != root && is_below(path, root));
        let (others, bare): (Vec<&str>, Vec<&str>) = roots.partition(has_parts);
        let main = bare.first().copied();
        Roots { main, others: others.into_iter().chain(bare.into_iter().skip(1)).collect() }
    }

    /// Whether a module is another or part of it.
    fn is_below(&self, path: &str, above: &str) -> bool {
        match self.main == Some(above) {
            true => !path.is_empty() && !self.others.iter().any(|other| is_below(path, other)),
            false => is_below(path, above),
        }
    }
}

/// The same by the paths alone.
fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Absences of so many bytes less, each by the same share.
fn less(mut absences: Vec<Absence>, bytes: u64) -> Vec<Absence> {
    let all: u64 = absences.iter().map(|absence| absence.bytes).sum();
    let share = all.saturating_sub(bytes) as f64 / all.max(1) as f64;
    absences.iter_mut().for_each(|it| it.bytes = (it.bytes as f64 * share) as u64);
    absences
}

/// With a checkpoint a tensor is gone once the next one of its module is made, until the backward pass
/// comes to the module. The last large one is the module's result and stays: others use it.
fn absences(own: &[&Life], backward: &[usize], window: (usize, usize)) -> Vec<Absence> {
    let mut absences = Vec::new();
    let largest = own.iter().map(|life| life.block).max().unwrap_or(0);
    let own: Vec<&&Life> = own.iter().filter(|life| largest / SMALL <= life.block).collect();
    for (index, life) in own.iter().enumerate() {
        let Some(next) = own.get(index + 1) else { break };
        let first = backward.get(backward.partition_point(|time| *time <= life.born)).copied();
        let to = first.unwrap_or(life.freed).min(life.freed);
        // The next one belongs to another pass of the module: this one was a result.
        if to <= next.born {
            continue;
        }
        absences.push(Absence { from: next.born - window.0, to: to - window.0, bytes: life.block });
    }
    absences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequential_is_divided_as_torch_does() {
        assert_eq!(segments(3), []);
        assert_eq!(segments(4), [(0, 1)], "the last part is kept");
        assert_eq!(segments(31), [(0, 5), (6, 11), (12, 17), (18, 23)]);
    }
}
