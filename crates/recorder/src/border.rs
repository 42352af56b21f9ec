//! The border between our code and theirs: PyTorch's and the user's script's.
//!
//! Whatever calls into ours comes through here. Theirs is called once, with what it was given, and its result or its error
//! goes back as it is; ours, before and after it, is contained: an error or a panic of ours is noted and never raised.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::faults;

/// Part of ours that takes part in the script, such as the recording: what goes wrong in it may end it, and only it.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct Party {
    /// `border.Party.judge`: notes an error of ours; `False` if the error is not ours.
    judge: Py<PyAny>,
    is_over: AtomicBool,
}

#[pymethods]
impl Party {
    #[new]
    fn new(judge: Py<PyAny>) -> Party {
        Party { judge, is_over: AtomicBool::new(false) }
    }

    /// Nothing more is asked of it.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    #[getter]
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// The judge knows the party, and what the party has put into the script knows both.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.judge)
    }

    /// `ours(*args, **kwargs)`, or `None` if something goes wrong in it.
    #[pyo3(signature = (place, ours, *args, **kwargs))]
    fn contain<'py>(
        &self,
        place: &str,
        ours: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.hold(args.py(), place, || call(ours, args, kwargs))
    }
}

impl Party {
    /// Does something of ours; `None` if it goes wrong. An error is one that is not ours, such as Ctrl-C, which comes
    /// wherever Python is.
    pub(crate) fn hold<T>(
        &self,
        py: Python<'_>,
        place: &str,
        ours: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        let tried = catch_unwind(AssertUnwindSafe(|| {
            faults::check(place, "begin")?;
            let done = ours()?;
            faults::check(place, "end")?;
            Ok(done)
        }));
        match tried {
            Ok(Ok(done)) => Ok(Some(done)),
            Ok(Err(error)) => self.judge(py, place, error),
            Err(panic) => self.judge(py, place, PyRuntimeError::new_err(words(&*panic))),
        }
    }

    #[cold]
    fn judge<T>(&self, py: Python<'_>, place: &str, error: PyErr) -> PyResult<Option<T>> {
        match self
            .judge
            .bind(py)
            .call1((place, error.value(py)))
            .and_then(|is_ours| is_ours.is_truthy())
        {
            Ok(true) => Ok(None),
            Ok(false) => Err(error),
            Err(other) if other.is_instance_of::<PyException>(py) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Theirs, with ours before and after it. What is before gives what comes after something to go by; if it fails,
    /// nothing comes after.
    pub(crate) fn across<'py, T>(
        &self,
        py: Python<'py>,
        place: [&str; 2],
        before: impl FnOnce() -> PyResult<T>,
        theirs: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
        after: impl FnOnce(T, &PyResult<Bound<'py, PyAny>>) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let before = if self.is_over() { None } else { self.hold(py, place[0], before)? };
        let result = theirs();
        if let Some(before) = before
            && let Err(arrived) = self.hold(py, place[1], || after(before, &result))
        {
            // As Python does where an error is being handled already.
            if let Err(error) = result {
                arrived.set_context(py, Some(error));
            }
            return Err(arrived);
        }
        result
    }
}

/// Calls a function of ours in Python. A panic in ours below it is an error like any other here; PyO3 itself would print
/// it and unwind.
pub(crate) fn call<'py>(
    ours: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ours.py();
    let kwargs = kwargs.map_or(std::ptr::null_mut(), |kwargs| kwargs.as_ptr());
    // SAFETY: all are alive; the result is a new reference, or null and an error.
    let result = unsafe { ffi::PyObject_Call(ours.as_ptr(), args.as_ptr(), kwargs) };
    if result.is_null()
        && let Some(panic) = taken_panic(py)
    {
        return Err(panic);
    }
    // SAFETY: as above.
    unsafe { Bound::from_owned_ptr_or_err(py, result) }
}

#[cold]
fn taken_panic(py: Python<'_>) -> Option<PyErr> {
    // SAFETY: the interpreter is ours, and an error is set; its type is borrowed.
    let is_panic =
        unsafe { ffi::PyErr_Occurred().cast() == py.get_type::<PanicException>().as_type_ptr() };
    if !is_panic {
        return None;
    }
    let (mut kind, mut value, mut trace) = Default::default();
    // SAFETY: takes the error that is set: three new references, of which the last may be null.
    #[allow(deprecated)]
    let (_kind, value, _trace) = unsafe {
        ffi::PyErr_Fetch(&mut kind, &mut value, &mut trace);
        let owned = |pointer| Bound::from_owned_ptr_or_opt(py, pointer);
        (owned(kind), owned(value), owned(trace))
    };
    let text = value.map(|value| value.to_string()).unwrap_or_default();
    Some(PyRuntimeError::new_err(format!("panicked: {text}{}", faults::place_of_panic())))
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text.as_str(),
        _ => "in the recorder",
    };
    format!("panicked: {text}{}", faults::place_of_panic())
}
