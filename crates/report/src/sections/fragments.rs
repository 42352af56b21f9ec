//! Memory in pieces: a table of pools, and a map of the largest segments.
//!
//! ```text
//!    40.0 MiB  ████████████············████████████▒▒▒▒▒▒▒▒▒▒▒▒  largest free 10.0 MiB
//! ```

use super::columns::{begin, count};
use crate::bytes;
use study::fragments::{Cell, Fragments, Pool, PoolUse, SegmentMap};

/// Pools and segments on one screen.
const POOLS: usize = 4;
pub(crate) const SEGMENTS: usize = 6;
/// Least columns of a pool's name, and columns of its numbers.
const NAME: usize = 13;
const NUMBER: usize = 11;

/// Why it failed, a row for each sentence.
pub(crate) fn why(fragments: &Fragments) -> Vec<String> {
    fragments.shortage.iter().flat_map(crate::why::sentences).collect()
}

/// One row for each pool, kind and stream; the ones that reserve most if there are many.
pub(crate) fn pools(fragments: &Fragments, is_full: bool) -> Vec<String> {
    if fragments.pools.is_empty() {
        return Vec::new();
    }
    let has_waiting = fragments.pools.iter().any(|row| row.waiting_bytes != 0);
    let mut kept: Vec<&PoolUse> = fragments.pools.iter().collect();
    let most = if is_full { usize::MAX } else { POOLS };
    if most < kept.len() {
        kept.sort_by_key(|row| std::cmp::Reverse(row.reserved_bytes));
    }
    let rest = kept.split_off(most.min(kept.len())).len();
    let width = kept.iter().map(|row| name(row.pool).len()).max().unwrap_or(0).max(NAME);
    let waiting = has_waiting.then_some("waiting");
    let heads = ["segments", "reserved", "allocated"].into_iter().chain(waiting);
    let heads = heads.chain(["free", "in blocks", "largest"]);
    let heads: String = heads.map(|head| format!("{head:>NUMBER$}")).collect();
    let mut rows = vec![format!("{:width$}{heads}", "")];
    rows.extend(
        kept.into_iter().map(|row| begin(&name(row.pool), width) + &numbers(row, has_waiting)),
    );
    rows.extend(more(rest, "pool"));
    rows
}

fn numbers(row: &PoolUse, has_waiting: bool) -> String {
    let waiting = has_waiting.then(|| bytes::text(row.waiting_bytes));
    let numbers = [
        count(row.segments as u64),
        bytes::text(row.reserved_bytes),
        bytes::text(row.allocated_bytes),
    ];
    let free = [
        bytes::text(row.free_bytes),
        count(row.free_blocks as u64),
        bytes::text(row.largest_free_bytes),
    ];
    let numbers = numbers.into_iter().chain(waiting).chain(free);
    numbers.map(|number| format!("{number:>NUMBER$}")).collect()
}

/// `large`, `small, stream 7, pool 1.0`.
fn name(pool: Pool) -> String {
    let mut name = if pool.large { "large" } else { "small" }.to_owned();
    if pool.stream != 0 {
        // Streams are addresses.
        name += &match pool.stream {
            small @ ..4096 => format!(", stream {small}"),
            address => format!(", stream {address:#x}"),
        };
    }
    if pool.private != (0, 0) {
        name += &format!(", pool {}.{}", pool.private.0, pool.private.1);
    }
    name
}

/// The largest segments; `None` draws all.
pub(crate) fn map(fragments: &Fragments, most: Option<usize>) -> Vec<String> {
    let all = fragments.segments.len();
    let most = most.unwrap_or(all);
    // A row that says "1 more" may as well be that one.
    let shown = if all <= most { all } else { most.saturating_sub(1) };
    let rows = fragments.segments.iter().take(shown).map(segment);
    rows.chain(more(all - shown, "segment")).collect()
}

fn segment(segment: &SegmentMap) -> String {
    let cells = segment.cells.iter().map(|cell| match cell {
        Cell::Used => '█',
        Cell::Waiting => '▒',
        Cell::Free => '·',
    });
    let free = match segment.largest_free_bytes {
        0 => "full".to_owned(),
        largest => format!("largest free {}", bytes::text(largest)),
    };
    let size = bytes::text(segment.size_bytes);
    format!("{size:>NUMBER$}  {}  {free}", cells.collect::<String>())
}

fn more(rest: usize, what: &str) -> Option<String> {
    let plural = if rest == 1 { "" } else { "s" };
    (rest != 0).then(|| format!("… {} more {what}{plural}: `--fragments`", count(rest as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_named_by_what_is_not_usual() {
        let pool = Pool { private: (1, 0), large: true, stream: 7 };
        assert_eq!(name(pool), "large, stream 7, pool 1.0");
        let pool = Pool { stream: 0x5500_0000, ..Pool::default() };
        assert_eq!(name(pool), "small, stream 0x55000000");
    }

    #[test]
    fn many_rows_are_folded() {
        let pool = PoolUse { reserved_bytes: u64::MAX, waiting_bytes: 1, ..PoolUse::default() };
        let cells = vec![Cell::Used, Cell::Waiting, Cell::Free];
        let one = SegmentMap { cells, largest_free_bytes: u64::MAX, ..SegmentMap::default() };
        let fragments = Fragments { pools: vec![pool; 9], segments: vec![one; 9], shortage: None };
        assert_eq!(pools(&fragments, false).len(), 1 + POOLS + 1);
        assert_eq!(pools(&fragments, true).len(), 1 + 9);
        assert_eq!(map(&fragments, None).len(), 9);
        let folded = map(&fragments, Some(SEGMENTS));
        assert_eq!(folded.len(), SEGMENTS);
        assert_eq!(folded[SEGMENTS - 1], "… 4 more segments: `--fragments`");
        assert!(folded[0].contains("  █▒·  "), "{}", folded[0]);
        assert_eq!(map(&Fragments::default(), Some(0)), [""; 0]);
    }
}
