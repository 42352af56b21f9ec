//! A run held against a baseline.

use anatomy::Peaks;

use crate::baseline::{Baseline, Module};
use crate::margin::Margin;

/// Bytes before and now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// In the baseline.
    pub before: u64,
    /// In this run.
    pub after: u64,
}

impl Change {
    /// How far they are apart.
    pub fn size(self) -> u64 {
        self.before.abs_diff(self.after)
    }

    fn is_over(self, margin: Margin) -> bool {
        margin.most(self.before) < self.after
    }

    fn is_under(self, margin: Margin) -> bool {
        margin.most(self.after) < self.before
    }
}

/// A change of modules of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleChange {
    /// `encoder.layers.*.fc`; empty for what belongs to no module.
    pub path: String,
    /// Empty if not known.
    pub class: String,
    /// `None`: the baseline lists only the largest, and this was not among them.
    pub before: Option<u64>,
    /// In this run.
    pub after: u64,
}

impl ModuleChange {
    fn size(&self) -> u64 {
        self.before.unwrap_or(0).abs_diff(self.after)
    }
}

/// In which direction a run went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Within the margin.
    #[default]
    Same,
    /// A peak is above it.
    Grew,
    /// No peak is above it, and one is below by more than it.
    Shrank,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// More, less or the same.
    pub kind: Kind,
    /// What was allowed.
    pub margin: Margin,
    /// `max_memory_allocated`.
    pub allocated: Change,
    /// `max_memory_reserved`.
    pub reserved: Change,
    /// Taken from the card.
    pub device: Change,
    /// The smallest card that does, where it is known of both.
    pub need: Option<Change>,
    /// Categories that changed, what changed most first.
    pub categories: Vec<(String, Change)>,
    /// Modules that changed, what changed most first.
    pub modules: Vec<ModuleChange>,
    /// What else differs and may be the reason.
    pub remarks: Vec<String>,
}

/// Holds a run, `now`, against what was agreed, `before`. `now` must list every module.
pub fn compare(before: &Baseline, now: &Baseline, margin: Margin) -> Comparison {
    let of =
        |peak: fn(&Peaks) -> u64| Change { before: peak(&before.peaks), after: peak(&now.peaks) };
    let (allocated, reserved) = (of(|peaks| peaks.allocated), of(|peaks| peaks.reserved));
    let device = of(|peaks| peaks.device);
    let need = before.need.zip(now.need).map(|(before, after)| Change { before, after });
    // What is only cached is not needed.
    let all = need.map_or(vec![allocated, reserved, device], |need| vec![allocated, need]);
    let kind = match () {
        () if all.iter().any(|change| change.is_over(margin)) => Kind::Grew,
        () if all.iter().any(|change| change.is_under(margin)) => Kind::Shrank,
        () => Kind::Same,
    };
    let has_holders = !before.categories.is_empty() && !now.categories.is_empty();
    let (categories, modules) = match has_holders {
        true => (categories(before, now), modules(before, now)),
        false => (Vec::new(), Vec::new()),
    };
    let mut remarks = remarks(before, now);
    if !has_holders {
        remarks.push("who holds the memory was not recorded: only peaks are compared".to_owned());
    }
    Comparison { kind, margin, allocated, reserved, device, need, categories, modules, remarks }
}

fn categories(before: &Baseline, now: &Baseline) -> Vec<(String, Change)> {
    let bytes = |list: &[(String, u64)], name: &str| {
        list.iter().find(|row| row.0 == name).map_or(0, |row| row.1)
    };
    let gone =
        before.categories.iter().filter(|row| !now.categories.iter().any(|other| other.0 == row.0));
    let names = now.categories.iter().chain(gone).map(|row| row.0.clone());
    let mut changes: Vec<(String, Change)> = names
        .map(|name| {
            let change = Change {
                before: bytes(&before.categories, &name),
                after: bytes(&now.categories, &name),
            };
            (name, change)
        })
        .filter(|(_, change)| change.before != change.after)
        .collect();
    changes.sort_by(|a, b| (b.1.size(), &a.0).cmp(&(a.1.size(), &b.0)));
    changes
}

fn modules(before: &Baseline, now: &Baseline) -> Vec<ModuleChange> {
    let is_same = |a: &Module, b: &Module| (&a.path, &a.class) == (&b.path, &b.class);
    let smallest = before.modules.iter().map(|module| module.bytes).min().unwrap_or(0);
    let of_now = now.modules.iter().filter_map(|module| {
        let listed = before.modules.iter().find(|other| is_same(module, other));
        let before = match listed {
            Some(other) => Some(other.bytes),
            None if before.unlisted_bytes == 0 => Some(0),
            // It was there, and smaller than all that is listed: what is still smaller says nothing.
            None if module.bytes <= smallest => return None,
            None => None,
        };
        let Module { path, class, bytes } = module.clone();
        Some(ModuleChange { path, class, before, after: bytes })
    });
    let gone = before
        .modules
        .iter()
        .filter(|module| !now.modules.iter().any(|other| is_same(module, other)));
    let gone = gone.cloned().map(|Module { path, class, bytes }| ModuleChange {
        path,
        class,
        before: Some(bytes),
        after: 0,
    });
    let mut changes: Vec<ModuleChange> =
        of_now.chain(gone).filter(|change| change.before != Some(change.after)).collect();
    changes.sort_by(|a, b| (b.size(), &a.path, &a.class).cmp(&(a.size(), &b.path, &b.class)));
    changes
}

fn remarks(before: &Baseline, now: &Baseline) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut differs = |what: &str, before: &str, now: &str| {
        if before != now {
            let name =
                |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
            remarks.push(format!(
                "the baseline was made with {what} {}, this run with {}",
                name(before),
                name(now)
            ));
        }
    };
    differs("torch", &before.torch, &now.torch);
    differs("cuDNN", &before.cudnn, &now.cudnn);
    differs("workspaces", &before.workspaces, &now.workspaces);
    let memory = |baseline: &Baseline| baseline.card.as_ref().map(|card| card.memory_bytes);
    if let (Some(before), Some(now)) = (memory(before), memory(now))
        && before != now
    {
        let text = anatomy::bytes::text;
        remarks.push(format!("the baseline's card has {}, this one {}", text(before), text(now)));
    }
    if before.steps != now.steps {
        let (before, now) = (before.steps, now.steps);
        remarks.push(format!("the baseline is of {before} steps, this run of {now}"));
    }
    remarks
}
