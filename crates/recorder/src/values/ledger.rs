//! The one place that says what is known of the card's memory.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak as WeakValue};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::arguments::Kinds;
use super::bounds;
use super::evaluation::{How, SECONDS_FOR_ARRAYS, SECONDS_FOR_FRACTIONS, SECONDS_FOR_NUMBERS};
use super::geometry::Geometry;
use super::reads::{Phantom, Sees};
use super::storages::{Storages, Weak, release, unknown};
use super::value::{Bytes, Value};
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

/// Storages in the table after which those that have ended are looked for.
const MANY: usize = 20_000;

/// A function, its name, and whether it draws random numbers. The function is held, so that no other gets its address.
type Name = (Py<PyAny>, Arc<str>, bool);

thread_local! {
    /// In this thread nothing is noted: an optimizer steps.
    pub(super) static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What is known of every storage on the card.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct Ledger {
    pub(crate) tensors: Tensors,
    pub(crate) kinds: Kinds,
    pub(super) weak: Weak,
    pub(super) storages: Mutex<Storages>,
    /// Tensors of the host's that hold what is not known.
    pub(super) unknown_of_host: AtomicUsize,
    /// Names of functions, and whether they draw random numbers.
    pub(super) names: Mutex<Map<usize, Name>>,
    /// `evaluate.py`.
    pub(super) evaluate: Py<PyAny>,
    /// Bytes of the host that values may take.
    pub(super) budget: u64,
    /// Seconds that are left for what a script must know.
    pub(super) nanoseconds: AtomicU64,
    /// Steps that have ended: each may make what is left of it cheaper.
    pub(super) era: AtomicU64,
    pub(super) is_early: AtomicBool,
    /// What the swept table had.
    pub(super) swept: AtomicUsize,
    /// Where functions wrote while their work was captured: each launch of the graph writes there anew.
    pub(super) captured: Mutex<Vec<(u64, u64)>>,
    /// Where the first that is known is that all of it was overwritten: gradients, mostly, which a backward pass made.
    pub(super) adopted: Mutex<Set<u64>>,
    /// Classes of tensors whose own code is seen at work: what their functions do is noted there.
    pub(super) followed: Mutex<Set<usize>>,
    /// What was computed on the way to something else, the oldest first.
    pub(super) kept: Mutex<VecDeque<WeakValue<Value>>>,
    pub(super) phantom: Option<Phantom>,
}

/// Functions whose results on the host are made of what the host gave them alone: lengths of sequences.
const OF_HOSTS_OWN: [&str; 2] = ["_pad_packed_sequence", "_pack_padded_sequence"];

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

    pub(super) fn sweep(&self, py: Python<'_>) -> PyResult<()> {
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

    /// A tensor comes to the host, by this function: its values are filled in if they are worth it. Else numbers with a
    /// fraction are unknown there too; whole numbers and truths are decided, since nobody sees who reads them there.
    /// What the host itself computed with such numbers is there.
    pub(crate) fn arrive(
        &self,
        tensor: &Bound<'_, PyAny>,
        value: Option<(Arc<Value>, Geometry)>,
        (name, mut is_there): (&str, bool),
    ) -> PyResult<()> {
        let py = tensor.py();
        let lies = self.tensors.lies_at(tensor)?;
        if lies.bytes == 0 || OF_HOSTS_OWN.contains(&name) {
            return Ok(());
        }
        let (mut why, mut bounds) = ("unknown", None);
        if let Some((value, geometry)) = value {
            let is_number = geometry.size.is_empty();
            let seconds = match (geometry.is_fraction, is_number) {
                (true, true) => SECONDS_FOR_FRACTIONS,
                (true, false) => SECONDS_FOR_ARRAYS,
                (false, _) => SECONDS_FOR_NUMBERS,
            };
            let how = self.evaluate(py, &value, seconds, is_number)?;
            let filled = match &how {
                How::Known => Some(self.tensor_of(py, &value, &geometry)?),
                How::StandIn(bytes) => Some(self.stand_in(py, bytes.clone(), &geometry)?),
                How::Granted(bytes) => Some(self.stand_in(py, Some(bytes.clone()), &geometry)?),
                How::Dear | How::Unknown => None,
            };
            if let Some(filled) = filled {
                self.evaluate.bind(py).call_method1(intern!(py, "fill"), (tensor, filled))?;
            }
            match how {
                How::Known | How::Granted(_) => return self.is_known_on_host(tensor, &lies),
                How::StandIn(_) => (why, is_there) = ("dear", true),
                How::Dear => why = "dear",
                How::Unknown => {}
            }
            bounds = bounds::of(py, &value, &geometry)?;
        }
        let given = (tensor, why, name, is_there, bounds);
        let decided = self.evaluate.bind(py).call_method1(intern!(py, "decided_on_host"), given)?;
        match decided.is_truthy()? {
            true => self.is_known_on_host(tensor, &lies),
            false => self.lose_on_host(tensor, &lies),
        }
    }

    /// A tensor of the host's holds what is known; of other pieces of its storage nothing is said.
    pub(super) fn is_known_on_host(&self, tensor: &Bound<'_, PyAny>, lies: &Lies) -> PyResult<()> {
        let covers = self.is_unknown_of_host(lies)
            && Geometry::of(&self.tensors, tensor).is_ok_and(|own| own.covers(lies.bytes));
        if covers { self.forget(tensor.py(), lies) } else { Ok(()) }
    }

    /// A tensor of the host's holds what is not known.
    pub(super) fn lose_on_host(&self, tensor: &Bound<'_, PyAny>, lies: &Lies) -> PyResult<()> {
        self.unknown_of_host.fetch_add(1, Relaxed);
        self.put(tensor, lies, unknown(lies.bytes))
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
    pub(crate) fn is_empty_maker(&self, call: &super::call::Call<'_, '_>, name: &str) -> bool {
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
        call: &super::call::Call<'_, '_>,
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
}
