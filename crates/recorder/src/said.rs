//! What is said of tensors: what they are, and what they belong to.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use recording::{Category, Phase};

use crate::local;
use crate::notes::{Note, What};
use crate::scribe::Scribe;
use crate::torch;

pub(crate) fn category(name: &str) -> PyResult<Category> {
    Category::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("`{name}` is no category")))
}

impl Scribe {
    /// Says what a tensor is, if it is a whole one on the card.
    pub(crate) fn tensor(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.torch.is_ordinary(tensor)? && torch::is_cuda(tensor)? && !torch::is_view(tensor)? {
            let (device, address) = (torch::device(tensor)?, torch::address(tensor)?);
            let (dtype, shape) = torch::form(tensor)?;
            let mut state = self.lock();
            let word = state.words.form(&dtype, &shape)?;
            state.note(device, address, What::Tensor { word });
        }
        Ok(())
    }

    fn put(&self, tensor: &Bound<'_, PyAny>, what: What) -> PyResult<()> {
        for part in self.torch.storages(tensor)? {
            let (device, address) = (torch::device(&part)?, torch::address(&part)?);
            self.lock().note(device, address, what);
        }
        Ok(())
    }

    /// Results outside of modules that a factory made are inputs.
    pub(crate) fn note_input(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let (number, function) = local::with(self.id, |local| (local.part, local.function));
        let state = self.lock();
        let is_factory = state.functions[function as usize].is_factory;
        let is_outside = state.parts.get(number).module == 0;
        drop(state);
        if is_factory && is_outside && torch::is_cuda(result)? && !torch::is_made(result) {
            let mut state = self.lock();
            let text = format!("{}(…)", state.functions[function as usize].name);
            let word = state.words.of(&text);
            drop(state);
            self.put(result, What::Name { category: Category::Inputs, word })?;
        }
        Ok(())
    }
}

#[pymethods]
impl Scribe {
    /// What a tensor is.
    fn name(&self, kind: &str, name: &str, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let category = category(kind)?;
        let word = self.lock().words.of(name);
        self.put(tensor, What::Name { category, word })
    }

    /// What of distributed training a tensor belongs to.
    fn area(&self, area: &str, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let word = self.lock().words.of(area);
        self.put(tensor, What::Area { word })
    }

    /// Notes each (category, name, tensor), unless the same was said of this allocation before; the bytes at each address.
    /// What is made anew in each step, at the same address perhaps, `is_anew`.
    #[pyo3(signature = (named, is_anew = false))]
    fn all(&self, named: &Bound<'_, PyAny>, is_anew: bool) -> PyResult<HashMap<u64, u64>> {
        let mut noted = HashMap::new();
        let since = if is_anew { self.lock().parts.step() } else { 0 };
        for row in named.try_iter()? {
            let (kind, name, tensor): (Bound<'_, PyString>, Bound<'_, PyString>, Bound<'_, PyAny>) =
                row?.extract()?;
            if !torch::is_cuda(&tensor)? {
                continue;
            }
            let name = name.to_string_lossy();
            for part in self.torch.storages(&tensor)? {
                let address = torch::address(&part)?;
                // Of a view its own: gradients may share a bucket.
                noted.insert(address, torch::bytes(&part)?);
                let mut state = self.lock();
                let (word, serial) = (state.words.of(&name), state.parts.serial());
                let is_news = state.notes.is_news(address, word, serial, since);
                drop(state);
                if is_news {
                    let category = category(&kind.to_string_lossy())?;
                    self.put(&part, What::Name { category, word })?;
                    self.tensor(&part)?;
                }
            }
        }
        Ok(noted)
    }

    /// The phase that began with this part has ended, and has its name.
    fn phase(&self, serial: u64, device: u16, name: &str, step: u32) -> PyResult<()> {
        let phase = Phase::from_name(name);
        let phase = phase.ok_or_else(|| PyValueError::new_err(format!("`{name}` is no phase")))?;
        let what = What::Phase { phase, step };
        self.lock().notes.list.push(Note { serial, device, address: 0, what });
        Ok(())
    }
}
