//! What a function does to what is known: its results get recipes, and what it writes to another value.

use std::sync::{Arc, OnceLock};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple};

use super::arguments::Argument;
use super::geometry::Geometry;
use super::ledger::Ledger;
use super::recipe::{Input, Output, OutputSlot, Recipe, Source};
use super::value::{Bytes, State, Value};
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

/// Functions that write to other arguments than their first and do not count it, with the numbers of these. The first is
/// known by the underscore in a function's name: not every function counts that either.
const SILENT: [(&str, &[usize]); 6] = [
    ("batch_norm", &STATISTICS),
    ("instance_norm", &STATISTICS),
    ("cudnn_batch_norm", &STATISTICS),
    ("native_batch_norm", &STATISTICS),
    ("_amp_foreach_non_finite_check_and_unscale_", &[1]),
    ("_amp_update_scale_", &[1]),
];

/// Arguments of norms: running statistics, which a training pass writes to and does not compute with.
const STATISTICS: [usize; 2] = [3, 4];
/// The argument after these says whether it is one.
const IS_TRAINING: usize = 5;

/// Storages larger than this many times what a tensor of the host's spans are not copied whole.
const SPARSE: u64 = 4;

/// Steps of a path from here on lead to the parts of a sparse tensor.
pub(crate) const PART: usize = 1 << 32;

/// A call: its name, and what it is given.
pub(crate) struct Call<'a, 'py> {
    pub(crate) function: &'a Bound<'py, PyAny>,
    pub(crate) args: &'a Bound<'py, PyTuple>,
    pub(crate) kwargs: Option<&'a Bound<'py, PyDict>>,
}

impl<'py> Call<'_, 'py> {
    pub(crate) fn run(&self) -> PyResult<Bound<'py, PyAny>> {
        self.function.call(self.args, self.kwargs)
    }

    /// Of a norm: whether its running statistics are written to.
    fn is_training(&self) -> bool {
        self.args.get_item(IS_TRAINING).is_ok_and(|flag| flag.is_truthy().unwrap_or(true))
    }

    /// Whether a tensor is one of the statistics of a norm that trains.
    fn only_writes(&self, name: &str, tensor: &Bound<'py, PyAny>) -> bool {
        name.ends_with("norm")
            && self.is_training()
            && STATISTICS.iter().any(|at| self.args.get_item(*at).is_ok_and(|arg| arg.is(tensor)))
    }

    /// A tensor that only says which kind and size the result is to have: its values do not matter.
    fn pattern(&self, name: &str) -> Option<Bound<'py, PyAny>> {
        let position = match name {
            "type_as" | "to" => 1,
            _ if name.ends_with("_like") || name == "new" || name.starts_with("new_") => 0,
            _ => return None,
        };
        let pattern = self.args.get_item(position).ok()?;
        let is_once = self.args.iter().filter(|arg| arg.is(&pattern)).count() == 1;
        is_once.then_some(pattern)
    }

    /// Where it is told to write to.
    fn out(&self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Some(kwargs) = self.kwargs else { return Ok(Vec::new()) };
        let Some(out) = kwargs.get_item(intern!(self.args.py(), "out"))? else {
            return Ok(Vec::new());
        };
        Ok(match (out.cast::<PyTuple>(), out.cast::<PyList>()) {
            (Ok(tuple), _) => tuple.iter().collect(),
            (_, Ok(list)) => list.iter().collect(),
            _ if out.is_none() => Vec::new(),
            _ => vec![out],
        })
    }

    pub(crate) fn named(&self) -> Bound<'py, PyDict> {
        self.kwargs.cloned().unwrap_or_else(|| PyDict::new(self.args.py()))
    }
}

/// One tensor that a function was given.
struct Given<'py> {
    tensor: Bound<'py, PyAny>,
    storage: usize,
    /// `None` for one of the host's.
    lies: Option<Lies>,
    /// What it held.
    value: Option<Arc<Value>>,
    /// How often it had been written to; unknown in inference mode.
    version: Option<u64>,
}

/// Arguments of a call whose values do not matter to it.
struct Targets<'py> {
    /// Every element gets a new value.
    overwritten: Vec<Bound<'py, PyAny>>,
    /// It only says which kind and size the result is to have.
    pattern: Option<Bound<'py, PyAny>>,
}

/// Positional and named arguments.
type Kept = (Vec<Argument>, Vec<(String, Argument)>);

/// What is to be remembered of a call until it has run.
pub(crate) struct Before<'py> {
    name: Arc<str>,
    given: Vec<Given<'py>>,
    /// What it was called with, if that can be kept; numbers are of `given`.
    kept: Option<Kept>,
    geometries: Vec<Option<Geometry>>,
    /// Of a tensor that is not known, or not an ordinary one.
    is_unknown: bool,
    /// Of a class whose own code is seen: what the call did has been noted already.
    is_followed: bool,
    /// Tensors of the host's that held what is not known, of which nothing is left.
    renewed: Vec<Bound<'py, PyAny>>,
    seed: Option<(u64, u64)>,
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
            return Ok(self.watches_host()
                && self.tensors.is_ordinary(value)?
                && self.tensors.lies_at(value).is_ok_and(|lies| self.is_unknown_of_host(&lies)));
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

    /// What a tensor of the card's holds for a call; whatever the call does not look at counts as known.
    fn held<'py>(
        &self,
        call: &Call<'_, 'py>,
        name: &str,
        (tensor, lies): (&Bound<'py, PyAny>, &Lies),
        targets: &Targets<'py>,
    ) -> PyResult<Option<Arc<Value>>> {
        let undefined = || Some(Value::new(State::Undefined, lies.bytes));
        let value = self.value_at(tensor.py(), lies)?;
        if targets.overwritten.iter().any(|target| target.is(tensor))
            && Geometry::of(&self.tensors, tensor).is_ok_and(|own| own.covers(lies.bytes))
        {
            if value.is_none() && self.tensors.elements(tensor)? != 0 {
                self.adopt(lies.start);
            }
            return Ok(undefined());
        }
        let is_pattern = targets.pattern.as_ref().is_some_and(|pattern| pattern.is(tensor));
        let is_of_no_matter = is_pattern
            || value.is_none()
                && (self.tensors.elements(tensor)? == 0 || call.only_writes(name, tensor));
        Ok(if is_of_no_matter { undefined() } else { value })
    }

    /// Before a call with a tensor of the card's among its arguments.
    pub(crate) fn before<'py>(&self, call: &Call<'_, 'py>) -> PyResult<Before<'py>> {
        let py = call.args.py();
        let (name, is_random) = self.name(call.function)?;
        let mut given: Vec<Given<'py>> = Vec::new();
        let mut geometries = Vec::new();
        let (mut is_unknown, mut is_followed, mut can_keep) = (false, false, true);
        let mut renewed = Vec::new();
        let targets =
            Targets { overwritten: self.overwritten(call, &name)?, pattern: call.pattern(&name) };
        let mut look = |tensor: &Bound<'py, PyAny>| -> PyResult<Option<usize>> {
            let number = given.len();
            if !self.tensors.is_ordinary(tensor)? {
                is_unknown = true;
                is_followed |= self.follows(tensor);
                return Ok(Some(usize::MAX));
            }
            let is_cuda = self.tensors.is_cuda(tensor)?;
            // What a transform of `torch.func` has wrapped has no storage.
            let Ok(lies) = self.tensors.lies_at(tensor) else {
                is_unknown = true;
                return Ok(Some(usize::MAX));
            };
            let mut value = None;
            let mut geometry = None;
            if is_cuda {
                value = self.held(call, &name, (tensor, &lies), &targets)?;
                // A nested tensor has no sizes.
                geometry = value.as_ref().and_then(|_| Geometry::of(&self.tensors, tensor).ok());
                is_unknown |= geometry.is_none();
            } else if self.is_unknown_of_host(&lies) {
                let is_over = targets.overwritten.iter().any(|target| target.is(tensor))
                    && Geometry::of(&self.tensors, tensor).is_ok_and(|own| own.covers(lies.bytes));
                match is_over {
                    true => renewed.push(tensor.clone()),
                    false => is_unknown = true,
                }
            }
            let version = self.tensors.version(tensor).ok();
            given.push(Given {
                tensor: tensor.clone(),
                storage: lies.storage,
                lies: is_cuda.then_some(lies),
                value,
                version,
            });
            geometries.push(geometry);
            Ok(Some(number))
        };
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
        let seed = if is_random && can_keep { self.seed(py, call)? } else { None };
        let kept = can_keep.then_some((args, named));
        Ok(Before { name, given, kept, geometries, is_unknown, is_followed, renewed, seed })
    }

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
        let written = self.written(call, &before);
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

    fn recipe<'py>(
        &self,
        py: Python<'py>,
        call: &Call<'_, 'py>,
        before: Before<'py>,
        written: &[usize],
    ) -> PyResult<Option<Recipe>> {
        let Some((args, named)) = before.kept else { return Ok(None) };
        let mut inputs = Vec::with_capacity(before.given.len());
        for (number, (given, geometry)) in
            before.given.into_iter().zip(before.geometries).enumerate()
        {
            let is_written = written.contains(&number);
            let (source, geometry) = match (given.value, geometry) {
                (Some(value), Some(geometry)) => (Source::Card(value), geometry),
                _ => match self.copy_of_host(&given.tensor)? {
                    Some((bytes, geometry)) => (Source::Host(bytes), geometry),
                    None => return Ok(None),
                },
            };
            inputs.push(Input { source, geometry, is_written });
        }
        Ok(Some(Recipe {
            function: call.function.clone().unbind(),
            name: before.name,
            args,
            named,
            inputs,
            outputs: OnceLock::new(),
            autocast: self.autocast(py)?,
            seed: before.seed,
        }))
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
            if !self.tensors.is_ordinary(result)? {
                return Ok(());
            }
            let Ok(lies) = self.tensors.lies_at(result) else { return Ok(()) };
            let is_given = before.given.iter().any(|given| given.storage == lies.storage);
            if !is_given {
                into.push((result.clone(), path.clone()));
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

    /// What a tensor of the host's holds, copied; `None` if there is no room for it.
    fn copy_of_host(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<(Arc<Bytes>, Geometry)>> {
        let mut geometry = Geometry::of(&self.tensors, tensor)?;
        let (first, last) = geometry.span();
        let tensor = match last - first <= SPARSE * geometry.bytes() {
            true => tensor.clone(),
            false => {
                let whole = tensor.call_method0(intern!(tensor.py(), "contiguous"))?;
                geometry = Geometry::of(&self.tensors, &whole)?;
                whole
            }
        };
        let (first, last) = geometry.span();
        if !self.has_room(tensor.py(), last - first)? {
            return Ok(None);
        }
        let start = self.tensors.address(&tensor)?.unwrap_or(0) as *const u8;
        let length = (last - first) as usize;
        let bytes = match length {
            0 => Vec::new(),
            // SAFETY: a tensor of the host's, alive, whose elements lie in these bytes.
            _ => unsafe { std::slice::from_raw_parts(start, length) }.to_vec(),
        };
        geometry.offset = 0;
        Ok(Some((Bytes::new(bytes), geometry)))
    }
}

/// Arguments that are written to without being counted, by their numbers.
fn silently_written(call: &Call<'_, '_>, before: &Before<'_>) -> Vec<usize> {
    let name = &*before.name;
    let mut positions = Vec::new();
    if name.ends_with('_') && !name.ends_with("__") || name == "__setitem__" {
        positions.push(0);
    }
    if let Some((_, others)) = SILENT.iter().find(|(silent, _)| *silent == name)
        && (!name.ends_with("norm") || call.is_training())
    {
        positions.extend(*others);
    }
    let args = positions.into_iter().filter_map(|position| call.args.get_item(position).ok());
    let args: Vec<Bound<'_, PyAny>> = args.chain(call.out().unwrap_or_default()).collect();
    let is_in = |arg: &Bound<'_, PyAny>, tensor: &Bound<'_, PyAny>| {
        arg.is(tensor)
            || arg.cast::<PyList>().is_ok_and(|list| list.iter().any(|item| item.is(tensor)))
            || arg.cast::<PyTuple>().is_ok_and(|tuple| tuple.iter().any(|item| item.is(tensor)))
    };
    (0..before.given.len())
        .filter(|number| args.iter().any(|arg| is_in(arg, &before.given[*number].tensor)))
        .collect()
}
