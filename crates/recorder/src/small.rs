//! Small tensors, which hold true values on the phantom: which there are, and those whose value is not known.

use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyInt, PyList, PyTuple};

use crate::tensors::Tensors;

/// Tensors of so few elements, in so small a storage, hold true values.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct Small {
    pub(crate) tensors: Tensors,
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
        Ok(Small { tensors: Tensors::new(py, plain, storages)?, elements, bytes, is_wrapper })
    }

    /// Whether a large tensor is among values, or in lists among them.
    pub(crate) fn has_large(&self, values: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut is_large = false;
        self.each(values, &mut |tensor| {
            is_large = self.elements < self.tensors.elements(tensor)?;
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
        let mut known: Option<Vec<u64>> = None;
        self.each(result, &mut |tensor| {
            let elements = self.tensors.elements(tensor)?;
            if elements == 0
                || self.elements < elements
                || !self.tensors.is_ordinary(tensor)?
                || !self.tensors.is_cuda(tensor)?
            {
                return Ok(true);
            }
            let (start, bytes) = self.tensors.storage(tensor)?;
            if self.bytes < bytes {
                return Ok(true);
            }
            let known = match &mut known {
                Some(known) => known,
                none => none.insert(self.addresses(given)?),
            };
            // One that lies in the same storage begins in it.
            let next = known.partition_point(|address| *address < start);
            if known.get(next).is_none_or(|address| start + bytes <= *address) {
                // SAFETY: a storage of the phantom's card, which is memory of this process, and nobody computes there.
                unsafe { std::ptr::write_bytes(start as *mut u8, 0, bytes as usize) };
            }
            Ok(true)
        })?;
        Ok(())
    }

    /// Small gradients of parameters whose value is not known are zero.
    fn clear_gradients(&self, parameters: &Bound<'_, PyList>) -> PyResult<()> {
        let nothing = PyTuple::empty(parameters.py());
        for parameter in parameters.iter() {
            if self.tensors.elements(&parameter)? <= self.elements {
                self.clear(&nothing, &self.tensors.gradient(&parameter)?)?;
            }
        }
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
        if args.len() != 2 || !self.tensors.is_count(&count)? {
            return Ok(false);
        }
        let (start, number) = (self.tensors.address(&count)? as *mut i64, number?);
        // SAFETY: an element of the phantom's card, which is memory of this process, and nobody computes there.
        unsafe { start.write(start.read().wrapping_add(number)) };
        Ok(true)
    }

    /// Where tensors begin, in order.
    fn addresses(&self, values: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let mut found = Vec::new();
        self.each(values, &mut |tensor| {
            let is_ordinary = self.tensors.is_ordinary(tensor)?;
            if is_ordinary || (self.tensors.is_strided(tensor)? && !self.is_wrapper(tensor)?) {
                found.push(self.tensors.address(tensor)?);
            }
            Ok(true)
        })?;
        found.sort_unstable();
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
        if self.tensors.is_tensor(value) {
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
