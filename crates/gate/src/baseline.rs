//! What a run needed, without anything that differs between machines: no times, no files, no addresses.

use std::collections::BTreeMap;

use anatomy::{Dissection, Peaks};

/// A run in short.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The card; `None` for unlimited memory.
    pub card: Option<BaselineCard>,
    /// PyTorch's version, as in `2.15.0+cu132`.
    pub torch: String,
    /// The cuDNN that was asked for workspaces; empty if none was.
    pub cudnn: String,
    /// Where workspaces came from: `exact`, `mixed`, `modelled`, `none`.
    pub workspaces: String,
    /// Optimizer steps taken.
    pub steps: u64,
    pub peaks: Peaks,
    /// The smallest card that does, by a replay; `None` if that is not known.
    pub need: Option<u64>,
    /// What is alive at the allocated peak, by category; only what holds something. Empty if it was not recorded.
    pub categories: Vec<(String, u64)>,
    /// The same by module, in order of their paths.
    pub modules: Vec<Module>,
    /// Bytes of modules that are not listed.
    pub unlisted_bytes: u64,
}

/// The card of a baseline, which may be of a catalogue that is not ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaselineCard {
    /// Name in the catalogue.
    pub name: String,
    pub memory_bytes: u64,
}

/// Modules of one kind: numbered layers are put together.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Module {
    /// `encoder.layers.*.fc`; empty for what belongs to no module.
    pub path: String,
    /// Empty if not known.
    pub class: String,
    /// Their own bytes, without the modules below: those of all modules sum to the allocated peak.
    pub bytes: u64,
}

impl Baseline {
    /// Adds who holds the memory at a moment.
    #[must_use]
    pub fn with_holders(mut self, at: &Dissection) -> Baseline {
        let held = at.categories.iter().filter(|(_, bytes)| *bytes != 0);
        self.categories = held.map(|(name, bytes)| (name.to_owned(), bytes)).collect();
        let mut kinds: BTreeMap<(String, String), u64> = BTreeMap::new();
        for row in at.modules.iter().filter(|row| row.own != 0) {
            *kinds.entry((kind(&row.path), row.class.clone())).or_default() += row.own;
        }
        let module = |((path, class), bytes)| Module { path, class, bytes };
        self.modules = kinds.into_iter().map(module).collect();
        self
    }
}

/// `encoder.layers.*.fc` of `encoder.layers.3.fc`: deeper models stay comparable, and the list short.
fn kind(path: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> =
        path.split('.').map(|part| if is_number(part) { "*" } else { part }).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anatomy::ModuleBytes;

    #[test]
    fn numbered_layers_of_one_class_are_one_row() {
        let row = |path: &str, class: &str, own| ModuleBytes {
            path: path.to_owned(),
            class: class.to_owned(),
            own,
            ..ModuleBytes::default()
        };
        let modules = vec![
            row("", "", 7),
            row("net.0", "Linear", 10),
            row("net.1", "ReLU", 1),
            row("net.2", "Linear", 20),
            row("v2", "Head", 5),
            row("idle", "Head", 0),
        ];
        let baseline =
            Baseline::default().with_holders(&Dissection { modules, ..Dissection::default() });
        let rows: Vec<String> = baseline
            .modules
            .iter()
            .map(|row| format!("{} {} {}", row.path, row.class, row.bytes))
            .collect();
        assert_eq!(rows, ["  7", "net.* Linear 30", "net.* ReLU 1", "v2 Head 5"]);
    }
}
