//! What distributed training has made of one moment: bytes by the method that made them, or holds them.

use std::collections::{BTreeSet, HashMap};

use recording::{Category, Recording};

use crate::anatomy::AreaBytes;
use crate::lives::Life;

/// Between the name of an area and the number of its part, such as a micro-batch.
const PART: char = '#';

/// Areas of what is alive, largest first.
pub(crate) fn areas(recording: &Recording, alive: &[&Life]) -> Vec<AreaBytes> {
    let mut found: HashMap<&str, (u64, u64, BTreeSet<&str>)> = HashMap::new();
    for life in alive {
        let text = recording.texts.get(life.area);
        // A library's scratch memory is made once, by whoever comes first, and serves all; weights are
        // kept by autograd as activations are.
        let is_shared = matches!(life.category, Category::Workspace | Category::Weights);
        if text.is_empty() || is_shared {
            continue;
        }
        let (name, part) = text.rsplit_once(PART).unwrap_or((text, ""));
        // What a micro-batch leaves behind, such as its output, is no longer in flight.
        if !part.is_empty() && life.category != Category::Activations {
            continue;
        }
        let (bytes, count, parts) = found.entry(name).or_default();
        *bytes += life.block;
        *count += 1;
        if !part.is_empty() {
            parts.insert(part);
        }
    }
    let row = |(name, (bytes, count, parts)): (&str, (u64, u64, BTreeSet<&str>))| AreaBytes {
        name: name.to_owned(),
        bytes,
        count,
        parts: parts.len() as u64,
    };
    let mut rows: Vec<AreaBytes> = found.into_iter().map(row).collect();
    rows.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
    rows
}
