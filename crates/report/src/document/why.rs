//! The cause in the words of the script's own settings, and what is not the cause.

use ::anatomy::bytes;
use diagnose::Whole;
use recording::Category;
use serde::Serialize;
use study::Run;

use super::places::count;
use super::sentence;
use crate::markup::{code, plain, table};
use crate::sections::columns::share;

/// Causes that are listed.
const CAUSES: usize = 5;

/// A part of the peak from which on something is a cause and no alibi, in percent.
const ALIBI: u64 = 10;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Why {
    /// The largest first.
    pub causes: Vec<Cause>,
    /// Sizes of the first cause's largest tensors, by the settings that move them.
    pub sizes: Vec<Traced>,
    /// What is often blamed and is not the cause.
    pub alibis: Vec<Alibi>,
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    pub id: &'static str,
    pub title: String,
    pub bytes: u64,
    /// `allocated` or `reserved`.
    pub of: &'static str,
    pub counted: bool,
    pub explanation: String,
    pub scales: String,
}

/// A size of a shape, and the settings by which it is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Traced {
    /// The tensor: `float32[16384, 512, 32]`.
    pub tensor: String,
    pub at: String,
    pub size: u64,
    /// In words: `batch_size 128 × num_group 64 × 2`; empty if no setting that was varied moves it.
    pub made_of: String,
    /// What was varied, and what it became: `batch_size 64: 8,192`.
    pub seen: Vec<String>,
}

/// Something that is often blamed.
#[derive(Clone, Debug, Serialize)]
pub struct Alibi {
    pub name: String,
    pub bytes: u64,
    /// `allocated` or `reserved`.
    pub of: &'static str,
}

impl Why {
    pub fn of(run: &Run) -> Option<Why> {
        let anatomy = run.anatomy()?;
        let at = &anatomy.allocated_peak;
        let cause = |finding: &diagnose::Finding| Cause {
            id: finding.id,
            title: finding.title.clone(),
            bytes: finding.bytes,
            of: finding.of.name(),
            counted: finding.counted,
            explanation: finding.explanation.clone(),
            scales: finding.scales.clone(),
        };
        Some(Why {
            causes: run.findings().iter().take(CAUSES).map(cause).collect(),
            sizes: Vec::new(),
            alibis: alibis(run, at.allocated),
            allocated_bytes: at.allocated,
            reserved_bytes: at.reserved,
        })
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = "## Why\n\n".to_owned();
        if let Some(first) = self.causes.first() {
            text += &format!(
                "**{}.** {}\n\n",
                plain(&first.title),
                plain(&sentence(&first.explanation))
            );
            if !first.scales.is_empty() {
                text +=
                    &format!("It grows with {}.\n\n", plain(first.scales.trim_end_matches('.')));
            }
        }
        text += &self.sizes();
        let whole =
            |of: &str| if of == "reserved" { self.reserved_bytes } else { self.allocated_bytes };
        if 1 < self.causes.len() {
            text += "All causes:\n\n";
            let row = |cause: &Cause| {
                let title = match cause.counted {
                    true => plain(&cause.title),
                    false => format!("{} (of bytes that are counted above)", plain(&cause.title)),
                };
                let of = share(cause.bytes, whole(cause.of));
                vec![title, bytes::text(cause.bytes), format!("{of} of {}", cause.of)]
            };
            let rows: Vec<Vec<String>> = self.causes.iter().map(row).collect();
            text += &table(&["cause", "size:", "share:"], &rows);
        }
        if !self.alibis.is_empty() {
            text += "What is **not** the cause:\n\n";
            let row = |alibi: &Alibi| {
                let of = match alibi.bytes {
                    0 => String::new(),
                    bytes => format!("{} of {}", share(bytes, whole(alibi.of)), alibi.of),
                };
                let size =
                    if alibi.bytes == 0 { "none".to_owned() } else { bytes::text(alibi.bytes) };
                vec![alibi.name.clone(), size, of]
            };
            let rows: Vec<Vec<String>> = self.alibis.iter().map(row).collect();
            text += &table(&["suspect", "size:", "share:"], &rows);
        }
        text
    }

    /// The sizes and the settings that make them.
    fn sizes(&self) -> String {
        if self.sizes.is_empty() {
            return String::new();
        }
        let row = |traced: &Traced| {
            let made = match traced.made_of.as_str() {
                "" => "no setting that was varied moves it".to_owned(),
                made => plain(made),
            };
            vec![code(&traced.tensor), count(traced.size), made, plain(&traced.seen.join("; "))]
        };
        let rows: Vec<Vec<String>> = self.sizes.iter().map(row).collect();
        let head = ["tensor", "size:", "made of", "measured: what it became"];
        format!("Where its sizes come from, by varying each setting:\n\n{}", table(&head, &rows))
    }
}

/// Suspects that are categories of the peak: their bytes are those of the anatomy.
const HELD: [(&str, Category); 5] = [
    ("parameters", Category::Weights),
    ("gradients", Category::Gradients),
    ("optimizer state", Category::Optimizer),
    ("inputs", Category::Inputs),
    ("extra copies of the model (EMA, teacher)", Category::ModelCopies),
];

/// The usual suspects with little of the peak, the largest first.
fn alibis(run: &Run, allocated: u64) -> Vec<Alibi> {
    let Some(anatomy) = run.anatomy().filter(|anatomy| anatomy.has_names) else {
        return Vec::new();
    };
    let is_held = |name: &str| HELD.iter().any(|row| row.0 == name);
    let others = run.suspects().iter().filter(|suspect| !is_held(suspect.name)).map(|it| Alibi {
        name: it.name.to_owned(),
        bytes: it.bytes,
        of: if it.of == Whole::Reserved { "reserved" } else { "allocated" },
    });
    let held = &anatomy.allocated_peak.categories;
    let held = HELD.into_iter().map(|(name, category)| Alibi {
        name: name.to_owned(),
        bytes: held.of(category),
        of: "allocated",
    });
    let is_small =
        |it: &Alibi| u128::from(it.bytes) * 100 < u128::from(allocated) * u128::from(ALIBI);
    let mut all: Vec<Alibi> = others.chain(held.filter(is_small)).collect();
    all.sort_by_key(|alibi| std::cmp::Reverse(alibi.bytes));
    all
}
