//! What a function does to what is known: its results get recipes, and what it writes to another value.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::call::{Call, SILENT, is_in_place};
use super::geometry::Geometry;
use super::given::{Before, Given};
use super::ledger::Ledger;
use super::recipe::{Input, Output, OutputSlot, Recipe, Source};
use super::value::{State, Value};
use crate::tensors::Lies;

/// Steps of a path from here on lead to the parts of a sparse tensor.
pub(crate) const PART: usize = 1 << 32;

impl Ledger {
    /// After it: results are known if all that it was given was.
    pub(crate) fn after<'py>(
        &self,
        call: &Call<'_, 'py>,
        before: Before<'py>,
        result: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        if before.is_followed {
            return Ok(());
        }
        let py = result.py();
        for tensor in &before.renewed {
            self.forget(py, &self.tensors.lies_at(tensor)?)?;
        }
        let mut written = self.written(call, &before);
        if self.is_quiet() {
            // Weights stay as they were in the first step.
            written.retain(|number| !before.given[*number].is_modelled());
        }
        let mut fresh = Vec::new();
        self.fresh(result, &before, &mut Vec::new(), &mut fresh)?;
        if fresh.is_empty() && written.is_empty() {
            return Ok(());
        }
        let written: Vec<(usize, Bound<'py, PyAny>)> = written
            .into_iter()
            .map(|number| (number, before.given[number].tensor.clone()))
            .collect();
        if before.kept.is_none() || before.is_unknown {
            let is_of_host = before.given.iter().all(|given| given.lies.is_none());
            return self.lose_all(
                (&before.name, is_of_host),
                written.iter().map(|(_, tensor)| tensor).chain(fresh.iter().map(|row| &row.0)),
            );
        }
        if self.is_empty_maker(call, &before.name) {
            return fresh.iter().try_for_each(|(tensor, _)| self.leave_undefined(tensor));
        }
        let numbers: Vec<usize> = written.iter().map(|(number, _)| *number).collect();
        let is_norm = before.name.ends_with("norm");
        let name = before.name.clone();
        let Some(recipe) = self.recipe(py, call, before, &numbers)? else {
            return self.lose_all(
                (&name, false),
                written.iter().map(|(_, tensor)| tensor).chain(fresh.iter().map(|row| &row.0)),
            );
        };
        self.hand_out(py, Arc::new(recipe), fresh, written, is_norm)
    }

    /// Results, and what was written to, hold from here on what the recipe gives.
    fn hand_out<'py>(
        &self,
        py: Python<'py>,
        recipe: Arc<Recipe>,
        fresh: Vec<(Bound<'py, PyAny>, Vec<usize>)>,
        written: Vec<(usize, Bound<'py, PyAny>)>,
        is_norm: bool,
    ) -> PyResult<()> {
        let (mut outputs, mut made) = (Vec::new(), Vec::new());
        let fresh = fresh.into_iter().map(|(tensor, path)| (tensor, OutputSlot::Result(path)));
        let written =
            written.into_iter().map(|(number, tensor)| (tensor, OutputSlot::Written(number)));
        for (tensor, place) in fresh.chain(written) {
            let lies = self.tensors.lies_at(&tensor)?;
            if matches!(place, OutputSlot::Result(_)) {
                self.own(lies.start);
            }
            let (of_host, geometry) = match self.copied_span(py, &recipe, &place, &tensor)? {
                Some((bytes, geometry)) => (Some((bytes, geometry.copy(py))), geometry),
                None => match Geometry::of(&self.tensors, &tensor) {
                    Ok(geometry) => (None, geometry),
                    // Nested tensors have none.
                    Err(_) => {
                        self.forget(py, &lies)?;
                        continue;
                    }
                },
            };
            // Two results may be pieces of one storage.
            let same = made
                .iter()
                .find(|(_, other, _, _): &&(_, Lies, _, _)| other.storage == lies.storage);
            let value = match (&of_host, same) {
                (Some((bytes, _)), _) => Value::new(State::Made(recipe.clone()), *bytes),
                (None, Some((_, _, value, None))) => Arc::clone(value),
                (None, _) => Value::new(State::Made(recipe.clone()), lies.bytes),
            };
            if let OutputSlot::Written(number) = place
                && is_norm
                && let Some(Source::Card(before)) =
                    recipe.inputs.get(number).map(|input| &input.source)
            {
                // It is this value's first and only time.
                let _ = value.before.set(before.clone());
            }
            outputs.push(Output { value: Arc::downgrade(&value), place, geometry });
            made.push((tensor, lies, value, of_host.map(|(_, geometry)| geometry)));
        }
        // It is this recipe's first and only time.
        let _ = recipe.outputs.set(outputs);
        for (tensor, lies, value, copied) in made {
            match self.tensors.is_cuda(&tensor)? {
                true => self.put(&tensor, &lies, value)?,
                false => {
                    let geometry = match copied {
                        Some(geometry) => geometry,
                        None => Geometry::of(&self.tensors, &tensor)?,
                    };
                    self.arrive(&tensor, Some((value, geometry)), (&recipe.name, false))?;
                }
            }
        }
        Ok(())
    }

    /// Nobody has written to a tensor yet.
    fn leave_undefined(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let lies = self.tensors.lies_at(tensor)?;
        match self.tensors.is_cuda(tensor)? {
            true => self.put(tensor, &lies, Value::new(State::Undefined, lies.bytes)),
            false => Ok(()),
        }
    }

    /// A tensor of the host's that was written to is computed in a copy of what it spans, not of its whole storage:
    /// how many bytes that has, and where the elements lie in it.
    fn copied_span(
        &self,
        py: Python<'_>,
        recipe: &Recipe,
        place: &OutputSlot,
        tensor: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(u64, Geometry)>> {
        let OutputSlot::Written(number) = place else { return Ok(None) };
        let Input { source: Source::Host(bytes), geometry, .. } = &recipe.inputs[*number] else {
            return Ok(None);
        };
        let (size, _, _) = self.tensors.lies(tensor)?;
        Ok((size == geometry.size).then(|| (bytes.get().len() as u64, geometry.copy(py))))
    }

    /// What a call was given may have been written to, and nobody could say what.
    pub(crate) fn lose_given(&self, call: &Call<'_, '_>) {
        let named = call.kwargs.map(|kwargs| kwargs.values());
        let items = call.args.iter().chain(named.iter().flat_map(|named| named.iter()));
        for item in items.filter(|item| self.tensors.is_tensor(item)) {
            // One without a storage has nothing to lose.
            if let Ok(lies) = self.tensors.lies_at(&item) {
                let _ = self.forget(item.py(), &lies);
            }
        }
    }

    /// Nothing is known of these any more.
    fn lose_all<'a, 'py: 'a>(
        &self,
        (name, is_of_host): (&str, bool),
        tensors: impl Iterator<Item = &'a Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        for tensor in tensors {
            if !self.tensors.is_cuda(tensor)? {
                self.arrive(tensor, None, (name, is_of_host))?;
                continue;
            }
            let lies = self.tensors.lies_at(tensor)?;
            let geometry = Geometry::of(&self.tensors, tensor);
            let is_number =
                geometry.is_ok_and(|geometry| geometry.size.is_empty() && geometry.is_fraction);
            match is_number && self.tensors.is_ordinary(tensor)? {
                true => self.put(tensor, &lies, Value::new(State::Number, lies.bytes))?,
                false => self.forget(tensor.py(), &lies)?,
            }
        }
        Ok(())
    }

    /// Arguments that were written to, by their numbers: a storage once, though two of its views may be among them.
    fn written(&self, call: &Call<'_, '_>, before: &Before<'_>) -> Vec<usize> {
        let silent = silently_written(call, before);
        // What is known of the host's own memory needs no note.
        let is_of_card = before.given.iter().any(|given| given.lies.is_some())
            || before.is_unknown
            || before.kept.is_none();
        let mut found: Vec<usize> = Vec::new();
        for (number, given) in before.given.iter().enumerate() {
            let is_counted = given.version.is_some()
                && given.version != self.tensors.version(&given.tensor).ok();
            let storage =
                |number: usize| before.given[number].lies.as_ref().map(|lies| lies.storage);
            let is_known = storage(number).is_some()
                && found.iter().any(|other| storage(*other) == storage(number));
            if is_of_card && !is_known && (is_counted || silent.contains(&number)) {
                found.push(number);
            }
        }
        found
    }

    /// Tensors of a result that lie in no storage that the function was given, each with its path.
    fn fresh<'py>(
        &self,
        result: &Bound<'py, PyAny>,
        before: &Before<'py>,
        path: &mut Vec<usize>,
        into: &mut Vec<(Bound<'py, PyAny>, Vec<usize>)>,
    ) -> PyResult<()> {
        if self.tensors.is_tensor(result) {
            if let Some((_, parts, _)) = self.tensors.sparse_parts(result)? {
                for (number, part) in parts.iter().enumerate() {
                    path.push(PART + number);
                    self.fresh(part, before, path, into)?;
                    path.pop();
                }
                return Ok(());
            }
            let Some(tensor) = self.tensors.ordinary(result)? else { return Ok(()) };
            let Ok(lies) = self.tensors.lies_at(&tensor) else { return Ok(()) };
            let is_given = before.given.iter().any(|given| given.storage == lies.storage);
            if !is_given {
                into.push((tensor, path.clone()));
            }
            return Ok(());
        }
        let items: Vec<Bound<'py, PyAny>> = match result.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => match result.cast::<PyList>() {
                Ok(list) => list.iter().collect(),
                Err(_) => return Ok(()),
            },
        };
        for (number, item) in items.iter().enumerate() {
            path.push(number);
            self.fresh(item, before, path, into)?;
            path.pop();
        }
        Ok(())
    }
}

/// Arguments that are written to without being counted, by their numbers.
fn silently_written(call: &Call<'_, '_>, before: &Before<'_>) -> Vec<usize> {
    let name = &*before.name;
    let mut positions = Vec::new();
    if is_in_place(name) {
        positions.push(0);
    }
    if let Some((_, others)) = SILENT.iter().find(|(silent, _)| *silent == name)
        && (!name.ends_with("norm") || call.is_training())
    {
        positions.extend(*others);
    }
    let args = positions.into_iter().filter_map(|position| call.args.get_item(position).ok());
    // Elsewhere versions tell.
    let declared = match before.given.iter().any(|given| given.version.is_none()) {
        true => call.declared().unwrap_or_default(),
        false => Vec::new(),
    };
    let args: Vec<Bound<'_, PyAny>> =
        args.chain(call.out().unwrap_or_default()).chain(declared).collect();
    let is_in = |arg: &Bound<'_, PyAny>, tensor: &Bound<'_, PyAny>| {
        arg.is(tensor)
            || arg.cast::<PyList>().is_ok_and(|list| list.iter().any(|item| item.is(tensor)))
            || arg.cast::<PyTuple>().is_ok_and(|tuple| tuple.iter().any(|item| item.is(tensor)))
    };
    (0..before.given.len())
        .filter(|number| {
            let Given { tensor, whole, .. } = &before.given[*number];
            args.iter().any(|arg| is_in(arg, whole.as_ref().unwrap_or(tensor)))
        })
        .collect()
}
