//! Recurrent networks: the layout of the packed weights (exact) and the sizes of work and reserve
//! space (a model: cuDNN keeps gates, cell states and layer outputs of each step for backward).

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

use contract::work::{Source, Work};
use cuda_abi::types::{Address, Handle};

use super::descriptor::{self, Shape, bytes_of};
use crate::error::{Answer, Failure};
use crate::state::lock;
use crate::status;

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
    let is_good = (0..=3).contains(&cell)
        && (0..=3).contains(&bias)
        && (0..=1).contains(&direction)
        && [input, hidden, layers].iter().all(|size| 0 < *size)
        && 0 <= projection;
    if !is_good {
        return Err(Failure::InvalidValue);
    }
    let size = |value: c_int| value as usize;
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
        sizes.map(|(rows, columns)| rows.saturating_mul(columns)).fold(0, usize::saturating_add)
    }

    /// All matrices of the first so many layers: the first of each direction take the input, all
    /// others are alike.
    fn matrices_of(&self, pseudo_layers: usize) -> usize {
        let first = pseudo_layers.min(self.directions);
        let of_first = self.matrix_elements(0).saturating_mul(first);
        let of_others = self.matrix_elements(self.directions).saturating_mul(pseudo_layers - first);
        of_first.saturating_add(of_others)
    }

    fn pseudo_layers(&self) -> usize {
        self.layers * self.directions
    }

    /// Elements before one matrix.
    fn matrix_offset(&self, pseudo_layer: usize, gate: usize) -> usize {
        let gates = (0..gate).map(|gate| self.matrix(pseudo_layer, gate));
        let gates = gates.map(|(rows, columns)| rows.saturating_mul(columns));
        gates.fold(self.matrices_of(pseudo_layer), usize::saturating_add)
    }

    /// Elements before one bias: all matrices come first.
    fn bias_offset(&self, pseudo_layer: usize, gate: usize) -> usize {
        let before = pseudo_layer * self.biases() * self.gates() + gate;
        self.matrices_of(self.pseudo_layers()).saturating_add(before.saturating_mul(self.hidden))
    }

    /// Matrices of all layers first, then all biases.
    fn weight_elements(&self) -> usize {
        self.bias_offset(self.pseudo_layers(), 0)
    }
}

pub(crate) fn weight_bytes(_handle: Handle, rnn: Handle, out: &mut usize) -> Answer {
    let network = network(rnn)?;
    *out = network.weight_elements().saturating_mul(bytes_of(network.dtype));
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
    let product = |sizes: &[usize]| sizes.iter().copied().fold(1, usize::saturating_mul);
    let per_step = product(&[batch, network.hidden, network.pseudo_layers()]);
    if let Some(work) = work {
        // Gate inputs of one layer over all steps, and states of one step.
        let gates = [network.gates(), steps, batch, network.hidden, network.directions, bytes];
        *work = product(&gates).saturating_add(product(&[4, per_step, bytes]));
        status::note_work(Work::Rnn, Source::Modelled, *work as u64);
    }
    if let Some(reserve) = reserve {
        let kept_per_cell = network.gates() + 2;
        let kept = product(&[bytes, kept_per_cell, steps, per_step]);
        *reserve = if mode == TRAINING { kept } else { 0 };
        if *reserve != 0 {
            status::note_work(Work::RnnReserve, Source::Modelled, *reserve as u64);
        }
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
    matrix: Option<Handle>,
    matrix_at: Option<&mut Address>,
    bias: Option<Handle>,
    bias_at: Option<&mut Address>,
) -> Answer {
    let network = network(rnn)?;
    let (Ok(layer), Ok(gate)) = (usize::try_from(layer), usize::try_from(gate)) else {
        return Err(Failure::InvalidValue);
    };
    let bytes = bytes_of(network.dtype) as u64;
    let at =
        |elements: usize| Address(space.0.saturating_add((elements as u64).saturating_mul(bytes)));
    let describe = |place: Option<Handle>, dims: Vec<c_int>| {
        let shape = Shape { dtype: network.dtype, format: 0, dims, strides: vec![1, 1, 1] };
        place.map_or(Ok(()), |place| descriptor::put(place, shape))
    };
    if network.pseudo_layers() <= layer {
        return Err(Failure::InvalidValue);
    }
    if let Some(matrix_at) = matrix_at {
        *matrix_at = Address(0);
        if gate < network.matrices() {
            let (rows, columns) = network.matrix(layer, gate);
            *matrix_at = at(network.matrix_offset(layer, gate));
            describe(matrix, vec![1, rows as c_int, columns as c_int])?;
        }
    }
    if let Some(bias_at) = bias_at {
        *bias_at = Address(0);
        if gate < network.biases() * network.gates() {
            *bias_at = at(network.bias_offset(layer, gate));
            describe(bias, vec![1, network.hidden as c_int, 1])?;
        }
    }
    Ok(())
}
