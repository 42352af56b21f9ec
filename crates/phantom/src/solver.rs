//! cuSOLVER: sizes of work areas. The true sizes are not public; these follow LAPACK's blocked
//! algorithms (a panel of 64 columns) and count elements where the C function does.

use std::ffi::c_int;

use cuda_abi::types::{Address, Handle};

use crate::error::Answer;
use crate::state::new_handle;

/// Columns of one panel.
const PANEL: i64 = 64;

pub(crate) fn create(out: &mut Handle) -> Answer {
    *out = new_handle();
    Ok(())
}

fn elements(count: i64) -> c_int {
    count.clamp(1, i64::from(c_int::MAX)) as c_int
}

fn panel(rows: c_int, columns: c_int) -> c_int {
    elements((i64::from(rows) + i64::from(columns)) * PANEL)
}

pub(crate) fn matrix(
    _: Handle,
    m: c_int,
    n: c_int,
    _: Address,
    _: c_int,
    out: &mut c_int,
) -> Answer {
    *out = panel(m, n);
    Ok(())
}

pub(crate) fn gesvd(_: Handle, m: c_int, n: c_int, out: &mut c_int) -> Answer {
    *out = panel(m, n);
    Ok(())
}

pub(crate) fn square(_: Handle, n: c_int, _: Address, _: c_int, out: &mut c_int) -> Answer {
    *out = panel(n, n);
    Ok(())
}

pub(crate) fn square_uplo(
    _: Handle,
    _uplo: c_int,
    n: c_int,
    _: Address,
    _: c_int,
    out: &mut c_int,
) -> Answer {
    *out = panel(n, n);
    Ok(())
}

/// Eigenvectors need a second matrix.
#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn eigen(
    _: Handle,
    _jobz: c_int,
    _uplo: c_int,
    n: c_int,
    _: Address,
    _: c_int,
    _: Address,
    out: &mut c_int,
) -> Answer {
    *out = elements(2 * i64::from(n) * i64::from(n) + i64::from(n) * PANEL);
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn eigen_batched(
    _: Handle,
    _jobz: c_int,
    _uplo: c_int,
    n: c_int,
    _: Address,
    _: c_int,
    _: Address,
    out: &mut c_int,
    _: Handle,
    batch: c_int,
) -> Answer {
    *out = elements(i64::from(n) * i64::from(n) * i64::from(batch));
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn gesvdj(
    _: Handle,
    _jobz: c_int,
    _econ: c_int,
    m: c_int,
    n: c_int,
    _: Address,
    _: c_int,
    _: Address,
    _: Address,
    _: c_int,
    _: Address,
    _: c_int,
    out: &mut c_int,
) -> Answer {
    *out = elements(2 * i64::from(m) * i64::from(n) + i64::from(n) * PANEL);
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn gesvdj_batched(
    _: Handle,
    _jobz: c_int,
    m: c_int,
    n: c_int,
    _: Address,
    _: c_int,
    _: Address,
    _: Address,
    _: c_int,
    _: Address,
    _: c_int,
    out: &mut c_int,
    _: Handle,
    batch: c_int,
) -> Answer {
    *out = elements(2 * i64::from(m) * i64::from(n) * i64::from(batch));
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn gesvda(
    _: Handle,
    _jobz: c_int,
    _rank: c_int,
    m: c_int,
    n: c_int,
    _: Address,
    _: c_int,
    _: i64,
    _: Address,
    _: i64,
    _: Address,
    _: c_int,
    _: i64,
    _: Address,
    _: c_int,
    _: i64,
    out: &mut c_int,
    batch: c_int,
) -> Answer {
    *out = elements(2 * i64::from(m.max(n)) * i64::from(n) * i64::from(batch));
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn reflectors(
    _: Handle,
    m: c_int,
    n: c_int,
    _k: c_int,
    _: Address,
    _: c_int,
    _: Address,
    out: &mut c_int,
) -> Answer {
    *out = panel(m, n);
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn apply_reflectors(
    _: Handle,
    _side: c_int,
    _trans: c_int,
    m: c_int,
    n: c_int,
    _k: c_int,
    _: Address,
    _: c_int,
    _: Address,
    _: Address,
    _: c_int,
    out: &mut c_int,
) -> Answer {
    *out = panel(m, n);
    Ok(())
}

/// Bytes of one element of a `cudaDataType`.
fn bytes_of(data_type: c_int) -> i64 {
    match data_type {
        5 => 16,    // complex double
        1 | 4 => 8, // double, complex float
        _ => 4,
    }
}

fn generic(count: i64, data_type: c_int, device: &mut usize, host: &mut usize) -> Answer {
    *device = (count.max(1) * bytes_of(data_type)) as usize;
    *host = 0;
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_geqrf(
    _: Handle,
    _: Handle,
    m: i64,
    n: i64,
    kind: c_int,
    _: Address,
    _: i64,
    _: c_int,
    _: Address,
    _: c_int,
    device: &mut usize,
    host: &mut usize,
) -> Answer {
    generic((m + n) * PANEL, kind, device, host)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_potrf(
    _: Handle,
    _: Handle,
    _uplo: c_int,
    n: i64,
    kind: c_int,
    _: Address,
    _: i64,
    _: c_int,
    device: &mut usize,
    host: &mut usize,
) -> Answer {
    generic(2 * n * PANEL, kind, device, host)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_syevd(
    _: Handle,
    _: Handle,
    _jobz: c_int,
    _uplo: c_int,
    n: i64,
    kind: c_int,
    _: Address,
    _: i64,
    _: c_int,
    _: Address,
    _: c_int,
    device: &mut usize,
    host: &mut usize,
) -> Answer {
    generic(2 * n * n + n * PANEL, kind, device, host)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_syev_batched(
    _: Handle,
    _: Handle,
    _jobz: c_int,
    _uplo: c_int,
    n: i64,
    kind: c_int,
    _: Address,
    _: i64,
    _: c_int,
    _: Address,
    _: c_int,
    device: &mut usize,
    host: &mut usize,
    batch: i64,
) -> Answer {
    generic(n * n * batch, kind, device, host)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_sytrs(
    _: Handle,
    _uplo: c_int,
    n: i64,
    columns: i64,
    kind: c_int,
    _: Address,
    _: i64,
    _: Address,
    _: c_int,
    _: Address,
    _: i64,
    device: &mut usize,
    host: &mut usize,
) -> Answer {
    generic((n + columns) * PANEL, kind, device, host)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_geev(
    _: Handle,
    _: Handle,
    _jobvl: c_int,
    _jobvr: c_int,
    n: i64,
    kind: c_int,
    _: Address,
    _: i64,
    _: c_int,
    _: Address,
    _: c_int,
    _: Address,
    _: i64,
    _: c_int,
    _: Address,
    _: i64,
    _: c_int,
    device: &mut usize,
    host: &mut usize,
) -> Answer {
    generic(3 * n * n + n * PANEL, kind, device, host)
}
