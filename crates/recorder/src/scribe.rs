//! Notes which part of the script runs, and what its tensors are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyString, PyTuple};
use recording::{Category, Phase};

use crate::graph::{FieldsOfTypes, Hooked, Seen};
use crate::hash::{Map, Set};
use crate::local;
use crate::lock::lock;
use crate::notes::{Note, What};
use crate::parts::{Part, PartNumber};
use crate::pen::Pen;
use crate::phantom::Phantom;
use crate::sources::{Sources, Whose};
use crate::stacks;
use crate::state::{Area, Function, Modules, State};
use crate::torch::{self, Torch};

static SCRIBES: AtomicU64 = AtomicU64::new(1);

/// What `Scribe.enter_function` says: facts may be taken from the arguments.
const LOOK: u8 = 1;
/// What `Scribe.enter_function` says: autocast is on, and something may be cast.
const AUTOCAST: u8 = 2;

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

    /// Says what a tensor is, if it is a whole one on the card.
    pub(crate) fn tensor(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.torch.is_ordinary(tensor)? && torch::is_cuda(tensor)? && !torch::is_view(tensor)? {
            let (device, address) = (torch::device(tensor)?, torch::address(tensor)?);
            let (dtype, shape) = torch::form(tensor)?;
            let mut state = self.lock();
            let word = state.words.form(&dtype, &shape)?;
            state.note(device, address, What::Tensor { word });
        }
        Ok(())
    }

    fn put(&self, tensor: &Bound<'_, PyAny>, what: What) -> PyResult<()> {
        for part in self.torch.storages(tensor)? {
            let (device, address) = (torch::device(&part)?, torch::address(&part)?);
            self.lock().note(device, address, what);
        }
        Ok(())
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

    /// Results outside of modules that a factory made are inputs.
    fn note_input(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let (number, function) = local::with(self.id, |local| (local.part, local.function));
        let state = self.lock();
        let is_factory = state.functions[function as usize].is_factory;
        let is_outside = state.parts.get(number).module == 0;
        drop(state);
        if is_factory && is_outside && torch::is_cuda(result)? && !torch::is_made(result) {
            let mut state = self.lock();
            let text = format!("{}(…)", state.functions[function as usize].name);
            let word = state.words.of(&text);
            drop(state);
            self.put(result, What::Name { category: Category::Inputs, word })?;
        }
        Ok(())
    }
}

fn category(name: &str) -> PyResult<Category> {
    Category::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("`{name}` is no category")))
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

    /// A function of torch is called by the code that runs: whether its arguments are worth a look.
    pub(crate) fn enter_function(
        &self,
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<u8> {
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
        Ok(if is_looked_at { LOOK } else { 0 } | if is_autocast { AUTOCAST } else { 0 })
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

    // -- what is said of tensors ----------------------------------------------------------------------

    /// What a tensor is.
    fn name(&self, kind: &str, name: &str, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let category = category(kind)?;
        let word = self.lock().words.of(name);
        self.put(tensor, What::Name { category, word })
    }

    /// What of distributed training a tensor belongs to.
    fn area(&self, area: &str, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let word = self.lock().words.of(area);
        self.put(tensor, What::Area { word })
    }

    /// Notes each (category, name, tensor), unless the same was said of this allocation before; the bytes at each address.
    /// What is made anew in each step, at the same address perhaps, `is_anew`.
    #[pyo3(signature = (named, is_anew = false))]
    fn all(&self, named: &Bound<'_, PyAny>, is_anew: bool) -> PyResult<HashMap<u64, u64>> {
        let mut noted = HashMap::new();
        let since = if is_anew { self.lock().parts.step() } else { 0 };
        for row in named.try_iter()? {
            let (kind, name, tensor): (Bound<'_, PyString>, Bound<'_, PyString>, Bound<'_, PyAny>) =
                row?.extract()?;
            if !torch::is_cuda(&tensor)? {
                continue;
            }
            let name = name.to_string_lossy();
            for part in self.torch.storages(&tensor)? {
                let address = torch::address(&part)?;
                // Of a view its own: gradients may share a bucket.
                noted.insert(address, torch::bytes(&part)?);
                let mut state = self.lock();
                let (word, serial) = (state.words.of(&name), state.parts.serial());
                let is_news = state.notes.is_news(address, word, serial, since);
                drop(state);
                if is_news {
                    let category = category(&kind.to_string_lossy())?;
                    self.put(&part, What::Name { category, word })?;
                    self.tensor(&part)?;
                }
            }
        }
        Ok(noted)
    }

    /// The phase that began with this part has ended, and has its name.
    fn phase(&self, serial: u64, device: u16, name: &str, step: u32) -> PyResult<()> {
        let phase = Phase::from_name(name);
        let phase = phase.ok_or_else(|| PyValueError::new_err(format!("`{name}` is no phase")))?;
        let what = What::Phase { phase, step };
        self.lock().notes.list.push(Note { serial, device, address: 0, what });
        Ok(())
    }

    // -- backward passes ------------------------------------------------------------------------------

    /// A module has put this out.
    fn add_outputs(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        if !self.torch.is_grad_enabled(py)? {
            return Ok(());
        }
        let items = match result.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![result.clone()],
        };
        let bytes = self.torch.undisturbed(py, || {
            let mut bytes = 0;
            for item in items.iter().filter(|item| self.torch.is_tensor(item)) {
                if torch::is_cuda(item)? {
                    for part in self.torch.storages(item)? {
                        bytes += torch::bytes(&part)?;
                    }
                }
            }
            Ok(bytes)
        })?;
        self.lock().saved.outputs += bytes;
        Ok(())
    }

    /// What was put out so far leads to no backward pass.
    fn forget_outputs(&self) {
        self.lock().saved.outputs = 0;
    }

    /// Bytes that were kept, and put out, where most was kept.
    fn saved(&self) -> (u64, u64) {
        self.lock().saved.most
    }

    /// Before a backward pass: each node will announce itself, and what it keeps is noted. `trained` are parameters,
    /// whose own storages do not count as kept.
    fn begin_backward<'py>(
        this: &Bound<'py, Self>,
        roots: Vec<Bound<'py, PyAny>>,
        trained: Vec<Bound<'py, PyAny>>,
        hooked: Hooked,
        handles: &Bound<'py, PyList>,
        on_convolution: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let scribe = this.get();
        let mut own = Set::default();
        for parameter in &trained {
            for part in scribe.torch.storages(parameter)? {
                own.insert(torch::address(&part)?);
            }
        }
        scribe.lock().saved.begin(own);
        let mut seen = Seen::default();
        Scribe::note_graph(
            this,
            roots,
            &mut seen,
            None,
            &hooked,
            Some(handles),
            Some(on_convolution),
        )?;
        scribe.lock().saved.end();
        Ok(())
    }

    /// The tensors that a node keeps as they are.
    fn kept_by<'py>(
        &self,
        node: &Bound<'py, PyAny>,
        hooked: Hooked,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let sequence = node.call_method0("_sequence_nr")?.extract()?;
        let kept = self.saved_by(node, sequence, &hooked)?;
        Ok(kept.into_iter().map(|(_, tensor)| tensor).collect())
    }

    /// Graphs that are alive outside of a backward pass, by their last nodes, the newest first.
    fn note_living<'py>(
        this: &Bound<'py, Self>,
        roots: Vec<Bound<'py, PyAny>>,
        hooked: Hooked,
        with_holders: bool,
    ) -> PyResult<()> {
        let mut seen = Seen::default();
        for root in roots {
            let holder = if with_holders { this.get().holder(&root)? } else { None };
            Scribe::note_graph(this, vec![root], &mut seen, holder, &hooked, None, None)?;
        }
        Ok(())
    }
}
