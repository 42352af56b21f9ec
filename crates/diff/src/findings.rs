//! The same cause on both sides: by its title, else by its detector, the larger with the larger.

use crate::difference::{Change, FindingRow};
use crate::side::Cause;

/// The causes of B in their order, then those that are gone.
pub(crate) fn rows(a: &[Cause], b: &[Cause]) -> Vec<FindingRow> {
    let mut left: Vec<&Cause> = a.iter().collect();
    let mut found: Vec<Option<&Cause>> = vec![None; b.len()];
    let same: [fn(&Cause, &Cause) -> bool; 2] = [
        |one, other| (&one.id, &one.title) == (&other.id, &other.title),
        |one, other| one.id == other.id,
    ];
    for is_same in same {
        for (cause, found) in b.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            *found = left.iter().position(|other| is_same(other, cause)).map(|at| left.remove(at));
        }
    }
    let row = |cause: &Cause, a: u64, b: u64| FindingRow {
        id: cause.id.clone(),
        title: cause.title.clone(),
        bytes: Change { a, b },
    };
    let now = b.iter().zip(&found);
    let now = now.map(|(cause, was)| row(cause, was.map_or(0, |was| was.bytes), cause.bytes));
    now.chain(left.iter().map(|cause| row(cause, cause.bytes, 0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn causes(list: &[(&str, &str, u64)]) -> Vec<Cause> {
        let cause = |(id, title, bytes): &(&str, &str, u64)| Cause {
            id: (*id).to_owned(),
            title: (*title).to_owned(),
            bytes: *bytes,
        };
        list.iter().map(cause).collect()
    }

    #[test]
    fn a_cause_is_known_again_by_its_title_first() {
        let a = causes(&[("maps", "64", 9), ("maps", "32", 5), ("copies", "ema", 2)]);
        let b = causes(&[("maps", "32", 6), ("maps", "128", 4), ("loss", "logits", 1)]);
        let rows = rows(&a, &b);
        let short: Vec<(&str, u64, u64)> =
            rows.iter().map(|row| (row.title.as_str(), row.bytes.a, row.bytes.b)).collect();
        assert_eq!(short, [("32", 5, 6), ("128", 9, 4), ("logits", 0, 1), ("ema", 2, 0)]);
    }
}
