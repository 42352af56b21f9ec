//! What PyTorch's memory history says of events: as little as is needed at the moment.

use pyo3::prelude::*;

use crate::lock::lock;
use crate::scribe::Scribe;

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

impl Scribe {
    /// Allocations carry Python's frames from now on, or do not; answers `false` if that is so already, or not ours to say.
    pub(crate) fn set_frames(&self, py: Python<'_>, is_on: bool) -> PyResult<bool> {
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
impl Scribe {
    /// Whether it is known if there are streams.
    fn sees_streams(&self) -> bool {
        self.phantom.is_some()
    }

    /// What turns frames off and on, if they need not stay; and what is called once if there are streams.
    fn may_change_history(&self, frames: Option<[Py<PyAny>; 2]>, on_streams: Option<Py<PyAny>>) {
        *lock(&self.history) = History { frames, is_quiet: false, on_streams };
    }

    /// The history began anew, with frames.
    fn history_cleared(&self) {
        lock(&self.history).is_quiet = false;
    }

    /// No frames are wanted from now on, since the part that runs says it all; whether they were.
    fn hush(&self, py: Python<'_>) -> PyResult<bool> {
        self.set_frames(py, false)
    }

    /// The opposite of `hush`.
    fn unhush(&self, py: Python<'_>) -> PyResult<bool> {
        self.set_frames(py, true)
    }
}
