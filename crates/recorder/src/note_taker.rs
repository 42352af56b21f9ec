//! Notes which part of the script runs, and what its tensors are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

use notes::parts::{NOTHING, Part, PartNumber};
use notes::{Area, Function, State, local, metadata};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyTuple};

use crate::border::Party;
use crate::calls::Outside;
use crate::compiled::Compiled;
use crate::graph::FieldsOfTypes;
use crate::hash::Map;
use crate::history::History;
use crate::lock::Quiet;
use crate::modules::Modules;
use crate::phantom::Phantom;
use crate::sources::{FileOwner, Sources};
use crate::stacks::{self, Codes};
use crate::tensor_notes::category;
use crate::tensors::Tensors;
use crate::texts::Text;
use crate::torch::Torch;
use crate::writing::CardFile;

static SCRIBES: AtomicU64 = AtomicU64::new(1);

/// What is known of a function that is called.
pub(crate) struct Entered {
    /// Its arguments are worth a look.
    pub(crate) is_looked_at: bool,
    pub(crate) is_autocast: bool,
    /// It has allocated something before.
    pub(crate) allocates: bool,
}

/// One for each recorder.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct NoteTaker {
    pub(crate) id: u64,
    pub(crate) party: Py<Party>,
    pub(crate) torch: Torch,
    pub(crate) tensors: Tensors,
    pub(crate) phantom: Option<Phantom>,
    /// Called with the serial number of each part: as a text, if torch attaches it to its events.
    announce: Py<PyAny>,
    is_text: bool,
    /// Functions of torch, and their numbers; by value, as some are made anew for each call.
    functions: Py<PyDict>,
    /// `functions.describe`: name, whether it is a factory, whether its arguments are looked at.
    describe: Py<PyAny>,
    /// `Modules.number`, and those that have one, with weak references by their ids.
    number_of: Py<PyAny>,
    known_modules: Py<PyDict>,
    /// `graph.fields_of`.
    pub(crate) fields_of: Py<PyAny>,
    /// `areas.layout`.
    pub(crate) layout: Py<PyAny>,
    /// `facts.may_enlarge`.
    pub(crate) may_enlarge: Py<PyAny>,
    pub(crate) fields: Mutex<FieldsOfTypes>,
    pub(crate) history: Mutex<History>,
    pub(crate) writers: Mutex<Map<u16, CardFile>>,
    /// Code objects of all stacks.
    pub(crate) codes: Codes,
    pub(crate) modules: Modules,
    pub(crate) compiled: Compiled,
    pub(crate) sources: Mutex<Sources>,
    /// Functions and backward passes that all threads are in.
    pub(crate) calls: AtomicIsize,
    /// Backward passes that run.
    pub(crate) backwards: AtomicIsize,
    state: Quiet<State>,
}

impl NoteTaker {
    /// Works on what is known of the script. No code of Python's can run meanwhile, nor can the work ask for any.
    pub(crate) fn quietly<R: Send>(&self, work: impl FnOnce(&mut State) -> R + Send) -> R {
        self.state.with(work)
    }

    /// From here on this thread's events belong to this part.
    pub(crate) fn begin(&self, py: Python<'_>, part: PartNumber) -> PyResult<u64> {
        let (serial, text) = self.quietly(|state| {
            local::with(self.id, |local| {
                let serial = local.begin(&mut state.parts, part);
                state.begin_in_area(serial, local.area);
                (serial, local.text.clone())
            })
        });
        if let Some(phantom) = &self.phantom {
            phantom.begin(serial);
        }
        self.look_for_streams(py)?;
        let announce = self.announce.bind(py);
        if self.is_text {
            announce.call1((metadata::text(serial, text.as_deref()),))
        } else {
            announce.call1((serial,))
        }?;
        Ok(serial)
    }

    /// The number of a module that has one already.
    fn known_module(&self, module: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let known = self.known_modules.bind(module.py()).get_item(module.as_ptr() as usize)?;
        let Some(known) = known else { return Ok(None) };
        let known = known.cast_into::<PyTuple>()?;
        // Another one may have lived there.
        if !known.get_item(0)?.call0()?.is(module) {
            return Ok(None);
        }
        known.get_item(1)?.extract().map(Some)
    }

    fn local_part(&self) -> (PartNumber, Part) {
        let number = local::with(self.id, |local| local.part);
        (number, self.quietly(|state| state.parts.get(number)))
    }

    /// The number of a function.
    fn function(&self, function: &Bound<'_, PyAny>) -> PyResult<u32> {
        let numbers = self.functions.bind(function.py());
        if let Some(number) = numbers.get_item(function)? {
            return number.extract();
        }
        let described = self.describe.bind(function.py()).call1((function,))?;
        let (name, is_factory, is_looked_at): (Text, bool, bool) = described.extract()?;
        let name = name.0;
        let number = self.quietly(|state| {
            state.functions.push(Function { name, is_factory, is_looked_at, allocates: false });
            (state.functions.len() - 1) as u32
        });
        numbers.set_item(function, number)?;
        Ok(number)
    }

    /// A function of torch is called by the code that runs.
    pub(crate) fn enter_function(
        &self,
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<Entered> {
        let number = self.function(function)?;
        let sequence = self.torch.sequence(py)?;
        let (outer, caller) = local::with(self.id, |local| (local.part, local.caller));
        let walk = stacks::walk(py, caller)?;
        let (part, new, is_looked_at, allocates) = self.quietly(|state| {
            let outer = state.parts.get(outer);
            let (stack, new) = stacks::number(&mut state.stacks, &walk, outer.stack);
            let part = state.parts.number(Part { function: number, stack, ..outer });
            let Function { is_looked_at, allocates, .. } = state.functions[number as usize];
            (part, new, is_looked_at, allocates)
        });
        self.codes.keep(py, &walk, &new);
        local::with(self.id, |local| local.begin_function(sequence, part, number));
        let serial = self.begin(py, part)?;
        let is_autocast = self.torch.is_autocast(py)?;
        if is_autocast {
            let casts = self.torch.casts(&self.tensors, args)?;
            if !casts.is_empty() {
                self.quietly(|state| state.casts.insert(serial, casts));
            }
        }
        Ok(Entered { is_looked_at, is_autocast, allocates })
    }

    /// Called before the function is left: its events come before what is said of its result.
    pub(crate) fn note_result(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut whole = None;
        if self.tensors.is_tensor(result) {
            if self.tensor(result)? {
                whole = Some((result.as_ptr() as usize, self.tensors.bytes(result)?));
            }
            self.note_expected(result)?;
            self.note_input(result)?;
        } else if let Ok(tuple) = result.cast::<PyTuple>() {
            self.note_tensors(tuple.iter())?;
        } else if let Ok(list) = result.cast::<PyList>() {
            self.note_tensors(list.iter())?;
        }
        local::with(self.id, |local| local.result = whole);
        Ok(())
    }

    /// Something that is no function of torch's for us has given a tensor.
    pub(crate) fn forget_result(&self) {
        local::with(self.id, |local| local.result = None);
    }

    /// A module is called by the code that runs; gives its number, and what to go back to.
    pub(crate) fn enter_module(&self, module: &Bound<'_, PyAny>) -> PyResult<(u32, Outside)> {
        let py = module.py();
        let caller = local::with(self.id, |local| local.caller);
        let walk = stacks::walk(py, caller)?;
        let (part, outer) = self.local_part();
        let number = match self.known_module(module)? {
            Some(number) => number,
            None => self.number_of.bind(py).call1((module, outer.module))?.extract()?,
        };
        let (inside, new) = self.quietly(|state| {
            let (stack, new) = stacks::number(&mut state.stacks, &walk, outer.stack);
            let part = Part { module: number, function: 0, stack, node: outer.node };
            (state.parts.number(part), new)
        });
        self.codes.keep(py, &walk, &new);
        local::with(self.id, |local| local.caller = stacks::running(py));
        self.enter(py, inside)?;
        Ok((number, Outside { part, caller }))
    }

    /// A module has returned, with a result or not: back to the part before.
    pub(crate) fn leave_module(
        &self,
        py: Python<'_>,
        outside: Outside,
        result: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        local::with(self.id, |local| local.caller = outside.caller);
        if let Some(result) = result {
            self.add_outputs(result)?;
        }
        self.enter(py, outside.part).map(drop)
    }

    fn note_tensors<'py>(&self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<()> {
        for item in items.filter(|item| self.tensors.is_tensor(item)) {
            self.tensor(&item)?;
        }
        Ok(())
    }
}

#[pymethods]
impl NoteTaker {
    #[new]
    fn new(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<NoteTaker> {
        let get = |name: &str| settings.as_any().get_item(name);
        let lists = |name: &str| Ok::<_, PyErr>(get(name)?.cast_into::<PyList>()?.unbind());
        let file_owner = get("file_owner")?.cast_into::<FileOwner>()?;
        let modules = Modules { paths: lists("paths")?, classes: lists("classes")? };
        let plain = get("plain")?.cast_into::<PyFrozenSet>()?;
        Ok(NoteTaker {
            id: SCRIBES.fetch_add(1, Ordering::Relaxed),
            party: get("party")?.cast_into::<Party>()?.unbind(),
            torch: Torch::new(py)?,
            tensors: Tensors::new(py, &plain, get("storages")?.unbind())?,
            phantom: Phantom::find(),
            announce: get("announce")?.unbind(),
            is_text: get("is_text")?.extract()?,
            functions: PyDict::new(py).unbind(),
            describe: get("describe")?.unbind(),
            number_of: get("number_of")?.unbind(),
            known_modules: get("known_modules")?.cast_into::<PyDict>()?.unbind(),
            fields_of: get("fields_of")?.unbind(),
            layout: get("layout")?.unbind(),
            may_enlarge: get("may_enlarge")?.unbind(),
            fields: Mutex::default(),
            history: Mutex::default(),
            writers: Mutex::default(),
            codes: Codes::default(),
            modules,
            compiled: Compiled::default(),
            sources: Mutex::new(Sources::new(file_owner.get())),
            calls: AtomicIsize::new(0),
            backwards: AtomicIsize::new(0),
            state: Quiet::default(),
        })
    }

    // -- parts of the script ------------------------------------------------------------------------

    /// This thread's part begins again: the serial number of that.
    pub(crate) fn resume(&self, py: Python<'_>) -> PyResult<u64> {
        self.begin(py, local::with(self.id, |local| local.part))
    }

    /// This thread is outside of modules, functions and nodes for now.
    fn step_out(&self, py: Python<'_>) -> PyResult<u64> {
        self.begin(py, NOTHING)
    }

    /// The part that this thread is in.
    fn part(&self) -> PartNumber {
        local::with(self.id, |local| local.part)
    }

    /// This thread is in another part.
    pub(crate) fn enter(&self, py: Python<'_>, part: PartNumber) -> PyResult<u64> {
        local::with(self.id, |local| local.part = part);
        self.begin(py, part)
    }

    /// The number of the module that this thread is in.
    pub(crate) fn module(&self) -> u32 {
        self.local_part().1.module
    }

    /// What distributed training does from here on; gives what it did before.
    fn enter_area(
        &self,
        py: Python<'_>,
        kind: Option<&str>,
        name: Option<Text>,
        area: Text,
    ) -> PyResult<u32> {
        let kind = kind.map(category).transpose()?;
        let number = self.quietly(|state| {
            let word = state.words.of(&area);
            let name = kind.zip(name).map(|(kind, name)| (kind, state.words.of(&name)));
            state.area(Area { name, area: word })
        });
        let outer = local::with(self.id, |local| std::mem::replace(&mut local.area, number));
        self.resume(py)?;
        Ok(outer)
    }

    fn leave_area(&self, py: Python<'_>, outer: u32) -> PyResult<u64> {
        local::with(self.id, |local| local.area = outer);
        self.resume(py)
    }
}
