//! Several cards, ranks or files side by side: which needs most, and what it holds that the others do not.

use diff::{Change, Side, compare};

use crate::bytes;
use crate::lines::Lines;
use crate::reader::Reader;
use crate::sections::columns::place;

/// Reasons of each kind that are named.
const NAMED: usize = 3;

/// Sides that are compared, two or more.
#[derive(Clone, Debug)]
pub struct RankedSides {
    sides: Vec<Side>,
    worst: usize,
    least: usize,
}

impl RankedSides {
    /// Finds the one that needs most: it failed, or has the highest peak. `None` if there is nothing to compare.
    pub fn of(sides: Vec<Side>) -> Option<RankedSides> {
        if sides.len() < 2 {
            return None;
        }
        let need = |side: &Side| (side.ran_out, side.totals.allocated, side.totals.reserved);
        let order = |index: &usize| sides.get(*index).map(need);
        // Of equal ones, the first.
        let worst = (0..sides.len()).rev().max_by_key(order)?;
        let least = (0..sides.len()).min_by_key(order)?;
        Some(RankedSides { worst, least, sides })
    }

    /// The place of the one that needs most.
    pub fn worst(&self) -> usize {
        self.worst
    }

    /// The place of the one that needs least.
    pub fn least(&self) -> usize {
        self.least
    }

    /// Those that need least and most.
    pub fn pair(&self) -> Option<(&Side, &Side)> {
        self.sides.get(self.least).zip(self.sides.get(self.worst))
    }
}

/// The table, and what the worst holds more than the least.
pub fn explain_ranks(ranks: &RankedSides, reader: Reader) -> String {
    let width = ranks.sides.iter().map(|side| side.name.chars().count()).max().unwrap_or(0);
    let mut rows = vec![format!("{:width$}  {:>11}  {:>11}  peak in", "", "allocated", "reserved")];
    for (index, side) in ranks.sides.iter().enumerate() {
        let [allocated, reserved] = [side.totals.allocated, side.totals.reserved].map(bytes::text);
        let failed = if side.ran_out { "  ran out of memory" } else { "" };
        let worst = if index == ranks.worst { "  needs most" } else { "" };
        let (name, when) = (&side.name, &side.when);
        rows.push(format!("{name:width$}  {allocated:>11}  {reserved:>11}  {when}{failed}{worst}"));
    }
    let mut lines = Lines::new(reader);
    lines.section(reader.label, "ranks", rows);
    lines.section(reader.label, "more", more(ranks));
    lines.text()
}

/// What the worst has more than the least, by category, line and tensor.
fn more(ranks: &RankedSides) -> Vec<String> {
    let Some((least, worst)) = ranks.pair() else { return Vec::new() };
    let difference = compare(least, worst);
    let Change { a, b } = difference.allocated;
    if b <= a {
        let same = "all of them have the same peak".to_owned();
        return if a == b { vec![same] } else { Vec::new() };
    }
    let (name, other) = (&worst.name, &least.name);
    let mut rows = vec![format!("{name} holds {} more than {other}", bytes::text(b - a))];
    let grown = |change: &Change| change.b.saturating_sub(change.a);
    let plus = |bytes: u64, what: String| format!("+{} {what}", bytes::text(bytes));
    let categories = difference.categories.iter();
    let mut by_category: Vec<(u64, String)> =
        categories.map(|row| (grown(&row.bytes), row.name.replace('_', " "))).collect();
    by_category.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let named = by_category.into_iter().filter(|(bytes, _)| *bytes != 0).take(NAMED);
    let named: Vec<String> = named.map(|(bytes, what)| plus(bytes, what)).collect();
    rows.extend((!named.is_empty()).then(|| named.join(", ")));
    for row in difference.lines.iter().filter(|row| grown(&row.bytes) != 0).take(NAMED) {
        let at = place(&row.place.file, row.place.line);
        let at = if at.is_empty() { "no line known".to_owned() } else { format!("at {at}") };
        rows.push(plus(grown(&row.bytes), at));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, allocated: u64, ran_out: bool, weights: u64) -> Side {
        let mut side = Side { name: name.to_owned(), ran_out, ..Side::default() };
        (side.totals.allocated, side.totals.reserved) = (allocated, allocated);
        side.categories =
            vec![("weights".to_owned(), weights), ("activations".to_owned(), allocated - weights)];
        side
    }

    #[test]
    fn the_worst_is_named_with_what_it_has_more() {
        let mib = 1 << 20;
        let ranks = RankedSides::of(vec![
            side("rank0", 300 * mib, false, 100 * mib),
            side("rank1", 500 * mib, false, 100 * mib),
            side("rank2", 310 * mib, false, 110 * mib),
        ]);
        let ranks = ranks.unwrap();
        assert_eq!(ranks.worst(), 1);
        let text = explain_ranks(&ranks, Reader::plain(100));
        assert!(text.contains("rank1 holds 200.0 MiB more than rank0"), "{text}");
        assert!(text.contains("+200.0 MiB activations"), "{text}");
    }

    #[test]
    fn one_that_failed_is_the_worst_and_equal_ones_are_said_to_be() {
        let failed = vec![side("a", 500, false, 1), side("b", 400, true, 1)];
        assert_eq!(RankedSides::of(failed).unwrap().worst(), 1);
        let same = RankedSides::of(vec![side("a", 5, false, 1), side("b", 5, false, 1)]).unwrap();
        let text = explain_ranks(&same, Reader::plain(100));
        assert!(text.contains("all of them have the same peak"), "{text}");
        assert!(RankedSides::of(vec![side("a", 5, false, 1)]).is_none());
    }
}
