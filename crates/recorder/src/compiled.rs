//! Allocations of code that torch's compiler made, which belong to parts of the model as those of any other code do.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use notes::parts::Part;
use notes::{Frame, Made, Map};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use recording::{Event, OwnerId};

use crate::entry::Entry;
use crate::lock::lock;
use crate::note_taker::NoteTaker;
use crate::texts::Text;
use crate::writing::CardFile;

/// The backward pass of such code.
const PASS: &str = "CompiledFunctionBackward";

type Line = (String, String, u32);

/// The module's number, the operator, the node, the frames of the script, and the tensor.
type Origin = (u32, Text, Text, Vec<(Text, Text, u32)>, Text);

/// Who is asked about such code, once there is any.
#[derive(Default)]
pub(crate) struct Compiled {
    is_there: AtomicBool,
    /// `Compiled.graphs`, whose keys are the files of such code, and `Compiled.origin`.
    asked: Mutex<Option<(Py<PyDict>, Py<PyAny>)>>,
}

impl Compiled {
    /// Whether any of the script's code was made by the compiler.
    pub(crate) fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Relaxed)
    }
}

/// Owners and tensors of a batch, by the indices of their events.
#[derive(Default)]
pub(crate) struct OfCompiled {
    pub(crate) owners: Map<usize, OwnerId>,
    pub(crate) forms: Map<usize, String>,
}

impl NoteTaker {
    /// Who owns what such code allocates; the frames that lead to it stay those of the history.
    pub(crate) fn of_compiled(
        &self,
        py: Python<'_>,
        writer: &mut CardFile,
        history: &[Entry<'_>],
        entries: &[notes::Entry],
    ) -> PyResult<OfCompiled> {
        let mut found = OfCompiled::default();
        let asked = lock(&self.compiled.asked);
        let Some((files, origin)) =
            asked.as_ref().map(|(files, origin)| (files.clone_ref(py), origin.clone_ref(py)))
        else {
            return Ok(found);
        };
        drop(asked);
        for (index, entry) in entries.iter().enumerate() {
            let Some(Event::Alloc { .. } | Event::OutOfMemory { .. }) = entry.event else {
                continue;
            };
            let frames = history[index].frames()?;
            let place = made_frame(files.bind(py), &frames)?;
            let (part, is_made) = self.quietly(|state| {
                let part =
                    state.parts.at(entry.serial).map_or_else(Part::default, |n| state.parts.get(n));
                (part, part.node.is_some_and(|node| state.words.text(node) == PASS))
            });
            let (file, line) = match place {
                Some(place) => (frames[place].0.as_str(), frames[place].2),
                // Autograd's own work has no frames of Python's.
                None if is_made && frames.is_empty() => ("", 0),
                None => continue,
            };
            let said = origin.bind(py).call1((file, line, part.module))?;
            if said.is_none() {
                continue;
            }
            let (module, operator, node, inner, form): Origin = said.extract()?;
            let inner = inner.into_iter().map(|(file, name, line)| (file.0, name.0, line));
            let lines = frames.iter().take(place.unwrap_or(0)).cloned().chain(inner);
            let frames: Vec<Frame> = lines
                .filter_map(|(file, function, line)| self.frame(file, function, line))
                .collect();
            let made = Made { module, stack: part.stack, operator: &operator.0, node: &node.0 };
            found.owners.insert(index, writer.owner_made(made, &frames));
            if !form.0.is_empty() {
                found.forms.insert(index, form.0);
            }
        }
        Ok(found)
    }
}

/// The innermost frame of such code.
fn made_frame(files: &Bound<'_, PyDict>, frames: &[Line]) -> PyResult<Option<usize>> {
    for (place, (file, _, _)) in frames.iter().enumerate().rev() {
        if files.contains(file)? {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

#[pymethods]
impl NoteTaker {
    /// From here on there is code that the compiler made.
    fn expect_compiled(&self, files: Py<PyDict>, origin: Py<PyAny>) {
        *lock(&self.compiled.asked) = Some((files, origin));
        self.compiled.is_there.store(true, Ordering::Relaxed);
    }
}
