//! Small tensors, which hold true values on the phantom: which there are, and those whose value is not known.

use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyInt, PyList, PyTuple};

use crate::hash::Set;
use crate::torch::{self, Torch};

/// Tensors of so few elements, in so small a storage, hold true values.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct Small {
    pub(crate) torch: Torch,
    elements: u64,
    bytes: u64,
    /// `torch.utils._python_dispatch.is_traceable_wrapper_subclass`.
    is_wrapper: Py<PyAny>,
}

#[pymethods]
impl Small {
    #[new]
    fn new(
        py: Python<'_>,
        plain: &Bound<'_, PyFrozenSet>,
        storages: Py<PyAny>,
        elements: u64,
        bytes: u64,
    ) -> PyResult<Small> {
        let dispatch = py.import("torch.utils._python_dispatch")?;
        let is_wrapper = dispatch.getattr("is_traceable_wrapper_subclass")?.unbind();
        Ok(Small { torch: Torch::new(py, plain, storages)?, elements, bytes, is_wrapper })
    }

    /// Whether a large tensor is among values, or in lists among them.
    pub(crate) fn has_large(&self, values: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut is_large = false;
        self.each(values, &mut |tensor| {
            is_large = self.elements < torch::elements(tensor)?;
            Ok(!is_large)
        })?;
        Ok(is_large)
    }

    /// Fresh small results whose value is not known are zero; what was written in place stays.
    pub(crate) fn clear(
        &self,
        given: &Bound<'_, PyAny>,
        result: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut known: Option<Set<u64>> = None;
        self.each(result, &mut |tensor| {
            let elements = torch::elements(tensor)?;
            if elements == 0
                || self.elements < elements
                || !self.torch.is_ordinary(tensor)?
                || !torch::is_cuda(tensor)?
            {
                return Ok(true);
            }
            let (start, bytes) = torch::storage(tensor)?;
            if self.bytes < bytes {
                return Ok(true);
            }
            let known = match &mut known {
                Some(known) => known,
                none => none.insert(self.starts(given)?),
            };
            if !known.contains(&start) {
                // SAFETY: a storage of the phantom's card, which is memory of this process, and nobody computes there.
                unsafe { std::ptr::write_bytes(start as *mut u8, 0, bytes as usize) };
            }
            Ok(true)
        })?;
        Ok(())
    }
}

impl Small {
    /// Adds a number to a count on the card, as every norm layer does in every step; whether it was one.
    pub(crate) fn count(&self, args: &Bound<'_, PyTuple>) -> PyResult<bool> {
        let (Ok(count), Ok(number)) = (args.get_item(0), args.get_item(1)) else {
            return Ok(false);
        };
        let Ok(number) = number.cast_exact::<PyInt>().map(|number| number.extract::<i64>()) else {
            return Ok(false);
        };
        if args.len() != 2 || !self.torch.is_count(&count)? {
            return Ok(false);
        }
        let (start, number) = (torch::address(&count)? as *mut i64, number?);
        // SAFETY: an element of the phantom's card, which is memory of this process, and nobody computes there.
        unsafe { start.write(start.read().wrapping_add(number)) };
        Ok(true)
    }

    /// Where the storages of tensors begin.
    fn starts(&self, values: &Bound<'_, PyAny>) -> PyResult<Set<u64>> {
        let mut found = Set::default();
        self.each(values, &mut |tensor| {
            let is_ordinary = self.torch.is_ordinary(tensor)?;
            if is_ordinary || (self.torch.is_strided(tensor)? && !self.is_wrapper(tensor)?) {
                found.insert(torch::storage(tensor)?.0);
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// Distributed tensors and the like have no storage of their own.
    fn is_wrapper(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.is_wrapper.bind(tensor.py()).call1((tensor,))?.is_truthy()
    }

    /// Looks at each tensor in a value, in lists, and in lists in lists, until told to stop.
    fn each<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        look: &mut impl FnMut(&Bound<'py, PyAny>) -> PyResult<bool>,
    ) -> PyResult<bool> {
        if self.torch.is_tensor(value) {
            return look(value);
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            for item in tuple.iter() {
                if !self.each(&item, look)? {
                    return Ok(false);
                }
            }
        } else if let Ok(list) = value.cast::<PyList>() {
            for item in list.iter() {
                if !self.each(&item, look)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
