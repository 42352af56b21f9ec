//! What PyTorch's memory history says of events: as little as is needed at the moment.

use std::sync::atomic::Ordering;

use notes::local;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::lock::lock;
use crate::note_taker::NoteTaker;

/// How it is changed; see `history.py`.
#[derive(Default)]
pub(crate) struct History {
    /// Turns Python's frames off, and on.
    frames: Option<[Py<PyAny>; 2]>,
    /// Whether they are off now.
    is_quiet: bool,
    /// Is called once if there are streams.
    on_streams: Option<Py<PyAny>>,
}

/// A function or a backward pass that a thread is in: it may allocate at any moment, without the interpreter.
pub(crate) struct InCall<'a>(&'a NoteTaker);

impl Drop for InCall<'_> {
    fn drop(&mut self) {
        self.0.count_calls(-1);
    }
}

/// No garbage is collected meanwhile.
struct Uncollected {
    was_enabled: bool,
}

impl Uncollected {
    fn begin() -> Uncollected {
        // SAFETY: methods of Python's call this, with the interpreter.
        Uncollected { was_enabled: unsafe { ffi::PyGC_Disable() } != 0 }
    }
}

impl Drop for Uncollected {
    fn drop(&mut self) {
        if self.was_enabled {
            // SAFETY: as above.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

impl NoteTaker {
    pub(crate) fn in_call(&self) -> InCall<'_> {
        self.count_calls(1);
        InCall(self)
    }

    fn count_calls(&self, change: isize) {
        local::with(self.id, |local| local.calls += change);
        self.calls.fetch_add(change, Ordering::Relaxed);
    }

    /// Whether a backward pass runs.
    pub(crate) fn is_in_backward(&self) -> bool {
        self.backwards.load(Ordering::Relaxed) != 0
    }

    /// Whether no other thread is in a call.
    fn is_alone(&self) -> bool {
        self.calls.load(Ordering::Relaxed) == local::with(self.id, |local| local.calls)
    }

    /// Allocations carry Python's frames from now on, or do not; answers `false` if that is so already, or not ours to say.
    pub(crate) fn set_frames(&self, py: Python<'_>, is_on: bool) -> PyResult<bool> {
        // What made code allocates is known by its line alone.
        if !is_on && self.compiled.is_there() {
            return Ok(false);
        }
        let mut history = lock(&self.history);
        if history.is_quiet != is_on {
            return Ok(false);
        }
        let Some([off, on]) = &history.frames else { return Ok(false) };
        let frames = if is_on { on } else { off }.clone_ref(py);
        history.is_quiet = !is_on;
        drop(history);
        frames.call0(py)?;
        Ok(true)
    }

    pub(crate) fn look_for_streams(&self, py: Python<'_>) -> PyResult<()> {
        if !self.phantom.as_ref().is_some_and(|phantom| phantom.has_streams()) {
            return Ok(());
        }
        let tell = lock(&self.history).on_streams.take();
        tell.map_or(Ok(()), |tell| tell.call0(py).map(drop))
    }
}

#[pymethods]
impl NoteTaker {
    /// Whether it is known if there are streams.
    fn sees_streams(&self) -> bool {
        self.phantom.is_some()
    }

    /// What turns frames off and on, if they need not stay; and what is called once if there are streams.
    fn may_change_history(&self, frames: Option<[Py<PyAny>; 2]>, on_streams: Option<Py<PyAny>>) {
        *lock(&self.history) = History { frames, is_quiet: false, on_streams };
    }

    /// Takes the history, and clears it by calling `clear` in turn, unless another thread may have allocated meanwhile, or
    /// has by PyTorch's own counters, which `stats` give if there is one; whether it was cleared.
    fn take<'py>(
        &self,
        snapshot: &Bound<'py, PyAny>,
        stats: Vec<Bound<'py, PyAny>>,
        clear: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, bool)> {
        // None of this is code of Python's, nor may it lead there: another thread could get the interpreter.
        let _uncollected = Uncollected::begin();
        let count = || stats.iter().map(|stats| stats.call0()).collect::<PyResult<Vec<_>>>();
        let before = count()?;
        let taken = snapshot.call0()?;
        let mut is_cleared = !clear.is_empty() && self.is_alone();
        for (before, after) in before.iter().zip(count()?) {
            is_cleared = is_cleared && before.eq(after)?;
        }
        if is_cleared {
            clear.iter().try_for_each(|clear| clear.call0().map(drop))?;
            lock(&self.history).is_quiet = false; // it begins anew, with frames
        }
        Ok((taken, is_cleared))
    }

    /// A backward pass begins: no frames are wanted, since its nodes say it all; whether they were.
    fn enter_backward(&self, py: Python<'_>) -> PyResult<bool> {
        self.count_calls(1);
        self.backwards.fetch_add(1, Ordering::Relaxed);
        self.set_frames(py, false)
    }

    fn leave_backward(&self, py: Python<'_>, was_loud: bool) -> PyResult<()> {
        self.count_calls(-1);
        self.backwards.fetch_sub(1, Ordering::Relaxed);
        if was_loud {
            self.set_frames(py, true)?;
        }
        Ok(())
    }
}
