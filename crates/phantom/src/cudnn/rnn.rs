//! Recurrent networks: the layout of the packed weights (exact) and the sizes of work and reserve
//! space (a model: cuDNN keeps gates, cell states and layer outputs of each step for backward).

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

use cuda_abi::status::Workspaces;
use cuda_abi::types::{Address, Handle};

use super::descriptor::{self, Shape, bytes_of};
use crate::error::{Answer, Failure};
use crate::state::lock;
use crate::status;

/// One network.
#[derive(Clone, Copy, Debug)]
struct Network {
    /// 0 relu, 1 tanh, 2 LSTM, 3 GRU.
    cell: c_int,
    /// 0 none, 2 both; 1 and 3 have one bias.
    bias: c_int,
    directions: usize,
    dtype: c_int,
    input: usize,
    hidden: usize,
    projection: usize,
    layers: usize,
}

static NETWORKS: Mutex<BTreeMap<Handle, Network>> = Mutex::new(BTreeMap::new());

pub(crate) fn forget(descriptor: Handle) {
    lock(&NETWORKS).remove(&descriptor);
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn set(
    descriptor: Handle,
    _algorithm: c_int,
    cell: c_int,
    bias: c_int,
    direction: c_int,
    _input_mode: c_int,
    dtype: c_int,
    _math: c_int,
    _math_type: c_int,
    input: c_int,
    hidden: c_int,
    projection: c_int,
    layers: c_int,
) -> Answer {
    let size = |value: c_int| value.max(0) as usize;
    let network = Network {
        cell,
        bias,
        directions: if direction == 0 { 1 } else { 2 },
        dtype,
        input: size(input),
        hidden: size(hidden),
        projection: size(projection),
        layers: size(layers),
    };
    lock(&NETWORKS).insert(descriptor, network);
    Ok(())
}

/// Data descriptors are kept as shapes of (steps, batch, vector).
pub(crate) fn set_data(
    descriptor: Handle,
    dtype: c_int,
    _layout: c_int,
    steps: c_int,
    batch: c_int,
    vector: c_int,
) -> Answer {
    let dims = vec![steps, batch, vector];
    descriptor::put(descriptor, Shape { dtype, format: 0, dims, strides: Vec::new() })
}

fn network(descriptor: Handle) -> Result<Network, Failure> {
    lock(&NETWORKS).get(&descriptor).copied().ok_or(Failure::InvalidHandle)
}

impl Network {
    fn gates(&self) -> usize {
        match self.cell {
            2 => 4,
            3 => 3,
            _ => 1,
        }
    }

    /// What a layer hands to the next: the projection where there is one.
    fn output(&self) -> usize {
        if 0 < self.projection { self.projection } else { self.hidden }
    }

    fn has_projection(&self) -> bool {
        self.projection != 0 && self.projection != self.hidden
    }

    fn layer_input(&self, pseudo_layer: usize) -> usize {
        match pseudo_layer / self.directions {
            0 => self.input,
            _ => self.output() * self.directions,
        }
    }

    fn biases(&self) -> usize {
        match self.bias {
            0 => 0,
            2 => 2,
            _ => 1,
        }
    }

    /// Rows and columns of one matrix: input gates, then recurrent gates, then the projection.
    fn matrix(&self, pseudo_layer: usize, gate: usize) -> (usize, usize) {
        let gates = self.gates();
        match gate {
            _ if gate < gates => (self.hidden, self.layer_input(pseudo_layer)),
            _ if gate < 2 * gates => (self.hidden, self.output()),
            _ => (self.projection, self.hidden),
        }
    }

    fn matrices(&self) -> usize {
        2 * self.gates() + usize::from(self.has_projection())
    }

    fn matrix_elements(&self, pseudo_layer: usize) -> usize {
        let sizes = (0..self.matrices()).map(|gate| self.matrix(pseudo_layer, gate));
        sizes.map(|(rows, columns)| rows * columns).sum()
    }

    fn pseudo_layers(&self) -> usize {
        self.layers * self.directions
    }

    /// Elements before one matrix.
    fn matrix_offset(&self, pseudo_layer: usize, gate: usize) -> usize {
        let layers: usize = (0..pseudo_layer).map(|layer| self.matrix_elements(layer)).sum();
        let gates = (0..gate).map(|gate| self.matrix(pseudo_layer, gate));
        layers + gates.map(|(rows, columns)| rows * columns).sum::<usize>()
    }

    /// Elements before one bias: all matrices come first.
    fn bias_offset(&self, pseudo_layer: usize, gate: usize) -> usize {
        let matrices = self.matrix_offset(self.pseudo_layers(), 0);
        matrices + (pseudo_layer * self.biases() * self.gates() + gate) * self.hidden
    }

    /// Matrices of all layers first, then all biases.
    fn weight_elements(&self) -> usize {
        let matrices: usize =
            (0..self.pseudo_layers()).map(|layer| self.matrix_elements(layer)).sum();
        matrices + self.pseudo_layers() * self.biases() * self.gates() * self.hidden
    }
}

pub(crate) fn weight_bytes(_handle: Handle, rnn: Handle, out: &mut usize) -> Answer {
    let network = network(rnn)?;
    *out = network.weight_elements() * bytes_of(network.dtype);
    Ok(())
}

pub(crate) fn temporary_bytes(
    _handle: Handle,
    rnn: Handle,
    mode: c_int,
    x: Handle,
    work: Option<&mut usize>,
    reserve: Option<&mut usize>,
) -> Answer {
    const TRAINING: c_int = 1;
    let network = network(rnn)?;
    let shape = descriptor::get(x)?;
    let size = |i: usize| shape.dims.get(i).copied().unwrap_or(0).max(0) as usize;
    let (steps, batch) = (size(0), size(1));
    let bytes = bytes_of(network.dtype);
    let per_step = batch * network.hidden * network.pseudo_layers();
    status::note_workspaces(Workspaces::Modelled);
    if let Some(work) = work {
        // Gate inputs of one layer over all steps, and states of one step.
        *work = bytes
            * (network.gates() * steps * batch * network.hidden * network.directions
                + 4 * per_step);
    }
    if let Some(reserve) = reserve {
        let kept_per_cell = network.gates() + 2;
        *reserve = if mode == TRAINING { bytes * kept_per_cell * steps * per_step } else { 0 };
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "C signature")]
pub(crate) fn weight(
    _handle: Handle,
    rnn: Handle,
    layer: c_int,
    _size: usize,
    space: Address,
    gate: c_int,
    matrix: Handle,
    matrix_at: Option<&mut Address>,
    bias: Handle,
    bias_at: Option<&mut Address>,
) -> Answer {
    let network = network(rnn)?;
    let (layer, gate) = (layer.max(0) as usize, gate.max(0) as usize);
    let bytes = bytes_of(network.dtype) as u64;
    let shape =
        |dims: Vec<c_int>| Shape { dtype: network.dtype, format: 0, dims, strides: vec![1, 1, 1] };
    if network.pseudo_layers() <= layer {
        return Err(Failure::InvalidValue);
    }
    if let Some(matrix_at) = matrix_at {
        *matrix_at = Address(0);
        if gate < network.matrices() {
            let (rows, columns) = network.matrix(layer, gate);
            *matrix_at = Address(space.0 + network.matrix_offset(layer, gate) as u64 * bytes);
            descriptor::put(matrix, shape(vec![1, rows as c_int, columns as c_int]))?;
        }
    }
    if let Some(bias_at) = bias_at {
        *bias_at = Address(0);
        if gate < network.biases() * network.gates() {
            *bias_at = Address(space.0 + network.bias_offset(layer, gate) as u64 * bytes);
            descriptor::put(bias, shape(vec![1, network.hidden as c_int, 1]))?;
        }
    }
    Ok(())
}
