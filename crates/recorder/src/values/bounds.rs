//! Between which numbers the whole numbers of a value lie, where its recipes say so without being carried out: a token is
//! one of so many, a count of truths is at most all. It is what a run with other values goes by.

use std::sync::Arc;

use pyo3::prelude::*;

use super::arguments::Argument;
use super::geometry::Geometry;
use super::recipe::{Input, Output, OutputSlot, Recipe, Source};
use super::value::{State, Value};
use crate::hash::Map;

/// The least and the most; `None` where nobody knows.
pub(crate) type Range = Option<(i64, i64)>;

/// Bytes that are looked through for the least and the most.
const MOST_BYTES: usize = 64 << 20;

/// What these give is among what they are given.
const MOVES: [&str; 49] = [
    "amax",
    "amin",
    "aminmax",
    "cat",
    "chunk",
    "clone",
    "column_stack",
    "concat",
    "concatenate",
    "contiguous",
    "copy",
    "cpu",
    "cuda",
    "detach",
    "diagonal",
    "dstack",
    "expand",
    "expand_as",
    "flatten",
    "flip",
    "hstack",
    "int",
    "long",
    "masked_select",
    "maximum",
    "minimum",
    "movedim",
    "narrow",
    "permute",
    "repeat",
    "repeat_interleave",
    "reshape",
    "reshape_as",
    "roll",
    "select",
    "split",
    "squeeze",
    "stack",
    "t",
    "tensor_split",
    "tile",
    "to",
    "transpose",
    "type",
    "unbind",
    "unsqueeze",
    "view",
    "view_as",
    "vstack",
];
/// Of what they are given, and of numbers among their arguments.
const FILLS: [&str; 5] = ["where", "masked_fill", "setitem", "fill", "clamp"];
/// Of their first tensor; the others say which.
const PICKS: [&str; 5] = ["getitem", "index_select", "gather", "take", "take_along_dim"];
/// Two results: what was found among what they are given, and where.
const FINDS: [&str; 5] = ["max", "min", "median", "mode", "kthvalue"];

/// Between which numbers a tensor's are that lies there.
pub(crate) fn of(py: Python<'_>, target: &Arc<Value>, geometry: &Geometry) -> PyResult<Range> {
    let truth = py.import("torch")?.getattr("bool")?;
    let is_truth = |geometry: &Geometry| geometry.dtype.is(&truth);
    if is_truth(geometry) {
        return Ok(Some((0, 1)));
    }
    let mut found: Map<usize, Range> = Map::default();
    let mut open = vec![target.clone()];
    // Without recursion: a chain of recipes may be longer than the stack.
    while let Some(value) = open.last().cloned() {
        let key = Arc::as_ptr(&value) as usize;
        let State::Made(recipe) = value.state() else {
            found.insert(key, None);
            open.pop();
            continue;
        };
        let output = recipe.outputs().iter().find(|one| is_of(one, &value));
        let Some(output) =
            output.filter(|one| !found.contains_key(&key) && !one.geometry.is_fraction)
        else {
            found.entry(key).or_insert(None);
            open.pop();
            continue;
        };
        let is_waiting = |value: &&Arc<Value>| {
            let is_made = matches!(value.state(), State::Made(_));
            is_made && !found.contains_key(&(Arc::as_ptr(value) as usize))
        };
        let of_whole = |input: &&Input| !input.geometry.is_fraction && !is_truth(&input.geometry);
        let waiting: Vec<Arc<Value>> = match is_truth(&output.geometry) || !is_followed(&recipe) {
            true => Vec::new(),
            false => {
                let inputs = recipe.inputs.iter().filter(of_whole).filter_map(Input::value);
                inputs.filter(is_waiting).cloned().collect()
            }
        };
        if !waiting.is_empty() {
            open.extend(waiting);
            continue;
        }
        let range = match is_truth(&output.geometry) {
            true => Some((0, 1)),
            false => {
                let of_input = |input: &Input| match is_truth(&input.geometry) {
                    true => Some((0, 1)),
                    false => input.range(&found),
                };
                of_output(py, &recipe, output, &of_input)
            }
        };
        found.insert(key, range);
        open.pop();
    }
    Ok(match target.state() {
        State::Data(bytes) if !geometry.is_fraction => of_bytes(bytes.get(), geometry.itemsize),
        _ => found.get(&(Arc::as_ptr(target) as usize)).copied().flatten(),
    })
}

fn is_of(output: &Output, value: &Arc<Value>) -> bool {
    std::ptr::eq(output.value.as_ptr(), Arc::as_ptr(value))
}

/// The name of a function without what says that it writes in place.
fn plain(name: &str) -> &str {
    name.trim_matches('_')
}

/// Whether what it gives is a matter of what its whole numbers are.
fn is_followed(recipe: &Recipe) -> bool {
    const OTHERS: [&str; 16] = [
        "add",
        "radd",
        "iadd",
        "sub",
        "isub",
        "rsub",
        "mul",
        "rmul",
        "imul",
        "sum",
        "cumsum",
        "floordiv",
        "floor_divide",
        "div",
        "scatter",
        "sort",
    ];
    let name = plain(&recipe.name);
    let lists: [&[&str]; 5] = [&MOVES, &FILLS, &PICKS, &FINDS, &OTHERS];
    lists.iter().any(|list| list.contains(&name)) || name == "topk"
}

fn of_output(
    py: Python<'_>,
    recipe: &Recipe,
    output: &Output,
    of_input: &dyn Fn(&Input) -> Range,
) -> Range {
    let made = of_function(py, recipe, output, of_input);
    let OutputSlot::Written(number) = output.place else { return made };
    // It may have written to a part of it.
    union(made, of_input(recipe.inputs.get(number)?))
}

fn of_function(
    py: Python<'_>,
    recipe: &Recipe,
    output: &Output,
    of_input: &dyn Fn(&Input) -> Range,
) -> Range {
    let name = plain(&recipe.name);
    let first = recipe.inputs.first();
    let given = || recipe.inputs.iter().filter(|input| !input.geometry.is_fraction).map(of_input);
    // Rounded to whole numbers, fractions may be anything.
    let are_whole = recipe.inputs.iter().all(|input| !input.geometry.is_fraction);
    let each = || {
        let made = output.geometry.elements();
        let all = first.map_or(0, |input| input.geometry.elements());
        all.checked_div(made).map(|each| each as i64)
    };
    let is_place = matches!(&output.place, OutputSlot::Result(path) if path.first() == Some(&1));
    match name {
        "argmax" | "argmin" => Some((0, each()?.max(1) - 1)),
        _ if FINDS.contains(&name) && is_place => Some((0, each()?.max(1) - 1)),
        "multinomial" => Some((0, first?.geometry.size.last()?.max(&1) - 1)),
        "argsort" => longest(first?),
        "sort" | "topk" if is_place => longest(first?),
        "count_nonzero" => Some((0, each()?)),
        "bucketize" => Some((0, *recipe.inputs.get(1)?.geometry.size.last()?)),
        "searchsorted" => Some((0, *first?.geometry.size.last()?)),
        "one_hot" => Some((0, 1)),
        "sum" => times(of_input(first?)?, (each()?, each()?)),
        "zeros" | "zeros_like" | "new_zeros" | "zero" => Some((0, 0)),
        "ones" | "ones_like" | "new_ones" => Some((1, 1)),
        "eye" => Some((0, 1)),
        "arange" | "randint" | "randint_like" | "randperm" => {
            let named = recipe.named.iter().filter_map(|(_, arg)| constant(py, arg));
            numbers(py, &recipe.args).into_iter().chain(named).fold(Some((0, 0)), union)
        }
        "tensor" | "as_tensor" | "new_tensor" | "full" | "full_like" | "new_full" if are_whole => {
            let named =
                recipe.named.iter().filter(|(name, _)| ["data", "fill_value"].contains(&&**name));
            let mut all = given().collect::<Vec<_>>();
            recipe
                .args
                .iter()
                .chain(named.map(|(_, arg)| arg))
                .for_each(|arg| within(py, arg, &mut all));
            all.into_iter().reduce(union)?
        }
        "cumsum" => {
            let count = first?.geometry.size.iter().max()?;
            times(of_input(first?)?, (1, (*count).max(1)))
        }
        _ if PICKS.contains(&name) => of_input(first?),
        "sort" | "topk" => of_input(first?),
        _ if (FINDS.contains(&name) || MOVES.contains(&name)) && are_whole => {
            given().reduce(union)?
        }
        "scatter" if are_whole => given().chain(numbers(py, &recipe.args)).reduce(union)?,
        _ if FILLS.contains(&name) && are_whole => {
            let named = recipe.named.iter().map(|(_, arg)| constant(py, arg));
            given().chain(numbers(py, &recipe.args)).chain(named.flatten()).reduce(union)?
        }
        _ => of_arithmetic(name, recipe.named.is_empty(), |at| operand(py, recipe, at, of_input)),
    }
}

/// Of two operands.
fn of_arithmetic(name: &str, is_plain: bool, number: impl Fn(usize) -> Range) -> Range {
    match name {
        "floordiv" | "floor_divide" | "div" => {
            let ((least, most), (by, same)) = (number(0)?, number(1)?);
            (0 <= least && 0 < by && by == same).then(|| (least / by, most / by))
        }
        "remainder" | "mod" => {
            let (by, same) = number(1)?;
            (0 < by && by == same).then_some((0, by - 1))
        }
        "add" | "radd" | "iadd" if is_plain => {
            let ((a, b), (c, d)) = (number(0)?, number(1)?);
            Some((a.checked_add(c)?, b.checked_add(d)?))
        }
        "sub" | "isub" | "rsub" if is_plain => {
            let (one, other) = if name == "rsub" { (1, 0) } else { (0, 1) };
            let ((a, b), (c, d)) = (number(one)?, number(other)?);
            Some((a.checked_sub(d)?, b.checked_sub(c)?))
        }
        "mul" | "rmul" | "imul" => times(number(0)?, number(1)?),
        _ => None,
    }
}

/// Places along any of its dimensions.
fn longest(input: &Input) -> Range {
    Some((0, input.geometry.size.iter().max()?.max(&1) - 1))
}

/// An argument of a function of two numbers.
fn operand(
    py: Python<'_>,
    recipe: &Recipe,
    at: usize,
    of_input: &dyn Fn(&Input) -> Range,
) -> Range {
    match recipe.args.get(at)? {
        Argument::Tensor(number) => {
            of_input(recipe.inputs.get(*number).filter(|input| !input.geometry.is_fraction)?)
        }
        other => constant(py, other)?,
    }
}

/// Numbers among arguments; a list may be an index or a size, and counts as well.
fn numbers(py: Python<'_>, args: &[Argument]) -> Vec<Range> {
    args.iter().filter_map(|arg| constant(py, arg)).collect()
}

/// Numbers of an argument, also those in its lists.
fn within(py: Python<'_>, arg: &Argument, into: &mut Vec<Range>) {
    match arg {
        Argument::List(items) | Argument::Tuple(items) => {
            items.iter().for_each(|item| within(py, item, into));
        }
        Argument::Constant(_) => into.extend(constant(py, arg)),
        _ => {}
    }
}

/// A number; `None` if it is no number at all, and one that nobody knows if it has a fraction.
fn constant(py: Python<'_>, arg: &Argument) -> Option<Range> {
    let Argument::Constant(value) = arg else { return None };
    if let Ok(number) = value.extract::<i64>(py) {
        return Some(Some((number, number)));
    }
    value.extract::<f64>(py).is_ok().then_some(None)
}

fn union(one: Range, other: Range) -> Range {
    let ((a, b), (c, d)) = (one?, other?);
    Some((a.min(c), b.max(d)))
}

fn times((a, b): (i64, i64), (c, d): (i64, i64)) -> Range {
    let products = [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
    Some((*products.iter().min()?, *products.iter().max()?))
}

impl Input {
    fn value(&self) -> Option<&Arc<Value>> {
        match &self.source {
            Source::Card(value) => Some(value),
            Source::Host(_) => None,
        }
    }

    fn range(&self, found: &Map<usize, Range>) -> Range {
        if self.geometry.is_fraction {
            return None;
        }
        match &self.source {
            Source::Host(bytes) => of_bytes(bytes.get(), self.geometry.itemsize),
            Source::Card(value) => match value.state() {
                State::Data(bytes) => of_bytes(bytes.get(), self.geometry.itemsize),
                _ => found.get(&(Arc::as_ptr(value) as usize)).copied().flatten(),
            },
        }
    }
}

/// Of whole numbers that lie there.
fn of_bytes(bytes: &[u8], itemsize: u64) -> Range {
    if bytes.is_empty() || MOST_BYTES < bytes.len() {
        return None;
    }
    let of = |numbers: &mut dyn Iterator<Item = i64>| {
        numbers.fold(None, |range: Range, number| {
            let (least, most) = range.unwrap_or((number, number));
            Some((least.min(number), most.max(number)))
        })
    };
    match itemsize {
        1 => of(&mut bytes.iter().map(|byte| i64::from(*byte)))
            // They may have a sign.
            .map(|(least, most)| if most < 128 { (least, most) } else { (-128, 255) }),
        4 => {
            let numbers = bytes.as_chunks::<4>().0.iter().map(|four| i32::from_le_bytes(*four));
            // They may have none.
            of(&mut numbers.map(i64::from)).filter(|(least, _)| 0 <= *least)
        }
        8 => of(&mut bytes.as_chunks::<8>().0.iter().map(|eight| i64::from_le_bytes(*eight))),
        _ => None,
    }
}
