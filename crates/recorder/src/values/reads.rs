//! The phantom asks what the card holds, and says what was written to it, where no function is seen.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::ledger::Ledger;
use super::value::{Bytes, State, Value};

type Reader = unsafe extern "C" fn(u64, u64, *mut u8, c_int) -> c_int;
type Writer = unsafe extern "C" fn(u64, u64, *const u8);
type Answer = unsafe extern "C" fn(u64, u64, c_int);
type Told = unsafe extern "C" fn(c_int);
type Asked = unsafe extern "C" fn() -> c_int;

thread_local! {
    /// Functions that are seen, which this thread is in.
    static SEEN: Cell<u32> = const { Cell::new(0) };
    /// How often this thread has read from the card what nobody knows.
    static UNREAD: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has read from the card what nobody knows.
pub(crate) fn unread() -> u64 {
    UNREAD.get()
}

static LEDGER: PyOnceLock<Py<Ledger>> = PyOnceLock::new();

/// The phantom's functions of `crates/phantom/src/reads.rs`; without a phantom there are none.
#[derive(Clone, Copy)]
pub(crate) struct Phantom {
    values: unsafe extern "C" fn(Reader, Writer),
    answer: Answer,
    seen: Told,
    backward: Told,
    captures: Asked,
}

impl Phantom {
    pub(crate) fn find() -> Option<Phantom> {
        let (values, answer, seen) =
            (symbol(c"fathom_values")?, symbol(c"fathom_answer")?, symbol(c"fathom_seen")?);
        let (backward, captures) = (symbol(c"fathom_backward")?, symbol(c"fathom_captures")?);
        // SAFETY: these are the phantom's own, of these types, and it is never unloaded.
        unsafe {
            Some(Phantom {
                values: std::mem::transmute::<
                    *mut libc::c_void,
                    unsafe extern "C" fn(Reader, Writer),
                >(values),
                answer: std::mem::transmute::<*mut libc::c_void, Answer>(answer),
                seen: std::mem::transmute::<*mut libc::c_void, Told>(seen),
                backward: std::mem::transmute::<*mut libc::c_void, Told>(backward),
                captures: std::mem::transmute::<*mut libc::c_void, Asked>(captures),
            })
        }
    }

    /// The phantom asks this ledger from here on.
    pub(crate) fn serve(self, py: Python<'_>, ledger: Py<Ledger>) {
        if LEDGER.set(py, ledger).is_ok() {
            // SAFETY: the phantom's own function, and ours live as long as the process.
            unsafe { (self.values)(read, wrote) };
        }
    }

    /// So many reads of one number give this one, in this thread's next function that is seen, or from here on; 0 times:
    /// no more.
    pub(crate) fn answer(self, number: u64, times: u64, is_now: bool) {
        // SAFETY: the phantom's own function.
        unsafe { (self.answer)(number, times, c_int::from(is_now)) };
    }

    /// A backward pass begins, or ends.
    pub(crate) fn backward(self, begins: bool) {
        // SAFETY: the phantom's own function.
        unsafe { (self.backward)(c_int::from(begins)) };
    }

    /// Whether work is captured now, to be done later.
    pub(crate) fn captures(self) -> bool {
        // SAFETY: the phantom's own function.
        unsafe { (self.captures)() != 0 }
    }

    /// A function that is seen runs in this thread until this is dropped.
    pub(crate) fn sees(self) -> Sees {
        // SAFETY: the phantom's own function.
        unsafe { (self.seen)(1) };
        SEEN.set(SEEN.get() + 1);
        Sees(self)
    }
}

pub(crate) struct Sees(Phantom);

impl Drop for Sees {
    fn drop(&mut self) {
        // SAFETY: the phantom's own function.
        unsafe { (self.0.seen)(0) };
        SEEN.set(SEEN.get() - 1);
    }
}

/// # Safety
/// `out` has `size` bytes.
unsafe extern "C" fn read(address: u64, size: u64, out: *mut u8, decides: c_int) -> c_int {
    let found = with_python(|py, ledger| ledger.bytes_at(py, address, size).ok().flatten());
    let Some((bytes, from)) = found.flatten() else {
        if decides != 0 {
            UNREAD.set(UNREAD.get() + 1);
        }
        if decides == 0 || SEEN.get() != 0 {
            return 0;
        }
        let assumed = with_python(|py, ledger| ledger.read_below(py, size).ok().flatten());
        let Some(assumed) = assumed.flatten().filter(|bytes| bytes.len() as u64 == size) else {
            return 0;
        };
        // SAFETY: by what the caller promises.
        unsafe { assumed.as_ptr().copy_to_nonoverlapping(out, assumed.len()) };
        return 1;
    };
    let bytes = &bytes.get()[from..from + size as usize];
    // SAFETY: by what the caller promises.
    unsafe { bytes.as_ptr().copy_to_nonoverlapping(out, bytes.len()) };
    1
}

/// # Safety
/// `bytes` has `size` bytes, or is null.
unsafe extern "C" fn wrote(address: u64, size: u64, bytes: *const u8) {
    if address == 0 {
        with_python(|py, ledger| ledger.lose_captured(py));
        return;
    }
    let bytes = match bytes.is_null() {
        true => None,
        // SAFETY: by what the caller promises.
        false => Some(unsafe { std::slice::from_raw_parts(bytes, size as usize) }),
    };
    with_python(|py, ledger| {
        if ledger.wrote(py, address, size, bytes).is_err() {
            // An error of ours: nothing is better than something wrong.
            let _ = ledger.forget_range(py, address, address + size);
        }
    });
}

/// Called from inside torch, by a thread that may have let go of Python although functions of ours are on its stack:
/// what PyO3 remembers of it is not to be relied on.
///
/// `None` once Python is on its way out: torch's own threads and destructors still call libraries then, and whoever
/// asks for an interpreter that is gone takes the process down.
fn with_python<T>(work: impl FnOnce(Python<'_>, &Ledger) -> T) -> Option<T> {
    if is_ending() {
        return None;
    }
    // SAFETY: Python runs; each is given back what was taken.
    let state = unsafe { pyo3::ffi::PyGILState_Ensure() };
    // SAFETY: it was just taken.
    let py = unsafe { Python::assume_attached() };
    let work = || LEDGER.get(py).map(|ledger| work(py, ledger.get()));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    // SAFETY: as above.
    unsafe { pyo3::ffi::PyGILState_Release(state) };
    result.ok().flatten()
}

/// Whether the interpreter is being taken down, or is gone.
fn is_ending() -> bool {
    type IsFinalizing = unsafe extern "C" fn() -> c_int;
    static IS_FINALIZING: OnceLock<Option<IsFinalizing>> = OnceLock::new();
    // SAFETY: it may be called at any time.
    if unsafe { pyo3::ffi::Py_IsInitialized() } == 0 {
        return true;
    }
    // Public from Python 3.13 on, and no part of the stable interface of the first version that we serve.
    let function = IS_FINALIZING.get_or_init(|| {
        let mut names = [c"Py_IsFinalizing", c"_Py_IsFinalizing"].into_iter();
        let found = names.find_map(symbol)?;
        // SAFETY: both names are of this type in every Python that has them.
        Some(unsafe { std::mem::transmute::<*mut libc::c_void, IsFinalizing>(found) })
    });
    // SAFETY: it only reads a flag.
    function.is_some_and(|function| unsafe { function() } != 0)
}

/// A function of this process by its name.
fn symbol(name: &std::ffi::CStr) -> Option<*mut libc::c_void> {
    // SAFETY: a look into the symbols of this process.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

impl Ledger {
    /// Bytes that hold what lies at an address, and where among them it begins; `None` if that is not known, or too dear.
    fn bytes_at(
        &self,
        py: Python<'_>,
        address: u64,
        size: u64,
    ) -> PyResult<Option<(Arc<Bytes>, usize)>> {
        let Some((start, value)) = self.living_at(py, address, size)? else { return Ok(None) };
        self.evaluate_to_read(py, &value)?;
        Ok(match value.state() {
            State::Data(bytes) if (address - start + size) as usize <= bytes.get().len() => {
                Some((bytes, (address - start) as usize))
            }
            _ => None,
        })
    }

    /// Something was written to the card where no function was seen.
    fn wrote(&self, py: Python<'_>, address: u64, size: u64, bytes: Option<&[u8]>) -> PyResult<()> {
        let Some((start, value)) = self.living_at(py, address, size)? else {
            return self.forget_range(py, address, address + size);
        };
        let Some(bytes) = bytes else {
            return self.forget_range(py, address, address + size);
        };
        let at = (address - start) as usize;
        if (bytes.len() as u64) < value.bytes {
            self.evaluate_to_read(py, &value)?;
        }
        let mut whole = match value.state() {
            _ if bytes.len() as u64 == value.bytes => Vec::new(),
            State::Data(old) => old.get().to_vec(),
            State::Undefined => vec![0; value.bytes as usize],
            _ => return self.forget_range(py, address, address + size),
        };
        match whole.is_empty() {
            true => whole = bytes.to_vec(),
            false => whole[at..at + bytes.len()].copy_from_slice(bytes),
        }
        self.replace(start, Value::new(State::Data(Bytes::new(whole)), value.bytes));
        Ok(())
    }
}
