//! cuFFT: the work area of a plan. A model: one copy of the transformed data, none when every
//! length is a power of two (those are done in place).

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use cuda_abi::types::Address;

use crate::error::Answer;
use crate::ffi::Raw;

pub(crate) fn create(out: &mut c_int) -> Answer {
    static NEXT: AtomicI32 = AtomicI32::new(1);
    *out = NEXT.fetch_add(1, Ordering::Relaxed);
    Ok(())
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
    let lengths = lengths.read(rank.max(0) as usize);
    let points: i64 = lengths.iter().product::<i64>() * batch;
    // `cudaDataType`: 5 is complex double, 6 complex half, the rest complex float.
    let bytes = match compute {
        1 | 5 => 16,
        2 | 6 => 4,
        _ => 8,
    };
    let in_place =
        lengths.iter().all(|length| u64::try_from(*length).is_ok_and(u64::is_power_of_two));
    *work = if in_place { 0 } else { (points.max(0) * bytes) as usize };
    Ok(())
}
