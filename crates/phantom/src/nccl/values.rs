//! Numbers of collectives: what N equal ranks give together, and what different ones do.

use std::ffi::c_int;
use std::sync::Mutex;

use crate::state::lock;

/// `ncclRedOp_t` up to which operations are NCCL's own.
const OWN_OPERATIONS: c_int = 5;

/// Factors of operations that multiply before they sum, by their number less [`OWN_OPERATIONS`].
static FACTORS: Mutex<Vec<f64>> = Mutex::new(Vec::new());

/// How ranks are put together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    Sum,
    Product,
    Max,
    Min,
    Average,
    /// The sum of products with this factor.
    Scaled(f64),
}

/// Keeps a factor and gives the number of its operation. Equal factors share one.
pub(super) fn add_factor(factor: f64) -> c_int {
    let mut factors = lock(&FACTORS);
    let known = factors.iter().position(|other| other.to_bits() == factor.to_bits());
    let index = known.unwrap_or_else(|| {
        factors.push(factor);
        factors.len() - 1
    });
    OWN_OPERATIONS + index as c_int
}

impl Operation {
    pub(super) fn of(number: c_int) -> Option<Operation> {
        Some(match number {
            0 => Operation::Sum,
            1 => Operation::Product,
            2 => Operation::Max,
            3 => Operation::Min,
            4 => Operation::Average,
            other => {
                let index = usize::try_from(other.checked_sub(OWN_OPERATIONS)?).ok()?;
                Operation::Scaled(*lock(&FACTORS).get(index)?)
            }
        })
    }

    /// What `ranks` equal ranks give.
    fn of_equals(self, value: f64, ranks: usize) -> f64 {
        match self {
            Operation::Sum => value * ranks as f64,
            Operation::Product => value.powi(ranks.min(i32::MAX as usize) as i32),
            Operation::Max | Operation::Min | Operation::Average => value,
            Operation::Scaled(factor) => value * factor * ranks as f64,
        }
    }

    /// What different ranks give.
    fn of_all(self, values: impl Iterator<Item = f64> + Clone) -> f64 {
        match self {
            Operation::Sum => values.sum(),
            Operation::Product => values.product(),
            Operation::Max => values.fold(f64::NEG_INFINITY, f64::max),
            Operation::Min => values.fold(f64::INFINITY, f64::min),
            Operation::Average => values.clone().sum::<f64>() / values.count().max(1) as f64,
            Operation::Scaled(factor) => values.sum::<f64>() * factor,
        }
    }
}

/// Bytes of one element of an `ncclDataType_t`.
pub(super) fn bytes_of(dtype: c_int) -> usize {
    match dtype {
        0 | 1 | 10 | 11 => 1, // int8, uint8, fp8
        6 | 9 => 2,           // half, bfloat16
        4 | 5 | 8 => 8,       // int64, uint64, double
        _ => 4,
    }
}

/// Replaces each element by what `ranks` equal ranks give; `false` for types without arithmetic here.
pub(super) fn repeat(dtype: c_int, operation: Operation, bytes: &mut [u8], ranks: usize) -> bool {
    // Whole numbers stay exact beyond what a float holds.
    if matches!(dtype, 2..=5) && matches!(operation, Operation::Sum) {
        for element in bytes.chunks_exact_mut(bytes_of(dtype)) {
            let sum = whole(element).wrapping_mul(ranks as u64).to_le_bytes();
            element.copy_from_slice(&sum[..element.len()]);
        }
        return true;
    }
    if matches!(dtype, 10 | 11) {
        return false;
    }
    for element in bytes.chunks_exact_mut(bytes_of(dtype)) {
        write(dtype, operation.of_equals(number(dtype, element), ranks), element);
    }
    true
}

/// Writes what ranks with these payloads give together.
pub(super) fn combine(dtype: c_int, operation: Operation, ranks: &[Vec<u8>], out: &mut [u8]) {
    let size = bytes_of(dtype);
    for (index, element) in out.chunks_exact_mut(size).enumerate() {
        let at = index * size..(index + 1) * size;
        let values =
            ranks.iter().filter_map(|rank| rank.get(at.clone())).map(|part| number(dtype, part));
        write(dtype, operation.of_all(values), element);
    }
}

/// The low bytes of a whole number: wrapping products need no sign.
fn whole(element: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..element.len()].copy_from_slice(element);
    u64::from_le_bytes(wide)
}

/// One element as a number.
pub(super) fn number(dtype: c_int, bytes: &[u8]) -> f64 {
    let bits = whole(bytes);
    match dtype {
        0 => f64::from(bits as i8),
        2 => f64::from(bits as i32),
        4 => bits as i64 as f64,
        6 => half(bits as u16),
        7 => f64::from(f32::from_bits(bits as u32)),
        8 => f64::from_bits(bits),
        9 => f64::from(f32::from_bits((bits as u32) << 16)),
        _ => bits as f64,
    }
}

fn write(dtype: c_int, value: f64, out: &mut [u8]) {
    let bits = match dtype {
        0 | 2 | 4 => value as i64 as u64,
        6 => u64::from(to_half(value)),
        7 => u64::from((value as f32).to_bits()),
        8 => value.to_bits(),
        9 => u64::from(to_bfloat(value as f32)),
        _ => value as u64,
    };
    out.copy_from_slice(&bits.to_le_bytes()[..out.len()]);
}

/// The upper half of a float, rounded to the nearest even.
fn to_bfloat(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

fn to_half(value: f64) -> u16 {
    let sign = u16::from(value.is_sign_negative()) << 15;
    let size = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    // Steps of a half are 2^-24 up to 2^-14, then double with each power of two.
    let exponent = size.log2().floor().clamp(-14.0, 15.0) as i32;
    let steps = (size / 2f64.powi(exponent - 10)).round_ties_even() as u16;
    // A fraction that was rounded up to 2048 carries into the exponent by itself.
    sign | ((exponent + 14) as u16 * 1024 + steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ranks_sum_to_n_times() {
        let mut whole = 5_i64.to_le_bytes();
        assert!(repeat(4, Operation::Sum, &mut whole, 4096));
        assert_eq!(i64::from_le_bytes(whole), 5 * 4096);
        let mut negative = (-3_i32).to_le_bytes();
        assert!(repeat(2, Operation::Sum, &mut negative, 3));
        assert_eq!(i32::from_le_bytes(negative), -9);
        let mut float = 1.5_f32.to_le_bytes();
        assert!(repeat(7, Operation::Product, &mut float, 2));
        assert_eq!(f32::from_le_bytes(float), 2.25);
        assert!(repeat(7, Operation::Average, &mut float, 7));
        assert_eq!(f32::from_le_bytes(float), 2.25);
        let scaled = Operation::of(add_factor(0.25)).unwrap();
        assert!(repeat(7, scaled, &mut float, 4));
        assert_eq!(f32::from_le_bytes(float), 2.25);
        assert_eq!(Operation::of(99), None);
    }

    #[test]
    fn halves_survive_both_ways() {
        for bits in 0..=u16::MAX {
            let value = half(bits);
            if !value.is_nan() {
                assert_eq!(to_half(value), bits, "{value}");
            }
        }
        assert_eq!(to_half(65519.0), 0x7bff);
        assert_eq!(to_half(1.0 + 1.0 / 2048.0), 0x3c00, "ties go to the even neighbour");
        assert_eq!(to_bfloat(1.0 + 1.0 / 256.0), 0x3f80);
        assert_eq!(to_bfloat(f32::MAX), 0x7f80);
    }

    #[test]
    fn different_ranks_are_put_together() {
        let ranks = [1_i64, 7, -2].map(|value| value.to_le_bytes().to_vec());
        let result = |operation| {
            let mut out = [0; 8];
            combine(4, operation, &ranks, &mut out);
            i64::from_le_bytes(out)
        };
        assert_eq!(result(Operation::Sum), 6);
        assert_eq!((result(Operation::Max), result(Operation::Min)), (7, -2));
        assert_eq!((result(Operation::Product), result(Operation::Average)), (-14, 2));
    }
}
