//! The same module on both sides: by its path; by its path without wrappers; by its class and the shapes
//! of its weights, where as many modules of that kind are left on both sides; and what lies below or
//! beside a module that was found so, by the same change of path.

use std::collections::{BTreeMap, HashMap};

use anatomy::alike::Pattern;

use crate::difference::{Change, ModuleRow};
use crate::fold::without_numbers;
use crate::side::{Module, Side};

/// Parts of a path that wrappers of PyTorch add: DistributedDataParallel and DataParallel,
/// `torch.compile`, FSDP, activation checkpointing.
const WRAPPERS: [&str; 4] =
    ["module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"];

/// For each module of B its module in A, as numbers of their lists, and how it was found.
pub(crate) struct Matched {
    of_b: Vec<Option<(usize, How)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Path,
    Wrapper,
    Shapes,
    Beside,
}

/// Matches modules. None is used twice.
pub(crate) fn matched(a: &Side, b: &Side) -> Matched {
    let mut pairs =
        Pairs { of_b: vec![None; b.modules.len()], is_used: vec![false; a.modules.len()] };
    let (one, other) = (&a.modules, &b.modules);
    pairs.by_key(one, other, How::Path, |module| Some(module.path.clone()));
    pairs.by_key(one, other, How::Wrapper, without_wrappers);
    let (shapes_a, shapes_b) = (weights(a), weights(b));
    let kind = |shapes: &HashMap<&str, Vec<String>>, module: &Module| {
        let shapes = shapes.get(module.path.as_str())?;
        Some((module.class.clone(), shapes.clone()))
    };
    pairs.in_order(
        one.iter().map(|module| kind(&shapes_a, module)).collect(),
        other.iter().map(|module| kind(&shapes_b, module)).collect(),
    );
    pairs.beside(one, other);
    Matched { of_b: pairs.of_b }
}

struct Pairs {
    of_b: Vec<Option<(usize, How)>>,
    is_used: Vec<bool>,
}

impl Pairs {
    fn take(&mut self, a: usize, b: usize, how: How) {
        if !self.is_used[a] && self.of_b[b].is_none() {
            self.is_used[a] = true;
            self.of_b[b] = Some((a, how));
        }
    }

    /// Modules with the same key, if only one on either side has it.
    fn by_key<Key: Ord>(
        &mut self,
        a: &[Module],
        b: &[Module],
        how: How,
        key: impl Fn(&Module) -> Option<Key>,
    ) {
        let mut found: BTreeMap<Key, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (at, module) in a.iter().enumerate().filter(|(at, _)| !self.is_used[*at]) {
            key(module).into_iter().for_each(|key| found.entry(key).or_default().0.push(at));
        }
        for (at, module) in b.iter().enumerate().filter(|(at, _)| self.of_b[*at].is_none()) {
            key(module).into_iter().for_each(|key| found.entry(key).or_default().1.push(at));
        }
        for (of_a, of_b) in found.into_values() {
            if let ([one], [other]) = (&of_a[..], &of_b[..]) {
                self.take(*one, *other, how);
            }
        }
    }

    /// Modules of one kind in their order, if as many are left on both sides.
    fn in_order<Key: Ord>(&mut self, a: Vec<Option<Key>>, b: Vec<Option<Key>>) {
        let mut found: BTreeMap<Key, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (at, key) in a.into_iter().enumerate().filter(|(at, _)| !self.is_used[*at]) {
            key.into_iter().for_each(|key| found.entry(key).or_default().0.push(at));
        }
        for (at, key) in b.into_iter().enumerate().filter(|(at, _)| self.of_b[*at].is_none()) {
            key.into_iter().for_each(|key| found.entry(key).or_default().1.push(at));
        }
        for (of_a, of_b) in found.into_values().filter(|(a, b)| a.len() == b.len()) {
            of_a.iter().zip(&of_b).for_each(|(one, other)| self.take(*one, *other, How::Shapes));
        }
    }

    /// Modules without weights: if `old.fc` became `new.fc`, `old.relu` is `new.relu`, if its class is
    /// the same. The longest change of path that fits is taken.
    fn beside(&mut self, a: &[Module], b: &[Module]) {
        let mut changes: BTreeMap<String, String> = BTreeMap::new();
        let by_shape = self.of_b.iter().enumerate().filter_map(|(at, found)| match found {
            Some((was, How::Shapes)) => Some((&a[*was].path, &b[at].path)),
            _ => None,
        });
        for (was, now) in by_shape {
            let (was, now) = changed(was, now);
            changes.entry(now).or_insert(was);
        }
        let left: BTreeMap<&str, usize> = a
            .iter()
            .enumerate()
            .filter(|(at, _)| !self.is_used[*at])
            .map(|(at, module)| (module.path.as_str(), at))
            .collect();
        for (at, module) in b.iter().enumerate() {
            if self.of_b[at].is_some() {
                continue;
            }
            let was = prefixes(&module.path).find_map(|prefix| {
                let was = changes.get(prefix)?;
                let rest = &module.path[prefix.len()..];
                left.get(format!("{was}{rest}").as_str()).copied()
            });
            if let Some(was) = was.filter(|was| a[*was].class == module.class) {
                self.take(was, at, How::Beside);
            }
        }
    }
}

/// A path without the parts that wrappers add. A model alone in its wrapper is named by its class, as
/// it is without.
fn without_wrappers(module: &Module) -> Option<String> {
    if module.path.is_empty() {
        return None;
    }
    let parts: Vec<&str> = module.path.split('.').filter(|part| !WRAPPERS.contains(part)).collect();
    if parts.is_empty() { Some(module.class.clone()) } else { Some(parts.join(".")) }
}

/// Names, dtypes and shapes of each module's weights.
fn weights(side: &Side) -> HashMap<&str, Vec<String>> {
    let mut shapes: HashMap<&str, Vec<String>> = HashMap::new();
    for tensor in side.tensors.iter().filter(|tensor| tensor.category == "weights") {
        let name = tensor.name.rsplit('.').next().unwrap_or_default();
        let what = format!("{name} {}{:?}", tensor.dtype, tensor.shape);
        shapes.entry(&tensor.module).or_default().push(what);
    }
    shapes.values_mut().for_each(|list| list.sort());
    shapes
}

/// What is left of two paths without the parts at the end that are the same.
fn changed(was: &str, now: &str) -> (String, String) {
    let (mut was, mut now) = (was, now);
    while let (Some((above, last)), Some((other_above, other))) =
        (was.rsplit_once('.'), now.rsplit_once('.'))
        && last == other
    {
        (was, now) = (above, other_above);
    }
    (was.to_owned(), now.to_owned())
}

/// `a.b.c`, `a.b` and `a` for `a.b.c`.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('.').map(|(above, _)| above))
}

impl Matched {
    /// Paths of A as they are called in B.
    pub(crate) fn names<'a>(&self, a: &'a Side, b: &'a Side) -> HashMap<&'a str, &'a str> {
        let found = self.of_b.iter().enumerate().filter_map(|(at, found)| Some((at, (*found)?)));
        found
            .map(|(at, (was, _))| (a.modules[was].path.as_str(), b.modules[at].path.as_str()))
            .collect()
    }

    /// Changes of paths in words; layers that differ in their numbers only are told of once.
    pub(crate) fn renamed(&self, a: &Side, b: &Side) -> Vec<String> {
        let mut kinds: Vec<Renamed> = Vec::new();
        let mut places: HashMap<(String, String), usize> = HashMap::new();
        for (found, module) in self.of_b.iter().zip(&b.modules) {
            let Some((was, how)) = found.filter(|(_, how)| *how != How::Path) else { continue };
            let is_wrapped = how == How::Wrapper;
            let (was, now) = match (&a.modules[was].path, &module.path) {
                (was, now) if is_wrapped => (String::new(), wrapper(was, now)),
                (was, now) => changed(was, now),
            };
            let key = (without_numbers(&was), without_numbers(&now));
            let place = *places.entry(key).or_insert_with(|| {
                kinds.push(Renamed {
                    is_wrapped,
                    first: (was.clone(), now.clone()),
                    ..Renamed::default()
                });
                kinds.len() - 1
            });
            let kind = &mut kinds[place];
            kind.count += 1;
            kind.was.add(&was);
            kind.now.add(&now);
        }
        kinds.iter().map(Renamed::text).collect()
    }
}

/// Modules whose paths changed in one way.
#[derive(Default)]
struct Renamed {
    is_wrapped: bool,
    count: usize,
    first: (String, String),
    was: Pattern,
    now: Pattern,
}

impl Renamed {
    fn text(&self) -> String {
        let (was, now) = (self.was.name(&self.first.0), self.now.name(&self.first.1));
        let modules = if self.count == 1 { "module" } else { "modules" };
        match self.is_wrapped {
            true => format!("{} {modules} known again without `{now}`", self.count),
            false => format!(
                "`{now}` was `{was}`: {} {modules} known again by class and shapes",
                self.count
            ),
        }
    }
}

/// The parts of wrappers that only one of two paths has.
fn wrapper(was: &str, now: &str) -> String {
    let parts = |path: &str| -> Vec<String> {
        let parts = path.split('.').filter(|part| WRAPPERS.contains(part));
        parts.map(str::to_owned).collect()
    };
    let (was, now) = (parts(was), parts(now));
    let longer = if was.len() < now.len() { &now } else { &was };
    longer.join(".")
}

/// A row for each module of B and each that only A has; what holds nothing on either side is left out.
pub(crate) fn rows(a: &Side, b: &Side, matched: &Matched) -> Vec<ModuleRow> {
    let mut rows = Vec::new();
    let mut is_used = vec![false; a.modules.len()];
    for (module, found) in b.modules.iter().zip(&matched.of_b) {
        let was = found.map(|(at, _)| {
            is_used[at] = true;
            &a.modules[at]
        });
        rows.push(ModuleRow {
            path: module.path.clone(),
            class: module.class.clone(),
            was: was.map(|was| was.path.clone()).filter(|was| *was != module.path),
            own: Change { a: was.map_or(0, |was| was.own), b: module.own },
            total: Change { a: was.map_or(0, |was| was.total), b: module.total },
        });
    }
    let gone = a.modules.iter().zip(is_used).filter(|(_, is_used)| !is_used);
    rows.extend(gone.map(|(module, _)| ModuleRow {
        path: module.path.clone(),
        class: module.class.clone(),
        was: None,
        own: Change { a: module.own, b: 0 },
        total: Change { a: module.total, b: 0 },
    }));
    rows.retain(|row| row.own != Change::default() || row.total != Change::default());
    rows
}
