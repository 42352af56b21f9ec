//! Texts that notes refer to by number: names, and what tensors are.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::hash::Map;

/// Tensors of more dimensions are looked up by their text.
const DIMENSIONS: usize = 8;

/// Sizes, filled up with -1.
type Sizes = [i64; DIMENSIONS];

/// The number of a text.
pub(crate) type Word = u32;

#[derive(Default)]
pub(crate) struct Words {
    list: Vec<String>,
    numbers: HashMap<String, Word>,
    forms: Map<(usize, Sizes), Word>,
    /// Nodes of the backward pass keep (name of the node, name of what it keeps, module).
    kept: Map<(Word, Word, u32), Word>,
}

impl Words {
    pub(crate) fn of(&mut self, text: &str) -> Word {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as Word;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub(crate) fn text(&self, word: Word) -> &str {
        &self.list[word as usize]
    }

    /// `float32[32, 64]`
    pub(crate) fn form(
        &mut self,
        dtype: &Bound<'_, PyAny>,
        shape: &Bound<'_, PyTuple>,
    ) -> PyResult<Word> {
        let key = sizes(shape)?.map(|sizes| (dtype.as_ptr() as usize, sizes));
        if let Some(known) = key.and_then(|key| self.forms.get(&key)) {
            return Ok(*known);
        }
        let name = dtype.str()?;
        let name = name.to_string_lossy();
        let sizes: Vec<String> =
            shape.iter().map(|size| Ok(size.str()?.to_string())).collect::<PyResult<_>>()?;
        let text = format!("{}[{}]", name.trim_start_matches("torch."), sizes.join(", "));
        let word = self.of(&text);
        if let Some(key) = key {
            self.forms.insert(key, word);
        }
        Ok(word)
    }

    /// `MulBackward0.self in encoder.layers.3`
    pub(crate) fn kept(
        &mut self,
        (node, field, module): (Word, Word, u32),
        path: impl FnOnce() -> PyResult<String>,
    ) -> PyResult<Word> {
        if let Some(word) = self.kept.get(&(node, field, module)) {
            return Ok(*word);
        }
        let path = path()?;
        let place = if path.is_empty() { String::new() } else { format!(" in {path}") };
        let text = format!("{}.{}{place}", self.text(node), self.text(field));
        let word = self.of(&text);
        self.kept.insert((node, field, module), word);
        Ok(word)
    }
}

fn sizes(shape: &Bound<'_, PyTuple>) -> PyResult<Option<Sizes>> {
    if DIMENSIONS < shape.len() {
        return Ok(None);
    }
    let mut sizes = [-1; DIMENSIONS];
    for (place, size) in sizes.iter_mut().zip(shape.iter()) {
        *place = size.extract()?;
    }
    Ok(Some(sizes))
}
