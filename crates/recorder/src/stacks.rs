//! The frames that run, and the code objects of all that ran. Nothing of a frame but its code is kept.

use std::ffi::c_int;
use std::sync::{LazyLock, Mutex};

use notes::stacks::{Running, StackNumber, Stacks};
use pyo3::exceptions::PyKeyError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::hash::Map;
use crate::lock::lock;

/// What ran at one moment, innermost first.
pub(crate) type Walk = Vec<(Py<PyAny>, i32)>;

/// The number of what ran, on top of a known stack; and codes that are new, which have to be kept.
pub(crate) fn number(
    stacks: &mut Stacks,
    walk: &Walk,
    known: StackNumber,
) -> (StackNumber, Vec<usize>) {
    let mut new = Vec::new();
    let outermost_first = walk.iter().rev();
    let running =
        outermost_first.map(|(code, at)| Running { code: code.as_ptr() as usize, at: *at });
    (stacks.number(running, known, |running| new.push(running.code)), new)
}

/// Code objects of all stacks, by their addresses, which stay their own since they are kept.
#[derive(Default)]
pub(crate) struct Codes(Mutex<Map<usize, Py<PyAny>>>);

impl Codes {
    /// Keeps what is new, of a walk that still holds it.
    pub(crate) fn keep(&self, py: Python<'_>, walk: &Walk, new: &[usize]) {
        let is_new = |code: &Py<PyAny>| new.contains(&(code.as_ptr() as usize));
        if new.is_empty() {
            return;
        }
        let codes = walk.iter().map(|(code, _)| code).filter(|code| is_new(code));
        let mut kept = lock(&self.0);
        for code in codes {
            kept.entry(code.as_ptr() as usize).or_insert_with(|| code.clone_ref(py));
        }
    }

    pub(crate) fn get(&self, py: Python<'_>, address: usize) -> PyResult<Py<PyAny>> {
        let found = lock(&self.0).get(&address).map(|code| code.clone_ref(py));
        found.ok_or_else(|| PyKeyError::new_err("code of a stack"))
    }
}

unsafe extern "C" {
    // In every Python since 3.9, though not promised to modules of the stable interface.
    fn PyFrame_GetBack(frame: *mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject;
}

type GetLasti = unsafe extern "C" fn(*mut ffi::PyFrameObject) -> c_int;

/// Since 3.11; before, the attribute says the same.
static GET_LASTI: LazyLock<Option<GetLasti>> = LazyLock::new(|| {
    // SAFETY: a look into the symbols of this process; the function has this form in every version that has it.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"PyFrame_GetLasti".as_ptr());
        (!found.is_null()).then(|| std::mem::transmute::<*mut libc::c_void, GetLasti>(found))
    }
});

/// The frame that runs, by its address; 0 if none does.
pub(crate) fn running(_: Python<'_>) -> usize {
    // SAFETY: the interpreter is ours; what is borrowed is not looked into.
    unsafe { ffi::PyEval_GetFrame() as usize }
}

/// The frames that run, up to the one at the address `end`: what it does, and what lies beyond it, is known.
pub(crate) fn walk(py: Python<'_>, end: usize) -> PyResult<Walk> {
    let mut found = Vec::with_capacity(16);
    // SAFETY: the frame that runs is borrowed and alive; all others, and codes, are owned by `Bound`s.
    unsafe {
        let mut frame = ffi::PyEval_GetFrame();
        ffi::Py_XINCREF(frame.cast());
        while !frame.is_null() {
            let owned = Bound::from_owned_ptr(py, frame.cast());
            if frame as usize == end {
                break;
            }
            let code = Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(frame).cast());
            let at = match *GET_LASTI {
                Some(lasti) => lasti(frame),
                None => owned.getattr("f_lasti")?.extract()?,
            };
            found.push((code.unbind(), at));
            frame = PyFrame_GetBack(owned.as_ptr().cast());
        }
    }
    Ok(found)
}
