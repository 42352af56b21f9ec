//! Joins PyTorch's memory history with what was noted, and writes it as the recording of one card.
//!
//! A batch of events is written in three steps, since only Python knows what a code object is called, and nothing
//! may be locked while it is asked:
//!
//! 1. [`CardWriter::look`], with the state: what has to be described;
//! 2. [`CardWriter::add_frame`], [`CardWriter::add_owner`] and the like, without it: the descriptions;
//! 3. [`CardWriter::write`], with the state: the events, each with its owner, and the notes between them.

mod owners;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use recording::file::Writer;
use recording::{Category, Event, Mark, OwnerId, Segment, StackId, TextId};

pub use self::owners::{Frame, Made, NewOwner, Outside, Wanted};
use crate::deferred::Deferred;
use crate::hash::{Map, Set};
use crate::note::{Note, What};
use crate::parts::PartNumber;
use crate::stacks::StackNumber;
use crate::state::State;
use crate::text_table::Word;
use crate::work_areas::WorkAreas;

/// One event of the history.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it is; allocations have no owner yet. `None` for kinds that are not recorded.
    pub event: Option<Event>,
    /// Whether it says that a free was requested, and not that it was done at once.
    pub is_request: bool,
    /// The part that it happened in; 0 if that is not known.
    pub serial: u64,
}

/// Events that are written together, and what is known of them beside the state.
#[derive(Debug, Default)]
pub struct Batch<'a> {
    /// Of this card, in order.
    pub entries: &'a [Entry],
    /// Of all cards, in order of the parts that they follow.
    pub notes: &'a [Note],
    /// Owners of events that lie outside of functions and nodes, by their index.
    pub outside: Map<usize, OwnerId>,
    /// Tensors that are known by the line that allocates them, by the indices of their events.
    pub forms: Map<usize, String>,
    /// Work areas of libraries, by part and address.
    pub workspaces: Option<&'a WorkAreas>,
    /// Parts in which events of streams were recorded, and in which they were done; `None` if nobody knows.
    pub waits: Option<&'a [(u64, u64)]>,
    /// Names of parameters that are cast, by their ids.
    pub parameters: Map<usize, String>,
}

/// Writes the recording of one card.
#[derive(Debug)]
pub struct CardWriter<W> {
    device: u16,
    file: Writer<W>,
    stacks: Map<StackNumber, Option<StackId>>,
    owners: Map<PartNumber, OwnerId>,
    texts: Map<Word, TextId>,
    /// Paths of modules, by their numbers; 0 is no module.
    modules: Vec<TextId>,
    /// The largest serial number seen.
    position: u64,
    deferred: Deferred,
    /// Addresses whose free was requested, and not done yet.
    requested: Set<u64>,
    /// Allocations since everything was named last that are alive: address and bytes.
    fresh: Map<u64, u64>,
}

impl<W: Write> CardWriter<W> {
    /// Begins a file; `about` is a JSON object.
    pub fn new(file: W, about: &str, device: u16) -> io::Result<CardWriter<W>> {
        Ok(CardWriter {
            device,
            file: Writer::new(file, about)?,
            stacks: Map::from_iter([(0, None)]),
            owners: Map::default(),
            texts: Map::default(),
            modules: vec![TextId(0)],
            position: 0,
            deferred: Deferred::default(),
            requested: Set::default(),
            fresh: Map::default(),
        })
    }

    /// Puts a batch down; [`CardWriter::flush`] writes it. All that [`CardWriter::look`] wanted has been described.
    pub fn write(&mut self, state: &mut State, batch: &Batch<'_>) {
        let own = batch.notes.iter().filter(|note| note.device == self.device);
        let mut notes: Vec<Note> = own.copied().collect();
        let waiting = self.deferred(batch, &mut notes);
        let mut notes = notes.into_iter().peekable();
        for (index, entry) in batch.entries.iter().enumerate() {
            if self.position < entry.serial {
                self.position = entry.serial;
                while let Some(note) = notes.next_if(|note| note.serial < entry.serial) {
                    self.note(state, note);
                }
            }
            let Some(event) = entry.event else { continue };
            self.event(state, batch, index, event);
            if waiting.contains(&index) {
                self.file.event(&Event::Mark(Mark::Deferred));
            }
        }
        notes.for_each(|note| self.note(state, note));
    }

    /// Writes what was put down.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    fn event(&mut self, state: &mut State, batch: &Batch<'_>, index: usize, event: Event) {
        let serial = batch.entries[index].serial;
        match event {
            Event::Alloc { address, size, stream, pool, .. } => {
                let owner = self.owner_of(state, batch, index);
                self.file.event(&Event::Alloc { address, size, stream, owner, pool });
                self.fresh.insert(address, size);
                // Of threads, each has a serial number: the largest so far says when this is.
                state.notes.allocate(address, self.position);
                if let Some(form) = batch.forms.get(&index) {
                    let what = self.file.text(form);
                    self.file.event(&Event::Mark(Mark::Tensor { address, what }));
                }
                self.known_at_once(state, batch, serial, (address, size));
            }
            Event::OutOfMemory { .. } => {
                self.file.event(&event);
                let owner = self.owner_of(state, batch, index);
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
    }

    /// Areas, casts of parameters and work areas of libraries are known when they are allocated.
    fn known_at_once(
        &mut self,
        state: &mut State,
        batch: &Batch<'_>,
        serial: u64,
        (address, size): (u64, u64),
    ) {
        if let Some(area) = state.area_of(serial) {
            let word = self.text(state, area.area);
            self.file.event(&Event::Mark(Mark::Area { address, area: word }));
            if let Some((category, name)) = area.name {
                let name = self.text(state, name);
                self.file.event(&Event::Mark(Mark::Name { address, category, name }));
            }
        }
        if let Some(area) = batch.workspaces.and_then(|all| all.next(serial, address)) {
            self.name(address, Category::Workspace, area.name);
            if area.is_soft {
                self.file.event(&Event::Mark(Mark::Soft { address }));
            }
        }
        if let Some(parameter) = state.take_cast(serial, size) {
            let name = batch.parameters.get(&parameter).map_or("a parameter", String::as_str);
            self.name(address, Category::Casts, &format!("cast of {name}"));
        }
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

    fn text(&mut self, state: &State, word: Word) -> TextId {
        *self.texts.entry(word).or_insert_with(|| self.file.text(state.words.text(word)))
    }

    /// Indices of events that request a free whose completion does not follow in the same part; `notes` get those
    /// that are done.
    fn deferred(&mut self, batch: &Batch<'_>, notes: &mut Vec<Note>) -> Set<usize> {
        let mut found = Set::default();
        let Some(waits) = batch.waits else { return found };
        for (index, entry) in batch.entries.iter().enumerate().filter(|(_, entry)| entry.is_request)
        {
            let Some(Event::FreeRequested { address, .. }) = entry.event else { continue };
            let is_done = batch.entries.get(index + 1).is_some_and(|next| {
                next.serial == entry.serial
                    && matches!(next.event, Some(Event::FreeCompleted { address: done, .. }) if done == address)
            });
            if !is_done {
                found.insert(index);
                self.deferred.add(entry.serial);
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

    /// More facts of the run, as a JSON object.
    pub fn about(&mut self, json: &str) -> io::Result<()> {
        self.file.about(json)
    }

    /// The last state of the card's memory, and the end.
    pub fn finish(&mut self, segments: &[Segment], facts: &str) -> io::Result<()> {
        self.about(facts)?;
        for free in self.deferred.rest() {
            self.file.event(&Event::Mark(Mark::Idle { free }));
        }
        self.file.finish(segments)
    }

    /// Bytes that were allocated since everything was named last, are alive, and have no name.
    pub fn unnamed(&self, state: &State) -> u64 {
        let unnamed = self.fresh.iter().filter(|(address, _)| !state.notes.is_named(**address));
        unnamed.map(|(_, bytes)| bytes).sum()
    }

    /// Everything has been named.
    pub fn all_named(&mut self) {
        self.fresh.clear();
    }
}
