//! The same file in two checkouts: by its path, else by the longest common end of both paths.

use std::collections::{BTreeMap, BTreeSet};

/// For each file of B its file in A. Each is used once.
pub(crate) fn matched<'a>(
    a: &BTreeSet<&'a str>,
    b: &BTreeSet<&'a str>,
) -> BTreeMap<&'a str, &'a str> {
    let mut pairs: BTreeMap<&str, &str> = a.intersection(b).map(|file| (*file, *file)).collect();
    let left: Vec<&str> = a.difference(b).copied().filter(|file| !file.is_empty()).collect();
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    left.iter().for_each(|file| by_name.entry(name(file)).or_default().push(file));
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for file in b.difference(a) {
        let others = by_name.get(name(file)).map_or(&[][..], Vec::as_slice);
        let free = others.iter().filter(|other| !used.contains(**other));
        let common: Vec<(usize, &str)> = free.map(|other| (common(file, other), *other)).collect();
        let most = common.iter().map(|(parts, _)| *parts).max().unwrap_or(0);
        let mut best = common.iter().filter(|(parts, _)| *parts == most);
        // Of two that are as good, neither is believed.
        if let (Some((_, other)), None) = (best.next(), best.next()) {
            pairs.insert(file, other);
            used.insert(other);
        }
    }
    pairs
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.rsplit(['/', '\\'])
}

fn name(path: &str) -> &str {
    parts(path).next().unwrap_or(path)
}

/// How many parts at the end are the same.
fn common(one: &str, other: &str) -> usize {
    parts(one).zip(parts(other)).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_folder_are_known_again() {
        let a = BTreeSet::from(["train.py", "/old/net/model.py", "/old/aux/model.py", "/old/x.py"]);
        let b = BTreeSet::from(["train.py", "/new/net/model.py", "/new/y.py"]);
        let pairs = matched(&a, &b);
        assert_eq!(
            pairs,
            BTreeMap::from([("train.py", "train.py"), ("/new/net/model.py", "/old/net/model.py")])
        );
    }

    #[test]
    fn of_two_that_are_as_good_neither_is_taken() {
        let a = BTreeSet::from(["/a/model.py", "/b/model.py"]);
        assert_eq!(matched(&a, &BTreeSet::from(["/c/model.py"])), BTreeMap::new());
    }
}
