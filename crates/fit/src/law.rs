//! How a peak grows with a knob: constant, linear or quadratic, exactly where it is so.
//!
//! Peaks are sums of tensor sizes, which are products of the knobs; so differences of a peak over
//! whole numbers are themselves whole and constant, but for rounding and for libraries that choose
//! another algorithm. A law says how far off its own points it is.

/// A polynomial through or near some points.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    /// Coefficients of 1, x, x².
    coefficients: [f64; 3],
    /// 0, 1 or 2.
    pub degree: usize,
    /// The largest relative distance from a point it was made from; 0 if it goes through all.
    pub worst: f64,
}

impl Law {
    /// The simplest law that goes through all points, or else the best line or parabola.
    /// At least one point more than the degree needs, so that it can fail. Points have distinct `x`.
    pub fn through(points: &[(i64, u64)]) -> Option<Law> {
        let exact = (0..=2).filter(|degree| degree + 2 <= points.len()).find_map(|degree| {
            let law = Law::of(points, degree)?;
            points.iter().all(|&(x, y)| law.at(x) == y).then_some(Law { worst: 0.0, ..law })
        });
        let near = || {
            let laws = (1..=2).filter(|degree| degree + 2 <= points.len());
            laws.filter_map(|degree| Law::of(points, degree))
                .min_by(|a, b| a.worst.total_cmp(&b.worst))
        };
        exact.or_else(near)
    }

    /// What is to be expected at `x`, never below zero.
    pub fn at(&self, x: i64) -> u64 {
        let [constant, linear, square] = self.coefficients;
        let x = x as f64;
        (constant + x * (linear + x * square)).round().max(0.0) as u64
    }

    /// The largest value of the range at which the law stays within `limit`; `None` if it never does.
    pub fn largest_within(&self, limit: u64, range: (i64, i64)) -> Option<i64> {
        let (mut low, mut high) = range;
        if limit < self.at(low) {
            return None;
        }
        while low < high {
            let middle = low + (high - low + 1) / 2;
            match self.at(middle) <= limit {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        Some(low)
    }

    /// By least squares, in coordinates around the middle so that large numbers stay exact.
    fn of(points: &[(i64, u64)], degree: usize) -> Option<Law> {
        let count = points.len() as f64;
        let middle = points.iter().map(|point| point.0 as f64).sum::<f64>() / count;
        let size = degree + 1;
        let mut rows = vec![vec![0.0; size + 1]; size];
        for &(x, y) in points {
            let powers: Vec<f64> =
                (0..size).map(|power| (x as f64 - middle).powi(power as i32)).collect();
            for (row, left) in rows.iter_mut().zip(&powers) {
                for (cell, right) in row.iter_mut().zip(powers.iter().chain(&[y as f64])) {
                    *cell += left * right;
                }
            }
        }
        let around = solve(rows)?;
        let [a, b, c] = [0, 1, 2].map(|power| around.get(power).copied().unwrap_or(0.0));
        let coefficients = [a - b * middle + c * middle * middle, b - 2.0 * c * middle, c];
        let mut law = Law { coefficients: whole(coefficients), degree, worst: 0.0 };
        for &(x, y) in points {
            let off = (law.at(x) as f64 - y as f64).abs() / (y as f64).max(1.0);
            law.worst = law.worst.max(off);
        }
        Some(law)
    }
}

/// Coefficients that are whole numbers, or halves, but for the noise of floating point.
fn whole(coefficients: [f64; 3]) -> [f64; 3] {
    coefficients.map(|value| {
        let near = (value * 2.0).round() / 2.0;
        if (value - near).abs() <= 1e-6 * value.abs().max(1.0) { near } else { value }
    })
}

/// Gauss with the largest pivot; `None` if the rows depend on each other.
fn solve(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = rows.len();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        if rows[column][column].abs() < 1e-12 {
            return None;
        }
        let pivot_row = rows[column].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(index, _)| *index != column) {
            let factor = row[column] / pivot_row[column];
            row.iter_mut().zip(&pivot_row).for_each(|(cell, pivot)| *cell -= factor * pivot);
        }
    }
    Some((0..size).map(|row| rows[row][size] / rows[row][row]).collect())
}

/// Of the range of the points: what a power may be off from one of them.
const IRREGULAR: f64 = 0.1;

/// The largest exponent that is tried, in twentieths.
const STEEPEST: usize = 80;

/// The exponent of growth: of `e` in `a + b·x^e`, the one that fits best; `None` with fewer than three points,
/// without growth, or where no such curve goes near all of them. A law that holds exactly gives its degree.
pub fn exponent(points: &[(i64, u64)]) -> Option<f64> {
    if points.len() < 3 || points.iter().any(|point| point.0 <= 0) {
        return None;
    }
    if let Some(law) = Law::through(points).filter(|law| law.worst == 0.0) {
        return Some(law.degree as f64);
    }
    let error = |step: usize| {
        let exponent = step as f64 / 20.0;
        let moved: Vec<(f64, f64)> =
            points.iter().map(|&(x, y)| ((x as f64).powf(exponent), y as f64)).collect();
        let count = moved.len() as f64;
        let mean = moved
            .iter()
            .fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / count, sum.1 + point.1 / count));
        let (mut both, mut own, mut all) = (0.0, 0.0, 0.0);
        for (x, y) in &moved {
            both += (x - mean.0) * (y - mean.1);
            own += (x - mean.0).powi(2);
            all += (y - mean.1).powi(2);
        }
        if own == 0.0 { all } else { all - both * both / own }
    };
    let best = (2..=STEEPEST).min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
    let sizes = || points.iter().map(|point| point.1);
    let range = sizes().max()?.abs_diff(sizes().min()?) as f64;
    // The root of a sum of squares is no less than the largest of them.
    let is_regular = error(best).max(0.0).sqrt() <= range * IRREGULAR;
    // At the end of what was tried something steeper may fit better: a jump, no power.
    (is_regular && best != STEEPEST).then_some(best as f64 / 20.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(x: &[i64], y: impl Fn(i64) -> u64) -> Vec<(i64, u64)> {
        x.iter().map(|x| (*x, y(*x))).collect()
    }

    #[test]
    fn lines_and_parabolas_are_found_exactly() {
        let line =
            Law::through(&points(&[1, 2, 8], |x| 5_368_709_120 + 103_809_024 * x as u64)).unwrap();
        assert_eq!((line.degree, line.worst), (1, 0.0));
        assert_eq!(line.at(511), 5_368_709_120 + 103_809_024 * 511);
        let square =
            Law::through(&points(&[64, 128, 192, 512], |x| 7 + 3 * (x * x) as u64)).unwrap();
        assert_eq!((square.degree, square.at(1000)), (2, 3_000_007));
        let constant = Law::through(&points(&[1, 9], |_| 42)).unwrap();
        assert_eq!((constant.degree, constant.at(100)), (0, 42));
    }

    #[test]
    fn a_law_that_does_not_hold_says_so() {
        let jump = Law::through(&points(&[1, 2, 3, 4], |x| if x < 3 { 100 } else { 900 })).unwrap();
        assert!(0.1 < jump.worst, "{jump:?}");
    }

    #[test]
    fn the_largest_within_a_limit() {
        let law = Law::through(&points(&[1, 2, 3], |x| 10 * x as u64)).unwrap();
        assert_eq!(law.largest_within(55, (1, 100)), Some(5));
        assert_eq!(law.largest_within(5000, (1, 100)), Some(100));
        assert_eq!(law.largest_within(9, (1, 100)), None);
    }

    #[test]
    fn exponents() {
        let cubic = exponent(&points(&[2, 4, 6, 8], |x| 1000 + 7 * (x * x * x) as u64));
        assert_eq!(cubic, Some(3.0));
        assert_eq!(exponent(&points(&[2, 4, 6], |x| 9 + 2 * x as u64)), Some(1.0));
        // Scratch memory, which a library chooses by rules of its own, and what appears at the end only.
        let jumps = [(8, 88), (16, 16_384), (32, 2048), (64, 4096)];
        assert_eq!(exponent(&jumps), None);
        assert_eq!(exponent(&[(16, 24), (32, 24), (64, 24), (128, 96)]), None);
    }

    #[test]
    fn what_is_nearly_a_power_has_its_exponent() {
        let near = exponent(&[(1, 1010), (2, 2000), (4, 4030), (8, 8000)]);
        assert!(near.is_some_and(|e| (0.9..1.1).contains(&e)), "{near:?}");
    }
}
