//! What is asked of torch.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::tensors::Tensors;

/// Objects of torch that are needed all the time.
pub(crate) struct Torch {
    disable: Py<PyAny>,
    is_mode_on: Py<PyAny>,
    sequence: Py<PyAny>,
    is_autocast: Py<PyAny>,
    is_grad_enabled: Py<PyAny>,
    parameter: Py<PyAny>,
    float32: Py<PyAny>,
    autocast_dtype: Py<PyAny>,
}

impl Torch {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Torch> {
        let torch = py.import("torch")?;
        let inner = torch.getattr("_C")?;
        Ok(Torch {
            is_mode_on: inner.getattr("_is_torch_function_mode_enabled")?.unbind(),
            disable: inner.getattr("DisableTorchFunction")?.unbind(),
            sequence: inner.getattr("_autograd")?.getattr("_get_sequence_nr")?.unbind(),
            is_autocast: torch.getattr("is_autocast_enabled")?.unbind(),
            is_grad_enabled: torch.getattr("is_grad_enabled")?.unbind(),
            parameter: torch.getattr("nn")?.getattr("Parameter")?.unbind(),
            float32: torch.getattr("float32")?.unbind(),
            autocast_dtype: torch.getattr("get_autocast_dtype")?.unbind(),
        })
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

    pub(crate) fn is_grad_enabled(&self, py: Python<'_>) -> PyResult<bool> {
        self.is_grad_enabled.bind(py).call0()?.is_truthy()
    }

    /// Bytes of the cast and id, for each argument that autocast may cast: a parameter in single precision.
    pub(crate) fn casts(
        &self,
        tensors: &Tensors,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<Vec<(u64, usize)>> {
        let py = args.py();
        let mut found = Vec::new();
        for arg in args.iter().filter(|arg| tensors.is_tensor(arg)) {
            let is_parameter = arg.is_instance(self.parameter.bind(py))?;
            if is_parameter && tensors.dtype(&arg)?.is(&self.float32) {
                let dtype = self.autocast_dtype.bind(py).call1((intern!(py, "cuda"),))?;
                let size: u64 = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
                found.push((tensors.elements(&arg)? * size, arg.as_ptr() as usize));
            }
        }
        Ok(found)
    }
}
