//! The recordings of all cards.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::MutexGuard;

use notes::note::Note;
use notes::{Batch, CardWriter, WorkAreas};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::describe::parameters;
use crate::entry::{self, Entry};
use crate::hash::Map;
use crate::lock::lock;
use crate::note_taker::NoteTaker;
use crate::phantom::Phantom;
use crate::texts::Text;

/// The writer of one card.
pub(crate) type CardFile = CardWriter<BufWriter<File>>;

/// What is known of all cards' events at one cut.
struct Cut<'a> {
    notes: Vec<Note>,
    workspaces: WorkAreas,
    waits: Option<Vec<(u64, u64)>>,
    /// Names of parameters by their ids.
    names: &'a Bound<'a, PyDict>,
}

impl NoteTaker {
    fn with_writer<T>(
        &self,
        device: u16,
        work: impl FnOnce(&mut CardFile) -> PyResult<T>,
    ) -> Option<PyResult<T>> {
        self.writers().get_mut(&device).map(work)
    }

    fn writers(&self) -> MutexGuard<'_, Map<u16, CardFile>> {
        lock(&self.writers)
    }

    /// Writes the history of one card.
    fn write_card(
        &self,
        writer: &mut CardFile,
        trace: &Bound<'_, PyList>,
        serials: Option<Vec<u64>>,
        cut: &Cut<'_>,
    ) -> PyResult<()> {
        let py = trace.py();
        let history: Vec<Entry<'_>> = trace.iter().map(Entry::read).collect::<PyResult<_>>()?;
        let mut serials = serials.map(Vec::into_iter);
        let mut serial = || serials.as_mut().and_then(Iterator::next);
        let entries: Vec<notes::Entry> =
            history.iter().map(|entry| entry.plain(serial())).collect::<PyResult<_>>()?;
        for (path, class) in self.modules.from(py, writer.modules())? {
            writer.add_module(&path, &class);
        }
        let wanted = self.quietly(|state| writer.look(state, &entries));
        let mut outside = self.describe(py, writer, &wanted, &history)?;
        let compiled = self.of_compiled(py, writer, &history, &entries)?;
        outside.extend(compiled.owners);
        let batch = Batch {
            entries: &entries,
            notes: &cut.notes,
            outside,
            forms: compiled.forms,
            workspaces: Some(&cut.workspaces),
            waits: cut.waits.as_deref(),
            parameters: parameters(cut.names, &wanted.parameters)?,
        };
        self.quietly(|state| writer.write(state, &batch));
        Ok(writer.flush()?)
    }
}

#[pymethods]
impl NoteTaker {
    /// Begins the recording of a card; `about` is a JSON object.
    fn open(&self, device: u16, path: PathBuf, about: Text) -> PyResult<()> {
        let writer = CardWriter::new(BufWriter::new(File::create(path)?), &about, device)?;
        self.writers().insert(device, writer);
        Ok(())
    }

    /// Whether a card has a recording.
    fn is_open(&self, device: u16) -> bool {
        self.with_writer(device, |_| Ok(())).is_some()
    }

    /// Parts that began since the last time that all was written.
    fn count(&self) -> usize {
        self.quietly(|state| state.parts.count())
    }

    /// What happened up to here will be taken and written: the serial number that is the first not to be, and those of
    /// the parts that all threads are in, of which more may come.
    fn cut(&self, py: Python<'_>) -> PyResult<(u64, Vec<u64>)> {
        Ok((self.resume(py)?, self.quietly(|state| state.parts.running())))
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
        let phantom = self.phantom.as_ref();
        let facts = Cut {
            notes: self.quietly(|state| state.notes.take(cut)),
            workspaces: phantom.map(Phantom::workspaces).unwrap_or_default(),
            waits: phantom.filter(|_| serials.is_none()).map(Phantom::waits),
            names,
        };
        let mut serials = serials.map(Vec::into_iter);
        for (device, trace) in traces.iter().enumerate() {
            let numbers = serials.as_mut().and_then(Iterator::next);
            let write = |writer: &mut CardFile| self.write_card(writer, trace, numbers, &facts);
            self.with_writer(device as u16, write).transpose()?;
        }
        // Other threads go on meanwhile.
        self.quietly(|state| state.forget(cut, &running));
        Ok(())
    }

    /// Bytes that were allocated since everything was named last, are alive, and have no name.
    fn unnamed(&self) -> u64 {
        let writers = &*self.writers();
        self.quietly(|state| writers.values().map(|writer| writer.unnamed(state)).sum())
    }

    /// Everything that has a name has been named.
    fn all_named(&self) {
        self.writers().values_mut().for_each(CardWriter::all_named);
    }

    /// More facts, for the recordings of all cards.
    fn about(&self, json: Text) -> PyResult<()> {
        Ok(self.writers().values_mut().try_for_each(|writer| writer.about(&json))?)
    }

    /// Ends the recording of a card, with the last state of its memory.
    fn finish(&self, device: u16, segments: &Bound<'_, PyList>, facts: Text) -> PyResult<()> {
        let segments = entry::segments(segments, device)?;
        self.with_writer(device, |writer| Ok(writer.finish(&segments, &facts)?)).transpose()?;
        Ok(())
    }

    /// Cards that have a recording.
    fn devices(&self) -> Vec<u16> {
        let mut devices: Vec<u16> = self.writers().keys().copied().collect();
        devices.sort_unstable();
        devices
    }
}
