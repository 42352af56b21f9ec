//! What everything that stands in the place of a function of theirs has in common with a function.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// What everything that stands in the place of a function has: it looks like the function, is a method in classes, is
/// copied and pickled as functions are, and its references are seen by Python's collector.
macro_rules! stands_for_theirs {
    ($kind:ident: $($field:ident),*) => {
        #[pymethods]
        impl $kind {
            fn __get__<'py>(
                slf: &Bound<'py, Self>,
                object: &Bound<'py, PyAny>,
                _class: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::stand_in::method(slf.as_any(), object)
            }

            fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
                self.theirs.bind(py).getattr(name)
            }

            fn __copy__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
                slf
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::stand_in::by_name(self.theirs.bind(py))
            }

            fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
                // The collector may come while the object is being made: `__dict__` is allocated before this is filled.
                if !$crate::stand_in::is_filled(&self.theirs) {
                    return Ok(());
                }
                $($crate::stand_in::visit_field(&self.$field, &visit)?;)*
                visit.call(&self.party)?;
                visit.call(&self.theirs)
            }
        }
    };
}

pub(crate) use stands_for_theirs;

/// A field that Python's collector has to know of.
pub(crate) trait Field {
    fn object(&self) -> Option<&Py<PyAny>>;
}

impl Field for Py<PyAny> {
    fn object(&self) -> Option<&Py<PyAny>> {
        Some(self)
    }
}

impl Field for Option<Py<PyAny>> {
    fn object(&self) -> Option<&Py<PyAny>> {
        self.as_ref()
    }
}

pub(crate) fn visit_field(field: &impl Field, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    field.object().map_or(Ok(()), |object| visit.call(object))
}

/// Whether a reference is there: objects begin as zeros.
pub(crate) fn is_filled(field: &Py<PyAny>) -> bool {
    // SAFETY: a reference is one pointer; read so that nobody concludes from its type that it cannot be null.
    unsafe { std::ptr::from_ref(field).cast::<usize>().read_volatile() != 0 }
}

/// How Python pickles a function: whoever reads it looks the name up, and gets what is there.
pub(crate) fn by_name<'py>(theirs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = theirs.py();
    let find = py.import("pkgutil")?.getattr("resolve_name")?;
    let name = format!("{}:{}", theirs.getattr("__module__")?, theirs.getattr("__qualname__")?);
    Ok((find, (name,)).into_pyobject(py)?.into_any())
}

/// What stands in a class is a method of its objects, as a function would be.
pub(crate) fn method<'py>(
    ours: &Bound<'py, PyAny>,
    object: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    static METHOD: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
    if object.is_none() {
        return Ok(ours.clone());
    }
    let py = ours.py();
    let kind = METHOD.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("types")?.getattr("MethodType")?.unbind())
    })?;
    kind.bind(py).call1((ours, object))
}
