//! The one place that says what is known of the card's memory.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak as WeakValue};

use pyo3::exceptions::PyLookupError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyInt, PyList, PyTuple, PyType};

use super::arguments::{Kinds, give_all};
use super::geometry::Geometry;
use super::notes::PART;
use super::plan::{Cut, Plan, Reach};
use super::reads::{Phantom, Sees};
use super::recipe::{Place, Recipe, Source};
use super::storages::{Storages, Weak, release, unknown};
use super::value::{Bytes, State, Value};
use crate::hash::{Map, Set};
use crate::lock::lock;
use crate::tensors::{Lies, Tensors};

/// Functions with one of these words in their name draw random numbers.
const RANDOM: [&str; 13] = [
    "rand",
    "normal",
    "uniform",
    "bernoulli",
    "dropout",
    "multinomial",
    "poisson",
    "exponential",
    "cauchy",
    "geometric",
    "rrelu",
    "scaled_dot_product",
    "gumbel",
];

/// Functions whose results nobody has written to.
const EMPTY: [&str; 5] = ["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"];

/// One number with a fraction that leaves the card is worth this many seconds: most are printed.
const SECONDS_FOR_FRACTIONS: f64 = 2e-3;
/// Many of them are worth more.
const SECONDS_FOR_ARRAYS: f64 = 0.1;
/// Whole numbers and truths are worth more: sizes and ways may depend on them.
const SECONDS_FOR_NUMBERS: f64 = 0.5;

/// `PyBUF_READ`.
const READ_ONLY: std::ffi::c_int = 0x100;

/// So many bytes are copied rather than held as a tensor, which takes some hundred.
const SMALL: usize = 4096;

/// So many recipes may stay behind a value from step to step, such as a weight of a model that is made later.
const SHORT: usize = 16;

/// Storages in the table after which those that have ended are looked for.
const MANY: usize = 20_000;

/// A function, its name, and whether it draws random numbers. The function is held, so that no other gets its address.
type Name = (Py<PyAny>, Arc<str>, bool);

thread_local! {
    /// In this thread nothing is noted: an optimizer steps.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// How a value came to be known.
enum How {
    Known,
    /// A number stands for something that was too dear, or unknown: what came of it, or the number itself.
    StandIn(Option<Arc<Bytes>>),
    /// It would take too long.
    Dear,
    Unknown,
}

/// What is known of every storage on the card.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct Ledger {
    pub(crate) tensors: Tensors,
    pub(crate) kinds: Kinds,
    weak: Weak,
    storages: Mutex<Storages>,
    /// Tensors of the host's that hold what is not known.
    unknown_of_host: AtomicUsize,
    /// Names of functions, and whether they draw random numbers.
    names: Mutex<Map<usize, Name>>,
    /// `evaluate.py`.
    evaluate: Py<PyAny>,
    /// Bytes of the host that values may take.
    budget: u64,
    /// Seconds that are left for what a script must know.
    nanoseconds: AtomicU64,
    is_early: AtomicBool,
    /// What the swept table had.
    swept: AtomicUsize,
    /// Where functions wrote while their work was captured: each launch of the graph writes there anew.
    captured: Mutex<Vec<(u64, u64)>>,
    /// Where the first that is known is that all of it was overwritten: gradients, mostly, which a backward pass made.
    adopted: Mutex<Set<u64>>,
    /// Classes of tensors whose own code is seen at work: what their functions do is noted there.
    followed: Mutex<Set<usize>>,
    /// What was computed on the way to something else, the oldest first.
    kept: Mutex<VecDeque<WeakValue<Value>>>,
    phantom: Option<Phantom>,
}

#[pymethods]
impl Ledger {
    #[new]
    fn new(
        py: Python<'_>,
        plain: &Bound<'_, PyFrozenSet>,
        storages: Py<PyAny>,
        evaluate: Py<PyAny>,
        budget: u64,
        seconds: f64,
    ) -> PyResult<Ledger> {
        Ok(Ledger {
            tensors: Tensors::new(py, plain, storages)?,
            kinds: Kinds::new(py)?,
            weak: Weak::new(py)?,
            storages: Mutex::default(),
            unknown_of_host: AtomicUsize::new(0),
            names: Mutex::default(),
            evaluate,
            budget,
            nanoseconds: AtomicU64::new((seconds * 1e9) as u64),
            is_early: AtomicBool::new(true),
            swept: AtomicUsize::new(0),
            captured: Mutex::default(),
            adopted: Mutex::default(),
            followed: Mutex::default(),
            kept: Mutex::default(),
            phantom: Phantom::find(),
        })
    }

    /// The phantom asks here from now on.
    fn serve(this: Py<Ledger>, py: Python<'_>) {
        if let Some(phantom) = this.get().phantom {
            phantom.serve(py, this.clone_ref(py));
        }
    }

    /// The next so many numbers that PyTorch reads from the card in this thread are this one; 0 times: no more.
    fn answer(&self, number: u64, times: u64) {
        if let Some(phantom) = self.phantom {
            phantom.answer(number, times);
        }
    }

    /// The values of a tensor, and how they are known: `known`, `modelled`, `stand-in`, `dear` or `unknown`; the last two
    /// without values.
    /// It may take so many seconds.
    #[pyo3(signature = (tensor, seconds, may_stand_in = false))]
    fn known<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
        seconds: f64,
        may_stand_in: bool,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, &'static str)> {
        let py = tensor.py();
        // Some have no storage, as what stands for zeros.
        let Ok(lies) = self.tensors.lies_at(tensor) else { return Ok((None, "unknown")) };
        let value = match self.tensors.elements(tensor)? {
            0 => Some(Value::new(State::Undefined, lies.bytes)),
            _ => self.value_at(py, &lies)?,
        };
        let Some(value) = value else { return Ok((None, "unknown")) };
        let how = self.evaluate(py, &value, seconds, may_stand_in)?;
        let geometry = Geometry::of(&self.tensors, tensor)?;
        Ok(match how {
            How::Known => {
                let is_modelled = value.is_modelled.load(Relaxed);
                let how = if is_modelled { "modelled" } else { "known" };
                (Some(self.tensor_of(py, &value, &geometry)?), how)
            }
            How::StandIn(bytes) => (Some(self.stand_in(py, bytes, &geometry)?), "stand-in"),
            How::Dear => (None, "dear"),
            How::Unknown => (None, "unknown"),
        })
    }

    /// About how long it takes to know a tensor; `None` if it cannot be known.
    fn estimate(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let lies = self.tensors.lies_at(tensor)?;
        let value = self.value_at(tensor.py(), &lies)?;
        Ok(value.and_then(|value| Plan::new(&value, Cut::Nowhere)).map(|plan| plan.seconds))
    }

    /// Whether a tensor of the host's, or of the card's, holds what is not known.
    fn is_unknown(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        if !self.tensors.is_ordinary(tensor)? {
            return Ok(true);
        }
        let Ok(lies) = self.tensors.lies_at(tensor) else { return Ok(true) };
        Ok(match self.tensors.is_cuda(tensor)? {
            true => {
                let value = self.value_at(tensor.py(), &lies)?;
                self.tensors.elements(tensor)? != 0
                    && value.is_none_or(|value| matches!(value.state(), State::Number))
            }
            false => self.is_unknown_of_host(&lies),
        })
    }

    /// A tensor of the card's holds what one of the host's does.
    fn set(&self, tensor: &Bound<'_, PyAny>, like: &Bound<'_, PyAny>) -> PyResult<()> {
        let lies = self.tensors.lies_at(tensor)?;
        let py = tensor.py();
        if !self.has_room(py, lies.bytes)? {
            return self.forget(py, &lies);
        }
        let geometry = Geometry::of(&self.tensors, tensor)?;
        // Another piece of the storage may have been set before; and what it is set to stays the script's own.
        let other = match self
            .value_at(py, &lies)?
            .filter(|value| value.is_data() && !geometry.covers(lies.bytes))
        {
            Some(value) => self.flat_of(py, &Source::Card(value), &Map::default())?,
            None => self.evaluate.bind(py).call_method1(intern!(py, "undefined"), (lies.bytes,))?,
        };
        let flat = self.laid(like, &geometry, lies.bytes, Some(&other))?;
        let value = Value::new(State::Data(self.bytes_of(&flat, lies.bytes)?), lies.bytes);
        self.put(tensor, &lies, value)
    }

    /// A tensor of the card's holds what a function gives that needs no tensor.
    #[pyo3(signature = (tensor, function, *args, **kwargs))]
    fn set_made<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let call = super::notes::Call { function, args, kwargs };
        let before = self.before(&call)?;
        self.after(&call, before, tensor)
    }

    /// What functions do to tensors of this class is noted where its own code calls others.
    fn follow(&self, class: &Bound<'_, PyType>) {
        lock(&self.followed).insert(class.as_ptr() as usize);
    }

    /// Nothing is known of a tensor any more.
    fn lose(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let lies = self.tensors.lies_at(tensor)?;
        self.forget(tensor.py(), &lies)
    }

    /// A tensor of the host's holds what is not known.
    fn lose_host(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        self.arrive(tensor, None)
    }

    /// Whether a tensor of the card's, or one whose values are not known, is among the arguments.
    #[pyo3(name = "concerns")]
    fn is_concerned(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<bool> {
        self.concerns(&super::notes::Call { function: args.as_any(), args, kwargs: Some(kwargs) })
    }

    /// A backward pass begins, or ends.
    fn backward(&self, begins: bool) {
        if let Some(phantom) = self.phantom {
            phantom.backward(begins);
        }
    }

    /// A backward pass has written to the gradients of these, and to others.
    fn lose_gradients(&self, parameters: &Bound<'_, PyList>) -> PyResult<()> {
        let adopted = std::mem::take(&mut *lock(&self.adopted));
        for start in adopted {
            self.forget_range(parameters.py(), start, start + 1)?;
        }
        for parameter in parameters.iter() {
            let gradient = self.tensors.gradient(&parameter)?;
            if !gradient.is_none() && self.tensors.is_ordinary(&gradient)? {
                self.lose(&gradient)?;
            }
        }
        Ok(())
    }

    /// An optimizer changes these by gradients that are not known: what they hold stands for what they would.
    fn set_modelled(&self, parameters: &Bound<'_, PyList>) -> PyResult<()> {
        for parameter in parameters.iter() {
            let Ok(lies) = self.tensors.lies_at(&parameter) else { continue };
            if let Some(value) = self.value_at(parameters.py(), &lies)? {
                value.is_modelled.store(true, Relaxed);
            }
        }
        Ok(())
    }

    /// The thread notes nothing, or does so again.
    fn set_quiet(&self, is_quiet: bool) {
        QUIET.set(is_quiet);
    }

    /// The first model is called: what was made until here may stay a recipe for ever.
    fn end_of_construction(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_early.swap(false, Relaxed) {
            self.sweep(py)?;
            lock(&self.storages)
                .values()
                .for_each(|(_, value)| value.is_early.store(true, Relaxed));
        }
        Ok(())
    }

    /// A step has ended: recipes of what is left of it would hold all that came before.
    fn end_of_step(&self, py: Python<'_>) -> PyResult<()> {
        let kept = std::mem::take(&mut *lock(&self.kept));
        kept.iter().filter_map(WeakValue::upgrade).for_each(|value| value.forget_how());
        self.sweep(py)?;
        let late: Vec<(u64, Arc<Value>)> = {
            let storages = lock(&self.storages);
            let is_late = |(_, value): &(u64, &Arc<Value>)| {
                !value.is_early.load(Relaxed) && matches!(value.state(), State::Made(_))
            };
            storages.values().filter(is_late).map(|(at, value)| (at, value.clone())).collect()
        };
        for (at, value) in late {
            let is_known = match Reach::of(&value, SHORT, SECONDS_FOR_FRACTIONS) {
                Reach::Short => continue,
                Reach::Cheap => {
                    let how = self.evaluate(py, &value, SECONDS_FOR_FRACTIONS, false)?;
                    matches!(how, How::Known)
                }
                Reach::Beyond => false,
            };
            if !is_known {
                let before = value.before.get().cloned();
                before.iter().for_each(|before| before.is_modelled.store(true, Relaxed));
                let instead = if value.is_number() { State::Number } else { State::Unknown };
                self.replace(at, before.unwrap_or(Value::new(instead, value.bytes)));
                drop(value.set(State::Unknown));
            }
        }
        Ok(())
    }

    /// Storages and bytes that values take, for tests.
    fn size(&self) -> (usize, u64) {
        (lock(&self.storages).len(), Bytes::held())
    }
}

impl Ledger {
    pub(crate) fn follows(&self, tensor: &Bound<'_, PyAny>) -> bool {
        lock(&self.followed).contains(&(tensor.get_type_ptr() as usize))
    }

    pub(crate) fn is_quiet(&self) -> bool {
        QUIET.get()
    }

    /// A function that is seen runs in this thread until this is dropped.
    pub(crate) fn sees(&self) -> Option<Sees> {
        self.phantom.map(Phantom::sees)
    }

    pub(crate) fn value_at(&self, py: Python<'_>, lies: &Lies) -> PyResult<Option<Arc<Value>>> {
        lock(&self.storages).get(py, &self.weak, lies)
    }

    /// Whether tensors of the host's have to be looked at.
    pub(crate) fn watches_host(&self) -> bool {
        self.unknown_of_host.load(Relaxed) != 0
    }

    pub(crate) fn is_unknown_of_host(&self, lies: &Lies) -> bool {
        self.watches_host()
            && lock(&self.storages)
                .at(lies.start, lies.start + lies.bytes)
                .is_some_and(|(_, storage, value)| storage == lies.storage && value.is_unknown())
    }

    /// A storage holds this from here on.
    pub(crate) fn put(
        &self,
        tensor: &Bound<'_, PyAny>,
        lies: &Lies,
        value: Arc<Value>,
    ) -> PyResult<()> {
        if lies.bytes == 0 {
            return Ok(());
        }
        let py = tensor.py();
        if self.phantom.is_some_and(Phantom::captures) {
            lock(&self.captured).push((lies.start, lies.start + lies.bytes));
        }
        let (ended, count) = {
            let mut storages = lock(&self.storages);
            let ended = storages.set(lies, value, || self.tensors.hold_weakly(tensor))?;
            (ended, storages.len())
        };
        release(py, &self.weak, ended)?;
        if MANY.max(2 * self.swept.load(Relaxed)) < count {
            self.sweep(py)?;
        }
        Ok(())
    }

    /// What is overwritten there was made where nobody saw it.
    pub(crate) fn adopt(&self, start: u64) {
        lock(&self.adopted).insert(start);
    }

    /// It was made where it is seen.
    pub(crate) fn own(&self, start: u64) {
        let mut adopted = lock(&self.adopted);
        if !adopted.is_empty() {
            adopted.remove(&start);
        }
    }

    /// A graph was launched: whatever was captured may have been written anew.
    pub(crate) fn lose_captured(&self, py: Python<'_>) {
        let captured = lock(&self.captured).clone();
        for (start, end) in captured {
            // Nothing is left to be done about a storage whose reference cannot be given back.
            let _ = self.forget_range(py, start, end);
        }
    }

    pub(crate) fn forget(&self, py: Python<'_>, lies: &Lies) -> PyResult<()> {
        self.forget_range(py, lies.start, lies.start + lies.bytes.max(1))
    }

    pub(crate) fn forget_range(&self, py: Python<'_>, start: u64, end: u64) -> PyResult<()> {
        let ended = lock(&self.storages).clear(start, end);
        release(py, &self.weak, ended)
    }

    /// The value of the living storage around an address, and where that begins.
    pub(crate) fn living_at(
        &self,
        py: Python<'_>,
        address: u64,
        size: u64,
    ) -> PyResult<Option<(u64, Arc<Value>)>> {
        let Some((start, storage, value)) = lock(&self.storages).at(address, address + size) else {
            return Ok(None);
        };
        Ok((!self.weak.is_expired(py, storage)?).then_some((start, value)))
    }

    /// The storage that begins there holds this from here on.
    pub(crate) fn replace(&self, start: u64, value: Arc<Value>) {
        let old = lock(&self.storages).replace(start, value);
        drop(old);
    }

    /// Carries out what is needed for code that reads the card.
    pub(crate) fn evaluate_to_read(&self, py: Python<'_>, value: &Arc<Value>) -> PyResult<()> {
        let State::Made(recipe) = value.state() else { return Ok(()) };
        let is_fraction = recipe.outputs().iter().any(|output| {
            output.geometry.is_fraction && std::ptr::eq(output.value.as_ptr(), Arc::as_ptr(value))
        });
        let seconds = if is_fraction { SECONDS_FOR_FRACTIONS } else { SECONDS_FOR_NUMBERS };
        self.evaluate(py, value, seconds, false).map(drop)
    }

    fn sweep(&self, py: Python<'_>) -> PyResult<()> {
        let ended = lock(&self.storages).sweep(py, &self.weak)?;
        let of_host = ended.iter().filter(|(_, value)| value.is_unknown()).count();
        // Storages of the card without a value are not in the table.
        self.unknown_of_host.fetch_sub(of_host.min(self.unknown_of_host.load(Relaxed)), Relaxed);
        release(py, &self.weak, ended)?;
        self.swept.store(lock(&self.storages).len(), Relaxed);
        Ok(())
    }

    pub(crate) fn has_room(&self, py: Python<'_>, bytes: u64) -> PyResult<bool> {
        if Bytes::held() + bytes <= self.budget {
            return Ok(true);
        }
        self.sweep(py)?;
        while self.budget < Bytes::held() + bytes {
            // What was computed last is what is needed next, mostly.
            let Some(oldest) = lock(&self.kept).pop_front() else { return Ok(false) };
            oldest.upgrade().inspect(|value| value.give_up());
        }
        Ok(true)
    }

    /// A tensor comes to the host: its values are filled in if they are worth it, else they are unknown there too.
    pub(crate) fn arrive(
        &self,
        tensor: &Bound<'_, PyAny>,
        value: Option<(Arc<Value>, Geometry)>,
    ) -> PyResult<()> {
        let py = tensor.py();
        let lies = self.tensors.lies_at(tensor)?;
        if lies.bytes == 0 {
            return Ok(());
        }
        if let Some((value, geometry)) = value {
            let is_number = geometry.size.is_empty();
            let seconds = match (geometry.is_fraction, is_number) {
                (true, true) => SECONDS_FOR_FRACTIONS,
                (true, false) => SECONDS_FOR_ARRAYS,
                (false, _) => SECONDS_FOR_NUMBERS,
            };
            let how = self.evaluate(py, &value, seconds, is_number)?;
            let filled = match how {
                How::Known => Some(self.tensor_of(py, &value, &geometry)?),
                How::StandIn(bytes) => Some(self.stand_in(py, bytes, &geometry)?),
                How::Dear | How::Unknown => None,
            };
            if let Some(filled) = filled {
                self.evaluate.bind(py).call_method1(intern!(py, "fill"), (tensor, filled))?;
                return Ok(());
            }
        }
        self.unknown_of_host.fetch_add(1, Relaxed);
        self.put(tensor, &lies, unknown(lies.bytes))
    }

    pub(crate) fn name(&self, function: &Bound<'_, PyAny>) -> PyResult<(Arc<str>, bool)> {
        let key = function.as_ptr() as usize;
        if let Some((_, name, is_random)) = lock(&self.names).get(&key) {
            return Ok((name.clone(), *is_random));
        }
        let name = function.getattr(intern!(function.py(), "__name__"));
        let name = name.map_or(String::new(), |name| name.to_string());
        // Operators have the name of their overload behind their own.
        let name: Arc<str> = name.split('.').next().unwrap_or_default().into();
        let is_random = RANDOM.iter().any(|word| name.contains(word));
        lock(&self.names).insert(key, (function.clone().unbind(), name.clone(), is_random));
        Ok((name, is_random))
    }

    /// Whether nobody has written to what a call gives; `x.new(3, 4)` and `x.new(y.shape)` are such calls, others of
    /// `new` are not.
    pub(crate) fn is_empty_maker(&self, call: &super::notes::Call<'_, '_>, name: &str) -> bool {
        let is_size = |arg: &Bound<'_, PyAny>| {
            arg.is_instance_of::<PyInt>() || arg.get_type().name().is_ok_and(|name| name == "Size")
        };
        EMPTY.contains(&name)
            || name == "new"
                && 1 < call.args.len()
                && call.args.iter().skip(1).all(|arg| is_size(&arg))
    }

    /// What the next random numbers of the card are drawn from.
    pub(crate) fn seed(
        &self,
        py: Python<'_>,
        call: &super::notes::Call<'_, '_>,
    ) -> PyResult<Option<(u64, u64)>> {
        let generator = match call.kwargs {
            Some(kwargs) => {
                kwargs.get_item(intern!(py, "generator"))?.filter(|value| !value.is_none())
            }
            None => None,
        };
        let seed = self.evaluate.bind(py).call_method1(intern!(py, "seed"), (generator,))?;
        seed.extract()
    }

    /// Code that nobody sees has read so many bytes that nobody knows: what is assumed, if that is not zeros.
    pub(crate) fn read_below(&self, py: Python<'_>, size: u64) -> PyResult<Option<Vec<u8>>> {
        self.evaluate.bind(py).call_method1(intern!(py, "read_below"), (size,))?.extract()
    }

    pub(crate) fn autocast(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let dtype = self.evaluate.bind(py).call_method0(intern!(py, "autocast"))?;
        Ok((!dtype.is_none()).then(|| dtype.unbind()))
    }

    // -- evaluation --------------------------------------------------------------------------------------

    /// Carries out what is needed for a value, if it is worth it.
    fn evaluate(
        &self,
        py: Python<'_>,
        value: &Arc<Value>,
        seconds: f64,
        may_stand_in: bool,
    ) -> PyResult<How> {
        match value.state() {
            State::Data(_) | State::Undefined => return Ok(How::Known),
            State::Number if may_stand_in => return Ok(How::StandIn(None)),
            State::Unknown | State::Number => return Ok(How::Unknown),
            State::Made(_) => {}
        }
        let seconds = seconds.min(self.nanoseconds.load(Relaxed) as f64 * 1e-9);
        let whole = Plan::new(value, Cut::Nowhere);
        let is_known = whole.is_some();
        if let Some(plan) = whole.filter(|plan| plan.seconds <= seconds) {
            self.carry_out(py, &plan, value)?;
            return Ok(if value.is_data() { How::Known } else { How::Unknown });
        }
        if may_stand_in
            && let Some(plan) =
                Plan::new(value, Cut::AtNumbers).filter(|plan| plan.seconds <= seconds)
        {
            let made = value.state();
            self.carry_out(py, &plan, value)?;
            // What came of a stand-in is for this time only.
            return Ok(match value.set(made) {
                State::Data(bytes) => How::StandIn(Some(bytes)),
                _ => How::Unknown,
            });
        }
        Ok(if is_known { How::Dear } else { How::Unknown })
    }

    fn carry_out(&self, py: Python<'_>, plan: &Plan, target: &Arc<Value>) -> PyResult<()> {
        // By the estimate, not by the clock: the same script decides the same way in every run.
        let spent = (plan.seconds * 1e9) as u64;
        let _ = self
            .nanoseconds
            .fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(spent)));
        let mut readers = plan.readers.clone();
        let mut flats: Map<usize, Py<PyAny>> = Map::default();
        for recipe in &plan.recipes {
            if self.carry_out_one(py, plan, recipe, &mut flats).is_err() {
                for output in recipe.outputs() {
                    output
                        .value
                        .upgrade()
                        .into_iter()
                        .for_each(|value| drop(value.set(State::Unknown)));
                }
                if !target.is_unknown() {
                    drop(target.set(State::Unknown));
                }
                break;
            }
            for value in recipe.needs() {
                let key = Arc::as_ptr(value) as usize;
                if let Some(left) = readers.get_mut(&key) {
                    *left -= 1;
                    if *left == 0 && !std::ptr::eq(Arc::as_ptr(value), Arc::as_ptr(target)) {
                        self.settle(py, plan, value, flats.remove(&key))?;
                    }
                }
            }
        }
        let key = Arc::as_ptr(target) as usize;
        match flats.remove(&key) {
            Some(flat) => {
                let bytes = self.bytes_of(flat.bind(py), target.bytes)?;
                target.is_modelled.fetch_or(plan.is_modelled, Relaxed);
                drop(target.set(State::Data(bytes)));
            }
            None => drop(target.set(State::Unknown)),
        }
        Ok(())
    }

    /// What was computed on the way is kept if a storage holds it and there is room.
    fn settle(
        &self,
        py: Python<'_>,
        plan: &Plan,
        value: &Arc<Value>,
        flat: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let Some(flat) = flat else { return Ok(()) };
        if plan.cut == Cut::Nowhere
            && matches!(value.state(), State::Made(_))
            && self.has_room(py, value.bytes)?
        {
            value.settle(self.bytes_of(flat.bind(py), value.bytes)?);
            value.is_modelled.fetch_or(plan.is_modelled, Relaxed);
            lock(&self.kept).push_back(Arc::downgrade(value));
        }
        Ok(())
    }

    fn carry_out_one(
        &self,
        py: Python<'_>,
        plan: &Plan,
        recipe: &Recipe,
        flats: &mut Map<usize, Py<PyAny>>,
    ) -> PyResult<()> {
        let evaluate = self.evaluate.bind(py);
        let mut tensors = Vec::with_capacity(recipe.inputs.len());
        let mut written: Vec<Option<Bound<'_, PyAny>>> = Vec::with_capacity(recipe.inputs.len());
        let mut only_read = Vec::new();
        let mut changed: Map<usize, Bound<'_, PyAny>> = Map::default();
        let is_constant = plan.is_constant(recipe);
        for input in recipe.inputs.iter().filter(|_| !is_constant) {
            if plan.is_stand_in(input) {
                tensors.push(
                    evaluate.call_method1(intern!(py, "stand_in"), (&input.geometry.dtype,))?,
                );
                written.push(None);
                continue;
            }
            let flat = match &input.source {
                Source::Card(value) if plan.there.contains_key(&(Arc::as_ptr(value) as usize)) => {
                    self.flat(py, &plan.there[&(Arc::as_ptr(value) as usize)])?
                }
                source => self.flat_of(py, source, flats)?,
            };
            // A tensor may be given twice, and written to by one of its names.
            let key = input.key();
            let is_changed =
                recipe.inputs.iter().any(|other| other.is_written && other.key() == key);
            let flat = match (is_changed, changed.get(&key)) {
                (true, Some(flat)) => Bound::clone(flat),
                (true, None) => {
                    let flat = flat.call_method0(intern!(py, "clone"))?;
                    changed.insert(key, flat.clone());
                    flat
                }
                (false, _) => {
                    only_read.push((flat.clone(), self.tensors.version(&flat).ok()));
                    flat
                }
            };
            let geometry = &input.geometry;
            tensors.push(evaluate.call_method1(
                intern!(py, "view"),
                (
                    &flat,
                    &geometry.dtype,
                    geometry.numbers(py)?,
                    geometry.is_conjugate,
                    geometry.is_negative,
                ),
            )?);
            written.push(input.is_written.then_some(flat));
        }
        let result = if is_constant {
            let size = recipe
                .outputs()
                .first()
                .map(|output| output.geometry.size.clone())
                .unwrap_or_default();
            evaluate.call_method1(intern!(py, "constant"), (&*recipe.name, size))?
        } else {
            let cpu = evaluate.getattr(intern!(py, "CPU"))?;
            let (args, kwargs) = give_all(py, (&recipe.args, &recipe.named), &tensors, &cpu)?;
            let call = (&recipe.function, args, kwargs, &recipe.autocast, recipe.seed);
            evaluate.call_method1(intern!(py, "call"), call)?
        };
        for (flat, version) in only_read {
            if self.tensors.version(&flat).ok() != version {
                return Err(PyLookupError::new_err("it has written to what others may read"));
            }
        }
        self.keep_outputs(recipe, &result, (&tensors, &written), flats)
    }

    /// What a recipe has given, as storages.
    fn keep_outputs<'py>(
        &self,
        recipe: &Recipe,
        result: &Bound<'py, PyAny>,
        (tensors, written): (&[Bound<'py, PyAny>], &[Option<Bound<'py, PyAny>>]),
        flats: &mut Map<usize, Py<PyAny>>,
    ) -> PyResult<()> {
        let py = result.py();
        let evaluate = self.evaluate.bind(py);
        for output in recipe.outputs() {
            let Some(value) = output.value.upgrade() else { continue };
            let flat = match &output.place {
                Place::Written(number)
                    if recipe.inputs[*number].geometry.size == output.geometry.size =>
                {
                    written.get(*number).cloned().flatten()
                }
                // It was given another size.
                Place::Written(number) => {
                    self.laid(&tensors[*number], &output.geometry, value.bytes, None).ok()
                }
                Place::Result(path) => {
                    let mut item = result.clone();
                    for number in path {
                        item = match number.checked_sub(PART) {
                            Some(part) => {
                                evaluate.call_method1(intern!(py, "part"), (item, part))?
                            }
                            None => item.get_item(number)?,
                        };
                    }
                    let other =
                        flats.get(&(Arc::as_ptr(&value) as usize)).map(|flat| flat.bind(py));
                    self.laid(&item, &output.geometry, value.bytes, other).ok()
                }
            };
            match flat {
                Some(flat) => drop(flats.insert(Arc::as_ptr(&value) as usize, flat.unbind())),
                // What a kernel of the card gives beside its result may have another shape here.
                None => drop(value.set(State::Unknown)),
            }
        }
        Ok(())
    }

    /// A result as it lies in its storage, beside other pieces of that.
    fn laid<'py>(
        &self,
        result: &Bound<'py, PyAny>,
        geometry: &Geometry,
        bytes: u64,
        other: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = result.py();
        let lazily = (geometry.is_conjugate, geometry.is_negative);
        let laid = (result, &geometry.dtype, geometry.numbers(py)?, lazily, bytes, other);
        self.evaluate.bind(py).call_method1(intern!(py, "flat"), laid)
    }

    /// The bytes of a storage as a tensor of the host's.
    fn flat_of<'py>(
        &self,
        py: Python<'py>,
        source: &Source,
        flats: &Map<usize, Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = match source {
            Source::Host(bytes) => return self.flat(py, bytes),
            Source::Card(value) => value,
        };
        if let Some(flat) = flats.get(&(Arc::as_ptr(value) as usize)) {
            return Ok(flat.bind(py).clone());
        }
        match value.state() {
            State::Data(bytes) => self.flat(py, &bytes),
            State::Undefined => {
                self.evaluate.bind(py).call_method1(intern!(py, "undefined"), (value.bytes,))
            }
            _ => Err(PyLookupError::new_err("a value that was needed is gone")),
        }
    }

    /// A tensor over bytes that are ours. It is not to be written to.
    fn flat<'py>(&self, py: Python<'py>, bytes: &Arc<Bytes>) -> PyResult<Bound<'py, PyAny>> {
        if let Bytes::Of(tensor, ..) = &**bytes {
            return Ok(tensor.bind(py).clone());
        }
        let bytes = bytes.get();
        if bytes.is_empty() {
            return self.evaluate.bind(py).call_method1(intern!(py, "undefined"), (0,));
        }
        // SAFETY: the view ends before the bytes do: `copied` copies at once.
        let view = unsafe {
            let view = ffi::PyMemoryView_FromMemory(
                bytes.as_ptr().cast_mut().cast(),
                bytes.len() as ffi::Py_ssize_t,
                READ_ONLY,
            );
            Bound::from_owned_ptr_or_err(py, view)?
        };
        self.evaluate.bind(py).call_method1(intern!(py, "copied"), (view,))
    }

    /// What stands for a tensor.
    fn stand_in<'py>(
        &self,
        py: Python<'py>,
        bytes: Option<Arc<Bytes>>,
        geometry: &Geometry,
    ) -> PyResult<Bound<'py, PyAny>> {
        match bytes {
            Some(bytes) => {
                let value = Value::new(State::Data(bytes.clone()), bytes.get().len() as u64);
                self.tensor_of(py, &value, geometry)
            }
            None => {
                let numbers = (&geometry.dtype, geometry.size.clone());
                self.evaluate.bind(py).call_method1(intern!(py, "stand_in"), numbers)
            }
        }
    }

    fn tensor_of<'py>(
        &self,
        py: Python<'py>,
        value: &Arc<Value>,
        geometry: &Geometry,
    ) -> PyResult<Bound<'py, PyAny>> {
        let flat = self.flat_of(py, &Source::Card(value.clone()), &Map::default())?;
        let flat = flat.call_method0(intern!(py, "clone"))?;
        let numbers = geometry.numbers(py)?;
        let view = (flat, &geometry.dtype, numbers, geometry.is_conjugate, geometry.is_negative);
        self.evaluate.bind(py).call_method1(intern!(py, "view"), view)
    }

    /// The bytes of a flat, which nobody writes to from here on.
    fn bytes_of(&self, flat: &Bound<'_, PyAny>, bytes: u64) -> PyResult<Arc<Bytes>> {
        let start = self.tensors.address(flat)?.unwrap_or(0);
        let length = bytes.min(self.tensors.elements(flat)?) as usize;
        if length <= SMALL {
            let bytes = match length {
                0 => Vec::new(),
                // SAFETY: a tensor of bytes of the host's, alive, with at least as many.
                _ => unsafe { std::slice::from_raw_parts(start as *const u8, length) }.to_vec(),
            };
            return Ok(Bytes::new(bytes));
        }
        // SAFETY: as above; what a function writes to is copied before.
        Ok(unsafe { Bytes::of(flat.clone().unbind(), start, length) })
    }
}
