//! A call of a function of torch's: what it is given, and which of its arguments it writes to or does not look at.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// Functions that write to other arguments than their first and do not count it, with the numbers of these. The first is
/// known by the underscore in a function's name: not every function counts that either.
pub(super) const SILENT: [(&str, &[usize]); 6] = [
    ("batch_norm", &STATISTICS),
    ("instance_norm", &STATISTICS),
    ("cudnn_batch_norm", &STATISTICS),
    ("native_batch_norm", &STATISTICS),
    ("_amp_foreach_non_finite_check_and_unscale_", &[1]),
    ("_amp_update_scale_", &[1]),
];

/// Methods behind `x += 1` and its like. In inference mode nobody counts what they write.
const AUGMENTED: [&str; 13] = [
    "__iadd__",
    "__isub__",
    "__imul__",
    "__idiv__",
    "__itruediv__",
    "__ifloordiv__",
    "__imod__",
    "__ipow__",
    "__iand__",
    "__ior__",
    "__ixor__",
    "__ilshift__",
    "__irshift__",
];

/// Whether a function writes to its first argument, by its name.
pub(super) fn is_in_place(name: &str) -> bool {
    match name.ends_with("__") {
        true => name == "__setitem__" || AUGMENTED.contains(&name),
        false => name.ends_with('_'),
    }
}

/// Arguments of norms: running statistics, which a training pass writes to and does not compute with.
const STATISTICS: [usize; 2] = [3, 4];
/// The argument after these says whether it is one.
const IS_TRAINING: usize = 5;

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
    pub(super) fn is_training(&self) -> bool {
        self.args.get_item(IS_TRAINING).is_ok_and(|flag| flag.is_truthy().unwrap_or(true))
    }

    /// Whether a tensor is one of the statistics of a norm that trains.
    pub(super) fn only_writes(&self, name: &str, tensor: &Bound<'py, PyAny>) -> bool {
        name.ends_with("norm")
            && self.is_training()
            && STATISTICS.iter().any(|at| self.args.get_item(*at).is_ok_and(|arg| arg.is(tensor)))
    }

    /// A tensor that only says which kind and size the result is to have: its values do not matter.
    pub(super) fn pattern(&self, name: &str) -> Option<Bound<'py, PyAny>> {
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
    pub(super) fn out(&self) -> PyResult<Vec<Bound<'py, PyAny>>> {
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

    /// What an operator says itself that it writes to; a function of Python's says nothing.
    pub(super) fn declared(&self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = self.args.py();
        if self.function.get_type().module()? != "torch._ops" {
            return Ok(Vec::new());
        }
        let schemas = match self.function.getattr(intern!(py, "_schema")) {
            Ok(schema) => vec![schema],
            // Of all overloads: which one it was is not told.
            Err(_) => {
                let names: Vec<String> = self.function.call_method0("overloads")?.extract()?;
                let schema = |name| self.function.getattr(name)?.getattr(intern!(py, "_schema"));
                names.iter().map(schema).collect::<PyResult<_>>()?
            }
        };
        let mut found = Vec::new();
        for schema in schemas {
            for (at, argument) in schema.getattr("arguments")?.try_iter()?.enumerate() {
                let argument = argument?;
                let alias = argument.getattr("alias_info")?;
                if alias.is_none() || !alias.getattr("is_write")?.is_truthy()? {
                    continue;
                }
                found.extend(self.args.get_item(at));
                let name = argument.getattr("name")?;
                found.extend(self.kwargs.map(|all| all.get_item(name)).transpose()?.flatten());
            }
        }
        Ok(found)
    }

    pub(crate) fn named(&self) -> Bound<'py, PyDict> {
        self.kwargs.cloned().unwrap_or_else(|| PyDict::new(self.args.py()))
    }
}
