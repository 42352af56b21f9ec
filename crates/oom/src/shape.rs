//! Shapes: their bytes in every dtype, and whether a claimed one can be what was tried.

use std::fmt;

use crate::amount::Amount;

/// A kind of element, by its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dtype {
    /// PyTorch's names of it.
    pub name: &'static str,
    /// Bytes of one element.
    pub bytes: u64,
}

/// Every length an element can have, likely ones first.
pub const DTYPES: [Dtype; 5] = [
    Dtype { name: "float16/bfloat16", bytes: 2 },
    Dtype { name: "float32", bytes: 4 },
    Dtype { name: "uint8/bool", bytes: 1 },
    Dtype { name: "float64/int64", bytes: 8 },
    Dtype { name: "complex128", bytes: 16 },
];

/// Sizes of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(pub Vec<u64>);

impl Shape {
    /// Reads `4x256x49x256x256`, `4,256` or `[4, 256]`.
    pub fn parse(text: &str) -> Option<Shape> {
        let text = text.trim().trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
        let sizes = text.split(['x', 'X', '×', ',', '*']);
        let sizes: Option<Vec<u64>> = sizes
            .map(str::trim)
            .map(|size| size.parse().ok().filter(|size| (1..1 << 40).contains(size)))
            .collect();
        sizes.filter(|sizes| !sizes.is_empty() && sizes.len() <= 16).map(Shape)
    }

    /// All its elements; `None` beyond all bounds.
    pub fn elements(&self) -> Option<u64> {
        self.0
            .iter()
            .try_fold(1u64, |all, size| all.checked_mul(*size))
            .filter(|all| *all < 1 << 58)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(u64::to_string).collect();
        write!(formatter, "[{}]", sizes.join(", "))
    }
}

/// A claimed shape, held against what was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refutation {
    pub shape: Shape,
    /// Its bytes in each dtype, in the order of [`DTYPES`]; `None` beyond all bounds.
    pub bytes: Vec<(Dtype, Option<u64>)>,
    /// The dtype in which it is what was tried; `None` if there is none.
    pub fits: Option<Dtype>,
    /// What was tried is a whole multiple of it: how often, and in which dtype.
    pub multiple: Option<(u64, Dtype)>,
}

/// Holds a claimed shape against the ranges that can have been asked for.
pub fn refute(shape: &Shape, asked: &[Amount]) -> Refutation {
    let elements = shape.elements();
    let bytes: Vec<(Dtype, Option<u64>)> =
        DTYPES.iter().map(|dtype| (*dtype, elements.map(|all| all * dtype.bytes))).collect();
    let is_asked = |bytes: u64| asked.iter().any(|range| range.contains(bytes));
    let known = || bytes.iter().filter_map(|(dtype, bytes)| Some((*dtype, (*bytes)?)));
    let fits = known().find(|(_, bytes)| is_asked(*bytes)).map(|(dtype, _)| dtype);
    let times = |bytes: u64| {
        let most = asked.iter().map(|range| range.high).max()?;
        let times = most / bytes.max(1);
        (1 < times && is_asked(times * bytes)).then_some(times)
    };
    let multiple = known().take(2).find_map(|(dtype, bytes)| Some((times(bytes)?, dtype)));
    let multiple = multiple.filter(|_| fits.is_none());
    Refutation { shape: shape.clone(), bytes, fits, multiple }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Kind;
    use crate::request::requests;

    fn tried(text: &str) -> Vec<Amount> {
        requests(Amount::parse(text).unwrap(), Kind::Cuda)
    }

    #[test]
    fn a_claim_that_fits_in_no_dtype_is_refuted() {
        let claim = Shape::parse("4x256x49x256x256").unwrap();
        let refutation = refute(&claim, &tried("98.00 GiB"));
        assert_eq!(refutation.fits, None);
        assert_eq!(refutation.bytes[0].1, Some(4 * 256 * 49 * 256 * 256 * 2));
        assert_eq!(refutation.multiple.map(|(times, dtype)| (times, dtype.bytes)), Some((16, 2)));
    }

    #[test]
    fn a_claim_that_fits_is_confirmed() {
        let claim = Shape::parse("[4, 256, 49, 1024, 1024]").unwrap();
        assert_eq!(refute(&claim, &tried("98.00 GiB")).fits.map(|dtype| dtype.bytes), Some(2));
    }

    #[test]
    fn what_is_no_shape_is_none() {
        for text in ["", "x", "4x", "0x4", "4x-1", "99999999999999999999"] {
            assert_eq!(Shape::parse(text), None, "{text}");
        }
    }
}
