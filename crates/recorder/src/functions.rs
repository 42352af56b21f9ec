//! Sees every torch function that is called from Python, and lets the values and the recorder take part.

use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyDict, PyTuple};

use crate::attempt::Attempt;
use crate::border::{self, Party};
use crate::hash::Map;
use crate::lineage::{Lineage, OUTPUT, TOKEN};
use crate::lock::lock;
use crate::note_taker::{Entered, NoteTaker};
use crate::tensors::Tensors;
use crate::values::{Call, Ledger, unread};

const PLACES: [&str; 2] = ["before a function", "after a function"];

/// Rules of values call the function themselves.
const RULES: u64 = 0;

/// What takes part; it changes when a card comes into use, and in a forked process.
#[derive(Default)]
struct Parties {
    /// `values.Values`: computes small results.
    values: Option<Py<PyAny>>,
    /// Wants to know who allocates.
    recording: Option<Recording>,
    /// Wants to know of each function before it runs.
    listener: Option<Py<PyAny>>,
    is_forked: bool,
}

struct Recording {
    /// `recorder.Recorder`, and its note taker.
    recorder: Py<PyAny>,
    note_taker: Py<NoteTaker>,
    party: Py<Party>,
}

impl Recording {
    fn clone_ref(&self, py: Python<'_>) -> Recording {
        let (note_taker, party) = (self.note_taker.clone_ref(py), self.party.clone_ref(py));
        Recording { recorder: self.recorder.clone_ref(py), note_taker, party }
    }

    /// Whether frames were turned off.
    fn enter(&self, py: Python<'_>, call: &Call<'_, '_>) -> PyResult<bool> {
        let Call { function, args, kwargs } = call;
        let note_taker = self.note_taker.get();
        let Entered { is_looked_at, is_autocast, allocates } =
            note_taker.enter_function(py, function, args)?;
        if is_looked_at || is_autocast {
            let given = (function, args, kwargs, is_looked_at, is_autocast);
            let look = self.recorder.bind(py).getattr(intern!(py, "look"))?;
            border::call(&look, &given.into_pyobject(py)?, None)?;
        }
        // Its line is known: frames of each allocation would be gathered for nothing.
        Ok(allocates && note_taker.set_frames(py, false)?)
    }

    fn leave(
        &self,
        py: Python<'_>,
        was_loud: bool,
        result: &PyResult<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let note_taker = self.note_taker.get();
        if was_loud {
            note_taker.set_frames(py, true)?;
        }
        if let Ok(result) = result {
            note_taker.note_result(result)?;
        }
        note_taker.resume(py).map(drop)
    }
}

/// What a function mode calls for each function.
#[pyclass(frozen, module = "fathom_recorder")]
pub(crate) struct Functions {
    ledger: Py<Ledger>,
    /// Attributes that say something about a tensor, not about its values: by far the most calls.
    getters: Py<PyAny>,
    /// Numbers for Python itself.
    readers: Py<PyAny>,
    /// Functions with a rule of their own.
    special: Py<PyDict>,
    /// Functions that give pieces of their first argument, maybe thousands.
    pieces: Py<PyAny>,
    /// Functions that draw a token from what a model says of all of them.
    draws: Py<PyAny>,
    lineage: Lineage,
    is_compiling: Py<PyAny>,
    /// Whether this is a worker of a data loader, which has no card.
    is_loading: Py<PyAny>,
    /// Is told of each class of tensors before the first function on one.
    meet: Py<PyAny>,
    met: Mutex<Map<usize, Py<PyAny>>>,
    /// The mode that calls this.
    mode: Py<PyAny>,
    /// Of values: what goes wrong there leaves a value unknown.
    party: Py<Party>,
    parties: Mutex<Parties>,
}

#[pymethods]
impl Functions {
    #[new]
    fn new(settings: &Bound<'_, PyDict>) -> PyResult<Functions> {
        let get = |name: &str| Ok::<_, PyErr>(settings.as_any().get_item(name)?.unbind());
        let special = settings.as_any().get_item("special")?.cast_into::<PyDict>()?.unbind();
        Ok(Functions {
            ledger: settings.as_any().get_item("ledger")?.cast_into::<Ledger>()?.unbind(),
            getters: get("getters")?,
            readers: get("readers")?,
            special,
            pieces: get("pieces")?,
            draws: get("draws")?,
            lineage: Lineage::default(),
            is_compiling: get("is_compiling")?,
            is_loading: get("is_loading")?,
            meet: get("meet")?,
            met: Mutex::default(),
            mode: get("mode")?,
            party: settings.as_any().get_item("party")?.cast_into::<Party>()?.unbind(),
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

    #[pyo3(signature = (recorder, note_taker = None, party = None))]
    fn set_recorder(
        &self,
        recorder: Option<Py<PyAny>>,
        note_taker: Option<Py<NoteTaker>>,
        party: Option<Py<Party>>,
    ) {
        let all = recorder.zip(note_taker).zip(party);
        let recording =
            all.map(|((recorder, note_taker), party)| Recording { recorder, note_taker, party });
        lock(&self.parties).recording = recording;
    }

    /// `listener(function, args, kwargs)` is called before each function, until there is none.
    #[pyo3(signature = (listener))]
    fn set_listener(&self, listener: Option<Py<PyAny>>) {
        lock(&self.parties).listener = listener;
    }

    /// What tensors come of is followed, or no longer.
    fn follow_lineage(&self, is_followed: bool) {
        self.lineage.follow(is_followed);
    }

    /// A model has given this.
    fn set_output(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        self.lineage.set(self.tensors(), tensor, OUTPUT)
    }

    /// Whether an output of a model is behind it.
    fn is_of_output(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.lineage.mark_of(self.tensors(), tensor)? & OUTPUT != 0)
    }

    /// Whether it is a token that was drawn, or made of such.
    fn is_of_token(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.lineage.mark_of(self.tensors(), tensor)? & TOKEN != 0)
    }

    /// What is recorded here is another process's; this one may come to use the card itself.
    fn forked(&self) {
        let mut parties = lock(&self.parties);
        parties.recording = None;
        parties.is_forked = true;
    }

    #[pyo3(signature = (function, types, args, kwargs = None))]
    fn __call__<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let call = Call { function, args, kwargs };
        let passes = self.party.get().hold(py, "a function", || self.passes_by(py, &call))?;
        if passes.unwrap_or(true) {
            let result = call.run()?;
            if self.tensors().is_tensor(&result) {
                self.forget_result();
            }
            return Ok(result);
        }
        self.party.get().hold(py, "a class of tensors", || self.meet(types))?;
        self.tell_listener(py, &call)?;
        let recording = lock(&self.parties).recording.as_ref().map(|all| all.clone_ref(py));
        let Some(recording) = recording else { return self.run_followed(py, &call) };
        recording.party.get().across(
            py,
            PLACES,
            || recording.enter(py, &call),
            || {
                let _in_call = recording.note_taker.get().in_call();
                self.run_followed(py, &call)
            },
            |was_loud, result| recording.leave(py, was_loud, result),
        )
    }

    /// Rules of values call the function by this.
    fn theirs<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _sees = self.ledger.get().sees();
        Attempt::call_theirs(RULES, function, args, Some(kwargs))
    }

    /// A function without a rule of its own, for rules: it runs, and what it does to what is known is noted.
    fn note<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = Call { function, args, kwargs: Some(kwargs) };
        self.run_noted(&call, || Attempt::call_theirs(RULES, function, args, Some(kwargs)))
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
        // What came to the host from the card may not be known there either.
        if self.readers.bind(py).contains(call.function)?
            && !self.ledger.get().is_on_card(&call.args.get_item(0)?)?
        {
            return Ok(true);
        }
        let is_forked = lock(&self.parties).is_forked;
        Ok(is_forked && self.is_loading.bind(py).call0()?.is_truthy()?)
    }

    fn meet(&self, types: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(types) = types.cast::<PyTuple>() else { return Ok(()) };
        for class in types.iter() {
            let key = class.as_ptr() as usize;
            let is_new = lock(&self.met).insert(key, class.clone().unbind()).is_none();
            if is_new {
                self.meet.bind(types.py()).call1((class,))?;
            }
        }
        Ok(())
    }

    /// It answers for its own errors: what comes of it, as an end of the script, is meant.
    fn tell_listener(&self, py: Python<'_>, call: &Call<'_, '_>) -> PyResult<()> {
        let listener = lock(&self.parties).listener.as_ref().map(|one| one.clone_ref(py));
        let Some(listener) = listener else { return Ok(()) };
        listener.bind(py).call1((call.function, call.args, call.kwargs)).map(drop)
    }

    /// The function runs, and what it gives is known by what it was given.
    fn run_followed<'py>(
        &self,
        py: Python<'py>,
        call: &Call<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let result = self.run(py, call)?;
        if self.lineage.is_followed() {
            let pass_on = || {
                let is_draw = self.draws.bind(py).contains(call.function)?;
                self.lineage.pass_on(self.tensors(), call, &result, is_draw)
            };
            self.party.get().hold(py, "lineage", pass_on)?;
        }
        Ok(result)
    }

    fn forget_result(&self) {
        if let Some(recording) = &lock(&self.parties).recording {
            recording.note_taker.get().forget_result();
        }
    }

    fn tensors(&self) -> &Tensors {
        &self.ledger.get().tensors
    }

    /// The function runs, undisturbed; what it does to what is known is noted.
    fn run<'py>(&self, py: Python<'py>, call: &Call<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let values = lock(&self.parties).values.as_ref().map(|values| values.clone_ref(py));
        let Some(values) = values else { return call.run() };
        let (values, party) = (values.bind(py), self.party.get());
        let is_in = |all: &Bound<'py, PyAny>| {
            Ok::<_, PyErr>(
                party.hold(py, "a function", || all.contains(call.function))?.unwrap_or(false),
            )
        };
        if is_in(self.special.bind(py).as_any())? {
            let rule = || {
                let run = values.getattr(intern!(py, "run_special"))?;
                let given = (call.function, call.args, call.named()).into_pyobject(py)?;
                border::call(&run, &given, None)
            };
            return Attempt::begin(RULES, call.args, call.kwargs).instead(
                py,
                (party, "a rule of values"),
                rule,
                || call.run(),
            );
        }
        if is_in(self.pieces.bind(py))? {
            return call.run();
        }
        self.run_noted(call, || call.run())
    }

    /// What goes wrong in our part ends in less knowledge.
    fn run_noted<'py>(
        &self,
        call: &Call<'_, 'py>,
        theirs: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, ledger, party) = (call.args.py(), self.ledger.get(), self.party.get());
        let sees = ledger.sees();
        let is_over = || {
            let is_quiet = ledger.is_quiet()
                && !ledger.is_counter(call)?
                && !ledger.writes_to_what_is_known(call)?;
            Ok(is_quiet || ledger.count(call)?)
        };
        if party.hold(py, "values", is_over)?.unwrap_or(false) {
            return theirs();
        }
        let before = || Ok(if ledger.concerns(call)? { Some(ledger.before(call)?) } else { None });
        let before = party.hold(py, "values", before)?;
        let is_opaque = before
            .as_ref()
            .is_some_and(|before| before.as_ref().is_some_and(|before| before.is_opaque));
        let sees = sees.filter(|_| !is_opaque);
        let unread_before = unread();
        let result = theirs()?;
        drop(sees);
        let after = || match before {
            Some(Some(before)) => ledger.after(call, before, &result).map(|()| true),
            // Nothing of the card's was given; something of it may have been made.
            Some(None) if ledger.is_on_card(&result)? => {
                ledger.after(call, ledger.before(call)?, &result).map(|()| true)
            }
            Some(None) => Ok(true),
            None => Ok(false),
        };
        if !party.hold(py, "values", after)?.unwrap_or(false) {
            let lose = || {
                ledger.lose_given(call);
                Ok(())
            };
            party.hold(py, "unknown values", lose)?;
        }
        if unread_before != unread() { self.read_inside(call, result) } else { Ok(result) }
    }

    /// A function has run that reads from the card what nobody knows: its results may be a matter of that.
    fn read_inside<'py>(
        &self,
        call: &Call<'_, 'py>,
        result: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = call.args.py();
        let values = lock(&self.parties).values.as_ref().map(|values| values.clone_ref(py));
        let Some(values) = values else { return Ok(result) };
        let read = || {
            let run = values.bind(py).getattr(intern!(py, "read_inside"))?;
            let given = (call.function, call.args, call.named(), &result).into_pyobject(py)?;
            border::call(&run, &given, None)
        };
        Ok(self.party.get().hold(py, "values", read)?.unwrap_or(result))
    }
}
