//! Arguments of a call, as a recipe keeps them: numbers and names, and tensors by number.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyNone, PyRange, PySlice, PyString, PyTuple,
    PyType,
};

use crate::tensors::Tensors;

/// Bytes of an array of NumPy's that a recipe may keep: an index, not a data set.
const LARGEST_ARRAY: usize = 16 << 20;

#[derive(Debug)]
pub(crate) enum Argument {
    /// A number, a name, a type: nothing that changes, and nothing that Python's collector counts.
    Constant(Py<PyAny>),
    /// By its number among the inputs.
    Tensor(usize),
    List(Vec<Argument>),
    Tuple(Vec<Argument>),
    /// A tuple with a class of its own.
    Record(Py<PyType>, Vec<Argument>),
    Slice(Box<[Argument; 3]>),
    /// A sparse tensor: its kind, its parts by their numbers among the inputs, and its size.
    Sparse(Py<PyAny>, Vec<usize>, Vec<i64>, bool),
    /// A card; the CPU when it is made.
    Device,
    /// A generator of random numbers: the recipe has a seed instead.
    Generator,
}

/// Types that are kept as they are.
pub(crate) struct Kinds {
    constants: Py<PyTuple>,
    device: Py<PyAny>,
    generator: Py<PyAny>,
    size: Py<PyAny>,
    /// The class of numbers that stand for others.
    stand_in: Py<PyAny>,
}

impl Kinds {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Kinds> {
        let torch = py.import("torch")?;
        let get = |name: &str| torch.getattr(name);
        let ellipsis = py.Ellipsis();
        let constants = PyTuple::new(
            py,
            [
                get("dtype")?,
                get("layout")?,
                get("memory_format")?,
                // The class of `torch.cuda.FloatTensor` and its like.
                get("FloatTensor")?.get_type().into_any(),
                ellipsis.bind(py).get_type().into_any(),
            ],
        )?;
        Ok(Kinds {
            constants: constants.unbind(),
            device: get("device")?.unbind(),
            generator: get("Generator")?.unbind(),
            size: get("Size")?.unbind(),
            stand_in: py.import("fathom._doorway.values.stand_ins")?.getattr("StandIn")?.unbind(),
        })
    }

    /// Whether it is a number that stands for one which nobody knows.
    pub(crate) fn is_stand_in(&self, value: &Bound<'_, PyAny>) -> bool {
        value.get_type_ptr().cast() == self.stand_in.as_ptr()
    }

    /// `None` for what cannot be kept.
    pub(crate) fn keep<'py>(
        &self,
        tensors: &Tensors,
        value: &Bound<'py, PyAny>,
        tensor: &mut impl FnMut(&Bound<'py, PyAny>) -> PyResult<Option<usize>>,
    ) -> PyResult<Option<Argument>> {
        if tensors.is_tensor(value) {
            if let Some((layout, parts, is_coalesced)) = tensors.sparse_parts(value)? {
                let mut numbers = Vec::new();
                for part in parts {
                    let Some(number) = tensor(&part)? else { return Ok(None) };
                    numbers.push(number);
                }
                return Ok(Some(Argument::Sparse(
                    layout,
                    numbers,
                    tensors.size(value)?,
                    is_coalesced,
                )));
            }
            return Ok(tensor(value)?.map(Argument::Tensor));
        }
        if let Some(kept) = self.constant(value)? {
            return Ok(Some(kept));
        }
        if let Ok(list) = value.cast_exact::<PyList>() {
            let mut items = Vec::with_capacity(list.len());
            for item in list.iter() {
                let Some(item) = self.keep(tensors, &item, tensor)? else { return Ok(None) };
                items.push(item);
            }
            return Ok(Some(Argument::List(items)));
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            let mut items = Vec::with_capacity(tuple.len());
            for item in tuple.iter() {
                let Some(item) = self.keep(tensors, &item, tensor)? else { return Ok(None) };
                items.push(item);
            }
            let class = tuple.get_type();
            let is_plain = class.is(py_tuple(value.py())) || class.is(&self.size);
            return Ok(Some(match is_plain {
                true => Argument::Tuple(items),
                false => Argument::Record(class.unbind(), items),
            }));
        }
        if let Ok(slice) = value.cast_exact::<PySlice>() {
            let mut end = |name: &str| self.keep(tensors, &slice.getattr(name)?, tensor);
            let (start, stop, step) = (end("start")?, end("stop")?, end("step")?);
            let ends = start.zip(stop).zip(step);
            return Ok(
                ends.map(|((start, stop), step)| Argument::Slice(Box::new([start, stop, step])))
            );
        }
        Ok(None)
    }

    fn constant(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<Argument>> {
        let py = value.py();
        let keep = || Ok(Some(Argument::Constant(value.clone().unbind())));
        // What is made with a number that nobody knows is not known either.
        if self.is_stand_in(value) {
            return Ok(None);
        }
        let is_number = value.is_instance_of::<PyInt>()
            || value.is_instance_of::<PyFloat>()
            || value.is_instance_of::<PyBool>()
            || value.is_instance_of::<PyNone>();
        if is_number || value.is_instance(self.constants.bind(py))? {
            return keep();
        }
        if let Ok(text) = value.cast::<PyString>() {
            let text = text.to_cow()?;
            let is_card = text == "cuda" || text.starts_with("cuda:");
            return if is_card { Ok(Some(Argument::Device)) } else { keep() };
        }
        if value.is_instance(self.device.bind(py))? {
            let is_card = value.getattr("type")?.eq("cuda")?;
            return if is_card { Ok(Some(Argument::Device)) } else { keep() };
        }
        if value.is_instance(self.generator.bind(py))? {
            return Ok(Some(Argument::Generator));
        }
        // Python's own classes stand for types (`dtype=int`); none of these changes.
        if value.is_instance_of::<PyComplex>()
            || value.is_instance_of::<PyRange>()
            || is_class_of_numbers(value)
        {
            return keep();
        }
        self.numpys(value)
    }

    /// Numbers and arrays of NumPy's, as indices often are: as they are now, since the script may write to an array later.
    fn numpys(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<Argument>> {
        let py = value.py();
        if value.get_type().module()? != "numpy" || !value.hasattr(intern!(py, "nbytes"))? {
            return Ok(None);
        }
        let kind: char =
            value.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
        let bytes: usize = value.getattr(intern!(py, "nbytes"))?.extract()?;
        if !"biufc".contains(kind) || bytes > LARGEST_ARRAY {
            return Ok(None);
        }
        Ok(Some(Argument::Constant(value.call_method0(intern!(py, "copy"))?.unbind())))
    }
}

/// `int`, `float`, `bool` and `complex` themselves.
fn is_class_of_numbers(value: &Bound<'_, PyAny>) -> bool {
    let py = value.py();
    let classes = [
        py.get_type::<PyInt>(),
        py.get_type::<PyFloat>(),
        py.get_type::<PyBool>(),
        py.get_type::<PyComplex>(),
    ];
    classes.iter().any(|class| value.is(class))
}

fn py_tuple(py: Python<'_>) -> &Bound<'_, PyType> {
    // The class lives as long as the interpreter.
    static CLASS: pyo3::sync::PyOnceLock<Py<PyType>> = pyo3::sync::PyOnceLock::new();
    CLASS.get_or_init(py, || py.get_type::<PyTuple>().unbind()).bind(py)
}

impl Argument {
    /// The argument again, with these tensors.
    pub(crate) fn give<'py>(
        &self,
        py: Python<'py>,
        tensors: &[Bound<'py, PyAny>],
        cpu: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let all = |items: &[Argument]| {
            items.iter().map(|item| item.give(py, tensors, cpu)).collect::<PyResult<Vec<_>>>()
        };
        Ok(match self {
            Argument::Constant(value) => value.bind(py).clone(),
            Argument::Tensor(number) => tensors[*number].clone(),
            Argument::List(items) => PyList::new(py, all(items)?)?.into_any(),
            Argument::Tuple(items) => PyTuple::new(py, all(items)?)?.into_any(),
            Argument::Record(class, items) => {
                class.bind(py).call1(PyTuple::new(py, all(items)?)?)?
            }
            Argument::Slice(ends) => {
                let slice = py.import("builtins")?.getattr("slice")?;
                slice.call1(PyTuple::new(py, all(&ends[..])?)?)?
            }
            Argument::Sparse(layout, parts, size, is_coalesced) => {
                let parts: Vec<_> = parts.iter().map(|number| tensors[*number].clone()).collect();
                let whole = (layout, parts, PyTuple::new(py, size)?, *is_coalesced);
                py.import("fathom._doorway.values.evaluate")?.call_method1("assembled", whole)?
            }
            Argument::Device => cpu.clone(),
            Argument::Generator => py.None().into_bound(py),
        })
    }
}

/// Positional and named arguments again.
pub(crate) fn give_all<'py>(
    py: Python<'py>,
    (args, named): (&[Argument], &[(String, Argument)]),
    tensors: &[Bound<'py, PyAny>],
    cpu: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
    let given = args.iter().map(|arg| arg.give(py, tensors, cpu)).collect::<PyResult<Vec<_>>>()?;
    let dict = PyDict::new(py);
    for (name, arg) in named {
        dict.set_item(name, arg.give(py, tensors, cpu)?)?;
    }
    Ok((PyTuple::new(py, given)?, dict))
}
