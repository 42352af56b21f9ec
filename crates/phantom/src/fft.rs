//! cuFFT: the work area of a plan. A model: one copy of the transformed data, none when every
//! length is a power of two (those are done in place).

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

use cuda_abi::types::Address;

use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::state::lock;

/// Plans that were made and not destroyed.
static PLANS: Mutex<BTreeSet<c_int>> = Mutex::new(BTreeSet::new());

/// Up to three dimensions can be transformed.
const MOST_DIMENSIONS: c_int = 3;

pub(crate) fn create(out: &mut c_int) -> Answer {
    static NEXT: AtomicI32 = AtomicI32::new(1);
    *out = NEXT.fetch_add(1, Ordering::Relaxed);
    lock(&PLANS).insert(*out);
    Ok(())
}

/// A plan that is there.
pub(crate) fn alive(plan: c_int) -> Result<c_int, Failure> {
    if lock(&PLANS).contains(&plan) { Ok(plan) } else { Err(Failure::InvalidHandle) }
}

pub(crate) fn destroy(plan: c_int) -> Answer {
    if lock(&PLANS).remove(&plan) { Ok(()) } else { Err(Failure::InvalidHandle) }
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn make_plan(
    _plan: c_int,
    rank: c_int,
    lengths: Raw<i64>,
    _: Address,
    _: i64,
    _: i64,
    _: c_int,
    _: Address,
    _: i64,
    _: i64,
    _: c_int,
    batch: i64,
    work: &mut usize,
    compute: c_int,
) -> Answer {
    if !(1..=MOST_DIMENSIONS).contains(&rank) || lengths.is_null() || batch < 1 {
        return Err(Failure::InvalidValue);
    }
    let lengths = lengths.read(rank as usize)?;
    if lengths.iter().any(|length| *length < 1) {
        return Err(Failure::InvalidValue);
    }
    let points = lengths.iter().fold(batch, |points, length| points.saturating_mul(*length));
    // `cudaDataType`: 5 is complex double, 6 complex half, the rest complex float.
    let bytes = match compute {
        1 | 5 => 16,
        2 | 6 => 4,
        _ => 8,
    };
    let in_place =
        lengths.iter().all(|length| u64::try_from(*length).is_ok_and(u64::is_power_of_two));
    *work = if in_place { 0 } else { points.saturating_mul(bytes) as usize };
    Ok(())
}
