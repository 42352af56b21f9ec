//! Locks that do not hold Python up.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

/// Locks; a thread that has to wait lets go of the interpreter, which the other one may need to come to its end.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(error)) => error.into_inner(),
        // The one place where the interpreter is asked for: `clippy.toml` refuses all others.
        #[expect(clippy::disallowed_methods)]
        Err(TryLockError::WouldBlock) => {
            Python::attach(|py| mutex.lock_py_attached(py)).unwrap_or_else(PoisonError::into_inner)
        }
    }
}

/// Data that is locked only while no code of Python's can run: else this thread could come back to the same lock, or
/// two could wait for each other.
///
/// The work is `Send`, which neither `Python<'_>` nor any `Bound<'_, T>` is: it cannot bring the interpreter along.
/// Nor can it ask for it, as that is refused everywhere but in [`lock`].
#[derive(Default)]
pub(crate) struct Quiet<T>(Mutex<T>);

impl<T: Send> Quiet<T> {
    pub(crate) fn with<R: Send>(&self, work: impl FnOnce(&mut T) -> R + Send) -> R {
        work(&mut lock(&self.0))
    }
}
