//! The autograd graph before a backward pass: its nodes, and what each of them keeps.
//!
//! Nothing is unpacked that a hook has packed: a checkpoint would compute its block again.

use notes::local;
use notes::note::What;
use notes::parts::{Part, PartNumber};
use notes::text_table::Word;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use recording::Category;

use crate::hash::{Map, Set};
use crate::lock::lock;
use crate::note_taker::NoteTaker;
use crate::texts::Text;

/// Sequence numbers above this are of nodes that accumulate gradients: the ends of the graph.
const ENDS: u64 = 1 << 62;

/// The type of nodes that torch has made none for.
const SHARED: &str = "CppFunction";

/// The type of nodes that accumulate gradients.
const END: &str = "AccumulateGrad";

/// What nodes of one type keep.
pub(crate) struct Fields {
    /// Its name and the attribute that has it.
    fields: Vec<(Word, Py<PyString>)>,
    /// A Function of the user's may keep tensors in `ctx`.
    has_dict: bool,
    /// What its nodes are called; `None` if they share their type with others.
    name: Option<Word>,
    /// Whether they accumulate gradients: they keep nothing, and nothing follows.
    is_end: bool,
    /// Whether an interpolation may have made what they give.
    may_enlarge: bool,
    /// The type, so that its address stays its own.
    _kind: Py<PyAny>,
}

pub(crate) type FieldsOfTypes = Map<usize, std::sync::Arc<Fields>>;

/// Nodes that were seen; they are held, so that no other takes their address.
#[derive(Default)]
pub(crate) struct Seen {
    addresses: Set<usize>,
    nodes: Vec<Py<PyAny>>,
}

impl Seen {
    pub(crate) fn add(&mut self, node: &Bound<'_, PyAny>) -> bool {
        let is_new = self.addresses.insert(node.as_ptr() as usize);
        if is_new {
            self.nodes.push(node.clone().unbind());
        }
        is_new
    }
}

/// Sequence numbers between which hooks pack what is saved; `None` where torch can say what they keep.
pub(crate) type Hooked = Option<Vec<u64>>;

/// A node of the graph.
struct Node<'py> {
    object: Bound<'py, PyAny>,
    sequence: u64,
    name: Word,
    part: Option<(PartNumber, Part)>,
}

/// Announces that a node runs.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct EnterNode {
    note_taker: Py<NoteTaker>,
    part: PartNumber,
}

#[pymethods]
impl EnterNode {
    fn __call__(&self, py: Python<'_>, gradients: &Bound<'_, PyTuple>) -> PyResult<()> {
        let party = self.note_taker.get().party.get();
        if !party.is_over() {
            party.hold(py, "a node", || self.enter(py, gradients))?;
        }
        Ok(())
    }
}

impl EnterNode {
    fn enter(&self, py: Python<'_>, gradients: &Bound<'_, PyTuple>) -> PyResult<()> {
        let note_taker = self.note_taker.get();
        // First, since the node may free them.
        note_taker.torch.undisturbed(py, || {
            gradients
                .iter()
                .filter(|gradient| !gradient.is_none())
                .try_for_each(|gradient| note_taker.tensor(&gradient).map(drop))
        })?;
        local::with(note_taker.id, |local| local.part = self.part);
        note_taker.begin(py, self.part)?;
        Ok(())
    }
}

impl NoteTaker {
    /// Every node that a backward pass from these can reach, but for those seen before: what it keeps is noted, and it
    /// will announce itself if there are `handles` for that.
    pub(crate) fn note_graph<'py>(
        this: &Bound<'py, NoteTaker>,
        roots: Vec<Bound<'py, PyAny>>,
        seen: &mut Seen,
        holder: Option<Word>,
        hooked: &Hooked,
        handles: Option<&Bound<'py, PyList>>,
        on_convolution: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let (py, note_taker) = (this.py(), this.get());
        let convolution = note_taker.quietly(|state| state.words.of("ConvolutionBackward0"));
        let mut waiting: Vec<_> = roots.into_iter().filter(|node| seen.add(node)).collect();
        while let Some(object) = waiting.pop() {
            if note_taker.fields(&object)?.is_end {
                continue;
            }
            let following = following(&object)?;
            for node in following.iter().filter(|node| !node.is_none()) {
                if seen.add(node) {
                    waiting.push(node.clone());
                }
            }
            let node = note_taker.node(object)?;
            note_taker.note_saved(&node, holder, hooked)?;
            let (Some((part, what)), Some(handles)) = (node.part, handles) else { continue };
            if node.name == convolution
                && let (Some(look), Some(source)) = (on_convolution, following.first())
                && !source.is_none()
                && note_taker.fields(source)?.may_enlarge
            {
                look.call1((&node.object, what.module))?;
            }
            let enter = EnterNode { note_taker: this.clone().unbind(), part };
            handles.append(node.object.call_method1(intern!(py, "register_prehook"), (enter,))?)?;
        }
        Ok(())
    }

    /// A node, with the function of the forward pass that made it as a part of the backward pass.
    fn node<'py>(&self, object: Bound<'py, PyAny>) -> PyResult<Node<'py>> {
        let py = object.py();
        let sequence: u64 = object.call_method0(intern!(py, "_sequence_nr"))?.extract()?;
        let name = match self.fields(&object)?.name {
            Some(name) => name,
            None => self.node_name(&object)?,
        };
        let made_by = local::with(self.id, |local| local.made_by(sequence));
        let part = (sequence <= ENDS).then(|| {
            self.quietly(|state| {
                let Part { module, stack, .. } = state.parts.get(made_by);
                let part = Part { module, function: 0, stack, node: Some(name) };
                (state.parts.number(part), part)
            })
        });
        Ok(Node { object, sequence, name, part })
    }

    fn node_name(&self, node: &Bound<'_, PyAny>) -> PyResult<Word> {
        let name = node.call_method0(intern!(node.py(), "name"))?.cast_into::<PyString>()?;
        let name = Text::of(&name);
        Ok(self.quietly(|state| state.words.of(&name)))
    }

    /// The line that made a node, in words.
    pub(crate) fn holder(&self, node: &Bound<'_, PyAny>) -> PyResult<Option<Word>> {
        let Some((_, part)) = self.node(node.clone())?.part else { return Ok(None) };
        let Some(line) = self.user_line(node.py(), part.stack)? else { return Ok(None) };
        let text = format!("the result of {line}");
        Ok(Some(self.quietly(|state| state.words.of(&text))))
    }

    fn note_saved(&self, node: &Node<'_>, holder: Option<Word>, hooked: &Hooked) -> PyResult<()> {
        for (field, tensor) in self.saved_by(&node.object, node.sequence, hooked)? {
            self.note_kept(node, field, &tensor, holder)?;
        }
        Ok(())
    }

    /// (name, tensor) for each tensor that a node keeps as it is.
    pub(crate) fn saved_by<'py>(
        &self,
        node: &Bound<'py, PyAny>,
        sequence: u64,
        hooked: &Hooked,
    ) -> PyResult<Vec<(Word, Bound<'py, PyAny>)>> {
        let (py, mut found) = (node.py(), Vec::new());
        if let Some(bounds) = hooked
            && bounds.partition_point(|bound| *bound <= sequence) % 2 == 1
        {
            return Ok(found);
        }
        let fields = self.fields(node)?;
        for (name, field) in &fields.fields {
            // Freed by an earlier backward pass, if it fails.
            let Ok(value) = node.getattr(field.bind(py)) else { continue };
            let tensors = parts(&value).into_iter().filter_map(|part| self.unpacked(part));
            found.extend(tensors.map(|tensor| (*name, tensor)));
        }
        if fields.has_dict {
            let own = node.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
            for (name, value) in own.iter().filter(|(_, value)| self.tensors.is_tensor(value)) {
                let name = Text::str(&name)?;
                found.push((self.quietly(|state| state.words.of(&name)), value));
            }
        }
        Ok(found)
    }

    fn note_kept(
        &self,
        node: &Node<'_>,
        field: Word,
        tensor: &Bound<'_, PyAny>,
        holder: Option<Word>,
    ) -> PyResult<()> {
        let is_ordinary = self.tensors.is_ordinary(tensor)?;
        if !is_ordinary && !self.tensors.is_cuda(tensor)? {
            return Ok(());
        }
        let py = tensor.py();
        let module = node.part.map_or(0, |(_, part)| part.module);
        let kept = (node.name, field, module);
        let word = match self.quietly(|state| state.words.kept(&kept)) {
            Some(word) => word,
            None => {
                let path = self.modules.path(py, module)?;
                self.quietly(|state| state.words.set_kept(kept, &path))
            }
        };
        let area = if is_ordinary { None } else { self.area_of(tensor)? };
        let tensors = &self.tensors;
        for part in tensors.storages(tensor)? {
            let (Some(device), own @ 1..) = (tensors.card(&part)?, tensors.bytes(&part)?) else {
                continue;
            };
            let (Some(address), Some((start, bytes))) =
                (tensors.address(&part)?, tensors.storage(&part)?)
            else {
                continue;
            };
            let is_whole = own == bytes && part.is(tensor);
            let form = is_whole.then(|| tensors.form(&part)).transpose()?.flatten();
            self.quietly(|state| state.saved.add(start, bytes));
            let form = form.map(|(dtype, shape)| self.form(&dtype, &shape)).transpose()?;
            let name = What::Name { category: Category::Activations, word };
            let area = area.map(|word| What::Area { word });
            let form = form.map(|word| What::Tensor { word });
            let holder = holder.map(|word| What::Holder { word });
            let said = [Some(name), area, form, holder];
            self.note(py, device, address, said.into_iter().flatten())?;
        }
        Ok(())
    }

    /// The area of an activation that is a DTensor: each rank has a part of it, or all of it.
    fn area_of(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<Word>> {
        let py = tensor.py();
        if !tensor.hasattr(intern!(py, "placements"))? {
            return Ok(None);
        }
        let said: Text = self.layout.bind(py).call1((tensor,))?.extract()?;
        Ok(Some(self.quietly(|state| state.words.of(&said))))
    }

    fn fields(&self, node: &Bound<'_, PyAny>) -> PyResult<std::sync::Arc<Fields>> {
        let kind = node.get_type();
        let key = kind.as_ptr() as usize;
        if let Some(known) = lock(&self.fields).get(&key) {
            return Ok(known.clone());
        }
        let listed: Vec<(String, Py<PyString>)> =
            self.fields_of.bind(node.py()).call1((node,))?.extract()?;
        let has_dict = node.hasattr(intern!(node.py(), "__dict__"))?;
        let kind_name = kind.name()?;
        let is_shared = kind_name.to_string_lossy().ends_with(SHARED);
        let is_end = kind_name.to_string_lossy().ends_with(END);
        let name = if is_shared { None } else { Some(self.node_name(node)?) };
        let may_enlarge = match name {
            Some(_) => {
                let name = node.call_method0(intern!(node.py(), "name"))?;
                self.may_enlarge.bind(node.py()).call1((name,))?.is_truthy()?
            }
            None => true,
        };
        let fields = self.quietly(|state| {
            listed.into_iter().map(|(name, field)| (state.words.of(&name), field)).collect()
        });
        let fields = std::sync::Arc::new(Fields {
            fields,
            has_dict,
            name,
            is_end,
            may_enlarge,
            _kind: kind.into_any().unbind(),
        });
        lock(&self.fields).insert(key, fields.clone());
        Ok(fields)
    }

    /// The tensor that is kept; `None` if a hook keeps something else.
    fn unpacked<'py>(&self, saved: Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        if self.tensors.is_tensor(&saved) {
            return Some(saved);
        }
        let kept = saved.getattr(intern!(saved.py(), "data")).ok()?;
        self.tensors.is_tensor(&kept).then_some(kept)
    }
}

/// The nodes that run after a node; Python's `None` where there is none.
fn following<'py>(node: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let edges = node.getattr(intern!(node.py(), "next_functions"))?.cast_into::<PyTuple>()?;
    edges.iter().map(|edge| edge.cast::<PyTuple>()?.get_item(0)).collect()
}

/// What a field holds: one thing, or several.
fn parts<'py>(value: &Bound<'py, PyAny>) -> Vec<Bound<'py, PyAny>> {
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return tuple.iter().collect();
    }
    if let Ok(list) = value.cast::<PyList>() {
        return list.iter().collect();
    }
    vec![value.clone()]
}
