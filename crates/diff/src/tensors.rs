//! Tensors grouped by what they are, and groups that are the same on both sides.

use std::collections::{BTreeMap, HashMap};

use anatomy::alike::Pattern;

use crate::Line;
use crate::difference::{Change, Place, TensorRow};
use crate::fold::without_numbers;
use crate::lines::{self, Numbers};
use crate::modules;
use crate::side::{Side, Tensor};

/// What tensors of one group have in common. Modules and names are written without their numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    category: String,
    module: String,
    operator: String,
    dtype: String,
    shape: Vec<u64>,
    name: String,
    line: usize,
}

/// Tensors of one key on one side.
#[derive(Clone, Debug, Default)]
struct Group {
    bytes: u64,
    count: u64,
    modules: Pattern,
    names: Pattern,
    first: Tensor,
}

type Groups = BTreeMap<Key, Group>;

/// All rows; what a report does not list is one of them.
pub(crate) fn rows(
    a: &Side,
    b: &Side,
    modules: &modules::Matched,
    lines: &lines::Matched,
) -> Vec<TensorRow> {
    let numbers = Numbers::new(&a.lines, &b.lines, lines);
    let names = modules.names(a, b);
    // What one side may not list is not looked at on the other either.
    let listed = a.unlisted_below.max(b.unlisted_below);
    let of = |side: &Side, is_b: bool| {
        let named = |path: &str| match is_b {
            true => path.to_owned(),
            false => names.get(path).map_or(path, |path| *path).to_owned(),
        };
        let listed =
            side.tensors.iter().filter(|tensor| listed.is_none_or(|least| least < tensor.bytes));
        group(listed, named, |tensor| numbers.of(is_b, &tensor.file, tensor.line))
    };
    let (of_a, of_b) = (of(a, false), of(b, true));
    let left = |side: &Side, groups: &Groups| {
        let sum: u64 = groups.values().map(|group| group.bytes).sum();
        side.totals.allocated.saturating_sub(sum)
    };
    let unlisted = Change { a: left(a, &of_a), b: left(b, &of_b) };
    let mut rows = paired(of_a, of_b, &texts(&a.lines), &texts(&b.lines));
    if unlisted != Change::default() {
        rows.push(TensorRow { bytes: unlisted, ..TensorRow::default() });
    }
    rows
}

fn group<'a>(
    tensors: impl Iterator<Item = &'a Tensor>,
    named: impl Fn(&str) -> String,
    line: impl Fn(&Tensor) -> usize,
) -> Groups {
    let mut groups = Groups::new();
    for tensor in tensors {
        let module = named(&tensor.module);
        let key = Key {
            category: tensor.category.clone(),
            module: without_numbers(&module),
            operator: tensor.operator.clone(),
            dtype: tensor.dtype.clone(),
            shape: tensor.shape.clone(),
            name: without_numbers(&short(&tensor.name)),
            line: line(tensor),
        };
        let group = groups.entry(key).or_default();
        if group.count == 0 {
            group.first = Tensor { module: module.clone(), ..tensor.clone() };
        }
        group.bytes += tensor.bytes;
        group.count += 1;
        group.modules.add(&module);
        group.names.add(&tensor.name);
    }
    groups
}

/// `exp_avg of weight` for `exp_avg of encoder.fc.weight`: the module says the rest.
fn short(name: &str) -> String {
    let (what, path) = name.rsplit_once(" of ").unwrap_or(("", name));
    format!("{what} {}", path.rsplit('.').next().unwrap_or_default())
}

/// Groups of the same key; then those of which only the shape has changed, then those of which only
/// the line has.
fn paired(mut a: Groups, mut b: Groups, of_a: &Texts<'_>, of_b: &Texts<'_>) -> Vec<TensorRow> {
    let mut rows = Vec::new();
    let keys: Vec<Key> = b.keys().filter(|key| a.contains_key(key)).cloned().collect();
    for key in keys {
        let pair = (a.remove(&key), b.remove(&key));
        rows.push(row(pair.0, pair.1, of_a, of_b));
    }
    let forgets: [fn(&mut Key); 2] = [
        |key| {
            key.shape.clear();
            key.dtype.clear();
        },
        |key| key.line = usize::MAX,
    ];
    for forget in forgets {
        for (was, now) in in_order(&a, &b, forget) {
            rows.push(row(a.remove(&was), b.remove(&now), of_a, of_b));
        }
    }
    rows.extend(b.into_values().map(|group| row(None, Some(group), of_a, of_b)));
    rows.extend(a.into_values().map(|group| row(Some(group), None, of_a, of_b)));
    rows
}

/// Keys that are the same after something is forgotten, in the order of their bytes, if there are as
/// many on both sides.
fn in_order(a: &Groups, b: &Groups, forget: fn(&mut Key)) -> Vec<(Key, Key)> {
    let mut found: BTreeMap<Key, [Vec<(&Key, u64)>; 2]> = BTreeMap::new();
    for (side, groups) in [a, b].into_iter().enumerate() {
        for (key, group) in groups {
            let mut rest = key.clone();
            forget(&mut rest);
            found.entry(rest).or_default()[side].push((key, group.bytes));
        }
    }
    let mut pairs = Vec::new();
    for [mut was, mut now] in found.into_values() {
        if was.len() != now.len() {
            continue;
        }
        was.sort_by_key(|(_, bytes)| *bytes);
        now.sort_by_key(|(_, bytes)| *bytes);
        pairs.extend(was.iter().zip(&now).map(|(was, now)| (was.0.clone(), now.0.clone())));
    }
    pairs
}

type Texts<'a> = HashMap<(&'a str, u32), &'a Line>;

fn texts(lines: &[Line]) -> Texts<'_> {
    lines.iter().map(|line| ((line.file.as_str(), line.line), line)).collect()
}

fn row(a: Option<Group>, b: Option<Group>, of_a: &Texts<'_>, of_b: &Texts<'_>) -> TensorRow {
    let number =
        |of: fn(&Group) -> u64| Change { a: a.as_ref().map_or(0, of), b: b.as_ref().map_or(0, of) };
    let (bytes, count) = (number(|group| group.bytes), number(|group| group.count));
    let was = a.as_ref().map(|group| what(&group.first));
    let texts = if b.is_some() { of_b } else { of_a };
    let group = b.or(a).unwrap_or_default();
    let Group { first, modules, names, .. } = group;
    let line = texts.get(&(first.file.as_str(), first.line));
    let what = what(&first);
    TensorRow {
        category: first.category.clone(),
        was: was.filter(|was| *was != what),
        what,
        name: names.name(&first.name),
        module: modules.name(&first.module),
        operator: first.operator.clone(),
        place: Place {
            file: first.file.clone(),
            line: first.line,
            function: line.map_or(String::new(), |line| line.function.clone()),
        },
        source: line.map_or(String::new(), |line| line.source.clone()),
        bytes,
        count,
    }
}

/// `float32[8, 512]`; empty if the dtype is not known.
fn what(tensor: &Tensor) -> String {
    if tensor.dtype.is_empty() {
        return String::new();
    }
    let sizes: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
    format!("{}[{}]", tensor.dtype, sizes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_name_the_module_is_left_out() {
        assert_eq!(short("exp_avg of encoder.fc.weight"), "exp_avg weight");
    }
}
