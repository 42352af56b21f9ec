//! Where the elements of a tensor lie in its storage.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::tensors::Tensors;

/// Numbers only: Python's own tuples would be counted by its garbage collector.
#[derive(Debug)]
pub(crate) struct Geometry {
    pub(crate) dtype: Py<PyAny>,
    pub(crate) itemsize: u64,
    /// Whether its numbers have fractions.
    pub(crate) is_fraction: bool,
    pub(crate) size: Vec<i64>,
    pub(crate) stride: Vec<i64>,
    pub(crate) offset: i64,
    pub(crate) is_conjugate: bool,
    pub(crate) is_negative: bool,
}

impl Geometry {
    pub(crate) fn of(tensors: &Tensors, tensor: &Bound<'_, PyAny>) -> PyResult<Geometry> {
        let (size, stride, offset) = tensors.lies(tensor)?;
        let (dtype, itemsize, is_fraction) = tensors.kind(tensor)?;
        let (is_conjugate, is_negative) = tensors.is_lazy(tensor)?;
        Ok(Geometry {
            dtype,
            itemsize,
            is_fraction,
            size,
            stride,
            offset,
            is_conjugate,
            is_negative,
        })
    }

    pub(crate) fn copy(&self, py: Python<'_>) -> Geometry {
        Geometry {
            dtype: self.dtype.clone_ref(py),
            size: self.size.clone(),
            stride: self.stride.clone(),
            ..*self
        }
    }

    pub(crate) fn elements(&self) -> u64 {
        self.size.iter().map(|size| *size as u64).product()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.elements() * self.itemsize
    }

    /// First byte, and the one after the last, of its storage.
    pub(crate) fn span(&self) -> (u64, u64) {
        let first = self.offset as u64 * self.itemsize;
        if self.elements() == 0 {
            return (first, first);
        }
        let last: i64 =
            self.size.iter().zip(&self.stride).map(|(size, step)| (size - 1) * step).sum();
        (first, (self.offset + last + 1) as u64 * self.itemsize)
    }

    /// Whether every byte of a storage of this size is one of its elements.
    pub(crate) fn covers(&self, bytes: u64) -> bool {
        self.offset == 0 && self.bytes() == bytes && self.span() == (0, bytes)
    }

    /// For `torch.as_strided`.
    pub(crate) fn numbers<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyTuple>, i64)> {
        Ok((PyTuple::new(py, &self.size)?, PyTuple::new(py, &self.stride)?, self.offset))
    }
}
