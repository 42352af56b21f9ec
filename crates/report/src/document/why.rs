//! The cause in the words of the script's own settings, and what is not the cause.

use ::anatomy::bytes;
use diagnose::Whole;
use recording::Category;
use serde::Serialize;
use study::Run;

use super::answer::{Moment, is_of_request};
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
    /// How the first cause grows with each setting, as it was measured: `batch_size`, `linear`.
    pub growth: Vec<(String, String)>,
    /// What is often blamed and is not the cause.
    pub alibis: Vec<Alibi>,
    /// What shares are of; with the request that failed, if one ended the run.
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
    /// Where one request was too large: the causes of the peak that it would have without a limit.
    pub unlimited: Vec<Cause>,
    pub unlimited_bytes: u64,
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
    /// `whole` is the run without a limit, where `run` ran out of memory.
    pub fn of(run: &Run, whole: &Run) -> Option<Why> {
        let peak = &whole.anatomy()?.allocated_peak;
        let at = Moment::told(run, whole)?;
        let some = |findings: &[diagnose::Finding]| {
            findings.iter().take(CAUSES).map(cause).collect::<Vec<Cause>>()
        };
        let is_of_request = is_of_request(run) && run.anatomy().is_some();
        Some(Why {
            causes: some(at.findings),
            sizes: Vec::new(),
            growth: Vec::new(),
            alibis: alibis(whole, at.findings, peak.allocated),
            allocated_bytes: at.bytes,
            reserved_bytes: at.reserved,
            unlimited: if is_of_request { some(whole.findings()) } else { Vec::new() },
            unlimited_bytes: peak.allocated,
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
            text += &self.grows(&first.scales);
        }
        text += &self.sizes();
        let whole =
            |of: &str| if of == "reserved" { self.reserved_bytes } else { self.allocated_bytes };
        let when = match self.unlimited.is_empty() {
            true => "All causes:",
            false => "All causes, when memory runs out:",
        };
        text += &causes(when, &self.causes, &whole);
        let of_peak = |of: &str| if of == "reserved" { 0 } else { self.unlimited_bytes };
        let peak = bytes::text(self.unlimited_bytes);
        let title = format!("All causes of the peak of {peak} that the run has without a limit:");
        text += &causes(&title, &self.unlimited, &of_peak);
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

    /// What the cause grows with: as it was measured, where settings were varied.
    fn grows(&self, scales: &str) -> String {
        let measured: Vec<String> =
            self.growth.iter().map(|(name, law)| format!("{law} with {}", code(name))).collect();
        let stays = !self.growth.is_empty() && self.growth.iter().all(|(_, law)| law == "constant");
        let mut text = match scales.trim_end_matches('.') {
            "" => String::new(),
            // What was measured stands beside it and would contradict it.
            _ if stays => String::new(),
            scales => format!("It grows with {}.", plain(scales)),
        };
        if !measured.is_empty() {
            text += &format!(" Measured: {}.", measured.join(", "));
        }
        if text.is_empty() { text } else { format!("{}\n\n", text.trim_start()) }
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

/// A table of causes with their shares; nothing without causes.
fn causes(title: &str, rows: &[Cause], whole: &dyn Fn(&str) -> u64) -> String {
    let row = |cause: &Cause| {
        let title = match cause.counted {
            true => plain(&cause.title),
            false => format!("{} (not part of the sum)", plain(&cause.title)),
        };
        let of = match whole(cause.of) {
            0 => String::new(),
            whole => format!("{} of {}", share(cause.bytes, whole), cause.of),
        };
        vec![title, bytes::text(cause.bytes), of]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!("{title}\n\n{}", table(&["cause", "size:", "share:"], &rows)),
    }
}

fn cause(finding: &diagnose::Finding) -> Cause {
    Cause {
        id: finding.id,
        title: finding.title.clone(),
        bytes: finding.bytes,
        of: finding.of.name(),
        counted: finding.counted,
        explanation: finding.explanation.clone(),
        scales: finding.scales.clone(),
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

/// The usual suspects with little of the peak, the largest first; none that a cause is about.
fn alibis(run: &Run, told: &[diagnose::Finding], allocated: u64) -> Vec<Alibi> {
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
    let is_blamed = |it: &Alibi| {
        [told, run.findings()].iter().any(|all| diagnose::is_blamed(&it.name, all, allocated))
    };
    let mut all: Vec<Alibi> =
        others.chain(held.filter(is_small)).filter(|it| !is_blamed(it)).collect();
    all.sort_by_key(|alibi| std::cmp::Reverse(alibi.bytes));
    all
}
