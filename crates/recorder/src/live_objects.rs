//! Finds objects by their class, among all that Python's collector knows: there may be millions.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::hash::Set;

/// From old to young: a copy comes after its model.
const GENERATIONS: [u8; 3] = [2, 1, 0];

/// Objects of exactly these classes, the oldest first.
///
/// The collector's list holds what other threads are still building, such as a tuple that Python is filling from a
/// generator: it fails there if anybody else holds that tuple. So the list is gone before another thread can run, which
/// a loop in Python could not promise.
#[pyfunction]
pub(crate) fn live_objects<'py>(
    py: Python<'py>,
    classes: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let classes: Set<usize> =
        classes.try_iter()?.map(|class| Ok(class?.as_ptr() as usize)).collect::<PyResult<_>>()?;
    let get_objects = py.import(intern!(py, "gc"))?.getattr(intern!(py, "get_objects"))?;
    let mut found = Vec::new();
    for generation in GENERATIONS {
        let given = PyTuple::new(py, [generation])?;
        let all = get_objects.call1(given)?.cast_into::<PyList>()?;
        let is_wanted =
            |thing: &Bound<'py, PyAny>| classes.contains(&(thing.get_type_ptr() as usize));
        found.extend(all.iter().filter(is_wanted));
    }
    Ok(found)
}
