//! cuBLAS: handles and modes; products themselves are accepted and not done. PyTorch brings its own
//! workspace, so nothing here changes memory.

use std::ffi::{c_char, c_int, c_void};

use cuda_abi::types::{Address, Handle, MatmulHeuristic};

use crate::config;
use crate::error::Answer;
use crate::ffi::Raw;
use crate::state::new_handle;
use crate::workspaces;

pub(crate) fn create(out: &mut Handle) -> Answer {
    *out = new_handle();
    Ok(())
}

/// PyTorch brings the handle its workspace.
pub(crate) fn set_workspace(_handle: Handle, workspace: Address, _size: usize) -> Answer {
    workspaces::note(workspaces::Kind::Cublas, workspace.0);
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
    _c_layout: Handle,
    _d: Address,
    _d_layout: Handle,
    _algorithm: Handle,
    workspace: Address,
    _size: usize,
    _stream: Handle,
) -> Answer {
    workspaces::note(workspaces::Kind::Cublas, workspace.0);
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
        _ => 0,
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
    _c: Handle,
    _d: Handle,
    _preference: Handle,
    wanted: c_int,
    results: Raw<MatmulHeuristic>,
    found: &mut c_int,
) -> Answer {
    *found = wanted.min(1);
    if 0 < wanted {
        results.write(&[MatmulHeuristic { waves: 1.0, ..MatmulHeuristic::default() }]);
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn check(
    _handle: Handle,
    _operation: Handle,
    _a: Handle,
    _b: Handle,
    _c: Handle,
    _d: Handle,
    _algorithm: Handle,
    result: &mut MatmulHeuristic,
) -> Answer {
    *result = MatmulHeuristic { waves: 1.0, ..MatmulHeuristic::default() };
    Ok(())
}

/// Attributes of descriptors read as zero.
pub(crate) fn attribute(
    _description: Handle,
    _attribute: c_int,
    out: Raw<c_void>,
    size: usize,
    written: Option<&mut usize>,
) -> Answer {
    out.write_bytes(&vec![0; size]);
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
