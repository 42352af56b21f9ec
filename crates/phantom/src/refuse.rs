//! What is not simulated says its name once and returns "not supported".

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int};
use std::sync::Mutex;

use contract::environment;

use crate::error::{Failure, Library};
use crate::{config, status};

/// Names that were refused in this process.
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Refuses a call of a listed function.
pub(crate) fn by_name(library: Library, name: &str) -> c_int {
    note(name);
    let outcome = Err(Failure::NotSupported);
    if library == Library::Cudart {
        crate::error::remember(outcome);
    }
    library.code(outcome)
}

/// Called by the stubs written at launch, for functions that no table lists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fathom_refuse(name: *const c_char) -> usize {
    // SAFETY: the stubs pass the address of their own terminated name.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    note(&name);
    Library::Cudart.code(Err(Failure::NotSupported)) as usize
}

fn note(name: &str) {
    status::count_refused_call();
    let first = SEEN.lock().is_ok_and(|mut seen| seen.insert(name.to_owned()));
    if first {
        status::add_note(name);
        eprintln!("fathom: `{name}` is not simulated; the call returns \"not supported\"");
    }
    if config::get().strict {
        eprintln!("fathom: stopping at `{name}` because {} is set", environment::STRICT);
        std::process::abort();
    }
}
