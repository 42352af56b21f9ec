//! Work areas of cuDNN over all processes of a run: which sizes are exact.

use std::collections::BTreeMap;

use contract::work::Work;
use study::Workspace;

use super::files::Seen;

/// By kind of call. The real cuDNN's sizes are exact if it is torch's own version, and if torch and its
/// libraries have kernels for the card: without them a size is what cuDNN says about a card it does not know.
pub(super) fn workspaces(all: &[Seen], has_kernels: Option<bool>) -> Vec<Workspace> {
    let mut kinds: BTreeMap<Work, Workspace> = BTreeMap::new();
    for seen in all {
        let is_own = seen.foreign_cudnn().is_none() && has_kernels != Some(false);
        for reading in &seen.page.work {
            let (exact, modelled) = (reading.exact, reading.modelled);
            let kind = kinds.entry(reading.work).or_insert(Workspace {
                kind: reading.work.title(),
                name: reading.work.name(),
                is_exact: true,
                calls: 0,
                largest_bytes: 0,
            });
            kind.is_exact &= is_own && modelled.calls == 0;
            kind.calls += exact.calls + modelled.calls;
            kind.largest_bytes = kind.largest_bytes.max(exact.largest).max(modelled.largest);
        }
    }
    kinds.into_values().collect()
}
