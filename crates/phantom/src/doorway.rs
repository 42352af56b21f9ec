//! Opens the Python side inside a process that loads torch's CUDA libraries.
//!
//! Nothing of the user's Python set-up is touched: no `sitecustomize`, no `PYTHONPATH`, so it works
//! under `python -I`, in any virtual environment and beside the user's own start-up files. When
//! torch registers its first kernels, the interpreter is in the middle of `import torch`; it is asked
//! to run one line of ours as soon as it is back in its own loop.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Once;

use crate::config;

/// `Py_AddPendingCall(int (*)(void *), void *)`.
type AddPendingCall =
    unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void) -> c_int, *mut c_void) -> c_int;

/// `PyRun_SimpleString(const char *)`.
type RunString = unsafe extern "C" fn(*const c_char) -> c_int;

/// Asks the interpreter, if this process has one, to load the doorway.
pub(crate) fn open() {
    static OPENED: Once = Once::new();
    OPENED.call_once(|| {
        if config::doorway().is_none() {
            return;
        }
        let Some(add) = symbol(c"Py_AddPendingCall") else { return };
        // SAFETY: the symbol is CPython's function of this type, in every version since 3.0.
        let add: AddPendingCall = unsafe { std::mem::transmute(add) };
        // SAFETY: the call may be added from any thread, with or without the interpreter's lock.
        unsafe { add(load, std::ptr::null_mut()) };
    });
}

/// Runs inside the interpreter's loop, with its lock held.
unsafe extern "C" fn load(_data: *mut c_void) -> c_int {
    let Some(run) = symbol(c"PyRun_SimpleString") else { return 0 };
    // SAFETY: the symbol is CPython's function of this type.
    let run: RunString = unsafe { std::mem::transmute(run) };
    let folder = config::doorway();
    let Some(folder) = folder.as_ref().and_then(|path| path.to_str()) else {
        return 0;
    };
    let Ok(code) = CString::new(script(folder)) else { return 0 };
    // SAFETY: a terminated string; errors are printed by the interpreter and cleared.
    unsafe { run(code.as_ptr()) };
    0
}

/// The line: loads `<folder>/__init__.py` as the package `fathom` and opens it.
fn script(folder: &str) -> String {
    let folder: String = folder.chars().flat_map(char::escape_default).collect();
    format!(
        "def _():\n \
         import importlib.util, sys\n \
         if 'fathom' not in sys.modules:\n  \
         spec = importlib.util.spec_from_file_location('fathom', '{folder}/__init__.py', submodule_search_locations=['{folder}'])\n  \
         module = importlib.util.module_from_spec(spec); sys.modules['fathom'] = module\n  \
         spec.loader.exec_module(module)\n \
         from fathom._doorway import entry\n \
         entry.open()\n\
         _(); del _\n"
    )
}

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a terminated name, looked up in everything that is loaded.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}
