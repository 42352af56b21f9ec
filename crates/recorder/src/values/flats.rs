//! Contents of storages as tensors of bytes, for the CPU's kernels: *flats*.

use std::sync::Arc;

use pyo3::exceptions::PyLookupError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

use super::geometry::Geometry;
use super::ledger::Ledger;
use super::recipe::Source;
use super::value::{Bytes, State, Value};
use crate::hash::Map;

/// `PyBUF_READ`.
const READ_ONLY: std::ffi::c_int = 0x100;

/// So many bytes are copied rather than held as a tensor, which takes some hundred.
const SMALL: usize = 4096;

impl Ledger {
    /// A result as it lies in its storage, beside other pieces of that.
    pub(super) fn laid<'py>(
        &self,
        result: &Bound<'py, PyAny>,
        geometry: &Geometry,
        bytes: u64,
        other: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = result.py();
        let lazily = (geometry.is_conjugate, geometry.is_negative);
        let laid = (result, &geometry.dtype, geometry.numbers(py)?, lazily, bytes, other);
        self.evaluate.bind(py).call_method1(intern!(py, "flat"), laid)
    }

    /// The bytes of a storage as a tensor of the host's.
    pub(super) fn flat_of<'py>(
        &self,
        py: Python<'py>,
        source: &Source,
        flats: &Map<usize, Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = match source {
            Source::Host(bytes) => return self.flat(py, bytes),
            Source::Card(value) => value,
        };
        if let Some(flat) = flats.get(&(Arc::as_ptr(value) as usize)) {
            return Ok(flat.bind(py).clone());
        }
        match value.state() {
            State::Data(bytes) => self.flat(py, &bytes),
            State::Undefined => {
                self.evaluate.bind(py).call_method1(intern!(py, "undefined"), (value.bytes,))
            }
            _ => Err(PyLookupError::new_err("a value that was needed is gone")),
        }
    }

    /// A tensor over bytes that are ours. It is not to be written to.
    pub(super) fn flat<'py>(
        &self,
        py: Python<'py>,
        bytes: &Arc<Bytes>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Bytes::Of(tensor, ..) = &**bytes {
            return Ok(tensor.bind(py).clone());
        }
        let bytes = bytes.get();
        if bytes.is_empty() {
            return self.evaluate.bind(py).call_method1(intern!(py, "undefined"), (0,));
        }
        // SAFETY: the view ends before the bytes do: `copied` copies at once.
        let view = unsafe {
            let view = ffi::PyMemoryView_FromMemory(
                bytes.as_ptr().cast_mut().cast(),
                bytes.len() as ffi::Py_ssize_t,
                READ_ONLY,
            );
            Bound::from_owned_ptr_or_err(py, view)?
        };
        self.evaluate.bind(py).call_method1(intern!(py, "copied"), (view,))
    }

    /// What stands for a tensor.
    pub(super) fn stand_in<'py>(
        &self,
        py: Python<'py>,
        bytes: Option<Arc<Bytes>>,
        geometry: &Geometry,
    ) -> PyResult<Bound<'py, PyAny>> {
        match bytes {
            Some(bytes) => {
                let value = Value::new(State::Data(bytes.clone()), bytes.get().len() as u64);
                self.tensor_of(py, &value, geometry)
            }
            None => {
                let numbers = (&geometry.dtype, geometry.size.clone());
                self.evaluate.bind(py).call_method1(intern!(py, "stand_in"), numbers)
            }
        }
    }

    pub(super) fn tensor_of<'py>(
        &self,
        py: Python<'py>,
        value: &Arc<Value>,
        geometry: &Geometry,
    ) -> PyResult<Bound<'py, PyAny>> {
        let flat = self.flat_of(py, &Source::Card(value.clone()), &Map::default())?;
        let flat = flat.call_method0(intern!(py, "clone"))?;
        let numbers = geometry.numbers(py)?;
        let view = (flat, &geometry.dtype, numbers, geometry.is_conjugate, geometry.is_negative);
        self.evaluate.bind(py).call_method1(intern!(py, "view"), view)
    }

    /// The bytes of a flat, which nobody writes to from here on.
    pub(super) fn bytes_of(&self, flat: &Bound<'_, PyAny>, bytes: u64) -> PyResult<Arc<Bytes>> {
        let start = self.tensors.address(flat)?.unwrap_or(0);
        let length = bytes.min(self.tensors.elements(flat)?) as usize;
        if length <= SMALL {
            let bytes = match length {
                0 => Vec::new(),
                // SAFETY: a tensor of bytes of the host's, alive, with at least as many.
                _ => unsafe { std::slice::from_raw_parts(start as *const u8, length) }.to_vec(),
            };
            return Ok(Bytes::new(bytes));
        }
        // SAFETY: as above; what a function writes to is copied before.
        Ok(unsafe { Bytes::of(flat.clone().unbind(), start, length) })
    }
}
