//! The C boundary: raw arguments become checked Rust values, answers become status codes.
//!
//! What a row of a table says about an argument is checked here, once, and the answering functions see
//! references that can be followed, handles that are alive and numbers in their range.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_abi::checked::*;
use cuda_abi::handles::*;
use cuda_abi::types::{Address, Handle, HostFunction, IpcHandle, StreamCallback, UniqueId};

use crate::error::{Answer, Failure, Library};
use crate::{configuration, context, fft, handles, nccl, nvml, pool, reach, state};

/// Turns a C argument into what the answering function wants; a bad one fails here, once.
///
/// # Safety
/// A pointer that can be followed must point to a valid value of its type for the duration of the
/// call, as the C function's contract says.
pub(crate) unsafe trait FromC<C>: Sized {
    /// # Safety
    /// See the trait.
    unsafe fn from_c(value: C) -> Result<Self, Failure>;
}

/// An argument as the word that it is passed in; 0 for what is shorter or longer than an address.
pub(crate) fn word_of<C: Copy>(value: &C) -> usize {
    if size_of::<C>() != size_of::<usize>() {
        return 0;
    }
    // SAFETY: as many bytes as the word has, whatever they mean.
    unsafe { std::ptr::from_ref(value).cast::<usize>().read_unaligned() }
}

/// An argument that is checked and not handed on.
pub(crate) trait Check {
    fn check(self) -> Answer;
}

macro_rules! as_is {
    ($($type:ty),* $(,)?) => {$(
        // SAFETY: the value is passed on unchanged and not dereferenced.
        unsafe impl FromC<$type> for $type {
            unsafe fn from_c(value: $type) -> Result<Self, Failure> {
                Ok(value)
            }
        }

        impl Check for $type {
            fn check(self) -> Answer {
                Ok(())
            }
        }
    )*};
}

as_is!(
    c_int,
    f64,
    c_uint,
    usize,
    u64,
    i64,
    Address,
    Handle,
    UniqueId,
    IpcHandle,
    HostFunction,
    StreamCallback,
    Dim3
);

/// A place for a handle that the function makes.
pub(crate) struct New<'a> {
    pub(crate) kind: Kind,
    pub(crate) place: &'a mut Handle,
}

macro_rules! handles_of {
    ($($name:ident,)*) => {$(
        // SAFETY: a number that is looked up.
        unsafe impl FromC<$name> for Handle {
            unsafe fn from_c(value: $name) -> Result<Self, Failure> {
                handles::alive(value)
            }
        }

        // SAFETY: as above; null is `None`.
        unsafe impl FromC<Optional<$name>> for Option<Handle> {
            unsafe fn from_c(value: Optional<$name>) -> Result<Self, Failure> {
                if value.0.0 == 0 { Ok(None) } else { handles::alive(value.0).map(Some) }
            }
        }

        // SAFETY: as above.
        unsafe impl FromC<Ended<$name>> for Handle {
            unsafe fn from_c(value: Ended<$name>) -> Result<Self, Failure> {
                handles::ended(value.0)
            }
        }

        // SAFETY: both types are a number of the same size.
        unsafe impl FromC<*mut $name> for &mut Handle {
            unsafe fn from_c(value: *mut $name) -> Result<Self, Failure> {
                // SAFETY: the trait's contract.
                unsafe { FromC::from_c(value.cast::<Handle>()) }
            }
        }

        // SAFETY: as above.
        unsafe impl FromC<*mut $name> for New<'_> {
            unsafe fn from_c(value: *mut $name) -> Result<Self, Failure> {
                // SAFETY: the trait's contract.
                let place = unsafe { FromC::from_c(value.cast::<Handle>()) }?;
                Ok(New { kind: Kind::$name, place })
            }
        }

        // SAFETY: as above.
        unsafe impl FromC<*mut $name> for Option<&mut Handle> {
            unsafe fn from_c(value: *mut $name) -> Result<Self, Failure> {
                // SAFETY: the trait's contract.
                unsafe { FromC::from_c(value.cast::<Handle>()) }
            }
        }

        // SAFETY: as above.
        unsafe impl FromC<*mut $name> for Raw<Handle> {
            unsafe fn from_c(value: *mut $name) -> Result<Self, Failure> {
                Ok(Raw(value.cast()))
            }
        }

        impl Check for $name {
            fn check(self) -> Answer {
                handles::alive(self).map(|_| ())
            }
        }

        impl Check for Ended<$name> {
            fn check(self) -> Answer {
                handles::ended(self.0).map(|_| ())
            }
        }
    )*};
}

cuda_abi::every_handle!(handles_of);

/// What is checked by its type, and what it becomes.
macro_rules! becomes {
    ($($checked:ident => $type:ty, $check:path;)*) => {$(
        // SAFETY: a number that is looked at.
        unsafe impl FromC<$checked> for $type {
            unsafe fn from_c(value: $checked) -> Result<Self, Failure> {
                $check(value.0)
            }
        }

        impl Check for $checked {
            fn check(self) -> Answer {
                $check(self.0).map(|_| ())
            }
        }
    )*};
}

becomes! {
    NonNull => Handle, not_null;
    Function => Handle, function;
    Ordinal => c_int, ordinal;
    Direction => c_int, direction;
    Grid => Dim3, configuration::grid;
    Block => Dim3, configuration::block;
    Pool => c_int, pool::ordinal_of;
    Context => c_int, context::ordinal_of;
    NvmlDevice => Handle, nvml::device;
    DataType => c_int, nccl::data_type;
    Operation => c_int, nccl::operation;
    Plan => c_int, fft::alive;
}

fn not_null(value: usize) -> Result<Handle, Failure> {
    if value == 0 { Err(Failure::InvalidValue) } else { Ok(Handle(value)) }
}

fn function(value: usize) -> Result<Handle, Failure> {
    not_null(value).map_err(|_| Failure::InvalidFunction)
}

fn ordinal(value: c_int) -> Result<c_int, Failure> {
    state::device(value).map(|_| value)
}

fn direction(value: c_int) -> Result<c_int, Failure> {
    if (0..=4).contains(&value) { Ok(value) } else { Err(Failure::InvalidDirection) }
}

// SAFETY: a number that is looked up; null is `None`.
unsafe impl FromC<Optional<Context>> for Option<c_int> {
    unsafe fn from_c(value: Optional<Context>) -> Result<Self, Failure> {
        if value.0.0 == 0 { Ok(None) } else { context::ordinal_of(value.0.0).map(Some) }
    }
}

macro_rules! out_arguments {
    ($($checked:ident => $type:ty),*) => {$(
        // SAFETY: both types are a number of the same size.
        unsafe impl FromC<*mut $checked> for &mut $type {
            unsafe fn from_c(value: *mut $checked) -> Result<Self, Failure> {
                // SAFETY: the trait's contract.
                unsafe { FromC::from_c(value.cast::<$type>()) }
            }
        }
    )*};
}

out_arguments!(Pool => Handle, Context => Handle, NvmlDevice => Handle, Plan => c_int);

/// A pointer the answer writes or reads through by itself (arrays, buffers of given length).
#[derive(Debug)]
pub(crate) struct Raw<T>(pub(crate) *mut T);

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Raw<T> {}

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

// SAFETY: the pointers are passed on unchanged and not dereferenced here; both have one form in memory.
unsafe impl<T> FromC<*const *mut T> for Raw<Raw<T>> {
    unsafe fn from_c(value: *const *mut T) -> Result<Self, Failure> {
        Ok(Raw(value.cast_mut().cast()))
    }
}

// SAFETY: what cannot be written is refused; otherwise the caller vouches for the pointer.
unsafe impl<T> FromC<*mut T> for &mut T {
    unsafe fn from_c(value: *mut T) -> Result<Self, Failure> {
        if !value.is_aligned() || !reach::is_writable(value as usize, size_of::<T>()) {
            return Err(Failure::InvalidValue);
        }
        // SAFETY: the trait's contract.
        unsafe { value.as_mut() }.ok_or(Failure::InvalidValue)
    }
}

// SAFETY: null is `None`; otherwise as above.
unsafe impl<T> FromC<*mut T> for Option<&mut T> {
    unsafe fn from_c(value: *mut T) -> Result<Self, Failure> {
        // SAFETY: the trait's contract.
        if value.is_null() { Ok(None) } else { unsafe { FromC::from_c(value) }.map(Some) }
    }
}

// SAFETY: what cannot be read is refused; otherwise the caller vouches for the pointer.
unsafe impl<T> FromC<*const T> for &T {
    unsafe fn from_c(value: *const T) -> Result<Self, Failure> {
        if !value.is_aligned() || !reach::is_readable(value as usize, size_of::<T>()) {
            return Err(Failure::InvalidValue);
        }
        // SAFETY: the trait's contract.
        unsafe { value.as_ref() }.ok_or(Failure::InvalidValue)
    }
}

// SAFETY: only a text that ends within readable memory is accepted.
unsafe impl FromC<*const c_char> for &CStr {
    unsafe fn from_c(value: *const c_char) -> Result<Self, Failure> {
        reach::text(value).ok_or(Failure::InvalidValue)
    }
}

impl<T: Copy> Raw<T> {
    /// Whether the caller passed null.
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The first `count` values; empty for null. Whoever calls this has bounded `count`.
    pub(crate) fn read(self, count: usize) -> Result<Vec<T>, Failure> {
        if self.0.is_null() {
            return Ok(Vec::new());
        }
        let bytes = count.checked_mul(size_of::<T>()).ok_or(Failure::InvalidValue)?;
        if !reach::is_readable(self.0 as usize, bytes) {
            return Err(Failure::InvalidValue);
        }
        // SAFETY: the values can be read, and the C contract makes them values of this type.
        Ok((0..count).map(|i| unsafe { self.0.add(i).read_unaligned() }).collect())
    }

    /// Writes `values` to the start of the array; nothing for null.
    pub(crate) fn write(self, values: &[T]) -> Answer {
        if self.0.is_null() {
            return Ok(());
        }
        if !reach::is_writable(self.0 as usize, size_of_val(values)) {
            return Err(Failure::InvalidValue);
        }
        for (i, value) in values.iter().enumerate() {
            // SAFETY: so much can be written, and the C contract says that it may be.
            unsafe { self.0.add(i).write_unaligned(*value) };
        }
        Ok(())
    }
}

impl Raw<c_void> {
    /// Writes bytes into an untyped out-argument; nothing for null.
    pub(crate) fn write_bytes(self, bytes: &[u8]) -> Answer {
        Raw(self.0.cast::<u8>()).write(bytes)
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
    out.write(&bytes)
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
