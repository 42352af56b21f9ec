//! What is asked of torch, and how a tensor is read: by the attributes that Python code would use.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyTuple};

/// Objects of torch that are needed all the time.
pub(crate) struct Torch {
    tensor: Py<PyAny>,
    /// Classes of tensors that nobody has made his own.
    plain: Vec<usize>,
    strided: Py<PyAny>,
    disable: Py<PyAny>,
    is_mode_on: Py<PyAny>,
    sequence: Py<PyAny>,
    is_autocast: Py<PyAny>,
    is_grad_enabled: Py<PyAny>,
    /// `notes.storages`: the parts of a tensor that is not an ordinary one.
    storages: Py<PyAny>,
    parameter: Py<PyAny>,
    float32: Py<PyAny>,
    int64: Py<PyAny>,
    autocast_dtype: Py<PyAny>,
}

impl Torch {
    pub(crate) fn new(
        py: Python<'_>,
        plain: &Bound<'_, PyFrozenSet>,
        storages: Py<PyAny>,
    ) -> PyResult<Torch> {
        let torch = py.import("torch")?;
        let inner = torch.getattr("_C")?;
        Ok(Torch {
            tensor: torch.getattr("Tensor")?.unbind(),
            plain: plain.iter().map(|class| class.as_ptr() as usize).collect(),
            strided: torch.getattr("strided")?.unbind(),
            is_mode_on: inner.getattr("_is_torch_function_mode_enabled")?.unbind(),
            disable: inner.getattr("DisableTorchFunction")?.unbind(),
            sequence: inner.getattr("_autograd")?.getattr("_get_sequence_nr")?.unbind(),
            is_autocast: torch.getattr("is_autocast_enabled")?.unbind(),
            is_grad_enabled: torch.getattr("is_grad_enabled")?.unbind(),
            storages,
            parameter: torch.getattr("nn")?.getattr("Parameter")?.unbind(),
            int64: torch.getattr("int64")?.unbind(),
            float32: torch.getattr("float32")?.unbind(),
            autocast_dtype: torch.getattr("get_autocast_dtype")?.unbind(),
        })
    }

    pub(crate) fn is_tensor(&self, value: &Bound<'_, PyAny>) -> bool {
        // SAFETY: both are types, alive while `self` and `value` are.
        unsafe {
            ffi::PyType_IsSubtype(ffi::Py_TYPE(value.as_ptr()), self.tensor.as_ptr().cast()) != 0
        }
    }

    fn is_plain(&self, value: &Bound<'_, PyAny>) -> bool {
        self.plain.contains(&(value.get_type_ptr() as usize))
    }

    /// Whether it is of torch's own class of tensors, and no parameter.
    pub(crate) fn is_bare(&self, value: &Bound<'_, PyAny>) -> bool {
        std::ptr::eq(value.get_type_ptr().cast(), self.tensor.as_ptr())
    }

    pub(crate) fn is_strided(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(tensor.getattr(intern!(tensor.py(), "layout"))?.is(&self.strided))
    }

    /// Whether its class is torch's own and its elements lie in one storage.
    pub(crate) fn is_ordinary(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.is_plain(tensor) && self.is_strided(tensor)?)
    }

    /// What of a tensor lies on the card: itself, or the parts of a sparse or a distributed one.
    pub(crate) fn storages<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if self.is_ordinary(tensor)? {
            return Ok(vec![tensor.clone()]);
        }
        self.storages.bind(tensor.py()).call1((tensor,))?.extract()
    }

    /// Runs something that no function mode sees.
    pub(crate) fn undisturbed<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<T> {
        if !self.is_mode_on.bind(py).call0()?.is_truthy()? {
            return work();
        }
        let guard = self.disable.bind(py).call0()?;
        guard.call_method0(intern!(py, "__enter__"))?;
        let result = work();
        guard.call_method1(intern!(py, "__exit__"), (py.None(), py.None(), py.None()))?;
        result
    }

    /// Autograd's number of the node that is made next in this thread.
    pub(crate) fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        self.sequence.bind(py).call0()?.extract()
    }

    pub(crate) fn is_autocast(&self, py: Python<'_>) -> PyResult<bool> {
        self.is_autocast.bind(py).call0()?.is_truthy()
    }

    /// Whether it is one whole number on the card, of 64 bits.
    pub(crate) fn is_count(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = value.py();
        Ok(self.is_plain(value)
            && value.getattr(intern!(py, "dtype"))?.is(&self.int64)
            && is_cuda(value)?
            && value.getattr(intern!(py, "ndim"))?.extract::<usize>()? == 0)
    }

    /// Bytes of the cast and id, for each argument that autocast may cast: a parameter in single precision.
    pub(crate) fn casts(&self, args: &Bound<'_, PyTuple>) -> PyResult<Vec<(u64, usize)>> {
        let py = args.py();
        let mut found = Vec::new();
        for arg in args.iter().filter(|arg| self.is_tensor(arg)) {
            let is_parameter = arg.is_instance(self.parameter.bind(py))?;
            if is_parameter && arg.getattr(intern!(py, "dtype"))?.is(&self.float32) {
                let dtype = self.autocast_dtype.bind(py).call1((intern!(py, "cuda"),))?;
                let size: u64 = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
                found.push((elements(&arg)? * size, arg.as_ptr() as usize));
            }
        }
        Ok(found)
    }

    pub(crate) fn is_grad_enabled(&self, py: Python<'_>) -> PyResult<bool> {
        self.is_grad_enabled.bind(py).call0()?.is_truthy()
    }
}

pub(crate) fn is_cuda(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    tensor.getattr(intern!(tensor.py(), "is_cuda"))?.is_truthy()
}

pub(crate) fn is_view(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    tensor.call_method0(intern!(tensor.py(), "_is_view"))?.is_truthy()
}

pub(crate) fn address(tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
    tensor.call_method0(intern!(tensor.py(), "data_ptr"))?.extract()
}

pub(crate) fn bytes(tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
    tensor.getattr(intern!(tensor.py(), "nbytes"))?.extract()
}

pub(crate) fn elements(tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
    tensor.call_method0(intern!(tensor.py(), "numel"))?.extract()
}

pub(crate) fn device(tensor: &Bound<'_, PyAny>) -> PyResult<u16> {
    let device: i32 = tensor.call_method0(intern!(tensor.py(), "get_device"))?.extract()?;
    Ok(device.max(0) as u16)
}

/// Where a tensor's storage begins, and its bytes.
pub(crate) fn storage(tensor: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
    let py = tensor.py();
    let storage = tensor.call_method0(intern!(py, "untyped_storage"))?;
    let start = storage.call_method0(intern!(py, "data_ptr"))?.extract()?;
    Ok((start, storage.call_method0(intern!(py, "nbytes"))?.extract()?))
}

/// Whether a function made it. A view whose base has changed in place cannot say, and was made.
pub(crate) fn is_made(tensor: &Bound<'_, PyAny>) -> bool {
    tensor.getattr(intern!(tensor.py(), "grad_fn")).map_or(true, |node| !node.is_none())
}

/// Its class of numbers and its sizes.
pub(crate) fn form<'py>(
    tensor: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let py = tensor.py();
    let shape = tensor.getattr(intern!(py, "shape"))?.cast_into::<PyTuple>()?;
    Ok((tensor.getattr(intern!(py, "dtype"))?, shape))
}
