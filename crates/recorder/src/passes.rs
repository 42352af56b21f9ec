//! Backward passes: what they will need, and which node runs.

use notes::local;
use notes::note::What;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use recording::Category;

use crate::graph::{Hooked, Seen};
use crate::hash::Set;
use crate::note_taker::NoteTaker;

/// As nodes that keep something are called: `AddmmBackward0.mat1 in layers.0`.
fn kept_by_checkpoint(path: &str) -> String {
    if path.is_empty() {
        "checkpoint.input".to_owned()
    } else {
        format!("checkpoint.input in {path}")
    }
}

impl NoteTaker {
    /// A module has put this out.
    pub(crate) fn add_outputs(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = result.py();
        if !self.torch.is_grad_enabled(py)? {
            return Ok(());
        }
        // Mostly it is what the module's last function gave.
        let last = local::with(self.id, |local| local.result);
        if let Some((_, bytes)) = last.filter(|(object, _)| *object == result.as_ptr() as usize) {
            self.quietly(|state| state.saved.outputs += bytes);
            return Ok(());
        }
        let items = match result.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![result.clone()],
        };
        let bytes = self.torch.undisturbed(py, || {
            let mut bytes = 0;
            for item in items.iter().filter(|item| self.tensors.is_tensor(item)) {
                if self.tensors.is_cuda(item)? {
                    for part in self.tensors.storages(item)? {
                        bytes += self.tensors.bytes(&part)?;
                    }
                }
            }
            Ok(bytes)
        })?;
        self.quietly(|state| state.saved.outputs += bytes);
        Ok(())
    }
}

#[pymethods]
impl NoteTaker {
    /// What was put out so far leads to no backward pass.
    fn forget_outputs(&self) {
        self.quietly(|state| state.saved.forget());
    }

    /// Whether what runs now is part of a backward pass: a block is computed again.
    fn is_recomputing(&self) -> bool {
        self.is_in_backward()
    }

    /// A checkpoint keeps this for its block, which will be computed again: no node of the graph shows it.
    fn checkpointed(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let tensors = &self.tensors;
        if !tensors.is_cuda(tensor)? {
            return Ok(());
        }
        let (py, module) = (tensor.py(), self.module());
        let path = self.modules.path(py, module)?;
        let word = self.quietly(|state| state.words.of(&kept_by_checkpoint(&path)));
        for part in tensors.storages(tensor)? {
            let (Some(device), Some(address)) = (tensors.card(&part)?, tensors.address(&part)?)
            else {
                continue;
            };
            if let Some((start, bytes)) = tensors.storage(&part)? {
                self.quietly(|state| state.saved.wait(start, bytes));
            }
            let name = What::Name { category: Category::Activations, word };
            self.note(py, device, address, [name])?;
        }
        Ok(())
    }

    /// Bytes that were kept, and put out, where most was kept.
    fn saved(&self) -> (u64, u64) {
        self.quietly(|state| state.saved.most)
    }

    /// Before a backward pass: each node will announce itself, and what it keeps is noted. `trained` are parameters,
    /// whose own storages do not count as kept.
    fn begin_backward<'py>(
        this: &Bound<'py, Self>,
        roots: Vec<Bound<'py, PyAny>>,
        trained: Vec<Bound<'py, PyAny>>,
        hooked: Hooked,
        handles: &Bound<'py, PyList>,
        on_convolution: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let note_taker = this.get();
        let mut own = Set::default();
        for parameter in &trained {
            for part in note_taker.tensors.storages(parameter)? {
                own.extend(note_taker.tensors.address(&part)?);
            }
        }
        note_taker.quietly(|state| state.saved.begin(own));
        let mut seen = Seen::default();
        NoteTaker::note_graph(
            this,
            roots,
            &mut seen,
            None,
            &hooked,
            Some(handles),
            Some(on_convolution),
        )?;
        note_taker.quietly(|state| state.saved.end());
        Ok(())
    }

    /// The tensors that a node keeps as they are.
    fn kept_by<'py>(
        &self,
        node: &Bound<'py, PyAny>,
        hooked: Hooked,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let sequence = node.call_method0("_sequence_nr")?.extract()?;
        let kept = self.saved_by(node, sequence, &hooked)?;
        Ok(kept.into_iter().map(|(_, tensor)| tensor).collect())
    }

    /// Graphs that are alive outside of a backward pass, by their last nodes, the newest first.
    fn note_living<'py>(
        this: &Bound<'py, Self>,
        roots: Vec<Bound<'py, PyAny>>,
        hooked: Hooked,
        with_holders: bool,
    ) -> PyResult<()> {
        let mut seen = Seen::default();
        for root in roots {
            let holder = if with_holders { this.get().holder(&root)? } else { None };
            NoteTaker::note_graph(this, vec![root], &mut seen, holder, &hooked, None, None)?;
        }
        Ok(())
    }
}
