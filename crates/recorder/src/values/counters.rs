//! The steps that optimizers and norm layers count: one number each, in every step, so that they are added at once.

use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};

use super::call::{Call, is_in_place};
use super::ledger::Ledger;
use super::value::{Bytes, State, Value};

impl Ledger {
    /// Whether a function has to do with single numbers that are no weights: the steps that an optimizer counts.
    pub(crate) fn is_counter(&self, call: &Call<'_, '_>) -> PyResult<bool> {
        let Ok(first) = call.args.get_item(0) else { return Ok(false) };
        let first = match first.cast::<PyList>() {
            Ok(list) if !list.is_empty() => list.get_item(0)?,
            _ => first,
        };
        if !self.tensors.is_tensor(&first) {
            let is_single = first.cast::<PyTuple>().is_ok_and(|size| size.is_empty());
            return Ok(is_single && &*self.name(call.function)?.0 == "zeros");
        }
        Ok(self.tensors.is_ordinary(&first)?
            && self.tensors.elements(&first)? == 1
            && !self.tensors.requires_gradient(&first)?)
    }

    /// Whether a function changes something that is known and is no weight: an optimizer that steps may have its own.
    pub(crate) fn writes_to_what_is_known(&self, call: &Call<'_, '_>) -> PyResult<bool> {
        let mut targets = call.out()?;
        targets.extend(call.declared()?);
        if is_in_place(&self.name(call.function)?.0) {
            targets.extend(call.args.get_item(0));
        }
        for target in targets {
            let is_one = match target.cast::<PyList>() {
                Ok(list) => {
                    let mut items = list.iter();
                    items.try_fold(false, |is_one, item| {
                        Ok::<_, PyErr>(is_one || self.is_known(&item)?)
                    })?
                }
                Err(_) => self.is_known(&target)?,
            };
            if is_one {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether it is a tensor of the card's whose value is known, and is no weight's.
    fn is_known(&self, target: &Bound<'_, PyAny>) -> PyResult<bool> {
        if !self.tensors.is_tensor(target) || !self.tensors.is_cuda(target)? {
            return Ok(false);
        }
        for part in self.tensors.storages(target)? {
            let value = self.value_at(part.py(), &self.tensors.lies_at(&part)?)?;
            if value.is_some_and(|value| !value.is_modelled.load(Relaxed)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a number to a known count, as every norm layer does in every step; whether it was one.
    pub(crate) fn count(&self, call: &Call<'_, '_>) -> PyResult<bool> {
        if &*self.name(call.function)?.0 != "add_"
            || call.args.len() != 2
            || call.kwargs.is_some_and(|named| !named.is_empty())
        {
            return Ok(false);
        }
        let (count, number) = (call.args.get_item(0)?, call.args.get_item(1)?);
        let Ok(number) = number.cast_exact::<PyInt>().map(|number| number.extract::<i64>()) else {
            return Ok(false);
        };
        if !self.tensors.is_tensor(&count)
            || !self.tensors.is_ordinary(&count)?
            || !self.tensors.is_cuda(&count)?
        {
            return Ok(false);
        }
        let Ok(lies) = self.tensors.lies_at(&count) else { return Ok(false) };
        let (_, itemsize, is_fraction) = self.tensors.kind(&count)?;
        if lies.bytes != 8 || itemsize != 8 || is_fraction {
            return Ok(false);
        }
        let Some(State::Data(bytes)) = self.value_at(count.py(), &lies)?.map(|value| value.state())
        else {
            return Ok(false);
        };
        let Ok(old) = bytes.get().try_into().map(i64::from_le_bytes) else { return Ok(false) };
        let new = old.wrapping_add(number?).to_le_bytes().to_vec();
        self.put(&count, &lies, Value::new(State::Data(Bytes::new(new)), lies.bytes))?;
        Ok(true)
    }
}
