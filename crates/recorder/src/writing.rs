//! The recordings of all cards.

use std::path::PathBuf;
use std::sync::MutexGuard;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::hash::Map;
use crate::known::Known;
use crate::lock::lock;
use crate::pen::Pen;
use crate::scribe::Scribe;
use crate::texts::Text;

impl Scribe {
    fn with_pen<T>(
        &self,
        device: u16,
        work: impl FnOnce(&mut Pen) -> PyResult<T>,
    ) -> Option<PyResult<T>> {
        self.pens().get_mut(&device).map(work)
    }

    fn pens(&self) -> MutexGuard<'_, Map<u16, Pen>> {
        lock(&self.pens)
    }
}

#[pymethods]
impl Scribe {
    /// Begins the recording of a card; `about` is a JSON object.
    fn open(&self, device: u16, path: PathBuf, about: Text) -> PyResult<()> {
        let pen = Pen::new(&path, &about, device)?;
        self.pens().insert(device, pen);
        Ok(())
    }

    /// Whether a card has a recording.
    fn is_open(&self, device: u16) -> bool {
        self.with_pen(device, |_| Ok(())).is_some()
    }

    /// Parts that began since the last time that all was written.
    fn count(&self) -> usize {
        self.lock().parts.count()
    }

    /// What happened up to here will be taken and written: the serial number that is the first not to be, and those of
    /// the parts that all threads are in, of which more may come.
    fn cut(&self, py: Python<'_>) -> PyResult<(u64, Vec<u64>)> {
        Ok((self.resume(py)?, self.lock().parts.running()))
    }

    /// Writes what was taken after the cut: the history of each card, and the serial numbers of its events where they
    /// do not carry them. `names` has names of parameters by their ids.
    fn write(
        &self,
        cut: (u64, Vec<u64>),
        traces: Vec<Bound<'_, PyList>>,
        serials: Option<Vec<Vec<u64>>>,
        names: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let (cut, running) = cut;
        let mut serials = serials.map(Vec::into_iter);
        let notes = self.lock().notes.take(cut);
        let known = Known {
            workspaces: self
                .phantom
                .as_ref()
                .map(|phantom| phantom.workspaces())
                .unwrap_or_default(),
            waits: self
                .phantom
                .as_ref()
                .filter(|_| serials.is_none())
                .map(|phantom| phantom.waits()),
            names: names.clone(),
        };
        for (device, trace) in traces.iter().enumerate() {
            let numbers = serials.as_mut().and_then(Iterator::next);
            let device = device as u16;
            let notes = notes.iter().filter(|note| note.device == device).copied().collect();
            let write = |pen: &mut Pen| pen.write(&mut self.lock(), trace, numbers, notes, &known);
            self.with_pen(device, write).transpose()?;
        }
        let mut state = self.lock();
        // Other threads go on meanwhile.
        let is_left = |serial: &u64| *serial >= cut || running.contains(serial);
        state.areas.retain(|serial, _| is_left(serial));
        state.casts.retain(|serial, _| is_left(serial));
        state.parts.forget(&running);
        Ok(())
    }

    /// Bytes that were allocated since everything was named last, are alive, and have no name.
    fn unnamed(&self) -> u64 {
        let (pens, state) = (self.pens(), self.lock());
        pens.values().map(|pen| pen.unnamed(&state)).sum()
    }

    /// Everything that has a name has been named.
    fn all_named(&self) {
        self.pens().values_mut().for_each(Pen::all_named);
    }

    /// More facts, for the recordings of all cards.
    fn about(&self, json: Text) -> PyResult<()> {
        self.pens().values_mut().try_for_each(|pen| pen.about(&json))
    }

    /// Ends the recording of a card, with the last state of its memory.
    fn finish(&self, device: u16, segments: &Bound<'_, PyList>, facts: Text) -> PyResult<()> {
        self.with_pen(device, |pen| pen.finish(segments, &facts)).transpose()?;
        Ok(())
    }

    /// Cards that have a recording.
    fn devices(&self) -> Vec<u16> {
        let mut devices: Vec<u16> = self.pens().keys().copied().collect();
        devices.sort_unstable();
        devices
    }
}
