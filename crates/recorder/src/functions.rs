//! Sees every torch function that is called from Python, and lets the values and the recorder take part.

use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyDict, PyTuple};

use crate::lock::lock;
use crate::scribe::{Entered, Scribe};
use crate::small::Small;

/// What takes part; it changes when a card comes into use, and in a forked process.
#[derive(Default)]
struct Parties {
    /// `values.Values`: computes small results.
    values: Option<Py<PyAny>>,
    /// `recorder.Recorder`, and its scribe: want to know who allocates.
    recorder: Option<(Py<PyAny>, Py<Scribe>)>,
    is_forked: bool,
}

/// What a function mode calls for each function.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct Functions {
    small: Py<Small>,
    /// Attributes that say something about a tensor, not about its values: by far the most calls.
    getters: Py<PyAny>,
    /// Numbers for Python itself.
    readers: Py<PyAny>,
    /// Functions with a rule of their own.
    special: Py<PyDict>,
    /// Functions whose results have no values yet, or those that their arguments have.
    nothing_to_fill: Py<PyAny>,
    /// Types of results that cannot hold tensors.
    not_tensors: Py<PyAny>,
    /// `Tensor.add_`.
    add: Py<PyAny>,
    is_compiling: Py<PyAny>,
    /// Whether this is a worker of a data loader, which has no card.
    is_loading: Py<PyAny>,
    /// The mode that calls this.
    mode: Py<PyAny>,
    parties: Mutex<Parties>,
}

/// A function and its arguments.
struct Call<'a, 'py> {
    function: &'a Bound<'py, PyAny>,
    args: &'a Bound<'py, PyTuple>,
    kwargs: Option<&'a Bound<'py, PyDict>>,
}

impl<'py> Call<'_, 'py> {
    fn run(&self) -> PyResult<Bound<'py, PyAny>> {
        self.function.call(self.args, self.kwargs)
    }

    /// Functions that return nothing have written into their arguments, by the underscore in their name.
    fn writes(&self) -> bool {
        let name = self.function.getattr(intern!(self.args.py(), "__name__"));
        name.is_ok_and(|name| name.to_string().ends_with('_'))
    }

    /// Whether a result shows values of the first argument: it is none of the arguments, which may have been written to,
    /// and lies where the first one does.
    fn shows_first(&self, small: &Small, result: &Bound<'py, PyAny>) -> PyResult<bool> {
        let tensors = &small.tensors;
        let is_own = |value: &Bound<'py, PyAny>| {
            Ok::<_, PyErr>(tensors.is_tensor(value) && tensors.is_ordinary(value)?)
        };
        let Ok(first) = self.args.get_item(0) else { return Ok(false) };
        if !is_own(result)? || !tensors.is_view(result)? || !is_own(&first)? {
            return Ok(false);
        }
        let is_given = self.args.iter().any(|arg| arg.is(result))
            || self.kwargs.is_some_and(|named| named.iter().any(|(_, arg)| arg.is(result)));
        Ok(!is_given && tensors.storage(result)? == tensors.storage(&first)?)
    }

    fn named(&self) -> Bound<'py, PyDict> {
        self.kwargs.cloned().unwrap_or_else(|| PyDict::new(self.args.py()))
    }
}

#[pymethods]
impl Functions {
    #[new]
    fn new(settings: &Bound<'_, PyDict>) -> PyResult<Functions> {
        let get = |name: &str| Ok::<_, PyErr>(settings.as_any().get_item(name)?.unbind());
        let special = settings.as_any().get_item("special")?.cast_into::<PyDict>()?.unbind();
        Ok(Functions {
            small: settings.as_any().get_item("small")?.cast_into::<Small>()?.unbind(),
            getters: get("getters")?,
            readers: get("readers")?,
            special,
            nothing_to_fill: get("nothing_to_fill")?,
            not_tensors: get("not_tensors")?,
            add: get("add")?,
            is_compiling: get("is_compiling")?,
            is_loading: get("is_loading")?,
            mode: get("mode")?,
            parties: Mutex::default(),
        })
    }

    /// Torch wants a method of the mode's.
    #[getter]
    fn __self__(&self, py: Python<'_>) -> Py<PyAny> {
        self.mode.clone_ref(py)
    }

    fn set_values(&self, values: Option<Py<PyAny>>) {
        lock(&self.parties).values = values;
    }

    #[pyo3(signature = (recorder, scribe = None))]
    fn set_recorder(&self, recorder: Option<Py<PyAny>>, scribe: Option<Py<Scribe>>) {
        let mut parties = lock(&self.parties);
        parties.recorder = recorder.zip(scribe);
    }

    /// What is recorded here is another process's; this one may come to use the card itself.
    fn forked(&self) {
        let mut parties = lock(&self.parties);
        parties.recorder = None;
        parties.is_forked = true;
    }

    #[pyo3(signature = (function, _types, args, kwargs = None))]
    fn __call__<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        _types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let call = Call { function, args, kwargs };
        if self.passes_by(py, &call)? {
            let result = call.run()?;
            if self.small.get().tensors.is_tensor(&result) {
                self.forget_result();
            }
            return Ok(result);
        }
        let recorder = {
            let parties = lock(&self.parties);
            parties.recorder.as_ref().map(|(all, scribe)| (all.clone_ref(py), scribe.clone_ref(py)))
        };
        let Some((recorder, scribe)) = recorder else { return self.run(py, &call) };
        let scribe = scribe.get();
        let Entered { is_looked_at, is_autocast, allocates } =
            scribe.enter_function(py, function, args)?;
        if is_looked_at || is_autocast {
            let given = (function, args, kwargs, is_looked_at, is_autocast);
            recorder.bind(py).call_method1(intern!(py, "look"), given)?;
        }
        // Its line is known: frames of each allocation would be gathered for nothing.
        let is_quiet = allocates && scribe.set_frames(py, false)?;
        let in_call = scribe.in_call();
        let result = self.run(py, &call);
        drop(in_call);
        if is_quiet {
            scribe.set_frames(py, true)?;
        }
        let result = result.and_then(|result| {
            scribe.note_result(&result)?;
            Ok(result)
        });
        scribe.resume(py)?;
        result
    }

    /// A function has run: small results are filled in if all is small, else they are zero.
    fn complete<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
        result: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let values = lock(&self.parties).values.as_ref().map(|values| values.clone_ref(py));
        let Some(values) = values else { return Ok(result) };
        self.fill(values.bind(py), &Call { function, args, kwargs: Some(kwargs) }, result)
    }
}

impl Functions {
    /// Whether neither values nor the recorder have to do with it.
    fn passes_by(&self, py: Python<'_>, call: &Call<'_, '_>) -> PyResult<bool> {
        if self.getters.bind(py).contains(call.function)? {
            return Ok(true);
        }
        if self.is_compiling.bind(py).call0()?.is_truthy()? {
            return Ok(true);
        }
        if self.readers.bind(py).contains(call.function)?
            && !self.small.get().tensors.is_cuda(&call.args.get_item(0)?)?
        {
            return Ok(true);
        }
        let is_forked = lock(&self.parties).is_forked;
        Ok(is_forked && self.is_loading.bind(py).call0()?.is_truthy()?)
    }

    fn forget_result(&self) {
        if let Some((_, scribe)) = &lock(&self.parties).recorder {
            scribe.get().forget_result();
        }
    }

    /// The function runs, undisturbed; then small results are filled in.
    fn run<'py>(&self, py: Python<'py>, call: &Call<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let values = lock(&self.parties).values.as_ref().map(|values| values.clone_ref(py));
        let Some(values) = values else { return call.run() };
        if self.special.bind(py).contains(call.function)? {
            let run = intern!(py, "run_special");
            return values.bind(py).call_method1(run, (call.function, call.args, call.named()));
        }
        let result = call.run()?;
        self.fill(values.bind(py), call, result)
    }

    fn fill<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        call: &Call<'_, 'py>,
        result: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, small) = (values.py(), self.small.get());
        // By far the most calls make nothing small.
        if small.tensors.is_bare(&result) && small.has_large(&result)? {
            return Ok(result);
        }
        let is_bare_add =
            call.function.is(&self.add) && call.kwargs.is_none_or(|kwargs| kwargs.is_empty());
        if is_bare_add && small.count(call.args)? {
            return Ok(result);
        }
        if self.nothing_to_fill.bind(py).contains(call.function)?
            || call.shows_first(small, &result)?
        {
            return Ok(result);
        }
        if !small.tensors.is_tensor(&result)
            && result.is_instance(self.not_tensors.bind(py))?
            && !(result.is_none() && call.writes())
        {
            return Ok(result);
        }
        let named = call.kwargs.map(|kwargs| kwargs.values());
        let is_large = small.has_large(call.args)?
            || small.has_large(&result)?
            || named.map_or(Ok(false), |named| small.has_large(&named))?;
        if is_large {
            small.clear(call.args, &result)?;
            return Ok(result);
        }
        let fill = intern!(py, "fill");
        values.call_method1(fill, (call.function, call.args, call.named(), &result))
    }
}
