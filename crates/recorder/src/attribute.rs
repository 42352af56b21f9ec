//! Attributes of torch's own tensors, read by the C functions behind them: every tensor is read many times.

use std::ffi::{CStr, c_int, c_void};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// A property, or a method without arguments.
pub(crate) struct Attribute {
    name: Py<PyString>,
    is_method: bool,
    direct: Option<Direct>,
}

/// What Python calls in the end.
#[derive(Clone, Copy)]
enum Direct {
    Getter(ffi::getter, *mut c_void),
    Method(ffi::PyCFunction),
}

// SAFETY: a function and its constant argument, which live as long as torch is loaded: for ever.
unsafe impl Send for Attribute {}
// SAFETY: as above.
unsafe impl Sync for Attribute {}

impl Attribute {
    /// A property that the class itself has, not one of those that it is derived from.
    pub(crate) fn property(class: &Bound<'_, PyType>, name: &CStr) -> Attribute {
        let table: *const ffi::PyGetSetDef = slot(class, ffi::Py_tp_getset);
        // SAFETY: the table of a class ends with an entry without a name.
        let found = unsafe { find(table, name, |entry| entry.name) };
        let direct = found.and_then(|entry| Some(Direct::Getter(entry.get?, entry.closure)));
        Attribute::new(class, name, false, direct)
    }

    /// A method without arguments that the class itself has.
    pub(crate) fn method(class: &Bound<'_, PyType>, name: &CStr) -> Attribute {
        let table: *const ffi::PyMethodDef = slot(class, ffi::Py_tp_methods);
        // SAFETY: the table of a class ends with an entry without a name.
        let found = unsafe { find(table, name, |entry| entry.ml_name) };
        let found = found.filter(|entry| entry.ml_flags == ffi::METH_NOARGS);
        // SAFETY: the flags say that it is a function of this kind.
        let direct = found.map(|entry| Direct::Method(unsafe { entry.ml_meth.PyCFunction }));
        Attribute::new(class, name, true, direct)
    }

    fn new(
        class: &Bound<'_, PyType>,
        name: &CStr,
        is_method: bool,
        direct: Option<Direct>,
    ) -> Self {
        let name = PyString::intern(class.py(), &name.to_string_lossy()).unbind();
        Attribute { name, is_method, direct }
    }

    /// Of an object whose class may have its own.
    pub(crate) fn of<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let name = self.name.bind(object.py());
        if self.is_method { object.call_method0(name) } else { object.getattr(name) }
    }

    /// # Safety
    /// The object's class must be the class given before, or one derived from it that leaves this attribute as it is.
    pub(crate) unsafe fn plainly_of<'py>(
        &self,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(direct) = self.direct else { return self.of(object) };
        let (py, this) = (object.py(), object.as_ptr());
        let result = match direct {
            // SAFETY: the function belongs to the object's class, by what the caller promises.
            Direct::Getter(get, closure) => unsafe { get(this, closure) },
            // SAFETY: as above, and it takes no arguments.
            Direct::Method(call) => unsafe { call(this, std::ptr::null_mut()) },
        };
        // SAFETY: such functions give a new reference, or null and an error.
        unsafe { Bound::from_owned_ptr_or_err(py, result) }
    }
}

/// The table of a class: null if it has none.
fn slot<T>(class: &Bound<'_, PyType>, number: c_int) -> *const T {
    // SAFETY: since Python 3.10 every class may be asked.
    unsafe { ffi::PyType_GetSlot(class.as_type_ptr(), number).cast() }
}

/// # Safety
/// The table must be null, or end with an entry without a name.
unsafe fn find<'a, T>(
    table: *const T,
    name: &CStr,
    name_of: impl Fn(&T) -> *const std::ffi::c_char,
) -> Option<&'a T> {
    if table.is_null() {
        return None;
    }
    for number in 0.. {
        // SAFETY: no entry before this one was the last.
        let entry = unsafe { &*table.add(number) };
        let own = name_of(entry);
        if own.is_null() {
            return None;
        }
        // SAFETY: names in such tables are texts of C.
        if unsafe { CStr::from_ptr(own) } == name {
            return Some(entry);
        }
    }
    None
}
