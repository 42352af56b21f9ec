//! Root causes of a peak: what is large, not what is famous.
//!
//! [`diagnose`] takes an [`Anatomy`] and gives [`Finding`]s, the largest first. Each names the bytes at
//! the peak that it explains, the tensors and lines that prove it, what it grows with, and what may be
//! done about it. A tensor is counted by one finding only, so the bytes of those that are `counted` add
//! up to no more than the peak; a finding that is not counted says something about bytes that others
//! count, or about memory outside of the allocated peak.
//!
//! - [`finding`]: what comes out; [`mod@remedies`]: what may be done, with how far it changes
//!   results, and which of it `fit` tries;
//! - [`scene`]: the moment that is looked at, and who has been claimed there;
//! - `roles`: what an operator or an autograd node is for;
//! - `knobs`: sizes as products of what the script calls them;
//! - [`mod@detectors`]: one file each, a plain function from the scene to findings;
//! - [`mod@page`]: the reference of all findings and remedies;
//! - [`mod@ask`]: remedies that people believe in, checked against what was measured.

pub mod ask;
pub mod detectors;
pub mod finding;
mod knobs;
mod label;
pub mod page;
mod phrases;
pub mod remedies;
mod roles;
pub mod scene;
mod suspects;

use std::collections::BTreeMap;

use anatomy::Anatomy;

pub use ask::{About, Answer, Effect, Try, ask};
pub use finding::{Evidence, Finding, Whole};
pub use label::Label;
pub use remedies::Remedy;
pub use roles::is_product;

pub use suspects::{Suspect, is_blamed, suspects};

use scene::Scene;

/// Bytes of the allocated peak by cause, however small: what is compared between runs.
pub fn bytes_by_cause(anatomy: &Anatomy) -> BTreeMap<&'static str, u64> {
    let mut scene = Scene::of(anatomy, None);
    scene.least = 0;
    let mut sums: BTreeMap<&'static str, u64> = BTreeMap::new();
    for finding in detectors::detect(&scene).into_iter().filter(|finding| finding.counted) {
        let sum = sums.entry(finding.id).or_default();
        *sum = sum.saturating_add(finding.bytes);
    }
    sums
}

/// Causes of the allocated peak; or, of the moment at which memory ran out, if that ended the run.
pub fn diagnose(anatomy: &Anatomy, ended_by_memory: bool) -> Vec<Finding> {
    let refused = scene::refused(anatomy, ended_by_memory);
    let mut findings = detectors::detect(&Scene::of(anatomy, refused.as_ref()));
    // What explains bytes first, by bytes; then what is said about them.
    findings.sort_by_key(|finding| (!finding.counted, std::cmp::Reverse(finding.bytes)));
    findings
}
