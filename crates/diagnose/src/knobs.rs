//! Sizes in words of the script: `16,384 = batch 128 × 2 × num_group 64`. Nothing was varied: equal numbers are a guess,
//! and are called one. `fathom report` varies settings and knows.

use std::collections::{BTreeMap, BTreeSet};

use recording::Category;

use crate::finding::Finding;
use crate::phrases::count;
use crate::scene::{Scene, Thing};

/// A factor that nobody names may be this large.
const SMALL: u64 = 8;

/// Smaller settings are everywhere.
const LEAST: u64 = 8;

/// Words in the names of settings that count something.
const COUNTS: [&str; 21] = [
    "num", "n", "head", "heads", "group", "groups", "frames", "window", "windows", "tokens",
    "points", "views", "queries", "samples", "steps", "length", "len", "seq", "patches", "slots",
    "rays",
];

/// And in those of widths, of which no batch is a multiple.
const WIDTHS: [&str; 8] =
    ["features", "embeddings", "channels", "classes", "layers", "dim", "size", "kernels"];

/// Sizes that have a name.
#[derive(Debug, Default)]
pub(crate) struct Knobs<'a> {
    /// The first size of inputs.
    first: Option<(&'static str, u64)>,
    /// Attributes of modules by value.
    named: BTreeMap<u64, BTreeSet<&'a str>>,
}

impl<'a> Knobs<'a> {
    pub(crate) fn of(scene: &Scene<'a>) -> Knobs<'a> {
        let mut named: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
        for fact in scene.anatomy.facts.of("size") {
            let Some((name, value)) = fact.split_once('=') else { continue };
            if let Some(value) = value.parse().ok().filter(|value| LEAST <= *value && counts(name))
            {
                named.entry(value).or_default().insert(name);
            }
        }
        Knobs { first: first(scene), named }
    }

    /// `a guess: 16,384 = batch 128 × 2 × num_group 64`, of the first size of what a finding shows first. Weights have
    /// nothing to do with a batch, whatever their sizes.
    pub(crate) fn sentence(&self, finding: &Finding) -> Option<String> {
        let size = *finding.evidence.first()?.shape.first()?;
        let (word, first) = self.first.filter(|_| finding.scales.contains("batch"))?;
        let rest = size.checked_div(first).filter(|rest| rest * first == size && 1 < *rest)?;
        let (value, names) = self.factor(rest)?;
        let names: Vec<&str> = names.iter().copied().collect();
        let between = match rest / value {
            1 => String::new(),
            more => format!("{more} × "),
        };
        Some(format!(
            "a guess: {} = {word} {} × {between}{} {}",
            count(size),
            count(first),
            names.join(" or "),
            count(value)
        ))
    }

    /// The largest setting of which this is a small multiple.
    fn factor(&self, rest: u64) -> Option<(u64, &BTreeSet<&'a str>)> {
        let mut fitting = self.named.iter().rev().filter(|(value, names)| {
            rest.is_multiple_of(**value) && rest / **value <= SMALL && names.len() <= 2
        });
        fitting.next().map(|(value, names)| (*value, names))
    }
}

/// Is it a setting such as `num_group` or `n_obs_steps`?
fn counts(name: &str) -> bool {
    let has = |list: &[&str]| name.split('_').any(|word| list.contains(&word));
    has(&COUNTS) && !has(&WIDTHS)
}

/// A size that all inputs begin with is the batch; that of a single kind may be anything.
fn first(scene: &Scene<'_>) -> Option<(&'static str, u64)> {
    let is_input = |thing: &&Thing<'_>| {
        thing.is(Category::Inputs) && !thing.tensor.dtype.is_empty() && !thing.shape().is_empty()
    };
    let mut inputs: Vec<&Thing<'_>> = scene.things.iter().filter(is_input).collect();
    inputs.sort_by_key(|thing| std::cmp::Reverse(thing.tensor.bytes));
    let size = *inputs.first()?.shape().first()?;
    let shapes: BTreeSet<&[u64]> = inputs.iter().map(|thing| thing.shape()).collect();
    let is_shared = shapes.iter().all(|shape| shape.first() == Some(&size));
    let word = if is_shared && 2 <= shapes.len() { "batch" } else { "input's first size" };
    (1 < size).then_some((word, size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Evidence;

    fn of(scales: &str, size: u64, named: &[(u64, &[&'static str])]) -> Option<String> {
        let named = named.iter().map(|(value, names)| (*value, names.iter().copied().collect()));
        let knobs = Knobs { first: Some(("batch", 128)), named: named.collect() };
        let evidence = vec![Evidence { shape: vec![size, 256, 32], ..Evidence::default() }];
        let scales = scales.to_owned();
        knobs.sentence(&Finding { evidence, scales, ..Finding::default() })
    }

    fn said(size: u64, named: &[(u64, &[&'static str])]) -> Option<String> {
        of("batch × channels", size, named)
    }

    #[test]
    fn a_product_has_the_largest_setting_that_fits() {
        let named: [(u64, &[&str]); 2] = [(32, &["group_size"]), (64, &["num_group"])];
        let text = said(16384, &named).unwrap();
        assert_eq!(text, "a guess: 16,384 = batch 128 × 2 × num_group 64");
        assert!(said(128 * 64, &named).unwrap().contains("batch 128 × num_group 64"));
    }

    #[test]
    fn weights_are_no_product_of_the_batch() {
        assert_eq!(of("parameters", 16384, &[(64, &["num_group"])]), None);
    }

    #[test]
    fn settings_that_count_are_told_from_widths() {
        assert!(["num_group", "n_obs_steps", "num_heads", "frames"].into_iter().all(counts));
        assert!(
            !["in_features", "num_features", "num_embeddings", "stride"].into_iter().any(counts)
        );
    }

    #[test]
    fn what_no_setting_explains_is_not_explained() {
        assert_eq!(said(128, &[(64, &["num_group"])]), None);
        assert_eq!(said(128 * 37, &[(64, &["num_group"])]), None);
        assert_eq!(said(130 * 64, &[(64, &["num_group"])]), None);
        assert_eq!(said(16384, &[(64, &["a", "b", "c"])]), None);
    }
}
