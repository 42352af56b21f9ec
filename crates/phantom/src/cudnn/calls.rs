//! Legacy calls that compute nothing here: only the work area that they are handed is looked at.

use std::ffi::c_int;

use contract::work::Work;
use cuda_abi::types::{Address, Handle};

use crate::error::Answer;
use crate::workspaces;

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn norm_forward(
    _: Handle,
    _mode: c_int,
    _ops: c_int,
    _: Address,
    _: Address,
    _x: Handle,
    _: Address,
    _z: Option<Handle>,
    _: Address,
    _y: Handle,
    _: Address,
    _scale: Handle,
    _: Address,
    _: Address,
    _factor: f64,
    _: Address,
    _: Address,
    _epsilon: f64,
    _: Address,
    _: Address,
    _activation: Option<Handle>,
    workspace: Address,
) -> Answer {
    workspaces::note(Work::BatchNorm, workspace.0);
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn norm_backward(
    _: Handle,
    _mode: c_int,
    _ops: c_int,
    _: Address,
    _: Address,
    _: Address,
    _: Address,
    _x: Handle,
    _: Address,
    _y: Option<Handle>,
    _: Address,
    _dy: Handle,
    _: Address,
    _dz: Option<Handle>,
    _: Address,
    _dx: Handle,
    _: Address,
    _scale: Handle,
    _: Address,
    _: Address,
    _: Address,
    _: Address,
    _epsilon: f64,
    _: Address,
    _: Address,
    _activation: Option<Handle>,
    workspace: Address,
) -> Answer {
    workspaces::note(Work::BatchNorm, workspace.0);
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn rnn_forward(
    _: Handle,
    _rnn: Handle,
    _mode: c_int,
    _lengths: Address,
    _x: Handle,
    _: Address,
    _y: Handle,
    _: Address,
    _h: Option<Handle>,
    _: Address,
    _: Address,
    _c: Option<Handle>,
    _: Address,
    _: Address,
    _weight_bytes: usize,
    _: Address,
    _work_bytes: usize,
    workspace: Address,
) -> Answer {
    workspaces::note(Work::Rnn, workspace.0);
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn rnn_backward_data(
    _: Handle,
    _rnn: Handle,
    _lengths: Address,
    _y: Handle,
    _: Address,
    _: Address,
    _x: Handle,
    _: Address,
    _h: Option<Handle>,
    _: Address,
    _: Address,
    _: Address,
    _c: Option<Handle>,
    _: Address,
    _: Address,
    _: Address,
    _weight_bytes: usize,
    _: Address,
    _work_bytes: usize,
    workspace: Address,
) -> Answer {
    workspaces::note(Work::Rnn, workspace.0);
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn rnn_backward_weights(
    _: Handle,
    _rnn: Handle,
    _add: c_int,
    _lengths: Address,
    _x: Handle,
    _: Address,
    _h: Option<Handle>,
    _: Address,
    _y: Handle,
    _: Address,
    _weight_bytes: usize,
    _: Address,
    _work_bytes: usize,
    workspace: Address,
) -> Answer {
    workspaces::note(Work::Rnn, workspace.0);
    Ok(())
}
