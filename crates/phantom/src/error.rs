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
    /// The process sees no card at all.
    NoDevice,
    InvalidDevice,
    InvalidHandle,
    /// No function of a kernel.
    InvalidFunction,
    /// A grid or a block that no card can launch.
    InvalidConfiguration,
    InvalidPitch,
    InvalidSymbol,
    /// Of a copy.
    InvalidDirection,
    /// No context of a card; also memory of this very process, opened as another's.
    InvalidContext,
    AlreadyRegistered,
    NotRegistered,
    NotFound,
    NotSupported,
    /// The card may still be at it.
    NotReady,
    BufferTooSmall,
    /// Nothing of the kind is under way.
    IllegalState,
    /// Not while a stream is captured; the capture is lost.
    CaptureUnsupported,
    /// The capture was lost before.
    CaptureInvalidated,
    /// Two captures would become one.
    CaptureMerge,
    /// Not the stream that the capture began on.
    CaptureUnmatched,
    /// A stream of the capture has not come back.
    CaptureUnjoined,
    /// A captured stream would wait for work that is not captured.
    CaptureIsolation,
    /// The event was recorded in a capture.
    CapturedEvent,
    /// Not the thread that the capture began on.
    CaptureWrongThread,
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
    Cusolver,
    Cusparse,
    Cufft,
    Nvrtc,
    Nccl,
    Nvml,
    Cupti,
    Other,
}

impl Library {
    /// The library's status code for an outcome.
    pub(crate) fn code(self, outcome: Answer) -> c_int {
        let Err(failure) = outcome else { return 0 };
        // Columns: runtime and driver, cuBLAS, cuDNN, cuSOLVER, cuSPARSE, cuFFT, NVRTC, NCCL, NVML,
        // CUPTI, everything else.
        let codes = match failure {
            Failure::InvalidValue => [1, 7, 2000, 3, 3, 4, 3, 4, 2, 1, 1],
            Failure::OutOfMemory => [2, 3, 4000, 2, 2, 2, 1, 1, 20, 8, 2],
            Failure::Initialization => [3, 1, 1001, 1, 1, 5, 11, 2, 1, 15, 3],
            Failure::NoDevice => [100, 1, 1001, 1, 1, 5, 11, 2, 6, 2, 1],
            Failure::InvalidDevice => [101, 7, 2000, 3, 3, 4, 3, 4, 2, 2, 1],
            Failure::InvalidHandle => [400, 1, 2000, 1, 1, 1, 4, 4, 2, 1, 1],
            Failure::InvalidFunction => [98, 7, 2000, 3, 3, 4, 3, 4, 2, 1, 1],
            Failure::InvalidConfiguration => [9, 7, 2000, 3, 3, 4, 3, 4, 2, 1, 1],
            Failure::InvalidPitch => [12, 7, 2000, 3, 3, 4, 3, 4, 2, 1, 1],
            Failure::InvalidSymbol => [13, 7, 2000, 3, 3, 4, 3, 4, 2, 1, 1],
            Failure::InvalidDirection => [21, 7, 2000, 3, 3, 4, 3, 4, 2, 1, 1],
            Failure::InvalidContext => [201, 7, 2000, 3, 3, 4, 3, 4, 2, 3, 1],
            Failure::AlreadyRegistered => [712, 7, 2000, 3, 3, 4, 3, 4, 2, 1, 1],
            Failure::NotRegistered => [713, 7, 2000, 3, 3, 4, 3, 4, 2, 1, 1],
            Failure::NotFound => [500, 7, 2000, 3, 3, 4, 3, 4, 6, 1, 1],
            Failure::NotSupported => [801, 15, 3000, 9, 10, 16, 3, 5, 3, 27, 9],
            Failure::NotReady => [600, 14, 4000, 7, 7, 5, 11, 7, 999, 999, 6],
            Failure::BufferTooSmall => [1, 7, 2000, 3, 3, 4, 3, 4, 7, 1, 1],
            Failure::IllegalState => [401, 7, 2000, 3, 3, 4, 3, 4, 2, 1, 1],
            Failure::CaptureUnsupported => [900, 14, 4000, 7, 7, 5, 11, 1, 999, 999, 6],
            Failure::CaptureInvalidated => [901, 14, 4000, 7, 7, 5, 11, 1, 999, 999, 6],
            Failure::CaptureMerge => [902, 14, 4000, 7, 7, 5, 11, 1, 999, 999, 6],
            Failure::CaptureUnmatched => [903, 14, 4000, 7, 7, 5, 11, 1, 999, 999, 6],
            Failure::CaptureUnjoined => [904, 14, 4000, 7, 7, 5, 11, 1, 999, 999, 6],
            Failure::CaptureIsolation => [905, 14, 4000, 7, 7, 5, 11, 1, 999, 999, 6],
            Failure::CapturedEvent => [907, 14, 4000, 7, 7, 5, 11, 1, 999, 999, 6],
            Failure::CaptureWrongThread => [908, 14, 4000, 7, 7, 5, 11, 1, 999, 999, 6],
            Failure::EndOfRecords => [999, 14, 4000, 7, 7, 5, 11, 3, 999, 12, 6],
            Failure::Cudnn(code) => [999, 14, code, 7, 7, 5, 11, 3, 999, 999, code],
            Failure::Unknown => [999, 14, 4000, 7, 7, 5, 11, 3, 999, 999, 6],
        };
        codes[match self {
            Library::Cudart | Library::Driver => 0,
            Library::Cublas => 1,
            Library::Cudnn => 2,
            Library::Cusolver => 3,
            Library::Cusparse => 4,
            Library::Cufft => 5,
            Library::Nvrtc => 6,
            Library::Nccl => 7,
            Library::Nvml => 8,
            Library::Cupti => 9,
            Library::Other => 10,
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
const ERRORS: [(c_int, &CStr, &CStr); 28] = [
    (0, c"cudaSuccess", c"no error"),
    (1, c"cudaErrorInvalidValue", c"invalid argument"),
    (2, c"cudaErrorMemoryAllocation", c"out of memory"),
    (3, c"cudaErrorInitializationError", c"initialization error"),
    (9, c"cudaErrorInvalidConfiguration", c"invalid configuration argument"),
    (12, c"cudaErrorInvalidPitchValue", c"invalid pitch argument"),
    (13, c"cudaErrorInvalidSymbol", c"invalid device symbol"),
    (21, c"cudaErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
    (98, c"cudaErrorInvalidDeviceFunction", c"invalid device function"),
    (100, c"cudaErrorNoDevice", c"no CUDA-capable device is detected"),
    (101, c"cudaErrorInvalidDevice", c"invalid device ordinal"),
    (201, c"cudaErrorDeviceUninitialized", c"invalid device context"),
    (400, c"cudaErrorInvalidResourceHandle", c"invalid resource handle"),
    (401, c"cudaErrorIllegalState", c"the operation cannot be performed in the present state"),
    (500, c"cudaErrorSymbolNotFound", c"named symbol not found"),
    (600, c"cudaErrorNotReady", c"device not ready"),
    (712, c"cudaErrorHostMemoryAlreadyRegistered", c"memory is already registered"),
    (713, c"cudaErrorHostMemoryNotRegistered", c"memory is not registered"),
    (801, c"cudaErrorNotSupported", c"operation not supported"),
    (
        900,
        c"cudaErrorStreamCaptureUnsupported",
        c"operation not permitted when stream is capturing",
    ),
    (
        901,
        c"cudaErrorStreamCaptureInvalidated",
        c"operation failed due to a previous error during capture",
    ),
    (
        902,
        c"cudaErrorStreamCaptureMerge",
        c"operation would result in a merge of separate capture sequences",
    ),
    (
        903,
        c"cudaErrorStreamCaptureUnmatched",
        c"capture was not ended in the same stream as it began",
    ),
    (904, c"cudaErrorStreamCaptureUnjoined", c"capturing stream has unjoined work"),
    (
        905,
        c"cudaErrorStreamCaptureIsolation",
        c"dependency created on uncaptured work in another stream",
    ),
    (
        907,
        c"cudaErrorCapturedEvent",
        c"operation not permitted on an event last recorded in a capturing stream",
    ),
    (
        908,
        c"cudaErrorStreamCaptureWrongThread",
        c"attempt to terminate a thread-local capture sequence from another thread",
    ),
    (999, c"cudaErrorUnknown", c"unknown error"),
];

fn row(code: c_int) -> &'static (c_int, &'static CStr, &'static CStr) {
    ERRORS.iter().find(|row| row.0 == code).unwrap_or(&ERRORS[ERRORS.len() - 1])
}

pub(crate) fn runtime_name(code: c_int) -> *const c_char {
    row(code).1.as_ptr()
}

pub(crate) fn runtime_text(code: c_int) -> *const c_char {
    row(code).2.as_ptr()
}

pub(crate) fn driver_name(code: c_int, out: &mut *const c_char) -> Answer {
    *out = runtime_name(code);
    known(code)
}

pub(crate) fn driver_text(code: c_int, out: &mut *const c_char) -> Answer {
    *out = runtime_text(code);
    known(code)
}

/// The driver says so if it does not know a code.
fn known(code: c_int) -> Answer {
    if row(code).0 == code { Ok(()) } else { Err(Failure::InvalidValue) }
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
