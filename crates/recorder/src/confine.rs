//! What a confined trial asks of the system: to be confined, and when a file was made.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// See `confine::restrict`; a fork of the warm process has one thread.
#[pyfunction]
pub(crate) fn confine(writable: Vec<PathBuf>) -> PyResult<()> {
    ::confine::restrict(&writable).map_err(|error| PyOSError::new_err(error.to_string()))
}

/// When a file or folder was made, in seconds since 1970; `None` if it is not there, or its file system does not say.
/// Python's own `stat` has no such time.
#[pyfunction]
pub(crate) fn born(path: PathBuf) -> Option<f64> {
    let made = std::fs::symlink_metadata(path).ok()?.created().ok()?;
    Some(made.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}
