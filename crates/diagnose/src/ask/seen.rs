//! Sizes of a script as the shapes of its tensors and its modules show them.

use std::collections::BTreeMap;

use recording::Category;

use super::Question;
use super::question::is_inside;
use crate::scene::sum;

/// The first size of all inputs, if it is one.
pub(super) fn first_size(question: &Question<'_>) -> Option<u64> {
    let of = |kind: Category| {
        let tensors = question.anatomy().allocated_peak.tensors.iter();
        tensors
            .filter(move |it| it.category == kind && !it.dtype.is_empty() && !it.shape.is_empty())
    };
    let mut firsts = of(Category::Inputs).map(|tensor| tensor.shape[0]);
    if let Some(first) = firsts.next() {
        return (firsts.all(|other| other == first) && 0 < first).then_some(first);
    }
    // Without inputs: what nearly all that is kept begins with.
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for tensor in of(Category::Activations) {
        let bytes = sums.entry(tensor.shape[0]).or_default();
        *bytes = bytes.saturating_add(tensor.block);
    }
    let whole = sum(sums.values().copied());
    let (first, bytes) = sums.into_iter().max_by_key(|row| row.1)?;
    (u128::from(whole) * 95 <= u128::from(bytes) * 100 && 0 < first).then_some(first)
}

/// The length that most vectors among the weights have, those of norms and biases.
pub(super) fn width_of(question: &Question<'_>) -> Option<u64> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for tensor in question
        .anatomy()
        .allocated_peak
        .tensors
        .iter()
        .filter(|it| it.category == Category::Weights)
    {
        if let [length] = tensor.shape.as_slice() {
            *counts.entry(*length).or_default() += 1;
        }
    }
    let whole: u64 = counts.values().sum();
    let (length, count) = counts.into_iter().max_by_key(|row| row.1)?;
    (whole < count * 2).then_some(length)
}

/// The rows of the largest embedding; else the classes of the logits.
pub(super) fn vocabulary_of(question: &Question<'_>) -> Option<u64> {
    let is_embedding = |path: &str| {
        question
            .anatomy()
            .modules
            .iter()
            .any(|(own, class)| own == path && class.contains("Embedding"))
    };
    let tensors = question.anatomy().allocated_peak.tensors.iter();
    let embeddings = tensors.filter(|it| it.category == Category::Weights && it.shape.len() == 2);
    let rows = embeddings.filter(|it| is_embedding(&it.origin.module)).map(|it| it.shape[0]);
    let logits = || {
        let evidence = question.finding("loss-logits")?.evidence.first()?;
        evidence.shape.iter().copied().skip(1).max()
    };
    rows.max().or_else(logits)
}

/// Blocks of one class in one list.
pub(super) struct List {
    pub(super) name: String,
    pub(super) paths: Vec<String>,
}

/// The list of equal blocks that holds most.
pub(super) fn largest_list(question: &Question<'_>) -> Option<List> {
    let mut lists: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (path, class) in &question.anatomy().modules {
        let (above, last) = path.rsplit_once('.').unwrap_or(("", path));
        if last.bytes().all(|byte| byte.is_ascii_digit()) && !last.is_empty() {
            lists.entry((above, class)).or_default().push(path.clone());
        }
    }
    let modules = &question.anatomy().allocated_peak.modules;
    let held = |paths: &[String]| {
        let of =
            modules.iter().filter(|module| paths.iter().any(|path| is_inside(&module.path, path)));
        sum(of.map(|module| module.own))
    };
    let equal = lists.into_iter().filter(|(_, paths)| 1 < paths.len());
    let ((above, class), paths) = equal.max_by_key(|(_, paths)| held(paths))?;
    let name = match above {
        "" => class.to_owned(),
        above => format!("{above}.*"),
    };
    Some(List { name, paths })
}
