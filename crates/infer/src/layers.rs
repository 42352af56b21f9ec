//! Which layer a gradient, a weight or a state belongs to. Nodes of a backward pass run in the opposite order of the
//! operators of the forward pass; weights and states have the sizes and the order of their gradients.

use std::collections::{BTreeMap, HashMap, HashSet};

use recording::{Category, Module, Phase, Recording, StackId, TextId};

use crate::labels::Label;
use crate::lives::Life;
use crate::phases::Now;
use crate::reading::Reading;

/// Under autocast gradients come out of it: it says nothing of their layer.
const CAST: &str = "tocopy";

/// So many allocations back the source of a cast is looked for.
const RECENT: usize = 64;

/// How often modules run an operator.
type Runs = BTreeMap<TextId, usize>;

/// What layers hold, in the order of their parameters.
const OF_LAYERS: [Category; 4] =
    [Category::Weights, Category::Optimizer, Category::ModelCopies, Category::Gradients];

/// What is known of each life.
pub(crate) struct Known<'a> {
    pub(crate) lives: &'a [Life],
    pub(crate) labels: &'a [Option<Label>],
    pub(crate) stacks: &'a [Option<StackId>],
    pub(crate) readings: &'a [Reading],
    pub(crate) now: &'a [Now],
}

impl Known<'_> {
    fn reading(&self, index: usize) -> Option<(StackId, &Reading)> {
        let stack = self.stacks.get(index).copied().flatten()?;
        Some((stack, self.readings.get(stack.0 as usize)?))
    }

    fn now(&self, index: usize) -> Now {
        let born = self.lives.get(index).and_then(|life| life.born);
        born.and_then(|at| self.now.get(at)).copied().unwrap_or_default()
    }

    fn is(&self, index: usize, category: Category) -> bool {
        let label = self.labels.get(index).copied().flatten();
        label.is_some_and(|label| label.category == category)
    }
}

/// The module of each life, where its own stack does not say; 0 where nothing does.
pub(crate) fn modules(recording: &mut Recording, known: &Known<'_>) -> Vec<TextId> {
    let calls = Calls::of(recording, known);
    let runs = calls.runs();
    let mut found = vec![TextId(0); known.lives.len()];
    calls.in_reverse(known, &mut found);
    let mut of_node: HashMap<&String, TextId> = HashMap::new();
    for (node, indices) in calls.backward.iter().flat_map(|pass| pass.iter()) {
        // Casts happen anywhere.
        if node == CAST {
            continue;
        }
        let module = *of_node.entry(node).or_insert_with(|| most_likely(recording, runs.get(node)));
        for index in indices.iter().flatten() {
            if let Some(found) = found.get_mut(*index).filter(|found| **found == TextId(0)) {
                *found = module;
            }
        }
    }
    between(known, &mut found);
    of_casts(known, &calls, &mut found);
    by_size(recording, known, &mut found);
    found
}

/// A node of an operator that allocates nothing, such as a slice, is of the module whose nodes run before and after it.
fn between(known: &Known<'_>, found: &mut [TextId]) {
    let mut last = (0, TextId(0));
    let mut open: Vec<usize> = Vec::new();
    for index in 0..known.lives.len() {
        let is_node = known.reading(index).is_some_and(|(_, reading)| reading.node != TextId(0));
        let Some(module) = found.get(index).copied().filter(|_| is_node) else { continue };
        let here = (known.now(index).pass, module);
        if module == TextId(0) {
            open.push(index);
            continue;
        }
        for index in open.drain(..).filter(|_| here == last) {
            if let Some(found) = found.get_mut(index) {
                *found = module;
            }
        }
        last = here;
    }
}

/// Under autocast, a gradient is cast from one of half its size, which a node of its layer has just made.
fn of_casts(known: &Known<'_>, calls: &Calls, found: &mut [TextId]) {
    let casts = calls.backward.iter().filter_map(|pass| pass.get(CAST)).flatten().flatten();
    for index in casts.copied().collect::<Vec<usize>>() {
        let Some(life) = known.lives.get(index).copied() else { continue };
        let before = known.lives.get(..index).unwrap_or_default().iter().zip(&*found).rev();
        let mut sources = before.take(RECENT).filter(|(source, module)| {
            source.size.saturating_mul(2) == life.size
                && **module != TextId(0)
                && source.freed.is_none_or(|freed| life.born <= Some(freed))
        });
        let module = sources.next().map(|(_, module)| *module);
        if let (Some(module), Some(found)) = (module, found.get_mut(index)) {
            *found = module;
        }
    }
}

/// Calls of an operator or node in their order, each with the lives it begins.
type Pass = BTreeMap<String, Vec<Vec<usize>>>;

/// The calls of forward passes, each followed by its backward pass.
struct Calls {
    forward: Vec<Pass>,
    backward: Vec<Pass>,
    modules: Vec<TextId>,
}

impl Calls {
    fn of(recording: &Recording, known: &Known<'_>) -> Calls {
        let mut calls = Calls {
            forward: vec![Pass::new()],
            backward: vec![Pass::new()],
            modules: Vec::with_capacity(known.lives.len()),
        };
        let mut names: HashMap<StackId, Vec<String>> = HashMap::new();
        let mut open = Open::default();
        let mut is_backward = false;
        for index in 0..known.lives.len() {
            let Some((stack, reading)) = known.reading(index) else {
                calls.modules.push(TextId(0));
                continue;
            };
            calls.modules.push(reading.module);
            let phase = known.now(index).phase;
            if phase == Some(Phase::Backward) {
                is_backward = true;
            } else if is_backward && phase == Some(Phase::Forward) {
                // The next pair of passes.
                is_backward = false;
                calls.forward.push(Pass::new());
                calls.backward.push(Pass::new());
            }
            let is_node = reading.node != TextId(0);
            let of_stack = names.entry(stack).or_insert_with(|| match is_node {
                true => vec![plain(recording.texts.get(reading.node))],
                false => called(recording, stack).into_iter().map(plain).collect(),
            });
            let passes = if is_node { &mut calls.backward } else { &mut calls.forward };
            if let Some(pass) = passes.last_mut() {
                open.add(pass, of_stack, stack, index);
            }
        }
        calls
    }

    /// How often each operator runs in each module.
    fn runs(&self) -> HashMap<String, Runs> {
        let mut runs: HashMap<String, Runs> = HashMap::new();
        for (name, calls) in self.forward.iter().flat_map(|pass| pass.iter()) {
            let of_name = runs.entry(name.clone()).or_default();
            for index in calls.iter().filter_map(|call| call.first()) {
                let module = self.modules.get(*index).copied().unwrap_or_default();
                *of_name.entry(module).or_insert(0) += 1;
            }
        }
        runs
    }

    /// Where a node runs as often as its operator did, the first call of one belongs to the last of the other.
    fn in_reverse(&self, known: &Known<'_>, found: &mut [TextId]) {
        for (forward, backward) in self.forward.iter().zip(&self.backward) {
            for (name, nodes) in backward.iter().filter(|(name, _)| *name != CAST) {
                let Some(calls) = forward.get(name).filter(|calls| calls.len() == nodes.len())
                else {
                    continue;
                };
                for (node, call) in nodes.iter().zip(calls.iter().rev()) {
                    let module = call.first().and_then(|index| known.reading(*index));
                    let module = module.map_or(TextId(0), |(_, reading)| reading.module);
                    for index in node {
                        if let Some(found) = found.get_mut(*index) {
                            *found = module;
                        }
                    }
                }
            }
        }
    }
}

/// Calls that may still go on: another one begins where another name came between, or where a stack comes again.
#[derive(Default)]
struct Open {
    last: Vec<String>,
    seen: HashMap<String, HashSet<StackId>>,
}

impl Open {
    fn add(&mut self, pass: &mut Pass, names: &[String], stack: StackId, index: usize) {
        for name in names {
            let seen = self.seen.entry(name.clone()).or_default();
            let goes_on = self.last.contains(name) && !seen.contains(&stack);
            if !goes_on {
                seen.clear();
            }
            seen.insert(stack);
            let calls = pass.entry(name.clone()).or_default();
            match calls.last_mut().filter(|_| goes_on) {
                Some(call) => call.push(index),
                None => calls.push(vec![index]),
            }
        }
        self.last.clear();
        self.last.extend(names.iter().cloned());
    }
}

/// The operators of a stack, up to its innermost frame of Python.
fn called(recording: &Recording, stack: StackId) -> Vec<&str> {
    let mut names = Vec::new();
    let mut at = Some(stack);
    while let Some(stack) = at.and_then(|id| recording.stacks.get(id.0 as usize)) {
        let frame = recording.frames.get(stack.frame.0 as usize).copied().unwrap_or_default();
        if recording.texts.get(frame.file).ends_with(".py") {
            break;
        }
        let name = recording.texts.get(frame.function);
        let operator = name.strip_prefix("at::_ops::").and_then(|rest| rest.split_once("::call("));
        names.extend(operator.map(|(operator, _)| operator));
        at = stack.caller.filter(|caller| Some(*caller) < at);
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Names of operators and nodes in one form: `_log_softmax` and `LogSoftmaxBackward0`.
fn plain(name: &str) -> String {
    let name = name.split("Backward").next().unwrap_or(name);
    let overload = ["_Tensor", "_Scalar", "_dim_IntList", "_int"].iter();
    let name = overload.fold(name, |name, suffix| name.strip_suffix(suffix).unwrap_or(name));
    let name = name.strip_suffix("_forward").unwrap_or(name);
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}

/// The module that runs an operator if there is one, else the class of most of them.
fn most_likely(recording: &mut Recording, runs: Option<&Runs>) -> TextId {
    let Some(runs) = runs else { return TextId(0) };
    if let (1, Some((only, _))) = (runs.len(), runs.iter().next()) {
        return *only;
    }
    let mut classes: Runs = Runs::new();
    for (path, count) in runs {
        let class = recording.modules.iter().find(|module| module.path == *path);
        *classes.entry(class.map_or(TextId(0), |module| module.class)).or_insert(0) += count;
    }
    let most = classes.into_iter().max_by_key(|(class, count)| (*count, *class));
    named(recording, most.map_or(TextId(0), |(class, _)| class))
}

/// A module of which only the class is known.
fn named(recording: &mut Recording, class: TextId) -> TextId {
    if class != TextId(0) && !recording.modules.iter().any(|module| module.path == class) {
        recording.modules.push(Module { path: class, class });
    }
    class
}

/// Weights and states have the modules of the gradients of their size, in the same order: a backward pass makes
/// gradients last to first.
fn by_size(recording: &Recording, known: &Known<'_>, found: &mut [TextId]) {
    let of_size = gradients(recording, known, found);
    let mut held: HashMap<(Category, u64), Vec<usize>> = HashMap::new();
    for (index, life) in known.lives.iter().enumerate() {
        let is_open = found.get(index) == Some(&TextId(0));
        for category in OF_LAYERS {
            if is_open && known.is(index, category) {
                held.entry((category, life.size)).or_default().push(index);
            }
        }
    }
    for ((_, size), indices) in held {
        // Under autocast, what was cast has half the size.
        let modules = of_size.get(&size).or_else(|| of_size.get(&(size / 2)));
        let Some(modules) = modules.filter(|modules| !modules.is_empty()) else { continue };
        // So many of each: Adam has two states for each weight, one after the other.
        let each = indices.len() / modules.len();
        let is_even = indices.len() == each * modules.len();
        for (place, index) in indices.iter().enumerate() {
            let module = match is_even {
                true => modules.get(place / each.max(1)),
                false => modules.first(),
            };
            if let (Some(module), Some(found)) = (module, found.get_mut(*index)) {
                *found = *module;
            }
        }
    }
}

/// By size, the modules of the gradients of one backward pass, first to last.
fn gradients(
    recording: &Recording,
    known: &Known<'_>,
    found: &[TextId],
) -> HashMap<u64, Vec<TextId>> {
    let mut by_pass: HashMap<(u64, u32), Vec<TextId>> = HashMap::new();
    let mut made: HashMap<u64, Vec<TextId>> = HashMap::new();
    for (index, life) in known.lives.iter().enumerate() {
        let Some(module) = found.get(index) else { continue };
        let now = known.now(index);
        if known.is(index, Category::Gradients) {
            // One whose layer is not known keeps its place among the others.
            by_pass.entry((life.size, now.pass)).or_default().push(*module);
        } else if *module != TextId(0) && now.phase == Some(Phase::Backward) {
            made.entry(life.size).or_default().push(*module);
        }
    }
    by_pass.retain(|_, modules| modules.iter().any(|module| *module != TextId(0)));
    let mut of_size: HashMap<u64, Vec<TextId>> = HashMap::new();
    let mut passes: Vec<((u64, u32), Vec<TextId>)> = by_pass.into_iter().collect();
    passes.sort_by_key(|((size, pass), modules)| (*size, std::cmp::Reverse(modules.len()), *pass));
    for ((size, _), mut modules) in passes {
        modules.reverse();
        of_size.entry(size).or_insert(modules);
    }
    // A weight that two layers share has a sum for a gradient, whose parts are of these layers: an embedding comes first.
    let is_embedding = |module: &TextId| recording.texts.get(*module).ends_with("Embedding");
    for (size, modules) in made {
        let first = modules.iter().find(|module| is_embedding(module));
        let first = first.or(modules.first()).copied();
        of_size.entry(size).or_insert_with(|| first.into_iter().collect());
    }
    of_size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_operators_have_one_form() {
        for (operator, node) in [
            ("_log_softmax", "LogSoftmaxBackward0"),
            ("nll_loss_forward", "NllLossBackward0"),
            ("max_pool2d_with_indices", "MaxPool2DWithIndicesBackward0"),
            ("add_Tensor", "AddBackward0"),
        ] {
            assert_eq!(plain(operator), plain(node));
        }
    }
}
