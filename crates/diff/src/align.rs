//! The best way to lay two lists beside each other without changing their order.

/// Beyond this many pairs the lists are too long to weigh them all.
const MOST: usize = 4 << 20;

/// Pairs of places, in order, whose weights sum to most; a weight of 0 is no match. `None` if the lists
/// are too long.
pub(crate) fn align(
    a: usize,
    b: usize,
    weight: impl Fn(usize, usize) -> u32,
) -> Option<Vec<(usize, usize)>> {
    if MOST < (a + 1).saturating_mul(b + 1) {
        return None;
    }
    // best[i][j]: the most that the first `i` and the first `j` give.
    let width = b + 1;
    let mut best = vec![0u64; (a + 1) * width];
    for i in 1..=a {
        for j in 1..=b {
            let skipped = best[(i - 1) * width + j].max(best[i * width + j - 1]);
            let weight = u64::from(weight(i - 1, j - 1));
            let matched = if weight == 0 { 0 } else { best[(i - 1) * width + j - 1] + weight };
            best[i * width + j] = skipped.max(matched);
        }
    }
    let (mut i, mut j, mut pairs) = (a, b, Vec::new());
    while 0 < i && 0 < j {
        let here = best[i * width + j];
        if here == best[(i - 1) * width + j] {
            i -= 1;
        } else if here == best[i * width + j - 1] {
            j -= 1;
        } else {
            (i, j) = (i - 1, j - 1);
            pairs.push((i, j));
        }
    }
    pairs.reverse();
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(a: &str, b: &str) -> Vec<(usize, usize)> {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        align(a.len(), b.len(), |i, j| u32::from(a[i] == b[j])).unwrap()
    }

    #[test]
    fn the_longest_common_subsequence_is_found() {
        assert_eq!(letters("abcde", "axcdxe"), [(0, 0), (2, 2), (3, 3), (4, 5)]);
        assert_eq!(letters("", "a"), []);
        assert_eq!(letters("abc", "xyz"), []);
        assert_eq!(letters("aaa", "a").len(), 1);
    }

    #[test]
    fn a_better_match_is_preferred_to_the_first() {
        let pairs = align(1, 3, |_, j| [1, 3, 2][j]).unwrap();
        assert_eq!(pairs, [(0, 1)]);
        assert_eq!(align(1 << 20, 1 << 20, |_, _| 1), None);
    }
}
