//! cuBLAS: handles and modes; products themselves are accepted and not done. PyTorch brings its own
//! workspace, so nothing here changes memory.

use std::ffi::{c_char, c_int, c_void};

use contract::work::Work;
use cuda_abi::handles::Kind;
use cuda_abi::types::{Address, Handle, MatmulHeuristic};

use crate::config;
use crate::error::{Answer, Failure};
use crate::ffi::{New, Raw};
use crate::{capture, workspaces};

/// What the first word of a descriptor in the caller's own memory says, together with its kind.
const MARK: u64 = 0x6661_7468_6f6d_0000;

/// Descriptors of cuBLASLt may lie in memory of the caller's: then their address is the handle.
pub(crate) fn init(out: New<'_>, size: usize) -> Answer {
    if size < size_of::<Handle>() {
        return Err(Failure::InvalidValue);
    }
    *out.place = Handle((MARK | out.kind as u64) as usize);
    Ok(())
}

/// Whether a descriptor of this kind lies at an address.
pub(crate) fn is_initialised(kind: Kind, handle: Handle) -> bool {
    let word = Raw(handle.0 as *mut u64).read(1);
    word.is_ok_and(|word| word.first() == Some(&(MARK | kind as u64)))
}

/// PyTorch brings the handle its workspace.
pub(crate) fn set_workspace(_handle: Handle, workspace: Address, _size: usize) -> Answer {
    workspaces::note(Work::Cublas, workspace.0);
    Ok(())
}

/// Not done; only the workspace is looked at.
#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn lt_matmul(
    _handle: Handle,
    _operation: Handle,
    _alpha: Handle,
    _a: Address,
    _a_layout: Handle,
    _b: Address,
    _b_layout: Handle,
    _beta: Handle,
    _c: Address,
    _c_layout: Option<Handle>,
    _d: Address,
    _d_layout: Handle,
    _algorithm: Handle,
    workspace: Address,
    _size: usize,
    stream: Handle,
) -> Answer {
    capture::add_work(stream)?;
    workspaces::note(Work::Cublas, workspace.0);
    Ok(())
}

pub(crate) fn math_mode(_handle: Handle, out: &mut c_int) -> Answer {
    *out = 0;
    Ok(())
}

pub(crate) fn pointer_mode(_handle: Handle, out: &mut c_int) -> Answer {
    *out = 0;
    Ok(())
}

/// The version that belongs to the reported CUDA: 12.4 gives 120400.
fn version_number() -> c_int {
    config::get().cuda_version / 10 * 100
}

pub(crate) fn version(_handle: Handle, out: &mut c_int) -> Answer {
    *out = version_number();
    Ok(())
}

pub(crate) fn lt_version() -> usize {
    version_number() as usize
}

/// Major, minor and patch by 0, 1 and 2.
pub(crate) fn property(kind: c_int, out: &mut c_int) -> Answer {
    let version = config::get().cuda_version;
    *out = match kind {
        0 => version / 1000,
        1 => version % 1000 / 10,
        2 => 0,
        _ => return Err(Failure::InvalidValue),
    };
    Ok(())
}

/// One algorithm without a workspace of its own.
#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn heuristic(
    _handle: Handle,
    _operation: Handle,
    _a: Handle,
    _b: Handle,
    _c: Option<Handle>,
    _d: Handle,
    _preference: Option<Handle>,
    wanted: c_int,
    results: Raw<MatmulHeuristic>,
    found: &mut c_int,
) -> Answer {
    if wanted < 1 || results.is_null() {
        return Err(Failure::InvalidValue);
    }
    *found = 1;
    results.write(&[MatmulHeuristic { waves: 1.0, ..MatmulHeuristic::default() }])
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn check(
    _handle: Handle,
    _operation: Handle,
    _a: Handle,
    _b: Handle,
    _c: Option<Handle>,
    _d: Handle,
    _algorithm: Handle,
    result: &mut MatmulHeuristic,
) -> Answer {
    *result = MatmulHeuristic { waves: 1.0, ..MatmulHeuristic::default() };
    Ok(())
}

/// No attribute is larger.
const LARGEST_ATTRIBUTE: usize = 4096;

/// Attributes of descriptors read as zero.
pub(crate) fn attribute(
    _description: Handle,
    _attribute: c_int,
    out: Raw<c_void>,
    size: usize,
    written: Option<&mut usize>,
) -> Answer {
    if LARGEST_ATTRIBUTE < size {
        return Err(Failure::InvalidValue);
    }
    out.write_bytes(&vec![0; size])?;
    if let Some(written) = written {
        *written = size;
    }
    Ok(())
}

pub(crate) fn status_name(code: c_int) -> *const c_char {
    if code == 0 {
        c"CUBLAS_STATUS_SUCCESS".as_ptr()
    } else {
        c"CUBLAS_STATUS_NOT_SUPPORTED".as_ptr()
    }
}

/// Factorisations report their success on the host.
#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn batched_qr(
    _: Handle,
    _m: c_int,
    _n: c_int,
    _: Address,
    _: c_int,
    _: Address,
    info: &mut c_int,
) -> Answer {
    *info = 0;
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn batched_solve(
    _: Handle,
    _trans: c_int,
    _n: c_int,
    _columns: c_int,
    _: Address,
    _: c_int,
    _: Address,
    _: Address,
    _: c_int,
    info: &mut c_int,
) -> Answer {
    *info = 0;
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn batched_least_squares(
    _: Handle,
    _trans: c_int,
    _m: c_int,
    _n: c_int,
    _columns: c_int,
    _: Address,
    _: c_int,
    _: Address,
    _: c_int,
    info: &mut c_int,
) -> Answer {
    *info = 0;
    Ok(())
}
