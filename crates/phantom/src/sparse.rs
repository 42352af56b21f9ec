//! cuSPARSE: descriptors that remember their size; work areas are modelled as one page.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

use cuda_abi::types::{Address, Handle};

use crate::error::{Answer, Failure};
use crate::ffi::New;
use crate::handles;
use crate::state::lock;

/// What a product is said to need beside its operands.
const WORK_BYTES: usize = 4096;

/// Rows, columns and non-zeros of the matrices that were described.
static SIZES: Mutex<BTreeMap<Handle, [i64; 3]>> = Mutex::new(BTreeMap::new());

pub(crate) fn create_matrix(out: New<'_>, rows: i64, columns: i64, count: i64) -> Answer {
    if rows < 0 || columns < 0 || count < 0 {
        return Err(Failure::InvalidValue);
    }
    let New { kind, place } = out;
    *place = handles::make(kind)?;
    lock(&SIZES).insert(*place, [rows, columns, count]);
    Ok(())
}

pub(crate) fn destroy_matrix(matrix: Handle) -> Answer {
    lock(&SIZES).remove(&matrix);
    Ok(())
}

pub(crate) fn size(matrix: Handle, rows: &mut i64, columns: &mut i64, count: &mut i64) -> Answer {
    [*rows, *columns, *count] = *lock(&SIZES).get(&matrix).ok_or(Failure::InvalidHandle)?;
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn work_10(
    _: Handle,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    out: &mut usize,
) -> Answer {
    *out = WORK_BYTES;
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn work_11(
    _: Handle,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    out: &mut usize,
) -> Answer {
    *out = WORK_BYTES;
    Ok(())
}

/// Sorting needs a second copy of keys and positions.
pub(crate) fn sort_work(
    _: Handle,
    m: c_int,
    n: c_int,
    count: c_int,
    _: Address,
    _: Address,
    out: &mut usize,
) -> Answer {
    if m < 0 || n < 0 || count < 0 {
        return Err(Failure::InvalidValue);
    }
    *out = WORK_BYTES + 16 * count as usize;
    Ok(())
}
