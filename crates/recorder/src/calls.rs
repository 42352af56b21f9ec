//! Calls of modules: what is allocated in one belongs to it.

use std::sync::Mutex;

use notes::parts::PartNumber;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::border::{Party, call};
use crate::hash::Set;
use crate::lock::lock;
use crate::note_taker::NoteTaker;
use crate::stand_in::stands_for_theirs;

const PLACES: [&str; 2] = ["before a module", "after a module"];

/// Stands in the place of `nn.Module.__call__`.
#[pyclass(frozen, dict, weakref, module = "fathom_recorder")]
pub(crate) struct ModuleCall {
    party: Py<Party>,
    theirs: Py<PyAny>,
    note_taker: Py<NoteTaker>,
    /// `recorder.Recorder`.
    recorder: Py<PyAny>,
    /// Modules whose arguments were looked at.
    seen: Mutex<Set<u32>>,
}

/// What to go back to when a module is left.
#[derive(Clone, Copy)]
pub(crate) struct Outside {
    pub(crate) part: PartNumber,
    /// The frame that called the module around, by its address.
    pub(crate) caller: usize,
}

/// A module that was entered.
struct Within {
    number: u32,
    outside: Outside,
    /// Whether it was called from outside of any module.
    is_model: bool,
}

#[pymethods]
impl ModuleCall {
    #[new]
    fn new(
        party: Py<Party>,
        theirs: Py<PyAny>,
        note_taker: Py<NoteTaker>,
        recorder: Py<PyAny>,
    ) -> ModuleCall {
        ModuleCall { party, theirs, note_taker, recorder, seen: Mutex::default() }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        self.party.get().across(
            py,
            PLACES,
            || self.enter(args, kwargs),
            || self.theirs.bind(py).call(args, kwargs),
            |within, result| self.leave(py, within, result),
        )
    }
}

stands_for_theirs!(ModuleCall: recorder);

impl ModuleCall {
    fn enter(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Within> {
        let (py, note_taker) = (args.py(), self.note_taker.get());
        let module = args.get_item(0)?;
        let is_model = note_taker.module() == 0;
        if is_model {
            let enter = self.recorder.bind(py).getattr(intern!(py, "enter_model"))?;
            call(&enter, &(args, kwargs).into_pyobject(py)?, None)?;
        }
        let (number, outside) = note_taker.enter_module(&module)?;
        if lock(&self.seen).insert(number) {
            let look = self.recorder.bind(py).getattr(intern!(py, "look_at_module"))?;
            call(&look, &(number, args, kwargs).into_pyobject(py)?, None)?;
        }
        if note_taker.is_in_backward() {
            let note = self.recorder.bind(py).getattr(intern!(py, "note_recomputed"))?;
            call(&note, &(number,).into_pyobject(py)?, None)?;
        }
        Ok(Within { number, outside, is_model })
    }

    fn leave(
        &self,
        py: Python<'_>,
        within: Within,
        result: &PyResult<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let note_taker = self.note_taker.get();
        note_taker.leave_module(py, within.outside, result.as_ref().ok())?;
        if within.is_model
            && let Ok(result) = result
        {
            let leave = self.recorder.bind(py).getattr(intern!(py, "leave_model"))?;
            call(&leave, &(within.number, result).into_pyobject(py)?, None)?;
        }
        Ok(())
    }
}
