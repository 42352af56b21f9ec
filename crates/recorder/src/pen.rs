//! Joins PyTorch's memory history with what was noted, and writes it as the recording of one card.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::PyList;
use recording::file::Writer;
use recording::{Category, Event, Mark, OwnerId, StackId, TextId};

use crate::deferred::Deferred;
use crate::entry::{self, Entry};
use crate::hash::{Map, Set};
use crate::known::Known;
use crate::notes::{Note, What};
use crate::parts::PartNumber;
use crate::stacks::StackNumber;
use crate::state::State;
use crate::words::Word;

pub(crate) struct Pen {
    device: u16,
    pub(crate) file: Writer<BufWriter<File>>,
    pub(crate) stacks: Map<StackNumber, Option<StackId>>,
    pub(crate) owners: Map<PartNumber, OwnerId>,
    texts: Map<Word, TextId>,
    pub(crate) modules: usize,
    /// The largest serial number seen.
    position: u64,
    deferred: Deferred,
    /// Addresses whose free was requested, and not done yet.
    requested: Set<u64>,
    /// Allocations since everything was named last that are alive: address and bytes.
    fresh: Map<u64, u64>,
}

impl Pen {
    pub(crate) fn new(path: &Path, about: &str, device: u16) -> PyResult<Pen> {
        Ok(Pen {
            device,
            file: Writer::new(BufWriter::new(File::create(path)?), about)?,
            stacks: Map::from_iter([(0, None)]),
            owners: Map::default(),
            texts: Map::default(),
            modules: 1,
            position: 0,
            deferred: Deferred::default(),
            requested: Set::default(),
            fresh: Map::default(),
        })
    }

    /// One part of the history, and notes in order of the parts that they follow.
    pub(crate) fn write(
        &mut self,
        state: &mut State,
        trace: &Bound<'_, PyList>,
        serials: Option<Vec<u64>>,
        mut notes: Vec<Note>,
        known: &Known<'_>,
    ) -> PyResult<()> {
        let entries: Vec<Entry<'_>> = trace.iter().map(Entry::read).collect::<PyResult<_>>()?;
        let serials = match serials {
            Some(serials) => serials,
            None => entries.iter().map(Entry::serial).collect::<PyResult<_>>()?,
        };
        let waiting = self.deferred(&entries, &serials, known.waits.as_deref(), &mut notes);
        let mut notes = notes.into_iter().peekable();
        for (index, (entry, serial)) in entries.iter().zip(serials).enumerate() {
            if self.position < serial {
                self.position = serial;
                while let Some(note) = notes.next_if(|note| note.serial < serial) {
                    self.note(state, note);
                }
            }
            let Some(event) = entry.event else { continue };
            self.event(trace.py(), state, entry, event, serial, known)?;
            if waiting.contains(&index) {
                self.file.event(&Event::Mark(Mark::Deferred));
            }
        }
        notes.for_each(|note| self.note(state, note));
        self.modules(trace.py(), state)?;
        Ok(self.file.flush()?)
    }

    fn event(
        &mut self,
        py: Python<'_>,
        state: &mut State,
        entry: &Entry<'_>,
        event: Event,
        serial: u64,
        known: &Known<'_>,
    ) -> PyResult<()> {
        match event {
            Event::Alloc { address, size, stream, pool, .. } => {
                let owner = self.owner(py, state, serial, entry)?;
                self.file.event(&Event::Alloc { address, size, stream, owner, pool });
                self.fresh.insert(address, size);
                // Of threads, each has a serial number: the largest so far says when this is.
                if state.notes.named.get(&address).is_some_and(|(_, at)| *at < self.position) {
                    state.notes.named.remove(&address);
                }
                self.known_at_once(state, serial, address, size, known)?;
            }
            Event::OutOfMemory { .. } => {
                self.file.event(&event);
                let owner = self.owner(py, state, serial, entry)?;
                self.file.event(&Event::Mark(Mark::Owner { address: 0, owner }));
            }
            Event::FreeRequested { address, .. } => {
                self.fresh.remove(&address);
                self.requested.insert(address);
                self.file.event(&event);
            }
            Event::FreeCompleted { address, size } => {
                // The history does not say what was requested and done at once (`history.py`).
                if !self.requested.remove(&address) {
                    self.fresh.remove(&address);
                    self.file.event(&Event::FreeRequested { address, size });
                }
                self.file.event(&event);
            }
            _ => self.file.event(&event),
        }
        Ok(())
    }

    /// Areas, casts of parameters and work areas of libraries are known when they are allocated.
    fn known_at_once(
        &mut self,
        state: &mut State,
        serial: u64,
        address: u64,
        size: u64,
        known: &Known<'_>,
    ) -> PyResult<()> {
        if let Some(area) = state.areas.get(&serial) {
            let area = &state.area_list[*area as usize - 1];
            let word = self.text(state, area.area);
            self.file.event(&Event::Mark(Mark::Area { address, area: word }));
            if let Some((category, name)) = area.name {
                let name = self.text(state, name);
                self.file.event(&Event::Mark(Mark::Name { address, category, name }));
            }
        }
        if let Some(name) = known.workspaces.get(&(serial, address)) {
            self.name(address, Category::Workspace, name);
        }
        if let Some(name) = known.cast(&mut state.casts, serial, size)? {
            self.name(address, Category::Casts, &name);
        }
        Ok(())
    }

    fn name(&mut self, address: u64, category: Category, name: &str) {
        let name = self.file.text(name);
        self.file.event(&Event::Mark(Mark::Name { address, category, name }));
    }

    fn note(&mut self, state: &State, note: Note) {
        let address = note.address;
        let mark = match note.what {
            What::Phase { phase, step } => Mark::Phase { phase, step },
            What::Idle { free } => Mark::Idle { free },
            What::Name { category, word } => {
                Mark::Name { address, category, name: self.text(state, word) }
            }
            What::Tensor { word } => Mark::Tensor { address, what: self.text(state, word) },
            What::Holder { word } => Mark::Holder { address, by: self.text(state, word) },
            What::Area { word } => Mark::Area { address, area: self.text(state, word) },
        };
        self.file.event(&Event::Mark(mark));
    }

    pub(crate) fn text(&mut self, state: &State, word: Word) -> TextId {
        *self.texts.entry(word).or_insert_with(|| self.file.text(state.words.text(word)))
    }

    /// Indices of events that request a free whose completion does not follow in the same part; `notes` get those
    /// that are done.
    fn deferred(
        &mut self,
        entries: &[Entry<'_>],
        serials: &[u64],
        waits: Option<&[(u64, u64)]>,
        notes: &mut Vec<Note>,
    ) -> Set<usize> {
        let mut found = Set::default();
        let Some(waits) = waits else { return found };
        for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.is_request) {
            let (Some(Event::FreeRequested { address, .. }), serial) =
                (entry.event, serials[index])
            else {
                continue;
            };
            let after = entries.get(index + 1).and_then(|entry| entry.event);
            let is_done = matches!(after, Some(Event::FreeCompleted { address: done, .. }) if done == address);
            if !(is_done && serials[index + 1] == serial) {
                found.insert(index);
                self.deferred.add(serial);
            }
        }
        let done = self.deferred.idle(waits);
        if !done.is_empty() {
            let device = self.device;
            let idle =
                |(serial, free)| Note { serial, device, address: 0, what: What::Idle { free } };
            notes.extend(done.into_iter().map(idle));
            notes.sort_by_key(|note| note.serial);
        }
        found
    }

    pub(crate) fn about(&mut self, json: &str) -> PyResult<()> {
        Ok(self.file.about(json)?)
    }

    pub(crate) fn finish(&mut self, segments: &Bound<'_, PyList>, facts: &str) -> PyResult<()> {
        self.about(facts)?;
        for free in self.deferred.rest() {
            self.file.event(&Event::Mark(Mark::Idle { free }));
        }
        Ok(self.file.finish(&entry::segments(segments, self.device)?)?)
    }

    /// Bytes that were allocated since everything was named last, are alive, and have no name.
    pub(crate) fn unnamed(&self, state: &State) -> u64 {
        let is_unnamed = |address: &u64| !state.notes.named.contains_key(address);
        self.fresh.iter().filter(|(address, _)| is_unnamed(address)).map(|(_, bytes)| bytes).sum()
    }

    /// Everything has been named.
    pub(crate) fn all_named(&mut self) {
        self.fresh.clear();
    }
}
