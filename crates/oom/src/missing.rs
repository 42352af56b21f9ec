//! A size that was not given, solved for.

use crate::amount::Amount;
use crate::shape::DTYPES;
use crate::solve::{Candidate, Dim, FEW, Search, Term, UNLIKELY};

/// Candidates that are given for a size that is not known.
const MISSING: usize = 4;

/// All dimensions that were given, and one more size that makes the bytes what was asked for: squared, as the side
/// of a map or tokens of attention, or once. Unless it was asked for, only round sizes count: others fit by chance.
pub(crate) fn missing(asked: &[Amount], dims: &[Dim], name: Option<&str>) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for range in asked {
        // A range that is wide leaves room for any size.
        if dims.len() > FEW || range.low / 200 < range.high - range.low {
            continue;
        }
        for powers in all_powers(dims) {
            let mut parts =
                dims.iter().zip(&powers).map(|(dim, power)| dim.value.checked_pow(*power));
            let product = parts.try_fold(1u64, |all, part| all.checked_mul(part?));
            let Some(product) = product.filter(|product| *product <= range.high) else { continue };
            for (dtype, unlikely) in DTYPES.iter().zip(UNLIKELY).take(4) {
                let Some(each) = product.checked_mul(dtype.bytes) else { continue };
                let mut search = Search::new(asked, dims, &[1]);
                search.powers.clone_from(&powers);
                found.extend(sizes(*range, each, name).into_iter().map(|(term, cost)| {
                    let bytes = each * term.value.pow(term.power);
                    let mut candidate = search.candidate(*dtype, 1, bytes, unlikely + cost);
                    let power = term.power as usize;
                    candidate.shape.0.extend(std::iter::repeat_n(term.value, power));
                    candidate.terms.push(term);
                    candidate
                }));
            }
        }
    }
    found.sort_by_key(|candidate| candidate.cost);
    // What is less plausible fits by chance.
    let best = found.first().map_or(0, |candidate| candidate.cost);
    found.retain(|candidate| candidate.cost == best);
    found.truncate(MISSING);
    found
}

/// Each way to take every dimension at least once.
fn all_powers(dims: &[Dim]) -> Vec<Vec<u32>> {
    dims.iter().fold(vec![Vec::new()], |ways, dim| {
        let longer = |way: Vec<u32>| {
            dim.powers().iter().map(move |power| {
                let mut way = way.clone();
                way.push(*power);
                way
            })
        };
        ways.into_iter().flat_map(longer).collect()
    })
}

/// The size that is missing, as a square first, with what it costs.
fn sizes(range: Amount, each: u64, name: Option<&str>) -> Vec<(Term, u32)> {
    let (first, last) = (range.low.div_ceil(each), range.high / each);
    let mut found = Vec::new();
    let mut add = |value: u64, power: u32, default: &str, cost: u32| {
        let oddness = (value >> value.trailing_zeros()).ilog2();
        let is_round = value.is_multiple_of(8) || value.is_multiple_of(14);
        if 1 < value && (name.is_some() || (is_round && 16 <= value && oddness <= 4)) {
            let name = name.unwrap_or(default).to_owned();
            found.push((Term { name, value, power }, cost + oddness));
        }
    };
    // Of several sides that the rounding leaves open, the roundest.
    let least = first.isqrt() + u64::from(first.isqrt().pow(2) < first);
    let oddness = |side: &u64| side >> side.trailing_zeros();
    if let Some(side) = (least.max(1)..=last.isqrt()).take(64).min_by_key(oddness) {
        add(side, 2, "side", 0);
    }
    // Once, it must be the only number that fits.
    if name.is_some() && first == last {
        add(last, 1, "size", 2);
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::solve::tests::solved;

    #[test]
    fn the_side_that_nobody_gave_is_solved_for() {
        for dims in ["batch=4,channels=256,kernel=7", "batch=4,channels=256,kernel=7,side=?"] {
            let solution = solved("98.00 GiB", dims);
            let best = &solution.candidates[0];
            assert!(solution.solved && solution.candidates.len() == 1, "{dims}");
            assert_eq!(
                best.expression(),
                "4 batch × 256 channels × 7² kernel × 1024² side × 2 B",
                "{dims}"
            );
            assert_eq!(
                (best.bytes, best.shape.to_string().as_str()),
                (98 << 30, "[4, 256, 49, 1024, 1024]")
            );
        }
        let tokens = solved("8.00 GiB", "batch=4,heads=16,tokens=?");
        assert!(
            tokens
                .candidates
                .iter()
                .any(|it| it.expression() == "4 batch × 16 heads × 8192² tokens × 2 B")
        );
    }

    #[test]
    fn a_small_request_leaves_too_much_open_for_that() {
        assert!(solved("20.00 MiB", "batch=4,channels=3").candidates.is_empty());
    }
}
