//! Call stacks as small numbers: a frame on top of another stack. Nothing of a frame but its code is kept.

use std::ffi::c_int;
use std::sync::LazyLock;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::hash::Map;

/// Number 0 is the empty stack.
pub(crate) type StackNumber = u32;

/// A frame on top of a stack: the stack below, the code that ran, and how far.
pub(crate) struct Entry {
    pub(crate) caller: StackNumber,
    pub(crate) code: Py<PyAny>,
    pub(crate) at: i32,
}

#[derive(Default)]
pub(crate) struct Stacks {
    numbers: Map<(StackNumber, usize, i32), StackNumber>,
    entries: Vec<Entry>,
}

/// What ran at one moment, innermost first.
pub(crate) type Walk = Vec<(Py<PyAny>, i32)>;

impl Stacks {
    /// The number of what ran, on top of a known stack.
    pub(crate) fn number(&mut self, walk: Walk, known: StackNumber) -> StackNumber {
        walk.into_iter().rev().fold(known, |caller, (code, at)| {
            // By its address, which is its own since `entries` keeps it.
            let key = (caller, code.as_ptr() as usize, at);
            *self.numbers.entry(key).or_insert_with(|| {
                self.entries.push(Entry { caller, code, at });
                self.entries.len() as StackNumber
            })
        })
    }

    pub(crate) fn entry(&self, number: StackNumber) -> Option<&Entry> {
        self.entries.get((number as usize).checked_sub(1)?)
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
