//! The usual suspects, and how little of the peak they are: what people would look at first, and need not.

use anatomy::{Anatomy, Part};
use recording::Category;

use crate::detectors::attention;
use crate::finding::{Finding, Whole};
use crate::scene::{Scene, refused, sum};

/// A suspect with this share of the whole or more, in percent, is a cause, not an alibi.
const ALIBI: u64 = 10;

/// Findings that suspects are the subject of.
const SUBJECTS: [(&str, &str); 6] = [
    ("inputs", "inputs"),
    ("attention matrices", "attention-matrices"),
    ("logits", "loss-logits"),
    ("logits", "loss-gradients"),
    ("extra copies of the model (EMA, teacher)", "model-copies"),
    ("fragmentation", "fragmentation"),
];

/// Suspects that are parts of one finding, the model's state.
const OF_STATE: [&str; 3] = ["parameters", "gradients", "optimizer state"];

/// Whether a finding is about a suspect, so that it is no alibi: `whole` is what is allocated.
pub fn is_blamed(suspect: &str, findings: &[Finding], whole: u64) -> bool {
    let is_large =
        |it: &Finding| u128::from(whole) * u128::from(ALIBI) <= u128::from(it.bytes) * 100;
    findings.iter().any(|finding| match finding.id {
        "model-state" => OF_STATE.contains(&suspect) && is_large(finding),
        id => SUBJECTS.contains(&(suspect, id)),
    })
}

/// Something that is often blamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// `attention matrices`
    pub name: &'static str,
    /// What it takes at the moment that the causes are of.
    pub bytes: u64,
    /// Of what these are a part.
    pub of: Whole,
}

/// Those that are not the cause, the largest first; none that a finding is about.
pub fn suspects(anatomy: &Anatomy, ended_by_memory: bool, told: &[Finding]) -> Vec<Suspect> {
    if !anatomy.has_names || anatomy.is_inferred {
        return Vec::new();
    }
    let refused = refused(anatomy, ended_by_memory);
    let mut scene = Scene::of(anatomy, refused.as_ref());
    scene.least = 0;
    let findings = crate::detectors::detect(&scene);
    let found = |id: &str| {
        sum(findings.iter().filter(|finding| finding.id == id).map(|finding| finding.bytes))
    };
    let held = |category: Category| {
        let of = scene.things.iter().filter(|thing| thing.is(category));
        sum(of.map(|thing| thing.tensor.block))
    };
    let holes = scene.at.ledger.iter().filter(|row| row.part == Part::CachedFragments);
    let suspect = |name, bytes| Suspect { name, bytes, of: Whole::Allocated };
    let mut list = vec![
        suspect("inputs", held(Category::Inputs)),
        suspect("attention matrices", found("attention-matrices").max(attention::scores(&scene))),
    ];
    // They get their names at the end of a step: a run that was cut before it says nothing of them.
    let has_state = anatomy.parameters.is_some();
    if has_state {
        list.push(suspect("parameters", held(Category::Weights)));
    }
    // Where the cache and its holes are a remark of their own, they need no alibi.
    if found("fragmentation") == 0 {
        let holes = sum(holes.map(|row| row.bytes));
        list.push(Suspect { of: Whole::Reserved, ..suspect("fragmentation", holes) });
    }
    if !scene.is_inference() {
        if has_state {
            list.push(suspect("optimizer state", held(Category::Optimizer)));
        }
        list.push(suspect("logits", found("loss-logits")));
    }
    let whole = |of: Whole| match of {
        Whole::Allocated => scene.total,
        Whole::Reserved => scene.at.reserved,
    };
    list.retain(|it| !is_blamed(it.name, told, scene.total));
    list.retain(|it| u128::from(it.bytes) * 100 < u128::from(whole(it.of)) * u128::from(ALIBI));
    list.sort_by_key(|it| std::cmp::Reverse(it.bytes));
    list
}
