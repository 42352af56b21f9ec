//! Functions of C, such as `math.exp`, that are given numbers which stand for unknown ones.
//!
//! They read a number's bytes, and nobody is asked. So the function itself gets another entry: whoever holds it, by
//! whatever name and since whenever, comes through here. It stays the same object, with its name, its text, its class and
//! its hash, which is that of the code below: that stays too.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::RwLock;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

type Object = *mut ffi::PyObject;

/// How Python calls what it knows an entry of: with the names of the last ones in a tuple, or null.
type Entry = unsafe extern "C" fn(Object, *const Object, usize, Object) -> Object;

/// Says of a number of arguments that the place before the first is free; Python's `PY_VECTORCALL_ARGUMENTS_OFFSET`.
const PLACE_IS_FREE: usize = 1 << (usize::BITS - 1);

/// Python's `PyMethodDef`: how a function of C is called.
#[repr(C)]
#[derive(Clone, Copy)]
struct Method {
    name: *const c_char,
    code: *const c_void,
    flags: c_int,
    doc: *const c_char,
}

/// When ours is asked, after theirs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// One of the arguments is such a number.
    Given,
    /// One of the arguments holds such a number, as the list that `math.fsum` is given.
    Within,
    /// Theirs has raised an error.
    Refused,
}

#[derive(Clone, Copy)]
struct Slot {
    function: Object,
    theirs: Option<Entry>,
    class: *mut ffi::PyTypeObject,
    when: When,
    /// `after(given, names, result, kind of error)` gives what takes the place of both, or `None`.
    after: Object,
}

// SAFETY: all of these live as long as the process.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

static TABLE: RwLock<Vec<Slot>> = RwLock::new(Vec::new());

/// Has `after` asked about what a function of C gives; whether that can be done.
#[pyfunction]
pub(crate) fn follow_c_function(
    function: &Bound<'_, PyAny>,
    class: &Bound<'_, PyType>,
    when: &str,
    after: Py<PyAny>,
) -> PyResult<bool> {
    let when = match when {
        "given" => When::Given,
        "within" => When::Within,
        "refused" => When::Refused,
        _ => return Err(PyValueError::new_err(format!("no such moment: {when}"))),
    };
    let Some((method, entry)) = places(function)? else { return Ok(false) };
    let mut table = TABLE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    if table.iter().any(|slot| slot.function == function.as_ptr()) {
        return Ok(true);
    }
    let (class, after) = (class.as_type_ptr(), after.into_ptr());
    // SAFETY: fields of an object that is alive, and from here on for ever; no other thread runs Python meanwhile.
    unsafe {
        table.push(Slot {
            function: function.clone().into_ptr(),
            theirs: *entry,
            class,
            when,
            after,
        });
        // Python calls functions of known kinds past their entry. This flag says nothing of a function that is made
        // already, but its kind is none of those.
        let flags = (**method).flags | ffi::METH_COEXIST;
        *method = Box::leak(Box::new(Method { flags, ..**method }));
        *entry = Some(pass);
    }
    Ok(true)
}

/// Where a function or a method of C keeps how it is called, and its entry; `None` if it is neither, or another Python
/// keeps them elsewhere.
fn places(
    function: &Bound<'_, PyAny>,
) -> PyResult<Option<(*mut *const Method, *mut Option<Entry>)>> {
    let object = function.as_ptr();
    let (head, word) = (size_of::<ffi::PyObject>(), size_of::<usize>());
    // SAFETY: the classes are Python's own, and only their addresses are looked at.
    let class = unsafe { ffi::Py_TYPE(object) };
    // `PyCFunctionObject`: the method, three objects, the entry. `PyMethodDescrObject`: three objects, both.
    let (method, entry) = match class {
        class if class == &raw mut ffi::PyCFunction_Type => (head, head + 4 * word),
        class if class == &raw mut ffi::PyMethodDescr_Type => (head + 3 * word, head + 4 * word),
        _ => return Ok(None),
    };
    let method: *mut *const Method = object.wrapping_byte_add(method).cast();
    let name: String = function.getattr("__name__")?.extract()?;
    // SAFETY: both kinds have had them there since Python 3.8; the method has the name of the function.
    let is_there = unsafe {
        !(*method).is_null() && CStr::from_ptr((**method).name).to_bytes() == name.as_bytes()
    };
    Ok(is_there.then(|| (method, object.wrapping_byte_add(entry).cast())))
}

/// The entry of all of them.
unsafe extern "C" fn pass(
    function: Object,
    given: *const Object,
    count: usize,
    names: Object,
) -> Object {
    let slot = {
        let table = TABLE.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        table.iter().find(|slot| slot.function == function).copied()
    };
    // It was there before this became its entry.
    let Some(slot) = slot else { return std::ptr::null_mut() };
    // SAFETY: Python gives as many as it says, and the named ones after them.
    unsafe {
        let more = if names.is_null() { 0 } else { ffi::PyTuple_Size(names).cast_unsigned() };
        let all = match (count & !PLACE_IS_FREE) + more {
            0 => &[],
            count => std::slice::from_raw_parts(given, count),
        };
        slot.pass(all, count & !PLACE_IS_FREE, names)
    }
}

// -- theirs, then ours --------------------------------------------------------------------------------------

impl Slot {
    /// # Safety
    /// What is given is alive, the first `count` without names.
    unsafe fn pass(&self, given: &[Object], count: usize, names: Object) -> Object {
        // SAFETY: as the caller says.
        let is_marked = |object: &Object| unsafe { ffi::Py_TYPE(*object) == self.class };
        // SAFETY: as the caller says.
        unsafe {
            match self.when {
                When::Given if !given.iter().any(is_marked) => self.call(given, count, names),
                When::Given => self.ask(given, names, self.call(given, count, names)),
                When::Within => self.pass_lists(given, count, names),
                When::Refused => {
                    let result = self.call(given, count, names);
                    if result.is_null() { self.ask(given, names, result) } else { result }
                }
            }
        }
    }

    /// Theirs.
    ///
    /// # Safety
    /// As for `pass`.
    unsafe fn call(&self, given: &[Object], count: usize, names: Object) -> Object {
        if let Some(theirs) = self.theirs {
            // SAFETY: so it was called before.
            return unsafe { theirs(self.function, given.as_ptr(), count, names) };
        }
        // Functions of a tuple had no entry: Python calls them by their class.
        // SAFETY: as the caller says; Python runs this.
        unsafe {
            let py = Python::assume_attached();
            let all = given.iter().map(|each| Bound::from_borrowed_ptr(py, *each));
            let all: Vec<_> = all.collect();
            let names = Bound::from_borrowed_ptr_or_opt(py, names);
            called(py, self.function, &all, count, names).unwrap_or_else(|error| raised(py, error))
        }
    }

    /// Theirs, of lists that can be gone through twice.
    ///
    /// # Safety
    /// As for `pass`.
    unsafe fn pass_lists(&self, given: &[Object], count: usize, names: Object) -> Object {
        // SAFETY: as the caller says; Python runs this.
        let (py, lists) = unsafe {
            let py = Python::assume_attached();
            (py, given.iter().map(|each| listed(py, *each)).collect())
        };
        let lists: Vec<Bound<'_, PyAny>> = match lists {
            Ok(lists) => lists,
            Err(error) => return raised(py, error),
        };
        let held: Vec<Object> = lists.iter().map(Bound::as_ptr).collect();
        // SAFETY: the lists are alive.
        unsafe {
            let result = self.call(&held, count, names);
            let is_asked = lists.iter().any(|list| self.holds_some(list));
            if is_asked { self.ask(&held, names, result) } else { result }
        }
    }

    fn holds_some(&self, list: &Bound<'_, PyAny>) -> bool {
        let is_marked = |item: Bound<'_, PyAny>| item.get_type_ptr() == self.class;
        if let Ok(list) = list.cast_exact::<PyList>() {
            return list.iter().any(is_marked);
        }
        list.cast_exact::<PyTuple>()
            .map_or_else(|_| is_marked(list.clone()), |tuple| tuple.iter().any(is_marked))
    }

    /// What ours says of theirs.
    ///
    /// # Safety
    /// As for `pass`; `result` is theirs, or null and an error.
    unsafe fn ask(&self, given: &[Object], names: Object, result: Object) -> Object {
        let mut error = [std::ptr::null_mut(); 3];
        if result.is_null() {
            let [kind, value, trace] = &mut error;
            // SAFETY: places for three references.
            unsafe { ffi::PyErr_Fetch(kind, value, trace) };
        }
        // SAFETY: Python runs this.
        let py = unsafe { Python::assume_attached() };
        // SAFETY: all are alive, or null.
        let answer = unsafe { self.answer(py, given, [names, result, error[0]]) };
        let is_theirs = answer.as_ref().is_ok_and(|answer| answer.is_none());
        if is_theirs && result.is_null() {
            let [kind, value, trace] = error;
            // SAFETY: they were fetched above, and nothing else is raised.
            unsafe { ffi::PyErr_Restore(kind, value, trace) };
        }
        if is_theirs {
            return result;
        }
        for object in [&[result], &error[..]].concat() {
            // SAFETY: they were given to this function.
            unsafe { ffi::Py_XDECREF(object) };
        }
        answer.map_or_else(|error| raised(py, error), Bound::into_ptr)
    }

    /// # Safety
    /// As for `pass`; the names, the result and the kind of error may be null.
    unsafe fn answer<'py>(
        &self,
        py: Python<'py>,
        given: &[Object],
        others: [Object; 3],
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: as the caller says; ours was given to the table.
        unsafe {
            let given = given.iter().map(|each| Bound::from_borrowed_ptr(py, *each));
            let given = PyTuple::new(py, given.collect::<Vec<_>>())?;
            let others = others.map(|object| Bound::from_borrowed_ptr_or_opt(py, object));
            let [names, result, kind] = others;
            Bound::from_borrowed_ptr(py, self.after).call1((given, names, result, kind))
        }
    }
}

/// What can be gone through only once is a list from here on; all else stays.
///
/// # Safety
/// It is alive.
unsafe fn listed(py: Python<'_>, object: Object) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the caller says so.
    let object = unsafe { Bound::from_borrowed_ptr(py, object) };
    let is_list =
        object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>();
    match object.try_iter() {
        Ok(items) if !is_list => {
            Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        _ => Ok(object),
    }
}

/// By the class of a function, past its entry.
///
/// # Safety
/// The function is one of C.
unsafe fn called<'py>(
    py: Python<'py>,
    function: Object,
    given: &[Bound<'py, PyAny>],
    count: usize,
    names: Option<Bound<'py, PyAny>>,
) -> PyResult<Object> {
    let (plain, named) = given.split_at(count);
    let plain = PyTuple::new(py, plain)?;
    let with_names = PyDict::new(py);
    for (name, value) in names.iter().flat_map(|names| names.try_iter()).flatten().zip(named) {
        with_names.set_item(name?, value)?;
    }
    let with_names = if named.is_empty() { std::ptr::null_mut() } else { with_names.as_ptr() };
    // SAFETY: as the caller says; Python's class of functions has this slot, and a tuple's function goes by it.
    unsafe {
        let slot = ffi::PyType_GetSlot(ffi::Py_TYPE(function), ffi::Py_tp_call);
        let call: ffi::ternaryfunc = std::mem::transmute(slot);
        Ok(call(function, plain.as_ptr(), with_names))
    }
}

fn raised(py: Python<'_>, error: PyErr) -> Object {
    error.restore(py);
    std::ptr::null_mut()
}
