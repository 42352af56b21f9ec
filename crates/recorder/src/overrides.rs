//! Torch's own Python code asks whether somebody overrides it, and then takes another way: not for our mode.

use std::cell::Cell;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyTuple};

use crate::border::Party;
use crate::stand_in::stands_for_theirs;
use crate::tensors::Tensors;

thread_local! {
    static HAS_MODE: Cell<bool> = const { Cell::new(false) };
}

/// This thread is in our mode from here on, or is no longer; whether it was.
#[pyfunction]
pub(crate) fn set_mode_of_thread(has_mode: bool) -> bool {
    HAS_MODE.replace(has_mode)
}

/// Whether our mode is the only one of this thread.
#[pyfunction]
pub(crate) fn is_mode_alone(py: Python<'_>) -> PyResult<bool> {
    static MODES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let modes = MODES.get_or_try_init(py, || modes(py))?;
    Ok(HAS_MODE.get() && modes.bind(py).call0()?.extract::<usize>()? == 1)
}

/// `torch._C._len_torch_function_stack`.
fn modes(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let inner = py.import("torch")?.getattr("_C")?;
    Ok(inner.getattr("_len_torch_function_stack")?.unbind())
}

/// Stands in the place of `has_torch_function` and the like.
#[pyclass(frozen, dict, weakref, module = "fathom_recorder")]
pub(crate) struct HasTorchFunction {
    party: Py<Party>,
    theirs: Py<PyAny>,
    /// `torch._C._is_torch_function_enabled`: whether classes of the user's override functions now.
    is_enabled: Py<PyAny>,
    /// `torch._C._disabled_torch_function_impl`, the override that is none.
    disabled: Py<PyAny>,
    tensors: Tensors,
    /// Whether tensors are given in a list.
    is_list: bool,
}

#[pymethods]
impl HasTorchFunction {
    #[new]
    fn new(
        py: Python<'_>,
        party: Py<Party>,
        theirs: Py<PyAny>,
        plain: &Bound<'_, pyo3::types::PyFrozenSet>,
        is_list: bool,
    ) -> PyResult<HasTorchFunction> {
        let inner = py.import("torch")?.getattr("_C")?;
        let is_enabled = inner.getattr("_is_torch_function_enabled")?.unbind();
        let disabled = inner.getattr("_disabled_torch_function_impl")?.unbind();
        let tensors = Tensors::new(py, plain, py.None())?;
        Ok(HasTorchFunction { party, theirs, is_enabled, disabled, tensors, is_list })
    }

    #[pyo3(signature = (*values))]
    fn __call__<'py>(&self, values: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = values.py();
        match self.party.get().hold(py, "has_torch_function", || self.answer(values))?.flatten() {
            Some(answer) => Ok(PyBool::new(py, answer).to_owned().into_any()),
            None => self.theirs.bind(py).call1(values),
        }
    }
}

stands_for_theirs!(HasTorchFunction:);

impl HasTorchFunction {
    /// What theirs would say without our mode; `None` if that is not the only one.
    fn answer(&self, values: &Bound<'_, PyTuple>) -> PyResult<Option<bool>> {
        if !is_mode_alone(values.py())? {
            return Ok(None);
        }
        if !self.is_list {
            let mut found = values.iter();
            return found.try_fold(false, |is, value| Ok(is || self.overrides(&value)?)).map(Some);
        }
        for value in values.get_item(0)?.try_iter()? {
            if self.overrides(&value?)? {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// Whether the class of a value overrides functions.
    fn overrides(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.tensors.is_plain(value) || value.is_none() {
            return Ok(false);
        }
        let py = value.py();
        let own = value.getattr_opt(intern!(py, "__torch_function__"))?;
        let has_own = own.is_some_and(|own| !own.is(&self.disabled));
        Ok(has_own && self.is_enabled.bind(py).call0()?.is_truthy()?)
    }
}
