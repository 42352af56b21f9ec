//! cuSOLVER: sizes of work areas. The true sizes are not public; these follow LAPACK's blocked
//! algorithms (a panel of 64 columns) and count elements where the C function does.

use std::ffi::c_int;

use cuda_abi::types::{Address, Handle};

use crate::error::{Answer, Failure};

/// Columns of one panel.
const PANEL: i64 = 64;

/// Streams are not remembered: the default one stands for all.
pub(crate) fn stream(_: Handle, out: &mut Handle) -> Answer {
    *out = Handle::default();
    Ok(())
}

/// A product of sizes, each of which must not be negative.
fn product(sizes: &[i64]) -> Result<i64, Failure> {
    if sizes.iter().any(|size| *size < 0) {
        return Err(Failure::InvalidValue);
    }
    Ok(sizes.iter().copied().fold(1, i64::saturating_mul))
}

/// A count of elements as the C functions give it.
fn elements(count: i64) -> c_int {
    count.clamp(1, i64::from(c_int::MAX)) as c_int
}

fn panel(rows: c_int, columns: c_int) -> Result<c_int, Failure> {
    Ok(elements(panel_of(rows.into(), columns.into())?))
}

fn panel_of(rows: i64, columns: i64) -> Result<i64, Failure> {
    Ok(product(&[rows, PANEL])?.saturating_add(product(&[columns, PANEL])?))
}

/// `copies` square matrices and a panel.
fn squares(copies: i64, n: i64) -> Result<i64, Failure> {
    Ok(product(&[copies, n, n])?.saturating_add(product(&[n, PANEL])?))
}

pub(crate) fn matrix(
    _: Handle,
    m: c_int,
    n: c_int,
    _: Address,
    _: c_int,
    out: &mut c_int,
) -> Answer {
    *out = panel(m, n)?;
    Ok(())
}

pub(crate) fn gesvd(_: Handle, m: c_int, n: c_int, out: &mut c_int) -> Answer {
    *out = panel(m, n)?;
    Ok(())
}

pub(crate) fn square(_: Handle, n: c_int, _: Address, _: c_int, out: &mut c_int) -> Answer {
    *out = panel(n, n)?;
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
    *out = panel(n, n)?;
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
    *out = elements(squares(2, n.into())?);
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
    *out = elements(product(&[n.into(), n.into(), batch.into()])?);
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
    let matrices = product(&[2, m.into(), n.into()])?;
    *out = elements(matrices.saturating_add(product(&[n.into(), PANEL])?));
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
    *out = elements(product(&[2, m.into(), n.into(), batch.into()])?);
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
    product(&[m.into()])?;
    *out = elements(product(&[2, m.max(n).into(), n.into(), batch.into()])?);
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
    *out = panel(m, n)?;
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
    *out = panel(m, n)?;
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
    *device = count.max(1).saturating_mul(bytes_of(data_type)) as usize;
    *host = 0;
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_geqrf(
    _: Handle,
    _: Option<Handle>,
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
    generic(panel_of(m, n)?, kind, device, host)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_potrf(
    _: Handle,
    _: Option<Handle>,
    _uplo: c_int,
    n: i64,
    kind: c_int,
    _: Address,
    _: i64,
    _: c_int,
    device: &mut usize,
    host: &mut usize,
) -> Answer {
    generic(panel_of(n, n)?, kind, device, host)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_syevd(
    _: Handle,
    _: Option<Handle>,
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
    generic(squares(2, n)?, kind, device, host)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_syev_batched(
    _: Handle,
    _: Option<Handle>,
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
    generic(product(&[n, n, batch])?, kind, device, host)
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
    generic(panel_of(n, columns)?, kind, device, host)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn x_geev(
    _: Handle,
    _: Option<Handle>,
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
    generic(squares(3, n)?, kind, device, host)
}
