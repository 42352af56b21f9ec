//! A tree of modules folded to what matters: chains become one row, repeated layers one, and what is
//! small is counted, not listed.

use std::collections::HashMap;

use crate::anatomy::ModuleBytes;

/// A row of the folded tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// Rows above it that contain it.
    pub depth: usize,
    /// `encoder.layers.{0-23}`, relative to the row above; empty for what belongs to no module.
    pub label: String,
    /// Empty if not known, or if they differ.
    pub class: String,
    /// How many modules were put together: 24.
    pub times: usize,
    /// Bytes of them all, with the modules below.
    pub bytes: u64,
    /// Of those: kept for the backward pass.
    pub saved: u64,
    /// If not 0, the row stands for this many others that are too small to be listed.
    pub rest: usize,
}

/// Shares of the whole, in percent, below which a module is not listed: the first that gives few
/// enough rows is taken.
const SHARES: [u64; 6] = [3, 5, 8, 12, 20, 35];

/// At most this many rows.
pub fn fold(modules: &[ModuleBytes], most: usize) -> Vec<Folded> {
    let top = grow(modules);
    let whole: u64 = top.iter().map(|tree| tree.total).sum();
    let mut rows = Vec::new();
    for share in SHARES {
        rows.clear();
        list(&top, 0, whole / 100 * share, &mut rows);
        if rows.len() <= most {
            break;
        }
    }
    rows.truncate(most);
    rows
}

/// A module with what is below it.
#[derive(Clone, Debug, Default)]
struct Tree {
    name: String,
    class: String,
    times: usize,
    own: u64,
    total: u64,
    saved: u64,
    below: Vec<Tree>,
}

/// The tree of a list in preorder, with repeated siblings put together.
fn grow(modules: &[ModuleBytes]) -> Vec<Tree> {
    let mut below: Vec<Vec<Tree>> = vec![Vec::new(); modules.len()];
    let mut top = Vec::new();
    for (index, module) in modules.iter().enumerate().rev() {
        let mut children = std::mem::take(&mut below[index]);
        children.reverse();
        let above = module.parent.and_then(|parent| modules.get(parent));
        let name = above.and_then(|above| module.path.strip_prefix(&above.path));
        let name = name.and_then(|name| name.strip_prefix('.')).unwrap_or(&module.path);
        let tree = Tree {
            name: name.to_owned(),
            class: module.class.clone(),
            times: 1,
            own: module.own,
            total: module.total,
            saved: module.saved,
            below: join_repeated(children),
        };
        module.parent.map_or(&mut top, |parent| &mut below[parent]).push(tree);
    }
    top.reverse();
    join_repeated(top)
}

/// Numbered siblings of one class become one: `0` to `23` become `{0-23}`.
fn join_repeated(trees: Vec<Tree>) -> Vec<Tree> {
    let mut groups: Vec<(Option<String>, Vec<Tree>)> = Vec::new();
    for tree in trees {
        let is_numbered = tree.name.bytes().all(|byte| byte.is_ascii_digit());
        let class = (is_numbered && !tree.name.is_empty()).then(|| tree.class.clone());
        let known = groups.iter_mut().find(|(other, _)| class.is_some() && *other == class);
        match known {
            Some((_, group)) => group.push(tree),
            None => groups.push((class, vec![tree])),
        }
    }
    groups.into_iter().filter_map(|(_, group)| join(group)).collect()
}

fn join(mut group: Vec<Tree>) -> Option<Tree> {
    if group.len() < 2 {
        return group.pop();
    }
    let names: Vec<u64> = group.iter().filter_map(|tree| tree.name.parse().ok()).collect();
    let times = group.len();
    let mut joined = group.into_iter().reduce(add)?;
    joined.name = format!("{{{}}}", ranges(&names));
    joined.times = times;
    Some(joined)
}

/// One tree on top of another: the same parts are summed.
fn add(mut into: Tree, other: Tree) -> Tree {
    into.own += other.own;
    into.total += other.total;
    into.saved += other.saved;
    if into.class != other.class {
        into.class.clear();
    }
    let mut places: HashMap<String, usize> =
        into.below.iter().enumerate().map(|(index, tree)| (tree.name.clone(), index)).collect();
    for tree in other.below {
        match places.get(&tree.name) {
            Some(place) => into.below[*place] = add(std::mem::take(&mut into.below[*place]), tree),
            None => {
                places.insert(tree.name.clone(), into.below.len());
                into.below.push(tree);
            }
        }
    }
    into
}

/// `0-3,5` for 0, 1, 2, 3, 5.
fn ranges(numbers: &[u64]) -> String {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => parts.push((*number, *number)),
        }
    }
    let text = |(first, last): &(u64, u64)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    match parts.len() {
        0..=4 => parts.iter().map(text).collect::<Vec<_>>().join(","),
        _ => format!("{},…,{}", text(&parts[0]), text(&parts[parts.len() - 1])),
    }
}

fn list(trees: &[Tree], depth: usize, least: u64, rows: &mut Vec<Folded>) {
    let (shown, hidden): (Vec<&Tree>, Vec<&Tree>) =
        trees.iter().partition(|tree| least <= tree.total && tree.total != 0);
    for tree in &shown {
        let (mut label, mut times, mut inner) = (tree.name.clone(), tree.times, *tree);
        while let ([only], 0) = (&inner.below[..], inner.own) {
            label = format!("{label}.{}", only.name);
            times *= only.times;
            inner = only;
        }
        let (class, bytes, saved) = (inner.class.clone(), inner.total, inner.saved);
        rows.push(Folded { depth, label, class, times, bytes, saved, rest: 0 });
        list(&inner.below, depth + 1, least, rows);
    }
    let rest: usize = hidden.iter().map(|tree| tree.times).sum();
    if rest != 0 && !shown.is_empty() {
        let bytes = hidden.iter().map(|tree| tree.total).sum();
        let saved = hidden.iter().map(|tree| tree.saved).sum();
        rows.push(Folded { depth, bytes, saved, rest, times: 1, ..Folded::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of `path class own`, as a tree in preorder.
    fn modules(text: &str) -> Vec<ModuleBytes> {
        let mut list: Vec<ModuleBytes> = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (path, class, own) = (words[0], words[1], words[2].parse().unwrap());
            let above = |other: &ModuleBytes| path.starts_with(&format!("{}.", other.path));
            let mut parent = list.iter().rposition(above);
            let (path, class) = (path.to_owned(), class.to_owned());
            list.push(ModuleBytes { path, class, parent, own, total: own, saved: 0 });
            while let Some(index) = parent {
                list[index].total += own;
                parent = list[index].parent;
            }
        }
        list
    }

    fn rows(text: &str, most: usize) -> Vec<String> {
        let row = |row: Folded| match row.rest {
            0 => format!("{}{} ×{} {}", "  ".repeat(row.depth), row.label, row.times, row.bytes),
            rest => format!("{}… {rest} more {}", "  ".repeat(row.depth), row.bytes),
        };
        fold(&modules(text), most).into_iter().map(row).collect()
    }

    #[test]
    fn repeated_layers_are_one_row() {
        let text = "\
encoder Encoder 0
encoder.layers ModuleList 0
encoder.layers.0 Layer 0
encoder.layers.0.attn Attention 300
encoder.layers.0.norm Norm 1
encoder.layers.1 Layer 0
encoder.layers.1.attn Attention 300
encoder.layers.1.norm Norm 1
head Linear 200";
        assert_eq!(
            rows(text, 10),
            ["encoder.layers.{0-1} ×2 602", "  attn ×1 600", "  … 1 more 2", "head ×1 200"]
        );
    }

    #[test]
    fn a_sequence_of_different_classes_stays_apart() {
        let text = "\
net Sequential 0
net.0 Linear 100
net.1 ReLU 50
net.2 Linear 100
net.3 ReLU 50";
        assert_eq!(rows(text, 10), ["net ×1 300", "  {0,2} ×2 200", "  {1,3} ×2 100"]);
    }

    #[test]
    fn few_rows_show_the_largest() {
        let text = "\
a A 0
a.x X 40
a.y Y 4
b B 30
c C 26";
        assert_eq!(rows(text, 6).len(), 5);
        assert_eq!(rows(text, 4), ["a ×1 44", "  x ×1 40", "  … 1 more 4", "… 2 more 56"]);
        assert_eq!(rows("", 4), Vec::<String>::new());
    }

    #[test]
    fn numbers_are_written_as_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 5]), "0-3,5");
        assert_eq!(ranges(&[7]), "7");
        assert_eq!(ranges(&[0, 2, 4, 6, 8, 9]), "0,…,8-9");
    }
}
