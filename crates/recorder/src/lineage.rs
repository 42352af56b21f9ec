//! What tensors come of: whether an output of a model is behind them, or a token that was drawn from one.
//!
//! A model that is given nothing of its own making begins a new round of inference; one that is given what came of its
//! last call goes on with the same one. Storages are known by where they begin; what a function makes anew of other
//! things there is forgotten.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::hash::Map;
use crate::lock::lock;
use crate::tensors::Tensors;
use crate::values::Call;

/// An output of a model is behind it.
pub(crate) const OUTPUT: u8 = 1;
/// It is a token that was drawn, or made of such.
pub(crate) const TOKEN: u8 = 2;

#[derive(Default)]
pub(crate) struct Lineage {
    is_followed: AtomicBool,
    /// Marks of storages, by where they begin.
    marks: Mutex<Map<u64, u8>>,
}

impl Lineage {
    pub(crate) fn follow(&self, is_followed: bool) {
        self.is_followed.store(is_followed, Ordering::Relaxed);
        if !is_followed {
            lock(&self.marks).clear();
        }
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.is_followed.load(Ordering::Relaxed)
    }

    /// A function has run: what it gave comes of what it was given; of a draw, whole numbers are tokens.
    pub(crate) fn pass_on(
        &self,
        tensors: &Tensors,
        call: &Call<'_, '_>,
        result: &Bound<'_, PyAny>,
        is_draw: bool,
    ) -> PyResult<()> {
        let mut mark = if is_draw { TOKEN } else { 0 };
        each_tensor(tensors, call.args.as_any(), &mut |tensor| {
            mark |= self.mark_of(tensors, tensor)?;
            Ok(())
        })?;
        for value in call.kwargs.iter().flat_map(|kwargs| kwargs.values()) {
            each_tensor(tensors, &value, &mut |tensor| {
                mark |= self.mark_of(tensors, tensor)?;
                Ok(())
            })?;
        }
        each_tensor(tensors, result, &mut |tensor| self.set(tensors, tensor, mark))
    }

    /// A tensor has this mark, and no other.
    pub(crate) fn set(
        &self,
        tensors: &Tensors,
        tensor: &Bound<'_, PyAny>,
        mark: u8,
    ) -> PyResult<()> {
        let Some((start, _)) = tensors.storage(tensor)? else { return Ok(()) };
        let is_token = mark & TOKEN != 0 && is_whole_number(tensors, tensor)?;
        let mark = if is_token { mark } else { mark & !TOKEN };
        let mut marks = lock(&self.marks);
        match mark {
            0 => marks.remove(&start),
            mark => marks.insert(start, mark),
        };
        Ok(())
    }

    pub(crate) fn mark_of(&self, tensors: &Tensors, tensor: &Bound<'_, PyAny>) -> PyResult<u8> {
        let Some((start, _)) = tensors.storage(tensor)? else { return Ok(0) };
        Ok(lock(&self.marks).get(&start).copied().unwrap_or(0))
    }
}

/// Neither a fraction nor a truth.
fn is_whole_number(tensors: &Tensors, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (_, bytes, is_fraction) = tensors.kind(tensor)?;
    Ok(!is_fraction && bytes != 1)
}

/// Tensors in lists, tuples and dictionaries.
fn each_tensor(
    tensors: &Tensors,
    value: &Bound<'_, PyAny>,
    visit: &mut dyn FnMut(&Bound<'_, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    if tensors.is_tensor(value) {
        return visit(value);
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple.iter().try_for_each(|item| each_tensor(tensors, &item, visit))
    } else if let Ok(list) = value.cast::<PyList>() {
        list.iter().try_for_each(|item| each_tensor(tensors, &item, visit))
    } else if let Ok(dict) = value.cast::<PyDict>() {
        dict.values().iter().try_for_each(|item| each_tensor(tensors, &item, visit))
    } else {
        Ok(())
    }
}
