//! Faults: where a panic of ours was, and faults that tests put in.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

thread_local! {
    static PANICKED_AT: RefCell<String> = RefCell::default();
}

/// A panic of ours is noted where it is contained: it prints nothing by itself.
pub(crate) fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|at| {
            let file = at.file().rsplit('/').next().unwrap_or_default();
            format!(" ({file}:{})", at.line())
        });
        PANICKED_AT.with_borrow_mut(|at| *at = place.unwrap_or_default());
    }));
}

/// Where the last panic of this thread was, as ` (writer.rs:12)`.
pub(crate) fn place_of_panic() -> String {
    PANICKED_AT.with_borrow_mut(std::mem::take)
}

/// What a test wants to go wrong.
struct Fault {
    place: String,
    /// `begin` or `end` of what is done there.
    moment: String,
    is_panic: bool,
}

static HAS_FAULT: AtomicBool = AtomicBool::new(false);
static FAULT: Mutex<Option<Fault>> = Mutex::new(None);
/// Places that were passed since a test began to look on.
static PASSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// For tests: what is done at this place goes wrong, from now on; or nothing does. `moment` is `begin` or `end`.
#[pyfunction]
#[pyo3(signature = (place = None, moment = "begin", is_panic = false))]
pub(crate) fn fail_at(place: Option<String>, moment: &str, is_panic: bool) {
    let fault = place.map(|place| Fault { place, moment: moment.to_owned(), is_panic });
    HAS_FAULT.store(fault.is_some(), Ordering::Relaxed);
    *crate::lock::lock(&FAULT) = fault;
}

/// For tests: the places that were passed since something was to fail.
#[pyfunction]
pub(crate) fn places_passed() -> Vec<String> {
    let mut places = std::mem::take(&mut *crate::lock::lock(&PASSED));
    places.sort();
    places.dedup();
    places
}

/// Fails if a test wants it to.
pub(crate) fn check(place: &str, moment: &str) -> PyResult<()> {
    if !HAS_FAULT.load(Ordering::Relaxed) {
        return Ok(());
    }
    crate::lock::lock(&PASSED).push(place.to_owned());
    let is_panic = {
        let fault = crate::lock::lock(&FAULT);
        let Some(fault) =
            fault.as_ref().filter(|fault| fault.place == place && fault.moment == moment)
        else {
            return Ok(());
        };
        fault.is_panic
    };
    assert!(!is_panic, "a fault that a test put in");
    Err(PyRuntimeError::new_err("a fault that a test put in"))
}
