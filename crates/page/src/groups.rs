//! The bands of the stacked curves: by category, module, phase or line. Few enough to be told apart.

use std::collections::HashMap;

use anatomy::lives::Life;
use anatomy::{Categories, Dissection, ModuleBytes};
use recording::{Category, Phase};
use serde::Serialize;

use crate::kinds::{Kind, Kinds};

/// Bands beside those for the rest: as many as there are colours that stay apart.
const MOST: usize = 10;

/// One way to divide memory.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Dimension {
    /// category, module, phase or line.
    pub(crate) name: &'static str,
    /// The bands from the ground up.
    pub(crate) groups: Vec<String>,
    /// For each kind its band; empty where it hangs on the time of birth instead.
    #[serde(skip)]
    pub(crate) of_kind: Vec<u8>,
}

/// Band of the rounding among the categories.
pub(crate) fn rounding() -> usize {
    Categories::default().iter().position(|(name, _)| name == "rounding").unwrap_or(0)
}

/// The band of a phase: 0 is for what was made before the recording.
pub(crate) fn of_phase(life: &Life) -> usize {
    let place = |phase: Phase| Phase::ALL.iter().position(|other| *other == phase);
    life.when.phase.and_then(place).map_or(0, |place| place + 1)
}

/// All four, for the kinds of a recording with this peak.
pub(crate) fn dimensions(kinds: &Kinds<'_>, peak: &Dissection) -> [Dimension; 4] {
    let phases = Phase::ALL.iter().map(|phase| phase.name().replace('_', " "));
    let before = "before the recording".to_owned();
    [
        categories(&kinds.list),
        modules(kinds, &peak.modules),
        Dimension {
            name: "phase",
            groups: std::iter::once(before).chain(phases).collect(),
            of_kind: Vec::new(),
        },
        lines(kinds, peak),
    ]
}

fn categories(kinds: &[Kind]) -> Dimension {
    let names: Vec<&str> = Categories::default().iter().map(|(name, _)| name).collect();
    let place = |category: Category| names.iter().position(|name| *name == category.name());
    let of_kind = kinds.iter().map(|kind| place(kind.category).unwrap_or(0) as u8).collect();
    let groups = names.iter().map(|name| name.replace('_', " ")).collect();
    Dimension { name: "category", groups, of_kind }
}

fn lines(kinds: &Kinds<'_>, peak: &Dissection) -> Dimension {
    let known = peak.lines.iter().filter(|line| !line.file.is_empty()).take(MOST);
    let mut groups = vec!["no line".to_owned()];
    groups.extend(known.map(|line| format!("{}:{}", line.file, line.line)));
    let rest = groups.len() as u8;
    let numbers: HashMap<String, u8> = groups.iter().cloned().zip(0..).collect();
    groups.push("other lines".to_owned());
    let of_kind = kinds.list.iter().map(|kind| match kinds.line(kind) {
        None => 0,
        Some((file, line)) => numbers.get(&format!("{file}:{line}")).copied().unwrap_or(rest),
    });
    Dimension { name: "line", of_kind: of_kind.collect(), groups }
}

fn modules(kinds: &Kinds<'_>, tree: &[ModuleBytes]) -> Dimension {
    let cut = cut(tree);
    let mut groups = vec!["no module".to_owned()];
    groups.extend(cut.iter().map(|path| (*path).to_owned()));
    let numbers: HashMap<&str, u8> = cut.into_iter().zip(1..).collect();
    let rest = groups.len() as u8;
    groups.push("other modules".to_owned());
    let of_text: Vec<u8> = kinds
        .texts
        .list
        .iter()
        .map(|path| match path.is_empty() {
            true => 0,
            false => above(path).find_map(|path| numbers.get(path).copied()).unwrap_or(rest),
        })
        .collect();
    let of_kind = kinds.list.iter().map(|kind| of_text[kind.module as usize]).collect();
    Dimension { name: "module", groups, of_kind }
}

/// `a.b.c`, `a.b` and `a` for `a.b.c`.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let dots = path.rmatch_indices('.').map(|(at, _)| &path[..at]);
    std::iter::once(path).chain(dots)
}

/// Modules that divide the peak: from the top of the tree the largest is divided again and again, as
/// long as there are not too many. A module that was divided stays if it holds something of its own.
fn cut(tree: &[ModuleBytes]) -> Vec<&str> {
    let below = |index: usize| {
        let parts = tree.iter().enumerate();
        parts.filter(move |(_, module)| module.parent == Some(index) && module.total != 0)
    };
    let is_top = |module: &ModuleBytes| {
        module.parent.is_none() && module.total != 0 && !module.path.is_empty()
    };
    let mut open: Vec<usize> = (0..tree.len()).filter(|index| is_top(&tree[*index])).collect();
    open.sort_by_key(|index| std::cmp::Reverse(tree[*index].total));
    open.truncate(MOST);
    let mut kept: Vec<usize> = Vec::new();
    while let Some(place) = (0..open.len()).max_by_key(|place| tree[open[*place]].total) {
        let module = open.swap_remove(place);
        let parts: Vec<usize> = below(module).map(|(index, _)| index).collect();
        let stays = usize::from(tree[module].own != 0);
        if parts.is_empty() || MOST < open.len() + kept.len() + parts.len() + stays {
            kept.push(module);
            continue;
        }
        open.extend(parts);
        kept.extend((stays == 1).then_some(module));
    }
    kept.sort_unstable();
    kept.iter().map(|index| &tree[*index].path[..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, parent: Option<usize>, own: u64, total: u64) -> ModuleBytes {
        ModuleBytes { path: path.to_owned(), parent, own, total, ..ModuleBytes::default() }
    }

    #[test]
    fn the_largest_modules_are_divided_while_there_is_room() {
        let mut tree = vec![
            module("", None, 5, 5),
            module("net", None, 1, 101),
            module("net.a", Some(1), 60, 60),
            module("net.b", Some(1), 0, 40),
        ];
        assert_eq!(cut(&tree), ["net", "net.a", "net.b"]);
        for index in 0..MOST {
            tree.push(module(&format!("net.b.{index}"), Some(3), 4, 4));
        }
        assert_eq!(cut(&tree), ["net", "net.a", "net.b"]);
    }

    #[test]
    fn a_module_belongs_to_the_nearest_above() {
        let all: Vec<&str> = above("a.b.c").collect();
        assert_eq!(all, ["a.b.c", "a.b", "a"]);
    }
}
