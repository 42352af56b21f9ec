//! Calls in which ours decides when to call theirs: what came of theirs is remembered, so that it is called once and its
//! result or error is not lost, whatever ours does afterwards.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyTraceback, PyTuple};

use crate::border::Party;

/// What came of theirs: a result, or an error with its traceback, to which frames of ours are added on the way.
enum Outcome {
    Result(Py<PyAny>),
    Error(PyErr, Option<Py<PyTraceback>>),
}

impl Outcome {
    fn clone_ref(&self, py: Python<'_>) -> Outcome {
        match self {
            Outcome::Result(result) => Outcome::Result(result.clone_ref(py)),
            Outcome::Error(error, trace) => {
                Outcome::Error(error.clone_ref(py), trace.as_ref().map(|trace| trace.clone_ref(py)))
            }
        }
    }

    fn into_result<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Outcome::Result(result) => Ok(result.into_bound(py)),
            Outcome::Error(error, trace) => {
                error.set_traceback(py, trace.map(|trace| trace.into_bound(py)));
                Err(error)
            }
        }
    }
}

struct State {
    whose: u64,
    /// What theirs is to be called with.
    args: Py<PyTuple>,
    kwargs: Option<Py<PyDict>>,
    /// What came of theirs with these.
    outcome: Option<Outcome>,
    /// What came of theirs last, whatever it was called with.
    last: Option<Outcome>,
}

impl State {
    fn is_given(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> bool {
        let own = self.args.bind(py);
        let are_same = |(one, other): (Bound<'_, PyAny>, Bound<'_, PyAny>)| one.is(&other);
        let count = |kwargs: Option<&Bound<'_, PyDict>>| kwargs.map_or(0, PyDictMethods::len);
        let named = self.kwargs.as_ref().map(|kwargs| kwargs.bind(py));
        own.len() == args.len()
            && own.iter().zip(args.iter()).all(are_same)
            && count(named) == count(kwargs)
            && kwargs.into_iter().flatten().all(|(name, value)| {
                let known = named.and_then(|named| named.get_item(&name).ok().flatten());
                known.is_some_and(|known| known.is(&value))
            })
    }
}

thread_local! {
    /// The attempts of this thread, the innermost last.
    static ATTEMPTS: RefCell<Vec<State>> = const { RefCell::new(Vec::new()) };
}

pub(crate) struct Attempt(());

impl Drop for Attempt {
    fn drop(&mut self) {
        // What it holds is dropped outside: that may run Python code.
        let _dropped = ATTEMPTS.with_borrow_mut(Vec::pop);
    }
}

impl Attempt {
    /// Theirs was called with these arguments, and ours is to do it instead.
    pub(crate) fn begin(
        whose: u64,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Attempt {
        let (args, kwargs) = (args.clone().unbind(), kwargs.map(|kwargs| kwargs.clone().unbind()));
        ATTEMPTS.with_borrow_mut(|all| {
            all.push(State { whose, args, kwargs, outcome: None, last: None })
        });
        Attempt(())
    }

    /// What ours gives, which calls theirs by `call_theirs`; if ours fails, what came of theirs, or `theirs` now.
    pub(crate) fn instead<'py>(
        self,
        py: Python<'py>,
        (party, place): (&Party, &str),
        ours: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
        theirs: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = party.hold(py, place, || match ours() {
            Err(error) if self.has_raised(py, &error) => Ok(None),
            given => given.map(Some),
        })?;
        let state = |take: fn(&mut State) -> Option<Outcome>| {
            ATTEMPTS.with_borrow_mut(|all| all.last_mut().and_then(take))
        };
        match given {
            Some(Some(given)) => Ok(given),
            Some(None) => {
                state(|state| state.last.take()).map_or_else(theirs, |last| last.into_result(py))
            }
            None => {
                state(|state| state.outcome.take()).map_or_else(theirs, |done| done.into_result(py))
            }
        }
    }

    /// Calls theirs from ours.
    pub(crate) fn call_theirs<'py>(
        whose: u64,
        theirs: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = theirs.py();
        let result = theirs.call(args, kwargs);
        let outcome = match &result {
            Ok(result) => Outcome::Result(result.clone().unbind()),
            Err(error) => {
                Outcome::Error(error.clone_ref(py), error.traceback(py).map(Bound::unbind))
            }
        };
        let _dropped = ATTEMPTS.with_borrow_mut(|all| {
            // Ours may have kept theirs for later: then nobody waits for what comes of it.
            let attempt = all.iter_mut().rev().find(|attempt| attempt.whose == whose)?;
            let is_given = attempt.is_given(py, args, kwargs);
            let before = is_given.then(|| attempt.outcome.replace(outcome.clone_ref(py)));
            Some((before, attempt.last.replace(outcome)))
        });
        result
    }

    /// Whether this is the error that theirs raised.
    fn has_raised(&self, py: Python<'_>, error: &PyErr) -> bool {
        ATTEMPTS.with_borrow(|all| match all.last().map(|attempt| &attempt.last) {
            Some(Some(Outcome::Error(theirs, _))) => theirs.value(py).is(error.value(py)),
            _ => false,
        })
    }
}
