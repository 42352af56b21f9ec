//! What stands in the place of a function of theirs, and what is handed to them to be called.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::attempt::Attempt;
use crate::border::{Party, call};
use crate::stand_in::stands_for_theirs;

/// A function of theirs with ours around it: `before(args, kwargs)`, then theirs, then
/// `after(what before gave, args, kwargs, result, error)`. It has no frame: neither tracebacks nor stacks show it.
#[pyclass(frozen, dict, weakref, module = "fathom_recorder")]
pub(crate) struct Around {
    party: Py<Party>,
    places: [String; 2],
    theirs: Py<PyAny>,
    before: Option<Py<PyAny>>,
    after: Option<Py<PyAny>>,
}

#[pymethods]
impl Around {
    #[new]
    fn new(
        party: Py<Party>,
        place: &str,
        theirs: Py<PyAny>,
        before: Option<Py<PyAny>>,
        after: Option<Py<PyAny>>,
    ) -> Around {
        let places = [format!("before {place}"), format!("after {place}")];
        Around { party, places, theirs, before, after }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let before = || match &self.before {
            Some(before) => call(before.bind(py), &(args, kwargs).into_pyobject(py)?, None),
            None => Ok(py.None().into_bound(py)),
        };
        let after = |given, result: &PyResult<Bound<'py, PyAny>>| {
            let Some(after) = &self.after else { return Ok(()) };
            let (result, error) = match result {
                Ok(result) => (Some(result), None),
                Err(error) => (None, Some(error.value(py))),
            };
            let said = (given, args, kwargs, result, error).into_pyobject(py)?;
            call(after.bind(py), &said, None).map(drop)
        };
        let theirs = || self.theirs.bind(py).call(args, kwargs);
        let [first, last] = &self.places;
        self.party.get().across(py, [first, last], before, theirs, after)
    }
}

/// A function of theirs that runs in a context of ours, which `choose(args, kwargs)` gives, or in none.
#[pyclass(frozen, dict, weakref, module = "fathom_recorder")]
pub(crate) struct Within {
    party: Py<Party>,
    place: String,
    theirs: Py<PyAny>,
    choose: Py<PyAny>,
}

#[pymethods]
impl Within {
    #[new]
    fn new(party: Py<Party>, place: String, theirs: Py<PyAny>, choose: Py<PyAny>) -> Within {
        Within { party, place, theirs, choose }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, party) = (args.py(), self.party.get());
        let mut entered = None;
        let enter = || {
            let chosen = call(self.choose.bind(py), &(args, kwargs).into_pyobject(py)?, None)?;
            if !chosen.is_none() {
                chosen.call_method0(intern!(py, "__enter__"))?;
                entered = Some(chosen);
            }
            Ok(())
        };
        // Whatever comes between, what was entered is left.
        let arrived = party.hold(py, &self.place, enter);
        let result = arrived.and_then(|_| self.theirs.bind(py).call(args, kwargs));
        if let Some(context) = entered {
            let nothing = (py.None(), py.None(), py.None());
            party.hold(py, &self.place, || {
                context.call_method1(intern!(py, "__exit__"), nothing).map(drop)
            })?;
        }
        result
    }
}

static IDS: AtomicU64 = AtomicU64::new(1);

/// Ours in the place of theirs, which ours calls itself. If ours fails, theirs is called as it would have been, unless it
/// was called already: then what came of it counts.
#[pyclass(frozen, dict, weakref, module = "fathom_recorder")]
pub(crate) struct Instead {
    id: u64,
    party: Py<Party>,
    place: String,
    theirs: Py<PyAny>,
    ours: Py<PyAny>,
}

/// Theirs, as it is handed to ours.
#[pyclass(frozen, weakref, module = "fathom_recorder")]
pub(crate) struct Theirs {
    id: u64,
    theirs: Py<PyAny>,
}

#[pymethods]
impl Theirs {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Attempt::call_theirs(self.id, self.theirs.bind(args.py()), args, kwargs)
    }

    /// Another function of theirs, called in its place: its errors are theirs as well.
    fn like(&self, other: Py<PyAny>) -> Theirs {
        Theirs { id: self.id, theirs: other }
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.theirs.bind(py).getattr(name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.theirs)
    }
}

#[pymethods]
impl Instead {
    /// `make(theirs)` gives ours.
    #[new]
    fn new(
        py: Python<'_>,
        party: Py<Party>,
        place: String,
        theirs: Py<PyAny>,
        make: &Bound<'_, PyAny>,
    ) -> PyResult<Instead> {
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let ours = make.call1((Theirs { id, theirs: theirs.clone_ref(py) },))?.unbind();
        Ok(Instead { id, party, place, theirs, ours })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, party) = (args.py(), self.party.get());
        let theirs = self.theirs.bind(py);
        if party.is_over() {
            return theirs.call(args, kwargs);
        }
        let ours = || call(self.ours.bind(py), args, kwargs);
        Attempt::begin(self.id, args, kwargs)
            .instead(py, (party, &self.place), ours, || theirs.call(args, kwargs))
    }
}

stands_for_theirs!(Around: before, after);
stands_for_theirs!(Within: choose);
stands_for_theirs!(Instead: ours);

/// Something of ours that they call: it answers nothing if it fails.
#[pyclass(frozen, weakref, module = "fathom_recorder")]
pub(crate) struct Callback {
    party: Py<Party>,
    place: String,
    ours: Py<PyAny>,
}

#[pymethods]
impl Callback {
    #[new]
    fn new(party: Py<Party>, place: String, ours: Py<PyAny>) -> Callback {
        Callback { party, place, ours }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, party) = (args.py(), self.party.get());
        if party.is_over() {
            return Ok(None);
        }
        party.hold(py, &self.place, || call(self.ours.bind(py), args, kwargs))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.party)?;
        visit.call(&self.ours)
    }
}
