//! Sizes for the legacy calls. cuDNN does not give them without a device; these are models:
//!
//! - batch norm: PyTorch's default path (NCHW) needs no workspace and no reserve. The fused NHWC
//!   path keeps per-channel statistics and, with an activation, one bit for each element.
//! - dropout states: one 48-byte generator state for each resident thread of the card.
//! - CTC: alphas and betas in fp32, time × batch × (2 × longest label + 1).

use std::ffi::c_int;

use contract::work::{Source, Work};
use cuda_abi::types::{Address, Handle};

use super::descriptor;
use crate::error::{Answer, Failure};
use crate::state::phantom;
use crate::status;

/// Bytes of one random generator's state (XORWOW).
const GENERATOR_BYTES: u64 = 48;

pub(crate) fn dropout_states(_handle: Handle, out: &mut usize) -> Answer {
    *out = (phantom()?.card.resident_threads() * GENERATOR_BYTES) as usize;
    Ok(())
}

/// Whether the fused NHWC kernels would run: persistent mode and channels innermost.
fn is_fused(mode: c_int, x: Handle) -> Result<bool, Failure> {
    const SPATIAL_PERSISTENT: c_int = 2;
    let shape = descriptor::get(x)?;
    Ok(mode == SPATIAL_PERSISTENT && 2 < shape.strides.len() && shape.strides[1] == 1)
}

/// Per-channel sums in fp32, one row per multiprocessor.
fn statistics_bytes(mode: c_int, x: Handle) -> Result<usize, Failure> {
    if !is_fused(mode, x)? {
        return Ok(0);
    }
    let channels = descriptor::get(x)?.dims.get(1).copied().unwrap_or(0).max(0) as usize;
    let bytes = 2 * 4 * channels * phantom()?.card.sm_count as usize;
    status::note_work(Work::BatchNorm, Source::Modelled, bytes as u64);
    Ok(bytes)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn norm_forward_work(
    _handle: Handle,
    mode: c_int,
    _ops: c_int,
    x: Handle,
    _z: Option<Handle>,
    _y: Handle,
    _scale: Handle,
    _activation: Option<Handle>,
    out: &mut usize,
) -> Answer {
    *out = statistics_bytes(mode, x)?;
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn norm_backward_work(
    _handle: Handle,
    mode: c_int,
    _ops: c_int,
    x: Handle,
    _y: Option<Handle>,
    _dy: Handle,
    _dz: Option<Handle>,
    _dx: Handle,
    _scale: Handle,
    _activation: Option<Handle>,
    out: &mut usize,
) -> Answer {
    *out = statistics_bytes(mode, x)?;
    Ok(())
}

pub(crate) fn norm_reserve(
    _handle: Handle,
    mode: c_int,
    ops: c_int,
    _activation: Option<Handle>,
    x: Handle,
    out: &mut usize,
) -> Answer {
    let has_activation = ops != 0;
    *out = match is_fused(mode, x)? && has_activation {
        true => descriptor::get(x)?.elements().div_ceil(8),
        false => 0,
    };
    Ok(())
}

/// Longest label PyTorch hands to cuDNN.
const LONGEST_LABEL: usize = 256;

fn ctc_bytes(probabilities: Handle) -> Result<usize, Failure> {
    let shape = descriptor::get(probabilities)?;
    let size = |i: usize| shape.dims.get(i).copied().unwrap_or(1).max(1) as usize;
    let each = 2 * 4 * (2 * LONGEST_LABEL + 1);
    let bytes = size(0).saturating_mul(size(1)).saturating_mul(each);
    status::note_work(Work::Ctc, Source::Modelled, bytes as u64);
    Ok(bytes)
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn ctc_work(
    _handle: Handle,
    probabilities: Handle,
    _gradients: Option<Handle>,
    _labels: Address,
    _label_lengths: Address,
    _input_lengths: Address,
    _algorithm: c_int,
    _ctc: Handle,
    out: &mut usize,
) -> Answer {
    *out = ctc_bytes(probabilities)?;
    Ok(())
}

pub(crate) fn ctc_work_v8(
    _handle: Handle,
    _algorithm: c_int,
    _ctc: Handle,
    probabilities: Handle,
    _gradients: Option<Handle>,
    out: &mut usize,
) -> Answer {
    *out = ctc_bytes(probabilities)?;
    Ok(())
}
