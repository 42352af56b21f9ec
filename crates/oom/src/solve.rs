//! Shapes of the size that was tried, over the dimensions of a model.
//!
//! Every product of the dimensions, each left out, taken once or squared as its name allows, times the
//! bytes of an element: those that fall into the range that can have been asked for are kept, and the
//! plausible ones come first. The work is bounded, whatever is given.

use crate::amount::Amount;
use crate::missing::missing;
use crate::shape::{DTYPES, Dtype, Shape};

/// A dimension of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Its name, as in `batch`.
    pub name: String,
    pub value: u64,
}

/// One dimension of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    pub name: String,
    pub value: u64,
    /// 1, or 2 for a square.
    pub power: u32,
}

/// A shape of the right size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The sizes; a squared kernel is one of them, squared tokens are two.
    pub shape: Shape,
    /// The kind of element.
    pub dtype: Dtype,
    /// What the sizes are.
    pub terms: Vec<Term>,
    /// Several such tensors in one, as the three of q, k and v.
    pub factor: u64,
    pub bytes: u64,
    /// How implausible it is: 0 is best.
    pub cost: u32,
}

/// What a search has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Solution {
    /// The most plausible, best first.
    pub candidates: Vec<Candidate>,
    /// How many combinations have the right size.
    pub fitting: u64,
    /// Of how many.
    pub combinations: u64,
    /// Whether all combinations were looked at.
    pub complete: bool,
    /// These are shapes that are usual, made of sizes that nobody gave.
    pub guessed: bool,
    /// One size was not given, and is solved for.
    pub solved: bool,
}

/// Candidates that are kept.
const KEPT: usize = 6;
/// Combinations that are looked at.
const WORK: u64 = 1_000_000;
/// Dimensions that are looked at, of more than that the first.
const DIMS: usize = 24;
/// What each of [`DTYPES`] costs: the less a tensor is likely to be of it, the more.
pub(crate) const UNLIKELY: [u32; DTYPES.len()] = [0, 0, 3, 3, 6];
/// Candidates that are collected before the best are chosen.
const COLLECTED: usize = 10_000;
/// Up to this many, each dimension was given on purpose: one that is left out counts against.
pub(crate) const FEW: usize = 8;

impl Dim {
    /// The value of a dimension that is to be solved for.
    pub const UNKNOWN: u64 = 0;

    /// Reads `batch=4`, and `side=?` for one that is not known.
    pub fn parse(text: &str) -> Option<Dim> {
        let (name, value) = text.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let value = match value {
            "?" => Dim::UNKNOWN,
            _ => {
                value.replace('_', "").parse().ok().filter(|value| (1..1 << 40).contains(value))?
            }
        };
        (!name.is_empty()).then(|| Dim { name: name.to_owned(), value })
    }

    /// The powers it may have, likely ones first, apart from being left out.
    pub(crate) fn powers(&self) -> &'static [u32] {
        let name = self.name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        match () {
            () if has(&["kernel", "patch", "window"]) => &[2, 1],
            () if has(&["token", "seq", "length", "context", "ctx", "position", "points"]) => {
                &[1, 2]
            }
            () if has(&["image", "resolution", "img", "crop"]) => &[2, 1],
            () if has(&["channel", "hidden", "embed", "dim", "feature"]) => &[1, 2],
            () => &[1],
        }
    }

    /// A squared kernel is one size of an unfolded tensor; other squares are two sizes.
    fn is_window(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        ["kernel", "patch", "window"].iter().any(|word| name.contains(word))
    }
}

/// Searches the dimensions for what was asked for. Where none fit, or one is unknown, one more is solved for.
pub fn solve(asked: &[Amount], dims: &[Dim]) -> Solution {
    let unknown = dims.iter().find(|dim| dim.value == Dim::UNKNOWN).map(|dim| dim.name.clone());
    let dims: Vec<Dim> = dims.iter().filter(|dim| 1 < dim.value).take(DIMS).cloned().collect();
    let mut solution = Solution { complete: true, ..Solution::default() };
    if dims.is_empty() {
        return solution;
    }
    if unknown.is_some() {
        let candidates = missing(asked, &dims, unknown.as_deref());
        let fitting = candidates.len() as u64;
        return Solution { candidates, fitting, solved: true, ..solution };
    }
    for factors in [&[1u64][..], &[2, 3, 4, 6, 8]] {
        let mut search = Search::new(asked, &dims, factors);
        search.descend(0, 1);
        solution.combinations += search.combinations;
        solution.complete &= search.combinations < WORK;
        solution.fitting += search.fitting;
        if !search.found.is_empty() {
            let mut found = search.found;
            found.sort_by_key(|candidate| (candidate.cost, candidate.terms.len()));
            found.truncate(KEPT);
            solution.candidates = found;
            return solution;
        }
    }
    let candidates = missing(asked, &dims, None);
    Solution { fitting: candidates.len() as u64, candidates, solved: true, ..solution }
}

pub(crate) struct Search<'a> {
    asked: &'a [Amount],
    dims: &'a [Dim],
    factors: &'a [u64],
    most: u64,
    /// The powers of the dimensions down to the one that is tried.
    pub(crate) powers: Vec<u32>,
    found: Vec<Candidate>,
    combinations: u64,
    fitting: u64,
}

impl<'a> Search<'a> {
    pub(crate) fn new(asked: &'a [Amount], dims: &'a [Dim], factors: &'a [u64]) -> Search<'a> {
        let most = asked.iter().map(|range| range.high).max().unwrap_or(0);
        Search {
            asked,
            dims,
            factors,
            most,
            powers: Vec::with_capacity(dims.len()),
            found: Vec::new(),
            combinations: 0,
            fitting: 0,
        }
    }

    fn descend(&mut self, next: usize, product: u64) {
        if WORK <= self.combinations {
            return;
        }
        let Some(dim) = self.dims.get(next) else {
            self.combinations += 1;
            if product != 1 {
                self.weigh(product);
            }
            return;
        };
        for power in [0].iter().chain(dim.powers()) {
            let part = dim.value.checked_pow(*power).and_then(|part| part.checked_mul(product));
            // No product of more dimensions becomes smaller again.
            let Some(part) = part.filter(|part| *part <= self.most) else { continue };
            self.powers.push(*power);
            self.descend(next + 1, part);
            self.powers.pop();
        }
    }

    fn weigh(&mut self, product: u64) {
        for (dtype, unlikely) in DTYPES.iter().zip(UNLIKELY) {
            for factor in self.factors {
                let bytes =
                    product.checked_mul(dtype.bytes).and_then(|all| all.checked_mul(*factor));
                let fits = |bytes: u64| self.asked.iter().any(|range| range.contains(bytes));
                let Some(bytes) = bytes.filter(|bytes| fits(*bytes)) else { continue };
                self.fitting += 1;
                if self.found.len() < COLLECTED {
                    let cost = unlikely + u32::from(*factor != 1) * 3;
                    self.found.push(self.candidate(*dtype, *factor, bytes, cost));
                }
            }
        }
    }

    pub(crate) fn candidate(&self, dtype: Dtype, factor: u64, bytes: u64, cost: u32) -> Candidate {
        let (mut terms, mut sizes, mut cost) = (Vec::new(), Vec::new(), cost);
        for (dim, power) in self.dims.iter().zip(&self.powers) {
            let place = dim.powers().iter().position(|likely| likely == power);
            cost += match place {
                Some(place) => place as u32,
                None if self.dims.len() <= FEW => 1 + u32::from(dim.name.contains("batch")),
                None => 0,
            };
            if *power == 0 {
                continue;
            }
            terms.push(Term { name: dim.name.clone(), value: dim.value, power: *power });
            match dim.is_window() {
                true => sizes.push(dim.value.pow(*power)),
                false => sizes.extend(std::iter::repeat_n(dim.value, *power as usize)),
            }
        }
        Candidate { shape: Shape(sizes), dtype, terms, factor, bytes, cost }
    }
}

impl Candidate {
    /// `4 batch × 256 channels × 7² kernel × 2 B`
    pub fn expression(&self) -> String {
        let term = |term: &Term| match term.power {
            1 => format!("{} {}", term.value, term.name),
            _ => format!("{}² {}", term.value, term.name),
        };
        let mut parts: Vec<String> = self.terms.iter().map(term).collect();
        if self.factor != 1 {
            parts.push(format!("{} of them", self.factor));
        }
        parts.push(format!("{} B", self.dtype.bytes));
        parts.join(" × ")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::account::Kind;
    use crate::request::requests;

    pub(crate) fn solved(tried: &str, dims: &str) -> Solution {
        let dims: Vec<Dim> = dims.split(',').filter_map(Dim::parse).collect();
        solve(&requests(Amount::parse(tried).unwrap(), Kind::Cuda), &dims)
    }

    #[test]
    fn the_unfolded_map_is_found() {
        let solution = solved("98.00 GiB", "batch=4,channels=256,kernel=7,height=1024,width=1024");
        let best = &solution.candidates[0];
        assert_eq!(best.bytes, 98 << 30);
        assert_eq!(
            (best.shape.to_string().as_str(), best.dtype.bytes),
            ("[4, 256, 49, 1024, 1024]", 2)
        );
        let text = "4 batch × 256 channels × 7² kernel × 1024 height × 1024 width × 2 B";
        assert_eq!(best.expression(), text);
        assert!(solution.complete && !solution.guessed);
    }

    #[test]
    fn attention_scores_are_found() {
        let best = &solved("4.00 GiB", "batch=8,heads=16,tokens=4096,hidden=1024").candidates[0];
        assert_eq!(best.shape.to_string(), "[8, 16, 4096, 4096]");
    }

    #[test]
    fn dimensions_that_do_not_fit_give_nothing() {
        let solution = solved("98.00 GiB", "batch=5,channels=11");
        assert!(!solution.guessed && solution.candidates.is_empty() && solution.combinations != 0);
        assert_eq!(solved("98.00 GiB", ""), Solution { complete: true, ..Solution::default() });
    }

    #[test]
    fn many_dimensions_end_in_time() {
        let dims: Vec<String> =
            (0..60).map(|number| format!("hidden{number}={}", 2 + number % 3)).collect();
        assert!(!solved("98.00 GiB", &dims.join(",")).complete);
    }
}
