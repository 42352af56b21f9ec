//! cuDNN: convolutions are asked of the real library where one is installed, without a device;
//! the legacy calls (batch norm, RNN, CTC) are answered here.

mod answers;
pub(crate) mod backend;
pub(crate) mod calls;
pub(crate) mod descriptor;
mod device;
mod digest;
mod graph;
pub(crate) mod legacy;
mod model;
mod oracle;
mod real;
pub(crate) mod rnn;

use std::ffi::{c_char, c_int};

use cuda_abi::types::Handle;

use crate::config;
use crate::error::{Answer, Failure};
use crate::ffi::{Raw, write_text};

pub(crate) fn stream(_handle: Handle, out: &mut Handle) -> Answer {
    *out = Handle::default();
    Ok(())
}

/// The version torch was compiled against: 10000 × major + 100 × minor + patch.
pub(crate) fn version() -> usize {
    config::get().cudnn_version
}

pub(crate) fn cudart_version() -> usize {
    config::get().cuda_version as usize
}

/// Major, minor and patch by 0, 1 and 2.
pub(crate) fn property(kind: c_int, out: &mut c_int) -> Answer {
    let version = version();
    *out = match kind {
        0 => version / 10000,
        1 => version % 10000 / 100,
        2 => version % 100,
        _ => return Err(Failure::InvalidValue),
    } as c_int;
    Ok(())
}

pub(crate) fn last_error(out: *mut c_char, size: usize) {
    // A full buffer is all that can go wrong, and then nothing is written.
    let _ = write_text(Raw(out), size, "not supported by the phantom GPU");
}
