//! What a call is given, and what of it is known before it runs.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::arguments::Argument;
use super::call::Call;
use super::geometry::Geometry;
use super::ledger::Ledger;
use super::value::{State, Value};
use crate::tensors::Lies;

/// Functions that give every element of their first argument a new value.
const OVERWRITES: [&str; 16] = [
    "zero_",
    "fill_",
    "copy_",
    "uniform_",
    "normal_",
    "random_",
    "bernoulli_",
    "exponential_",
    "log_normal_",
    "cauchy_",
    "geometric_",
    "set_",
    "_copy_from",
    "fill",
    "trunc_normal_",
    "zeros_",
];

/// One tensor that a function was given.
pub(super) struct Given<'py> {
    pub(super) tensor: Bound<'py, PyAny>,
    /// What it is a part of, if that has no memory of its own or a class of its own.
    pub(super) whole: Option<Bound<'py, PyAny>>,
    pub(super) storage: usize,
    /// `None` for one of the host's.
    pub(super) lies: Option<Lies>,
    /// What it held.
    pub(super) value: Option<Arc<Value>>,
    /// How often it had been written to; unknown in inference mode.
    pub(super) version: Option<u64>,
}

impl Given<'_> {
    pub(super) fn is_modelled(&self) -> bool {
        self.value.as_ref().is_some_and(|value| value.is_modelled.load(Relaxed))
    }
}

/// Arguments of a call whose values do not matter to it.
struct Targets<'py> {
    /// Every element gets a new value.
    overwritten: Vec<Bound<'py, PyAny>>,
    /// It only says which kind and size the result is to have.
    pattern: Option<Bound<'py, PyAny>>,
}

/// Positional and named arguments.
pub(super) type Kept = (Vec<Argument>, Vec<(String, Argument)>);

/// What is to be remembered of a call until it has run.
pub(crate) struct Before<'py> {
    pub(super) name: Arc<str>,
    pub(super) given: Vec<Given<'py>>,
    /// What it was called with, if that can be kept; numbers are of `given`.
    pub(super) kept: Option<Kept>,
    pub(super) geometries: Vec<Option<Geometry>>,
    /// Of a tensor that is not known, or not an ordinary one.
    pub(super) is_unknown: bool,
    /// Of a class whose own code is seen: what the call did has been noted already.
    pub(super) is_followed: bool,
    /// Of a class that does not tell what it is made of: the call may write anywhere.
    pub(crate) is_opaque: bool,
    /// Tensors of the host's that held what is not known, of which nothing is left.
    pub(super) renewed: Vec<Bound<'py, PyAny>>,
    pub(super) seed: Option<(u64, u64)>,
}

impl Ledger {
    /// Whether a tensor of the card's, or something whose value is not known, is among the arguments.
    pub(crate) fn concerns(&self, call: &Call<'_, '_>) -> PyResult<bool> {
        if self.is_on_card(call.args)? {
            return Ok(true);
        }
        let Some(kwargs) = call.kwargs.filter(|kwargs| !kwargs.is_empty()) else {
            return Ok(false);
        };
        self.is_on_card(&kwargs.values())
    }

    /// The same, of one value and the lists in it.
    pub(crate) fn is_on_card(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.tensors.is_tensor(value) {
            if self.tensors.is_cuda(value)? {
                return Ok(true);
            }
            if !self.watches_host() {
                return Ok(false);
            }
            let Some(tensor) = self.tensors.below(value)? else { return Ok(false) };
            return Ok(self
                .tensors
                .lies_at(&tensor)
                .is_ok_and(|lies| self.is_unknown_of_host(&lies)));
        }
        if self.kinds.is_stand_in(value) {
            return Ok(true);
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            for item in tuple.iter() {
                if self.is_on_card(&item)? {
                    return Ok(true);
                }
            }
        } else if let Ok(list) = value.cast::<PyList>() {
            for item in list.iter() {
                if self.is_on_card(&item)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// What a tensor of the card's holds for a call; whatever the call does not look at counts as known.
    fn held<'py>(
        &self,
        call: &Call<'_, 'py>,
        name: &str,
        (whole, tensor, lies): (&Bound<'py, PyAny>, &Bound<'py, PyAny>, &Lies),
        targets: &Targets<'py>,
    ) -> PyResult<Option<Arc<Value>>> {
        let undefined = || Some(Value::new(State::Undefined, lies.bytes));
        let value = self.value_at(tensor.py(), lies)?;
        if targets.overwritten.iter().any(|target| target.is(whole))
            && Geometry::of(&self.tensors, tensor).is_ok_and(|own| own.covers(lies.bytes))
        {
            if value.is_none() && self.tensors.elements(tensor)? != 0 {
                self.adopt(lies.start);
            }
            return Ok(undefined());
        }
        let is_pattern = targets.pattern.as_ref().is_some_and(|pattern| pattern.is(whole));
        let is_of_no_matter = is_pattern
            || value.is_none()
                && (self.tensors.elements(tensor)? == 0 || call.only_writes(name, whole));
        Ok(if is_of_no_matter { undefined() } else { value })
    }

    /// Before a call with a tensor of the card's among its arguments.
    pub(crate) fn before<'py>(&self, call: &Call<'_, 'py>) -> PyResult<Before<'py>> {
        let py = call.args.py();
        let (name, is_random) = self.name(call.function)?;
        let targets =
            Targets { overwritten: self.overwritten(call, &name)?, pattern: call.pattern(&name) };
        let mut before = Before {
            name,
            given: Vec::new(),
            kept: None,
            geometries: Vec::new(),
            is_unknown: false,
            is_followed: false,
            is_opaque: false,
            renewed: Vec::new(),
            seed: None,
        };
        let mut look = |tensor: &Bound<'py, PyAny>| self.look(call, &targets, tensor, &mut before);
        let mut can_keep = true;
        let mut args = Vec::with_capacity(call.args.len());
        for arg in call.args.iter() {
            match self.kinds.keep(&self.tensors, &arg, &mut look)? {
                Some(arg) => args.push(arg),
                None => can_keep = false,
            }
        }
        let mut named = Vec::new();
        for (key, arg) in call.kwargs.into_iter().flat_map(|kwargs| kwargs.iter()) {
            match self.kinds.keep(&self.tensors, &arg, &mut look)? {
                Some(arg) => named.push((key.extract()?, arg)),
                None => can_keep = false,
            }
        }
        before.seed = if is_random && can_keep { self.seed(py, call)? } else { None };
        before.kept = can_keep.then_some((args, named));
        Ok(before)
    }

    /// One tensor of a call, and its number among those that are kept.
    fn look<'py>(
        &self,
        call: &Call<'_, 'py>,
        targets: &Targets<'py>,
        whole: &Bound<'py, PyAny>,
        before: &mut Before<'py>,
    ) -> PyResult<Option<usize>> {
        let number = before.given.len();
        let ordinary = self.tensors.ordinary(whole)?;
        let tensor = ordinary.as_ref().unwrap_or(whole);
        let lies = ordinary.as_ref().and_then(|tensor| self.tensors.lies_at(tensor).ok());
        let Some(lies) = lies else {
            self.look_into(whole, before)?;
            return Ok(Some(usize::MAX));
        };
        let is_cuda = self.tensors.is_cuda(tensor)?;
        let mut value = None;
        let mut geometry = None;
        if is_cuda {
            value = self.held(call, &before.name, (whole, tensor, &lies), targets)?;
            // A nested tensor has no sizes.
            geometry = value.as_ref().and_then(|_| Geometry::of(&self.tensors, tensor).ok());
            before.is_unknown |= geometry.is_none();
        } else if self.is_unknown_of_host(&lies) {
            let is_over = targets.overwritten.iter().any(|target| target.is(whole))
                && Geometry::of(&self.tensors, tensor).is_ok_and(|own| own.covers(lies.bytes));
            match is_over {
                true => before.renewed.push(tensor.clone()),
                false => before.is_unknown = true,
            }
        }
        before.given.push(Given {
            tensor: tensor.clone(),
            whole: (!tensor.is(whole)).then(|| whole.clone()),
            storage: lies.storage,
            lies: is_cuda.then_some(lies),
            value,
            version: self.tensors.version(tensor).ok(),
        });
        before.geometries.push(geometry);
        Ok(Some(number))
    }

    /// It has a class of its own, or a transform of `torch.func` has wrapped it: what it does is not followed, but it may
    /// write to what it is made of.
    fn look_into<'py>(&self, tensor: &Bound<'py, PyAny>, before: &mut Before<'py>) -> PyResult<()> {
        before.is_unknown = true;
        if self.follows(tensor) {
            before.is_followed = true;
            return Ok(());
        }
        let parts = self.parts(tensor)?;
        before.is_opaque |= parts.is_empty() && self.hides_memory(tensor)?;
        before.geometries.extend(parts.iter().map(|_| None));
        before.given.extend(parts);
        Ok(())
    }

    /// Whether a tensor of a class of its own may have memory of which it does not tell.
    fn hides_memory(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(!self.tensors.is_plain(tensor)
            && self.tensors.is_cuda(tensor)?
            && self.tensors.elements(tensor)? != 0)
    }

    /// What lies on the card of a tensor that is no ordinary one.
    fn parts<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Vec<Given<'py>>> {
        if !self.tensors.is_cuda(tensor)? {
            return Ok(Vec::new());
        }
        let parts = self.tensors.storages(tensor)?.into_iter().map(|part| {
            let lies = self.tensors.lies_at(&part)?;
            Ok(Given {
                version: self.tensors.version(&part).ok(),
                tensor: part,
                whole: Some(tensor.clone()),
                storage: lies.storage,
                lies: Some(lies),
                value: None,
            })
        });
        parts.collect()
    }

    /// The arguments whose every element gets a new value, in which the old ones have no part.
    fn overwritten<'py>(
        &self,
        call: &Call<'_, 'py>,
        name: &str,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let is_first = OVERWRITES.contains(&name);
        let targets = match is_first {
            true => call.args.get_item(0).into_iter().collect(),
            false => call.out()?,
        };
        let read = call.args.iter().skip(usize::from(is_first));
        let storages: Vec<usize> = read
            .filter(|arg| self.tensors.is_tensor(arg))
            .filter_map(|arg| self.tensors.lies_at(&arg).ok())
            .map(|lies| lies.storage)
            .collect();
        let is_read = |target: &Bound<'py, PyAny>| {
            let lies = self.tensors.lies_at(target);
            lies.is_ok_and(|lies| storages.contains(&lies.storage))
        };
        Ok(targets
            .into_iter()
            .filter(|target| self.tensors.is_tensor(target) && !is_read(target))
            .collect())
    }
}
