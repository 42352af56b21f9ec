//! The C boundary: raw arguments become checked Rust values, answers become status codes.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_abi::types::{Address, Handle, HostFunction, StreamCallback, UniqueId};

use crate::error::{Answer, Failure, Library};

/// Turns a C argument into what the answering function wants; a null pointer fails here, once.
///
/// # Safety
/// A non-null pointer must point to a valid value of its type for the duration of the call, as the
/// C function's contract says.
pub(crate) unsafe trait FromC<C>: Sized {
    /// # Safety
    /// See the trait.
    unsafe fn from_c(value: C) -> Result<Self, Failure>;
}

macro_rules! as_is {
    ($($type:ty),* $(,)?) => {$(
        // SAFETY: the value is passed on unchanged and not dereferenced.
        unsafe impl FromC<$type> for $type {
            unsafe fn from_c(value: $type) -> Result<Self, Failure> {
                Ok(value)
            }
        }
    )*};
}

as_is!(c_int, c_uint, usize, u64, i64, Address, Handle, UniqueId, HostFunction, StreamCallback);

/// A pointer the answer writes or reads through by itself (arrays, buffers of given length).
#[derive(Clone, Copy)]
pub(crate) struct Raw<T>(pub(crate) *mut T);

// SAFETY: the pointer is passed on unchanged and not dereferenced here.
unsafe impl<T> FromC<*mut T> for Raw<T> {
    unsafe fn from_c(value: *mut T) -> Result<Self, Failure> {
        Ok(Raw(value))
    }
}

// SAFETY: the pointer is passed on unchanged and not dereferenced here.
unsafe impl<T> FromC<*const T> for Raw<T> {
    unsafe fn from_c(value: *const T) -> Result<Self, Failure> {
        Ok(Raw(value.cast_mut()))
    }
}

// SAFETY: null is refused; otherwise the caller vouches for the pointer.
unsafe impl<T> FromC<*mut T> for &mut T {
    unsafe fn from_c(value: *mut T) -> Result<Self, Failure> {
        // SAFETY: the trait's contract.
        unsafe { value.as_mut() }.ok_or(Failure::InvalidValue)
    }
}

// SAFETY: null is `None`; otherwise the caller vouches for the pointer.
unsafe impl<T> FromC<*mut T> for Option<&mut T> {
    unsafe fn from_c(value: *mut T) -> Result<Self, Failure> {
        // SAFETY: the trait's contract.
        Ok(unsafe { value.as_mut() })
    }
}

// SAFETY: null is refused; otherwise the caller vouches for the pointer.
unsafe impl<T> FromC<*const T> for &T {
    unsafe fn from_c(value: *const T) -> Result<Self, Failure> {
        // SAFETY: the trait's contract.
        unsafe { value.as_ref() }.ok_or(Failure::InvalidValue)
    }
}

// SAFETY: null is refused; the caller vouches for a terminated string.
unsafe impl FromC<*const c_char> for &CStr {
    unsafe fn from_c(value: *const c_char) -> Result<Self, Failure> {
        if value.is_null() {
            return Err(Failure::InvalidValue);
        }
        // SAFETY: the trait's contract.
        Ok(unsafe { CStr::from_ptr(value) })
    }
}

impl<T: Copy> Raw<T> {
    /// Whether the caller passed null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The first `count` values; empty for null.
    pub(crate) fn read(self, count: usize) -> Vec<T> {
        if self.0.is_null() {
            return Vec::new();
        }
        // SAFETY: the C contract gives an array of at least `count` values.
        (0..count).map(|i| unsafe { self.0.add(i).read_unaligned() }).collect()
    }

    /// Writes `values` to the start of the array; nothing for null.
    pub(crate) fn write(self, values: &[T]) {
        if self.0.is_null() {
            return;
        }
        for (i, value) in values.iter().enumerate() {
            // SAFETY: the C contract gives room for at least as many values as the answer writes.
            unsafe { self.0.add(i).write_unaligned(*value) };
        }
    }
}

impl Raw<c_void> {
    /// Writes bytes into an untyped out-argument; nothing for null.
    pub(crate) fn write_bytes(self, bytes: &[u8]) {
        Raw(self.0.cast::<u8>()).write(bytes);
    }
}

/// Writes `text` and its terminator into a caller's buffer of `length` bytes.
pub(crate) fn write_text(out: Raw<c_char>, length: usize, text: &str) -> Answer {
    if out.is_null() || length == 0 {
        return Err(Failure::InvalidValue);
    }
    let kept = text.len().min(length - 1);
    let mut bytes: Vec<c_char> = text.as_bytes()[..kept].iter().map(|b| *b as c_char).collect();
    bytes.push(0);
    out.write(&bytes);
    Ok(())
}

/// Runs an answer so that no panic reaches C, and gives the library's code for its outcome.
pub(crate) fn guard(library: Library, name: &str, answer: impl FnOnce() -> Answer) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| {
        eprintln!("fathom: `{name}` failed inside the phantom; the call returns an unknown error");
        Err(Failure::Unknown)
    });
    if let Err(failure) = outcome
        && crate::config::get().trace
    {
        eprintln!("fathom: `{name}` fails: {failure:?}");
    }
    if library == Library::Cudart {
        crate::error::remember(outcome);
    }
    library.code(outcome)
}
