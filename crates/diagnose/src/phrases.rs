//! Things in words: evidence, modules, shares.

use std::collections::{BTreeMap, HashMap};

use anatomy::alike::Pattern;
use anatomy::bytes;

use crate::finding::Evidence;
use crate::roles::Role;
use crate::scene::Scene;

/// Kinds of tensors that a finding shows.
const MOST: usize = 6;

/// Modules that a sentence names.
const NAMED: usize = 3;

/// A module holds a group if it holds this share of its bytes, in percent.
const MAIN_SHARE: u64 = 90;

/// The largest kinds among some things.
pub(crate) fn evidence(scene: &Scene<'_>, members: &[usize]) -> Vec<Evidence> {
    let mut kinds: Vec<(Evidence, Pattern)> = Vec::new();
    let mut places = HashMap::new();
    for index in members {
        let thing = &scene.things[*index];
        let (tensor, origin) = (thing.tensor, &thing.tensor.origin);
        let operator = if origin.operator.is_empty() { &origin.node } else { &origin.operator };
        let key =
            (&tensor.dtype, &tensor.shape, thing.what(), operator, thing.line(), &origin.library);
        let next = kinds.len();
        let place = *places.entry(key).or_insert(next);
        if place == next {
            let evidence = Evidence {
                dtype: tensor.dtype.clone(),
                shape: tensor.shape.clone(),
                what: thing.what(),
                operator: operator.clone(),
                file: origin.file.clone(),
                line: origin.line,
                library: origin.library.clone(),
                module: origin.module.clone(),
                ..Evidence::default()
            };
            kinds.push((evidence, Pattern::default()));
        }
        let (evidence, modules) = &mut kinds[place];
        evidence.bytes = evidence.bytes.saturating_add(tensor.block);
        evidence.count += 1;
        modules.add(&origin.module);
    }
    let named = kinds
        .into_iter()
        .map(|(evidence, modules)| Evidence { module: modules.name(&evidence.module), ..evidence });
    let mut kinds: Vec<Evidence> = named.collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.bytes));
    kinds.truncate(MOST);
    kinds
}

/// The deepest module that holds nearly all of some things; empty if it is the whole model.
pub(crate) fn common(scene: &Scene<'_>, members: &[usize]) -> String {
    let whole = scene.bytes(members);
    let mut path = String::new();
    loop {
        let below = below(scene, members, &path);
        let Some((name, bytes)) = below.into_iter().max_by_key(|(_, bytes)| *bytes) else { break };
        if u128::from(bytes) * 100 < u128::from(whole) * u128::from(MAIN_SHARE) {
            break;
        }
        path = name;
    }
    path
}

/// Bytes of some things by the modules right below a path.
pub(crate) fn below(scene: &Scene<'_>, members: &[usize], path: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for index in members {
        let thing = &scene.things[*index];
        let Some(rest) = inside(thing.module(), path) else { continue };
        let Some(name) = rest.split('.').next().filter(|name| !name.is_empty()) else { continue };
        let name = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        add(sums.entry(name).or_default(), thing.tensor.block);
    }
    sums
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// What of a module's path is below another.
fn inside<'a>(module: &'a str, path: &str) -> Option<&'a str> {
    if path.is_empty() {
        return Some(module);
    }
    module.strip_prefix(path)?.strip_prefix('.')
}

/// `in down1 (3.00 GiB), up3 (1.50 GiB) and 4 more`, or `in encoder.layers`.
pub(crate) fn modules(scene: &Scene<'_>, members: &[usize]) -> String {
    let common = common(scene, members);
    let below = below(scene, members, &common);
    if below.len() < 2 || below.keys().all(|path| is_number(path)) {
        return if common.is_empty() { String::new() } else { format!("in {common}") };
    }
    let mut rows: Vec<(String, u64)> = below.into_iter().collect();
    rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let named =
        rows.iter().take(NAMED).map(|(path, size)| format!("{path} ({})", bytes::text(*size)));
    let rest = rows.len().saturating_sub(NAMED);
    let text = format!("in {}", named.collect::<Vec<_>>().join(", "));
    if rest == 0 { text } else { format!("{text} and {rest} more") }
}

/// Do many blocks keep a little each? Then computing one again brings little back.
pub(crate) fn is_spread(scene: &Scene<'_>, members: &[usize]) -> bool {
    let mut blocks: BTreeMap<&str, u64> = BTreeMap::new();
    for index in members {
        let thing = &scene.things[*index];
        let block = thing.module().rsplit_once('.').map_or("", |(above, _)| above);
        add(blocks.entry(block).or_default(), thing.tensor.block);
    }
    let largest = blocks.values().copied().max().unwrap_or(0);
    3 <= blocks.len() && largest.saturating_mul(2) <= scene.bytes(members)
}

/// Is the last part of a path the number of a block?
pub(crate) fn is_number(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or_default();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// How many of a kind the backward pass needs, and which layers do; empty if none.
pub(crate) fn kept(scene: &Scene<'_>, saved: &[usize], kind: &str) -> String {
    if saved.is_empty() {
        return String::new();
    }
    format!(
        "{} {kind}{} kept for the backward pass: {} ({}).",
        saved.len(),
        plural(saved.len() as u64),
        bytes::text(scene.bytes(saved)),
        roles(scene, saved)
    )
}

/// `convolutions 4.00 GiB, norm layers 3.00 GiB`: by what things are kept for.
fn roles(scene: &Scene<'_>, members: &[usize]) -> String {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for index in members {
        let thing = &scene.things[*index];
        let role: Role = thing.kept_for();
        add(sums.entry(role.name()).or_default(), thing.tensor.block);
    }
    let mut rows: Vec<(&str, u64)> = sums.into_iter().collect();
    rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let named = rows.iter().take(4).map(|(name, size)| format!("{name} {}", bytes::text(*size)));
    named.collect::<Vec<_>>().join(", ")
}

/// `25,557,032`
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<&str> = groups.filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// `64 × 2048`
pub(crate) fn times(sizes: &[u64]) -> String {
    sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ")
}

/// `float32[2, 3]`; `a tensor` if it is not known.
pub(crate) fn tensor(dtype: &str, shape: &[u64]) -> String {
    let sizes = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    if dtype.is_empty() { "a tensor".to_owned() } else { format!("{dtype}[{sizes}]") }
}

/// `train.py:12`, or nothing.
pub(crate) fn place((file, line): (&str, u32)) -> String {
    if file.is_empty() { String::new() } else { format!("{file}:{line}") }
}

/// `s` for more than one.
pub(crate) fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
