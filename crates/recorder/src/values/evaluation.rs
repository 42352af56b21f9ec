//! Recipes are carried out, if what they give is worth it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::exceptions::PyLookupError;
use pyo3::intern;
use pyo3::prelude::*;

use super::arguments::give_all;
use super::ledger::Ledger;
use super::plan::{Cut, Plan};
use super::recipe::{OutputSlot, Recipe, Source};
use super::results::PART;
use super::value::{Bytes, Moment, State, Value};
use crate::hash::Map;
use crate::lock::lock;

/// One number with a fraction that leaves the card is worth this many seconds: most are printed.
pub(super) const SECONDS_FOR_FRACTIONS: f64 = 2e-3;
/// Many of them are worth more.
pub(super) const SECONDS_FOR_ARRAYS: f64 = 0.1;
/// Whole numbers and truths are worth more: sizes and ways may depend on them.
pub(super) const SECONDS_FOR_NUMBERS: f64 = 0.5;

/// A reader who sees nothing for so many seconds wants to know why.
const LONG: f64 = 5.0;

/// How a value came to be known.
pub(super) enum How {
    Known,
    /// A number stands for something that was too dear, or unknown: what came of it, or the number itself.
    StandIn(Option<Arc<Bytes>>),
    /// What a run that goes well gives: that numbers are finite, and no other is needed.
    Granted(Arc<Bytes>),
    /// It would take too long.
    Dear,
    Unknown,
}

impl Ledger {
    /// Carries out what is needed for code that reads the card.
    pub(crate) fn evaluate_to_read(&self, py: Python<'_>, value: &Arc<Value>) -> PyResult<()> {
        let State::Made(recipe) = value.state() else { return Ok(()) };
        let is_fraction = recipe.outputs().iter().any(|output| {
            output.geometry.is_fraction && std::ptr::eq(output.value.as_ptr(), Arc::as_ptr(value))
        });
        let seconds = if is_fraction { SECONDS_FOR_FRACTIONS } else { SECONDS_FOR_NUMBERS };
        self.evaluate(py, value, seconds, false).map(drop)
    }

    /// Carries out what is needed for a value, if it is worth it.
    pub(super) fn evaluate(
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
        let now = self.now();
        let seconds = seconds.min(now.nanoseconds as f64 * 1e-9);
        let whole = Plan::within(seconds, now, value, Cut::Nowhere);
        let is_known = whole.is_some();
        if let Some(plan) = whole.filter(|plan| plan.seconds <= seconds) {
            self.carry_out(py, &plan, value)?;
            return Ok(if value.is_data() { How::Known } else { How::Unknown });
        }
        if may_stand_in
            && let Some(plan) = Plan::within(seconds, now, value, Cut::AtNumbers)
                .filter(|plan| plan.seconds <= seconds)
        {
            let made = value.state();
            self.carry_out(py, &plan, value)?;
            // What came of a stand-in is for this time only.
            return Ok(match value.set(made) {
                State::Data(bytes) if plan.has_stand_ins => How::StandIn(Some(bytes)),
                State::Data(bytes) => How::Granted(bytes),
                _ => How::Unknown,
            });
        }
        Ok(if is_known { How::Dear } else { How::Unknown })
    }

    pub(super) fn now(&self) -> Moment {
        Moment { nanoseconds: self.nanoseconds.load(Relaxed), era: self.era.load(Relaxed) }
    }

    fn carry_out(&self, py: Python<'_>, plan: &Plan, target: &Arc<Value>) -> PyResult<()> {
        // A script may be in inference mode, whose tensors cannot be written to elsewhere.
        let evaluate = self.evaluate.bind(py);
        let context = evaluate.call_method0(intern!(py, "not_inferring"))?;
        context.call_method0(intern!(py, "__enter__"))?;
        let result = self.carry_out_all(py, plan, target);
        let none = py.None();
        context.call_method1(intern!(py, "__exit__"), (&none, &none, &none))?;
        result
    }

    fn carry_out_all(&self, py: Python<'_>, plan: &Plan, target: &Arc<Value>) -> PyResult<()> {
        // By the estimate, not by the clock: the same script decides the same way in every run.
        let spent = (plan.seconds * 1e9) as u64;
        let _ = self
            .nanoseconds
            .fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(spent)));
        if LONG <= plan.seconds {
            let said = (plan.seconds,);
            self.evaluate.bind(py).call_method1(intern!(py, "say_that_it_takes"), said)?;
        }
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
                OutputSlot::Written(number)
                    if recipe.inputs[*number].geometry.size == output.geometry.size =>
                {
                    written.get(*number).cloned().flatten()
                }
                // It was given another size.
                OutputSlot::Written(number) => {
                    self.laid(&tensors[*number], &output.geometry, value.bytes, None).ok()
                }
                OutputSlot::Result(path) => {
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
}
