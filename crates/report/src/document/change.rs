//! The one change, and the peak before and after.

use serde::Serialize;

use super::Edit;
use crate::bytes;
use crate::markup::{plain, table};

#[derive(Clone, Debug, Default, Serialize)]
pub struct Change {
    pub what: String,
    /// How far it changes results.
    pub results: String,
    pub edit: Edit,
    /// Why it is no diff: each with the line that is in the way.
    pub in_the_way: Vec<String>,
    /// How it was applied for the run after.
    pub applied: String,
    pub before: Sizes,
    pub after: Sizes,
}

/// Peaks of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Sizes {
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
    pub device_bytes: u64,
}

impl Sizes {
    /// Peaks as a trial gives them, on a GPU whose context has so many bytes.
    pub fn of(peaks: &::anatomy::Peaks) -> Sizes {
        let ::anatomy::Peaks { allocated, reserved, device } = *peaks;
        Sizes { allocated_bytes: allocated, reserved_bytes: reserved, device_bytes: device }
    }
}

impl Change {
    pub(super) fn markdown(&self) -> String {
        let row = |name: &str, of: fn(&Sizes) -> u64| {
            let (before, after) = (of(&self.before), of(&self.after));
            let delta = bytes::text(before.abs_diff(after));
            let sign = if after <= before { "−" } else { "+" };
            vec![name.to_owned(), bytes::text(before), bytes::text(after), format!("{sign}{delta}")]
        };
        let rows = [
            row("allocated", |sizes| sizes.allocated_bytes),
            row("reserved", |sizes| sizes.reserved_bytes),
            row("with the context", |sizes| sizes.device_bytes),
        ];
        let why: Vec<String> = self.in_the_way.iter().map(|why| plain(why)).collect();
        let why = match why.is_empty() {
            true => String::new(),
            false => {
                format!("There is no diff, since something is in the way: {}.\n\n", why.join("; "))
            }
        };
        format!(
            "## The change\n\n{} ({}).\n\n{}{why}{}\n\n{}",
            plain(&self.what),
            self.results,
            self.edit.markdown(),
            self.applied,
            table(&["peak", "before:", "after:", "change:"], &rows)
        )
    }
}
