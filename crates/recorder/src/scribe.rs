//! Notes which part of the script runs, and what its tensors are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyTuple};

use crate::graph::FieldsOfTypes;
use crate::hash::Map;
use crate::local;
use crate::lock::lock;
use crate::parts::{Part, PartNumber};
use crate::pen::Pen;
use crate::phantom::Phantom;
use crate::said::category;
use crate::sources::{Sources, Whose};
use crate::stacks;
use crate::state::{Area, Function, Modules, State};
use crate::torch::Torch;

static SCRIBES: AtomicU64 = AtomicU64::new(1);

/// One for each recorder.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct Scribe {
    pub(crate) id: u64,
    pub(crate) torch: Torch,
    pub(crate) phantom: Option<Phantom>,
    /// The code of our own wrapper of modules: what lies beyond is known.
    boundary: Py<PyAny>,
    /// Called with the serial number of each part: as a text, if torch attaches it to its events.
    announce: Py<PyAny>,
    is_text: bool,
    /// Functions of torch, and their numbers; by value, as some are made anew for each call.
    functions: Py<PyDict>,
    /// `functions.describe`: name, whether it is a factory, whether its arguments are looked at.
    describe: Py<PyAny>,
    /// `graph.fields_of`.
    pub(crate) fields_of: Py<PyAny>,
    /// `areas.layout`.
    pub(crate) layout: Py<PyAny>,
    pub(crate) fields: Mutex<FieldsOfTypes>,
    pub(crate) pens: Mutex<Map<u16, Pen>>,
    state: Mutex<State>,
}

impl Scribe {
    /// No code of Python's may run while it is locked: this thread could come back here.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// From here on this thread's events belong to this part.
    pub(crate) fn begin(&self, py: Python<'_>, part: PartNumber) -> PyResult<u64> {
        let area = local::with(self.id, |local| local.area);
        let mut state = self.lock();
        let serial = state.parts.begin(part);
        if area != 0 {
            state.areas.insert(serial, area);
        }
        drop(state);
        if let Some(phantom) = &self.phantom {
            phantom.begin(serial);
        }
        let announce = self.announce.bind(py);
        if self.is_text {
            announce.call1((serial.to_string(),))
        } else {
            announce.call1((serial,))
        }?;
        Ok(serial)
    }

    fn local_part(&self) -> (PartNumber, Part) {
        let number = local::with(self.id, |local| local.part);
        (number, self.lock().parts.get(number))
    }

    /// The number of a function.
    fn function(&self, function: &Bound<'_, PyAny>) -> PyResult<u32> {
        let numbers = self.functions.bind(function.py());
        if let Some(number) = numbers.get_item(function)? {
            return number.extract();
        }
        let described = self.describe.bind(function.py()).call1((function,))?;
        let (name, is_factory, is_looked_at) = described.extract()?;
        let mut state = self.lock();
        state.functions.push(Function { name, is_factory, is_looked_at });
        let number = (state.functions.len() - 1) as u32;
        drop(state);
        numbers.set_item(function, number)?;
        Ok(number)
    }

    /// A function of torch is called by the code that runs: whether its arguments are worth a look, and whether
    /// autocast is on.
    pub(crate) fn enter_function(
        &self,
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<(bool, bool)> {
        let number = self.function(function)?;
        let sequence = self.torch.sequence(py)?;
        let walk = stacks::walk(py, &self.boundary, 0)?;
        let (_, outer) = self.local_part();
        let mut state = self.lock();
        let stack = state.stacks.number(walk, outer.stack);
        let part = state.parts.number(Part { function: number, stack, ..outer });
        let is_looked_at = state.functions[number as usize].is_looked_at;
        drop(state);
        local::with(self.id, |local| local.begin_function(sequence, part, number));
        let serial = self.begin(py, part)?;
        let is_autocast = self.torch.is_autocast(py)?;
        if is_autocast {
            let casts = self.torch.casts(args)?;
            if !casts.is_empty() {
                self.lock().casts.insert(serial, casts);
            }
        }
        Ok((is_looked_at, is_autocast))
    }

    /// Called before the function is left: its events come before what is said of its result.
    pub(crate) fn note_result(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.torch.is_tensor(result) {
            self.tensor(result)?;
            return self.note_input(result);
        }
        if let Ok(tuple) = result.cast::<PyTuple>() {
            return tuple
                .iter()
                .filter(|item| self.torch.is_tensor(item))
                .try_for_each(|item| self.tensor(&item));
        }
        if let Ok(list) = result.cast::<PyList>() {
            return list
                .iter()
                .filter(|item| self.torch.is_tensor(item))
                .try_for_each(|item| self.tensor(&item));
        }
        Ok(())
    }
}

#[pymethods]
impl Scribe {
    #[new]
    fn new(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Scribe> {
        let get = |name: &str| settings.as_any().get_item(name);
        let lists = |name: &str| Ok::<_, PyErr>(get(name)?.cast_into::<PyList>()?.unbind());
        let whose = get("whose")?.cast_into::<Whose>()?;
        let sources = Sources::new(whose.get().clone());
        let modules = Modules { paths: lists("paths")?, classes: lists("classes")? };
        let plain = get("plain")?.cast_into::<PyFrozenSet>()?;
        Ok(Scribe {
            id: SCRIBES.fetch_add(1, Ordering::Relaxed),
            torch: Torch::new(py, &plain, get("storages")?.unbind())?,
            phantom: Phantom::find(),
            boundary: get("boundary")?.unbind(),
            announce: get("announce")?.unbind(),
            is_text: get("is_text")?.extract()?,
            functions: PyDict::new(py).unbind(),
            describe: get("describe")?.unbind(),
            fields_of: get("fields_of")?.unbind(),
            layout: get("layout")?.unbind(),
            fields: Mutex::default(),
            pens: Mutex::default(),
            state: Mutex::new(State::new(modules, sources)),
        })
    }

    // -- parts of the script ------------------------------------------------------------------------

    /// This thread's part begins again: the serial number of that.
    pub(crate) fn resume(&self, py: Python<'_>) -> PyResult<u64> {
        self.begin(py, local::with(self.id, |local| local.part))
    }

    /// This thread is outside of modules, functions and nodes for now.
    fn step_out(&self, py: Python<'_>) -> PyResult<u64> {
        self.begin(py, crate::parts::NOTHING)
    }

    /// The part that this thread is in.
    fn part(&self) -> PartNumber {
        local::with(self.id, |local| local.part)
    }

    /// This thread is in another part.
    fn enter(&self, py: Python<'_>, part: PartNumber) -> PyResult<u64> {
        local::with(self.id, |local| local.part = part);
        self.begin(py, part)
    }

    /// The number of the module that this thread is in.
    fn module(&self) -> u32 {
        self.local_part().1.module
    }

    /// A module is called by the caller of our caller; gives the part to go back to.
    fn enter_module(&self, py: Python<'_>, module: u32) -> PyResult<PartNumber> {
        let walk = stacks::walk(py, &self.boundary, 1)?;
        let (number, outer) = self.local_part();
        let mut state = self.lock();
        let stack = state.stacks.number(walk, outer.stack);
        let part = state.parts.number(Part { module, function: 0, stack, node: outer.node });
        drop(state);
        self.enter(py, part)?;
        Ok(number)
    }

    /// What distributed training does from here on; gives what it did before.
    fn enter_area(
        &self,
        py: Python<'_>,
        kind: Option<&str>,
        name: Option<&str>,
        area: &str,
    ) -> PyResult<u32> {
        let kind = kind.map(category).transpose()?;
        let mut state = self.lock();
        let word = state.words.of(area);
        let name = kind.zip(name).map(|(kind, name)| (kind, state.words.of(name)));
        let number = state.area(Area { name, area: word });
        drop(state);
        let outer = local::with(self.id, |local| std::mem::replace(&mut local.area, number));
        self.resume(py)?;
        Ok(outer)
    }

    fn leave_area(&self, py: Python<'_>, outer: u32) -> PyResult<u64> {
        local::with(self.id, |local| local.area = outer);
        self.resume(py)
    }
}
