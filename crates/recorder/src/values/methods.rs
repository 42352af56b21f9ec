//! What Python asks of the ledger, and tells it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, Weak as WeakValue};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyTuple, PyType};

use super::arguments::Kinds;
use super::bounds;
use super::call::Call;
use super::evaluation::{How, SECONDS_FOR_FRACTIONS};
use super::geometry::Geometry;
use super::ledger::{Ledger, QUIET};
use super::plan::{Cut, Plan, Reach};
use super::reads::Phantom;
use super::recipe::Source;
use super::storages::Weak;
use super::value::{Bytes, State, Value};
use crate::hash::Map;
use crate::lock::lock;
use crate::tensors::Tensors;

/// So many recipes may stay behind a value from step to step, such as a weight of a model that is made later.
const SHORT: usize = 16;

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
            era: AtomicU64::new(0),
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

    /// So many numbers that PyTorch reads from the card are this one, in this thread's next function that is seen, or from
    /// here on; 0 times: no more.
    #[pyo3(signature = (number, times, is_now = false))]
    fn answer(&self, number: u64, times: u64, is_now: bool) {
        if let Some(phantom) = self.phantom {
            phantom.answer(number, times, is_now);
        }
    }

    /// Whether work is captured now, to be done later.
    fn captures(&self) -> bool {
        self.phantom.is_some_and(Phantom::captures)
    }

    /// The values of a tensor, and how they are known: `known`, `modelled`, `granted`, `stand-in`, `dear` or `unknown`;
    /// the last two without values.
    /// It may take so many seconds.
    #[pyo3(signature = (tensor, seconds, may_stand_in = false))]
    fn known<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
        seconds: f64,
        may_stand_in: bool,
    ) -> PyResult<(Option<Bound<'py, PyAny>>, &'static str)> {
        let py = tensor.py();
        let tensor = &self.tensors.below(tensor)?.unwrap_or_else(|| tensor.clone());
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
            How::Granted(bytes) => (Some(self.stand_in(py, Some(bytes), &geometry)?), "granted"),
            How::Dear => (None, "dear"),
            How::Unknown => (None, "unknown"),
        })
    }

    /// Whether all that a tensor is made of is known, however long it takes.
    fn can_be_known(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        let lies = self.tensors.lies_at(tensor)?;
        let value = self.value_at(tensor.py(), &lies)?;
        let plan = |value| Plan::within(0.0, self.now(), &value, Cut::Nowhere);
        Ok(value.and_then(plan).is_some())
    }

    /// The least and the most that whole numbers of a tensor can be, if its recipes say so.
    fn bounds(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bounds::Range> {
        let Ok(lies) = self.tensors.lies_at(tensor) else { return Ok(None) };
        let Some(value) = self.value_at(tensor.py(), &lies)? else { return Ok(None) };
        bounds::of(tensor.py(), &value, &Geometry::of(&self.tensors, tensor)?)
    }

    /// Whether a tensor of the host's, or of the card's, holds what is not known.
    fn is_unknown(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(tensor) = &self.tensors.below(tensor)? else { return Ok(true) };
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

    /// The code of this class calls functions on tensors that are ordinary ones there.
    fn set_plain_inside(&self, class: &Bound<'_, PyType>) {
        self.tensors.set_plain_inside(class);
    }

    /// A tensor of the card's holds what one of the host's does.
    fn set(&self, tensor: &Bound<'_, PyAny>, like: &Bound<'_, PyAny>) -> PyResult<()> {
        let tensor = &self.tensors.below(tensor)?.unwrap_or_else(|| tensor.clone());
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
        let call = Call { function, args, kwargs };
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
        // A fake tensor, or one of a class of its own, has no memory to speak of.
        if !self.tensors.is_ordinary(tensor)? {
            return Ok(());
        }
        let lies = self.tensors.lies_at(tensor)?;
        match lies.bytes {
            0 => Ok(()),
            _ => self.lose_on_host(tensor, &lies),
        }
    }

    /// Whether some tensor of the host's holds what is not known.
    #[pyo3(name = "watches_host")]
    fn is_watching_host(&self) -> bool {
        self.watches_host()
    }

    /// It was decided what a tensor of the host's holds.
    fn know_host(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        self.is_known_on_host(tensor, &self.tensors.lies_at(tensor)?)
    }

    /// Whether a tensor of the card's, or something whose value is not known, is among the arguments.
    #[pyo3(name = "concerns")]
    fn is_concerned(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<bool> {
        self.concerns(&Call { function: args.as_any(), args, kwargs: Some(kwargs) })
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
        self.era.fetch_add(1, Relaxed);
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
