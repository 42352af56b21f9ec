//! One set of failures, and the code each library gives for them.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};

/// What an answering function returns.
pub(crate) type Answer = Result<(), Failure>;

/// Why a call could not be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    InvalidValue,
    OutOfMemory,
    Initialization,
    InvalidDevice,
    InvalidHandle,
    NotFound,
    NotSupported,
    /// The card may still be at it.
    NotReady,
    BufferTooSmall,
    /// CUPTI has no more activity records.
    EndOfRecords,
    /// The code that cuDNN itself gave.
    Cudnn(c_int),
    Unknown,
}

/// The libraries, as far as their status codes differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    Cudart,
    Driver,
    Cublas,
    Cudnn,
    Nccl,
    Nvml,
    Cupti,
    Other,
}

impl Library {
    /// The library's status code for an outcome.
    pub(crate) fn code(self, outcome: Answer) -> c_int {
        let Err(failure) = outcome else { return 0 };
        // Columns: runtime and driver, cuBLAS, cuDNN, NCCL, NVML, CUPTI, everything else.
        let codes = match failure {
            Failure::InvalidValue => [1, 7, 2000, 4, 2, 1, 1],
            Failure::OutOfMemory => [2, 3, 4000, 1, 20, 8, 2],
            Failure::Initialization => [3, 1, 1001, 2, 1, 15, 3],
            Failure::InvalidDevice => [101, 7, 2000, 4, 2, 2, 1],
            Failure::InvalidHandle => [400, 7, 2000, 4, 2, 1, 1],
            Failure::NotFound => [500, 7, 2000, 4, 6, 1, 1],
            Failure::NotSupported => [801, 15, 3000, 5, 3, 27, 9],
            Failure::NotReady => [600, 14, 4000, 7, 999, 999, 6],
            Failure::BufferTooSmall => [1, 7, 2000, 4, 7, 1, 1],
            Failure::EndOfRecords => [999, 14, 4000, 3, 999, 12, 6],
            Failure::Cudnn(code) => [999, 14, code, 3, 999, 999, code],
            Failure::Unknown => [999, 14, 4000, 3, 999, 999, 6],
        };
        codes[match self {
            Library::Cudart | Library::Driver => 0,
            Library::Cublas => 1,
            Library::Cudnn => 2,
            Library::Nccl => 3,
            Library::Nvml => 4,
            Library::Cupti => 5,
            Library::Other => 6,
        }]
    }
}

thread_local! {
    /// The runtime's sticky error of this thread, until someone takes it.
    static LAST: Cell<c_int> = const { Cell::new(0) };
}

/// Keeps a runtime failure for `cudaGetLastError`.
pub(crate) fn remember(outcome: Answer) {
    if outcome.is_err() {
        LAST.set(Library::Cudart.code(outcome));
    }
}

pub(crate) fn take_last() -> c_int {
    LAST.replace(0)
}

pub(crate) fn peek_last() -> c_int {
    LAST.get()
}

/// Code, C name and text of the runtime's errors that the phantom can return.
const ERRORS: [(c_int, &CStr, &CStr); 11] = [
    (0, c"cudaSuccess", c"no error"),
    (1, c"cudaErrorInvalidValue", c"invalid argument"),
    (2, c"cudaErrorMemoryAllocation", c"out of memory"),
    (3, c"cudaErrorInitializationError", c"initialization error"),
    (100, c"cudaErrorNoDevice", c"no CUDA-capable device is detected"),
    (101, c"cudaErrorInvalidDevice", c"invalid device ordinal"),
    (400, c"cudaErrorInvalidResourceHandle", c"invalid resource handle"),
    (500, c"cudaErrorSymbolNotFound", c"named symbol not found"),
    (600, c"cudaErrorNotReady", c"device not ready"),
    (801, c"cudaErrorNotSupported", c"operation not supported"),
    (999, c"cudaErrorUnknown", c"unknown error"),
];

fn row(code: c_int) -> &'static (c_int, &'static CStr, &'static CStr) {
    ERRORS.iter().find(|row| row.0 == code).unwrap_or(&ERRORS[10])
}

pub(crate) fn runtime_name(code: c_int) -> *const c_char {
    row(code).1.as_ptr()
}

pub(crate) fn runtime_text(code: c_int) -> *const c_char {
    row(code).2.as_ptr()
}

pub(crate) fn driver_name(code: c_int, out: &mut *const c_char) -> Answer {
    *out = runtime_name(code);
    Ok(())
}

pub(crate) fn driver_text(code: c_int, out: &mut *const c_char) -> Answer {
    *out = runtime_text(code);
    Ok(())
}

/// The libraries above the runtime share one text: the code itself is in PyTorch's message.
fn library_text(code: c_int) -> *const c_char {
    if code == 0 { c"success".as_ptr() } else { c"not supported by the phantom GPU".as_ptr() }
}

pub(crate) fn cudnn_text(code: c_int) -> *const c_char {
    library_text(code)
}

pub(crate) fn sparse_text(code: c_int) -> *const c_char {
    library_text(code)
}

pub(crate) fn nvrtc_text(code: c_int) -> *const c_char {
    library_text(code)
}

pub(crate) fn nccl_text(code: c_int) -> *const c_char {
    // Out of memory is the one failure of CUDA that NCCL meets here.
    if code == 1 { c"out of memory".as_ptr() } else { library_text(code) }
}

pub(crate) fn nvml_text(code: c_int) -> *const c_char {
    library_text(code)
}
