//! Hooks before nodes. Torch makes a handle for each, in Python: ours, of which there are thousands, need none.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::border::Party;
use crate::graph::EnterNode;
use crate::note_taker::NoteTaker;

/// Takes the place of torch's function that adds a hook to those of a node, and answers with them and a handle.
#[pyclass(frozen, dict, module = "fathom_recorder")]
pub(crate) struct RegisterHook {
    party: Py<Party>,
    inner: Py<PyAny>,
    /// `collections.OrderedDict`, which torch takes.
    dictionary: Py<PyAny>,
}

#[pymethods]
impl RegisterHook {
    #[new]
    fn new(py: Python<'_>, party: Py<Party>, inner: Py<PyAny>) -> PyResult<RegisterHook> {
        let dictionary = py.import("collections")?.getattr("OrderedDict")?.unbind();
        Ok(RegisterHook { party, inner, dictionary })
    }

    fn __call__<'py>(
        &self,
        hooks: &Bound<'py, PyAny>,
        hook: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = hook.py();
        if hooks.is_none() && hook.is_instance_of::<EnterNode>() {
            let first = self.party.get().hold(py, "a hook", || {
                let hooks = self.dictionary.bind(py).call0()?;
                hooks.set_item(intern!(py, "fathom"), hook)?;
                Ok((&hooks, &hooks).into_pyobject(py)?.into_any())
            })?;
            if let Some(first) = first {
                return Ok(first);
            }
        }
        self.inner.bind(py).call1((hooks, hook))
    }
}

#[pymethods]
impl NoteTaker {
    /// Takes the hooks away again: ours by their dictionary, or by torch's handle.
    fn remove(&self, handles: &Bound<'_, PyList>) -> PyResult<()> {
        let py = handles.py();
        for handle in handles.iter() {
            if handle.is_instance_of::<PyDict>() {
                handle.del_item(intern!(py, "fathom"))?;
            } else {
                handle.call_method0(intern!(py, "remove"))?;
            }
        }
        Ok(())
    }
}
