//! A run as a baseline, and what changed since one, in words.

use gate::{Baseline, Change, Comparison, Kind, ModuleChange, Peaks};

use crate::bytes;
use crate::sections::columns::begin;
use crate::workspaces;
use study::{Against, Run};

/// Categories, and as many modules, that a comparison names.
const NAMED: usize = 3;
/// Columns of their names.
const NAME: usize = 40;

/// What is kept of a run; `None` if it did not use the card, or did not come to its end there.
pub fn baseline(run: &Run) -> Option<Baseline> {
    let peak = run.peak.as_ref()?;
    if run.out_of_memory.is_some() || run.failure.is_some() {
        return None;
    }
    let baseline = Baseline {
        card: run.card.as_ref().map(|card| gate::BaselineCard {
            name: card.name.to_owned(),
            memory_bytes: card.memory_bytes,
        }),
        torch: run.software.torch.clone(),
        cudnn: run.software.cudnn.clone(),
        workspaces: workspaces::known(&run.workspaces).to_owned(),
        steps: run.steps,
        peaks: Peaks {
            allocated: peak.allocated.bytes,
            reserved: peak.reserved.bytes,
            device: peak.device_bytes,
        },
        // By replay: a need that was found by runs is not known in every check.
        need: run.floor_bytes,
        ..Baseline::default()
    };
    Some(match run.anatomy() {
        Some(anatomy) => baseline.with_holders(&anatomy.allocated_peak),
        None => baseline,
    })
}

/// The sentence of the verdict: `needs …, … more than …`.
pub(crate) fn grew(against: &Against) -> String {
    let Comparison { device, need, allocated, reserved, margin, .. } = &against.comparison;
    let need = need.as_ref().unwrap_or(device);
    let over = |change: &Change| margin.most(change.before) < change.after;
    let (what, change) = match () {
        () if over(need) => ("needs", need),
        () if over(reserved) => ("reserves", reserved),
        () => ("allocates", allocated),
    };
    format!(
        "{what} {}, {} more than {} (allowed: {margin})",
        bytes::text(change.after),
        by(*change),
        against.file
    )
}

/// Rows of the report.
pub(crate) fn rows(against: &Against) -> Vec<String> {
    let Comparison { allocated, reserved, margin, kind, remarks, .. } = &against.comparison;
    let peaks = format!(
        "allocated {}, reserved {} against {} (margin {margin})",
        signed(*allocated),
        signed(*reserved),
        against.file
    );
    let parts = parts(&against.comparison);
    let parts = parts
        .iter()
        .map(|part| format!("{} {:>11}  {}", begin(&part.name, NAME), part.change(), part.both()));
    let shrank = (*kind == Kind::Shrank)
        .then(|| "less than before: `--save-baseline` keeps it from growing back".to_owned());
    std::iter::once(peaks).chain(parts).chain(shrank).chain(remarks.iter().cloned()).collect()
}

/// A category or a kind of modules that changed.
pub(crate) struct Part {
    pub(crate) name: String,
    /// `None`: too small to be in the baseline.
    pub(crate) before: Option<u64>,
    pub(crate) after: u64,
}

impl Part {
    /// `+1.00 GiB`; nothing where it is not known.
    pub(crate) fn change(&self) -> String {
        self.before.map_or(String::new(), |before| signed(Change { before, after: self.after }))
    }

    /// Both sizes: `10.50 GiB → 11.50 GiB`.
    pub(crate) fn both(&self) -> String {
        let before = self.before.map_or("not listed".to_owned(), bytes::text);
        format!("{before} → {}", bytes::text(self.after))
    }
}

/// The categories and then the modules that changed most.
pub(crate) fn parts(comparison: &Comparison) -> Vec<Part> {
    let category = |(name, change): &(String, Change)| Part {
        name: name.replace('_', " "),
        before: Some(change.before),
        after: change.after,
    };
    let module = |row: &ModuleChange| {
        let name = match row.path.as_str() {
            "" => "outside of modules".to_owned(),
            path => format!("{path} {}", row.class).trim_end().to_owned(),
        };
        Part { name, before: row.before, after: row.after }
    };
    let categories = comparison.categories.iter().take(NAMED).map(category);
    categories.chain(comparison.modules.iter().take(NAMED).map(module)).collect()
}

/// `+1.00 GiB`, `-12.0 MiB`, `±0`.
pub(crate) fn signed(change: Change) -> String {
    match change.before.cmp(&change.after) {
        std::cmp::Ordering::Less => format!("+{}", bytes::text(change.size())),
        std::cmp::Ordering::Equal => "±0".to_owned(),
        std::cmp::Ordering::Greater => format!("-{}", bytes::text(change.size())),
    }
}

/// `1.00 GiB (8.2 %)`: how far two sizes are apart.
fn by(change: Change) -> String {
    let size = bytes::text(change.size());
    match change.before {
        0 => size,
        before => format!("{size} ({:.1} %)", change.size() as f64 / before as f64 * 100.0),
    }
}
