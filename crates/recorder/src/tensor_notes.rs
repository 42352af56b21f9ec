//! What is said of tensors: what they are, and what they belong to.

use std::collections::HashMap;

use notes::note::{Note, What};
use notes::text_table::{DIMENSIONS, Form, Word};
use notes::{State, local};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use recording::{Category, Phase};

use crate::note_taker::NoteTaker;
use crate::texts::Text;

pub(crate) fn category(name: &str) -> PyResult<Category> {
    Category::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("`{name}` is no category")))
}

impl NoteTaker {
    /// Says what a tensor is, if it is a whole one on the card; whether it is.
    pub(crate) fn tensor(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        let tensors = &self.tensors;
        if !tensors.is_ordinary(tensor)? {
            return self.of_own_class(tensor);
        }
        let Some(device) = tensors.card(tensor)? else { return Ok(false) };
        if tensors.is_view(tensor)? {
            return Ok(false);
        }
        let Some(address) = tensors.address(tensor)? else {
            return self.wrapped(tensor);
        };
        if let Some((dtype, shape)) = tensors.form(tensor)? {
            let word = self.form(&dtype, &shape)?;
            self.note(tensor.py(), device, address, [What::Tensor { word }])?;
        }
        Ok(true)
    }

    /// Says what a tensor of somebody's own class is, such as MONAI's: an ordinary one below.
    #[cold]
    fn of_own_class(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.tensors.is_plain(tensor) || !self.tensors.is_cuda(tensor)? {
            return Ok(false);
        }
        for part in self.tensors.storages(tensor)? {
            let own = self.tensors.bytes(&part)?;
            let is_whole = self.tensors.storage(&part)?.is_some_and(|(_, bytes)| bytes == own);
            let (Some(device), Some(address), true) =
                (self.tensors.card(&part)?, self.tensors.address(&part)?, is_whole)
            else {
                continue;
            };
            if let Some((dtype, shape)) = self.tensors.form(&part)? {
                let word = self.form(&dtype, &shape)?;
                self.note(tensor.py(), device, address, [What::Tensor { word }])?;
            }
        }
        Ok(false)
    }

    /// Says what a tensor is that another is wrapped around: that one has no memory of its own.
    #[cold]
    fn wrapped(&self, wrapper: &Bound<'_, PyAny>) -> PyResult<bool> {
        for part in self.tensors.storages(wrapper)? {
            if !part.is(wrapper) {
                self.tensor(&part)?;
            }
        }
        Ok(false)
    }

    /// Something is said of an address, after all that has happened so far.
    pub(crate) fn note(
        &self,
        py: Python<'_>,
        device: u16,
        address: u64,
        said: impl IntoIterator<Item = What> + Send,
    ) -> PyResult<()> {
        self.now(py, |state, serial| {
            let notes = said.into_iter().map(|what| Note { serial, device, address, what });
            state.notes.list.extend(notes);
        })
    }

    /// `float32[32, 64]`
    pub(crate) fn form(
        &self,
        dtype: &Bound<'_, PyAny>,
        shape: &Bound<'_, PyTuple>,
    ) -> PyResult<Word> {
        let form = form(dtype, shape)?;
        let known = form.and_then(|form| self.quietly(|state| state.words.form(&form)));
        if let Some(word) = known {
            return Ok(word);
        }
        let name = Text::str(dtype)?;
        let sizes: Vec<String> =
            shape.iter().map(|size| Text::str(&size)).collect::<PyResult<_>>()?;
        let text = format!("{}[{}]", name.trim_start_matches("torch."), sizes.join(", "));
        Ok(self.quietly(|state| state.words.set_form(form, &text)))
    }

    /// Works with the serial number of this thread's part, which begins again if another thread has begun one since:
    /// events of that may have come before what is said now.
    fn now<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut State, u64) -> R + Send,
    ) -> PyResult<R> {
        let serial = local::with(self.id, |local| local.serial());
        let done = self.quietly(move |state| match state.parts.serial() == serial {
            true => Ok(work(state, serial)),
            false => Err(work),
        });
        match done {
            Ok(result) => Ok(result),
            Err(work) => {
                let serial = self.resume(py)?;
                Ok(self.quietly(|state| work(state, serial)))
            }
        }
    }

    fn put(&self, tensor: &Bound<'_, PyAny>, what: What) -> PyResult<()> {
        for part in self.tensors.storages(tensor)? {
            let (card, address) = (self.tensors.card(&part)?, self.tensors.address(&part)?);
            if let (Some(device), Some(address)) = (card, address) {
                self.note(tensor.py(), device, address, [what])?;
            }
        }
        Ok(())
    }

    /// Gives a tensor its name, unless the allocation there got it before, since the part `since`; `seen` is told of all.
    fn note_named(
        &self,
        category: Category,
        name: &str,
        tensor: &Bound<'_, PyAny>,
        since: u64,
        mut seen: impl FnMut(u64, u64),
    ) -> PyResult<()> {
        for part in self.tensors.storages(tensor)? {
            let Some(address) = self.tensors.address(&part)? else { continue };
            // Of a view its own: gradients may share a bucket.
            seen(address, self.tensors.bytes(&part)?);
            let (word, is_news) = self.now(tensor.py(), |state, serial| {
                let word = state.words.of(name);
                (word, state.notes.is_news(address, word, serial, since))
            })?;
            if is_news {
                self.put(&part, What::Name { category, word })?;
                self.tensor(&part)?;
            }
        }
        Ok(())
    }

    /// The result of a function is what was said of it before.
    pub(crate) fn note_expected(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        match local::with(self.id, |local| local.expected.take()) {
            Some((category, word)) => self.put(result, What::Name { category, word }),
            None => Ok(()),
        }
    }

    /// Results outside of modules that a factory made are inputs.
    pub(crate) fn note_input(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let (number, function) = local::with(self.id, |local| (local.part, local.function));
        let is_brought = self.quietly(|state| {
            let is_outside = state.parts.get(number).module == 0;
            is_outside && state.functions[function as usize].is_factory
        });
        let tensors = &self.tensors;
        if is_brought && tensors.is_cuda(result)? && !tensors.is_made(result) {
            let word = self.quietly(|state| {
                let text = format!("{}(…)", state.functions[function as usize].name);
                state.words.of(&text)
            });
            self.put(result, What::Name { category: Category::Inputs, word })?;
        }
        Ok(())
    }
}

/// The form of a tensor as a key; `None` if it has too many dimensions.
fn form(dtype: &Bound<'_, PyAny>, shape: &Bound<'_, PyTuple>) -> PyResult<Option<Form>> {
    if DIMENSIONS < shape.len() {
        return Ok(None);
    }
    let mut sizes = [-1; DIMENSIONS];
    for (place, size) in sizes.iter_mut().zip(shape.iter()) {
        *place = size.extract()?;
    }
    Ok(Some((dtype.as_ptr() as usize, sizes)))
}

#[pymethods]
impl NoteTaker {
    /// What a tensor is.
    fn name(&self, kind: &str, name: Text, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let category = category(kind)?;
        let word = self.quietly(|state| state.words.of(&name));
        self.put(tensor, What::Name { category, word })
    }

    /// What the function that is about to run gives.
    fn expect(&self, kind: &str, name: Text) -> PyResult<()> {
        let category = category(kind)?;
        let word = self.quietly(|state| state.words.of(&name));
        local::with(self.id, |local| local.expected = Some((category, word)));
        Ok(())
    }

    /// What of distributed training a tensor belongs to.
    fn area(&self, area: Text, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let word = self.quietly(|state| state.words.of(&area));
        self.put(tensor, What::Area { word })
    }

    /// Notes each (category, name, tensor), unless the same was said of this allocation before; the bytes at each address.
    fn all(&self, named: &Bound<'_, PyAny>) -> PyResult<HashMap<u64, u64>> {
        let mut noted = HashMap::new();
        for row in named.try_iter()? {
            let (kind, name, tensor): (Text, Text, Bound<'_, PyAny>) = row?.extract()?;
            if self.tensors.is_cuda(&tensor)? {
                let category = category(&kind)?;
                self.note_named(category, &name, &tensor, 0, |address, bytes| {
                    noted.insert(address, bytes);
                })?;
            }
        }
        Ok(noted)
    }

    /// After a backward pass: notes the gradients of parameters, whose names are in `names` by their ids.
    fn gradients(
        &self,
        parameters: Vec<Bound<'_, PyAny>>,
        names: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        // They may be made anew in each step, at the same address.
        let since = self.quietly(|state| state.parts.step());
        for parameter in &parameters {
            let gradient = self.tensors.gradient(parameter)?;
            if gradient.is_none() || !self.tensors.is_cuda(&gradient)? {
                continue;
            }
            let name = names.get_item(parameter.as_ptr() as usize)?;
            let name = name.map_or(Ok("a parameter".to_owned()), |name| Text::str(&name))?;
            let (kind, name) = (Category::Gradients, format!("gradient of {name}"));
            self.note_named(kind, &name, &gradient, since, |_, _| {})?;
        }
        Ok(())
    }

    /// The phase that began with this part has ended, and has its name.
    fn phase(&self, serial: u64, device: u16, name: &str, step: u32) -> PyResult<()> {
        let phase = Phase::from_name(name);
        let phase = phase.ok_or_else(|| PyValueError::new_err(format!("`{name}` is no phase")))?;
        let what = What::Phase { phase, step };
        let note = Note { serial, device, address: 0, what };
        self.quietly(|state| state.notes.list.push(note));
        Ok(())
    }
}
