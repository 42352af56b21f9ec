//! Tensor and filter descriptors of the legacy calls: type, sizes and strides, as they were set.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

use cuda_abi::types::Handle;

use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::state::lock;

/// What a descriptor says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) dtype: c_int,
    pub(crate) format: c_int,
    pub(crate) dims: Vec<c_int>,
    pub(crate) strides: Vec<c_int>,
}

impl Shape {
    pub(crate) fn elements(&self) -> usize {
        let sizes = self.dims.iter().map(|size| (*size).max(0) as usize);
        sizes.fold(1, usize::saturating_mul)
    }
}

static SHAPES: Mutex<BTreeMap<Handle, Shape>> = Mutex::new(BTreeMap::new());

/// Bytes of one element of a `cudnnDataType_t`.
pub(crate) fn bytes_of(dtype: c_int) -> usize {
    match dtype {
        1 | 10 => 8, // double, int64
        2 | 9 => 2,  // half, bfloat16
        3 | 7 | 12..=14 => 1,
        _ => 4,
    }
}

pub(crate) fn get(descriptor: Handle) -> Result<Shape, Failure> {
    lock(&SHAPES).get(&descriptor).cloned().ok_or(Failure::InvalidHandle)
}

pub(crate) fn put(descriptor: Handle, shape: Shape) -> Answer {
    lock(&SHAPES).insert(descriptor, shape);
    Ok(())
}

pub(crate) fn destroy(descriptor: Handle) -> Answer {
    lock(&SHAPES).remove(&descriptor);
    super::rnn::forget(descriptor);
    Ok(())
}

pub(crate) fn set_tensor(
    descriptor: Handle,
    dtype: c_int,
    rank: c_int,
    dims: Raw<c_int>,
    strides: Raw<c_int>,
) -> Answer {
    let (dims, strides) = (sizes(rank, dims)?, sizes(rank, strides)?);
    put(descriptor, Shape { dtype, format: 0, dims, strides })
}

/// cuDNN's tensors have no more dimensions.
const MOST_DIMENSIONS: c_int = 8;

/// One number for each dimension.
fn sizes(rank: c_int, values: Raw<c_int>) -> Result<Vec<c_int>, Failure> {
    if !(1..=MOST_DIMENSIONS).contains(&rank) || values.is_null() {
        return Err(Failure::InvalidValue);
    }
    values.read(rank as usize)
}

pub(crate) fn get_tensor(
    descriptor: Handle,
    wanted: c_int,
    dtype: Option<&mut c_int>,
    rank: Option<&mut c_int>,
    dims: Raw<c_int>,
    strides: Raw<c_int>,
) -> Answer {
    let shape = get(descriptor)?;
    let kept = shape.dims.len().min(wanted.max(0) as usize);
    if let Some(dtype) = dtype {
        *dtype = shape.dtype;
    }
    if let Some(rank) = rank {
        *rank = shape.dims.len() as c_int;
    }
    dims.write(&shape.dims[..kept])?;
    strides.write(&shape.strides[..kept.min(shape.strides.len())])
}

pub(crate) fn set_filter(
    descriptor: Handle,
    dtype: c_int,
    format: c_int,
    rank: c_int,
    dims: Raw<c_int>,
) -> Answer {
    put(descriptor, Shape { dtype, format, dims: sizes(rank, dims)?, strides: Vec::new() })
}

pub(crate) fn get_filter(
    descriptor: Handle,
    wanted: c_int,
    dtype: Option<&mut c_int>,
    format: Option<&mut c_int>,
    rank: Option<&mut c_int>,
    dims: Raw<c_int>,
) -> Answer {
    if let Some(format) = format {
        *format = get(descriptor)?.format;
    }
    get_tensor(descriptor, wanted, dtype, rank, dims, Raw(std::ptr::null_mut()))
}
