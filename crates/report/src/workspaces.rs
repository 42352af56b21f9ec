//! Work areas of cuDNN by kind of call: how their sizes are known, and how much of the peak they are.

use anatomy::Dissection;

use crate::bytes;
use study::{Run, Workspace};

/// Work areas at the peak that PyTorch itself decides about.
const OF_PYTORCH: (&str, &str) = ("cuBLAS workspace", "matrix products");

/// One kind as it is shown.
pub(crate) struct Row {
    pub(crate) kind: &'static str,
    /// `exact`, `modelled`, `measured`, `unknown`.
    pub(crate) known: &'static str,
    pub(crate) calls: Option<u64>,
    pub(crate) largest_bytes: Option<u64>,
    /// Alive at the allocated peak; `None` if nothing was recorded.
    pub(crate) peak_bytes: Option<u64>,
}

/// How all sizes together are known: `exact`, `modelled`, `mixed`, `none`.
pub(crate) fn known(workspaces: &[Workspace]) -> &'static str {
    let exact = workspaces.iter().filter(|work| work.is_exact).count();
    match workspaces.len() {
        0 => "none",
        all if exact == all => "exact",
        _ if exact == 0 => "modelled",
        _ => "mixed",
    }
}

/// Every kind that was asked for or is alive at the peak. What is alive sums to the peak's workspaces.
pub(crate) fn rows(run: &Run) -> Vec<Row> {
    let peak = run.anatomy().map(|anatomy| &anatomy.allocated_peak);
    let at_peak = |name: &str| peak.map(|peak| alive(peak, |found| found == name));
    let mut rows: Vec<Row> = run
        .workspaces
        .iter()
        .map(|work| Row {
            kind: work.kind,
            known: if work.is_exact { "exact" } else { "modelled" },
            calls: Some(work.calls),
            largest_bytes: Some(work.largest_bytes),
            peak_bytes: at_peak(work.name),
        })
        .collect();
    let is_named =
        |name: &str| name == OF_PYTORCH.0 || run.workspaces.iter().any(|work| work.name == name);
    let others = [
        (OF_PYTORCH.1, "measured", at_peak(OF_PYTORCH.0)),
        ("unknown", "unknown", peak.map(|peak| alive(peak, |name| !is_named(name)))),
    ];
    for (kind, known, peak_bytes) in others.into_iter().filter(|row| row.2.unwrap_or(0) != 0) {
        rows.push(Row { kind, known, calls: None, largest_bytes: None, peak_bytes });
    }
    rows
}

/// Bytes of work areas with such names.
fn alive(at: &Dissection, is_meant: impl Fn(&str) -> bool) -> u64 {
    let areas = at.tensors.iter().filter(|tensor| tensor.category.name() == "workspace");
    areas.filter(|tensor| is_meant(&tensor.name)).map(|tensor| tensor.bytes).sum()
}

/// Whether some of the peak is of a size that is not exact.
pub(crate) fn are_modelled_at_peak(run: &Run) -> bool {
    let open = rows(run).into_iter().filter(|row| !matches!(row.known, "exact" | "measured"));
    open.map(|row| row.peak_bytes).any(|bytes| bytes != Some(0))
}

/// Which sizes are exact and which are not, where some are not.
pub fn sentence(run: &Run) -> Option<String> {
    let rows = rows(run);
    let groups: Vec<String> = ["exact", "modelled", "unknown"]
        .into_iter()
        .filter_map(|known| {
            let group: Vec<&Row> = rows.iter().filter(|row| row.known == known).collect();
            group_text(known, &group)
        })
        .collect();
    let is_all_exact = rows.iter().all(|row| matches!(row.known, "exact" | "measured"));
    (!is_all_exact).then(|| format!("workspaces of cuDNN: {}", groups.join("; ")))
}

/// `exact for convolution forward, convolution backward data (1.02 GiB of the peak, at most 1.02 GiB in a call)`.
fn group_text(known: &str, rows: &[&Row]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let at_peak: Option<u64> = rows.iter().map(|row| row.peak_bytes).sum();
    let largest = rows.iter().filter_map(|row| row.largest_bytes).max();
    let amounts: Vec<String> = [
        at_peak.map(|amount| format!("{} of the peak", bytes::text(amount))),
        largest.map(|amount| format!("at most {} in a call", bytes::text(amount))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let kinds: Vec<&str> =
        rows.iter().map(|row| row.kind).filter(|kind| *kind != "unknown").collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" for {}", kinds.join(", ")) };
    Some(format!("{known}{kinds} ({})", amounts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(kind: &'static str, is_exact: bool) -> Workspace {
        Workspace { kind, name: kind, is_exact, calls: 1, largest_bytes: 1 << 20 }
    }

    #[test]
    fn one_modelled_kind_does_not_hide_the_exact_ones() {
        assert_eq!(known(&[]), "none");
        assert_eq!(known(&[work("a", true)]), "exact");
        assert_eq!(known(&[work("a", true), work("b", false)]), "mixed");
        assert_eq!(known(&[work("b", false)]), "modelled");
    }
}
