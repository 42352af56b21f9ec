//! The lists of modules that Python keeps.

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::texts::Text;

/// `Modules.paths` and `Modules.classes`: what is in them stays as it is.
pub(crate) struct Modules {
    pub(crate) paths: Py<PyList>,
    pub(crate) classes: Py<PyList>,
}

impl Modules {
    pub(crate) fn path(&self, py: Python<'_>, module: u32) -> PyResult<String> {
        Text::str(&self.paths.bind(py).get_item(module as usize)?)
    }

    /// Path and class of each module from this number on.
    pub(crate) fn from(&self, py: Python<'_>, first: usize) -> PyResult<Vec<(String, String)>> {
        let (paths, classes) = (self.paths.bind(py), self.classes.bind(py));
        let text = |list: &Bound<'_, PyList>, at: usize| Text::str(&list.get_item(at)?);
        let new = first..paths.len().min(classes.len());
        new.map(|at| Ok((text(paths, at)?, text(classes, at)?))).collect()
    }
}
