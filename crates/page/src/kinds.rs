//! What allocations have in common. A training run makes the same ones over and over: each of its
//! lives carries one small number, the rest is said once.

use std::collections::HashMap;

use anatomy::lives::Life;
use anatomy::{Modules, Source};
use recording::{Category, Frame, OwnerId, Recording, TextId};

/// A row: all that is known of allocations but their size, place and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Text of the module they belong to.
    pub(crate) module: u32,
    /// Text of the operator, or of the autograd node where there is none.
    pub(crate) operator: u32,
    /// Row of the user's line, plus one.
    pub(crate) place: u32,
    /// What they are.
    pub(crate) category: Category,
    /// Text of their name.
    pub(crate) name: u32,
    /// Text of dtype and shape.
    pub(crate) tensor: u32,
    /// Text of what keeps them from being freed.
    pub(crate) holder: u32,
}

/// A line of the user's source and the line that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallSite {
    /// Row of the caller, plus one; 0 for none.
    pub(crate) caller: u32,
    /// Text of the file.
    pub(crate) file: u32,
    pub(crate) line: u32,
    /// Text of the function.
    pub(crate) function: u32,
}

/// Texts that are used, each once; number 0 is the empty one.
#[derive(Debug)]
pub(crate) struct Texts<'a> {
    pub(crate) list: Vec<&'a str>,
    numbers: HashMap<&'a str, u32>,
}

impl<'a> Texts<'a> {
    fn number(&mut self, text: &'a str) -> u32 {
        *self.numbers.entry(text).or_insert_with(|| {
            self.list.push(text);
            self.list.len() as u32 - 1
        })
    }
}

/// The rows, and how to find a life's.
pub(crate) struct Kinds<'a> {
    recording: &'a Recording,
    modules: Modules<'a>,
    source: Source<'a>,
    folder: &'a str,
    /// Texts of all rows.
    pub(crate) texts: Texts<'a>,
    /// Lines with their callers.
    pub(crate) places: Vec<CallSite>,
    pub(crate) list: Vec<Kind>,
    known: HashMap<(OwnerId, Category, TextId, TextId, TextId), u32>,
    place_of: HashMap<OwnerId, u32>,
    row_of: HashMap<CallSite, u32>,
}

impl<'a> Kinds<'a> {
    /// No rows yet. Files below the folder, which ends in a slash, are named from there.
    pub(crate) fn new(recording: &'a Recording, folder: &'a str) -> Kinds<'a> {
        Kinds {
            recording,
            modules: Modules::new(recording),
            source: Source::new(recording),
            folder,
            texts: Texts { list: vec![""], numbers: HashMap::from([("", 0)]) },
            places: Vec::new(),
            list: Vec::new(),
            known: HashMap::new(),
            place_of: HashMap::new(),
            row_of: HashMap::new(),
        }
    }

    /// The row of a life.
    pub(crate) fn of(&mut self, life: &Life) -> u32 {
        let key = (life.owner, life.category, life.name, life.tensor, life.holder);
        if let Some(row) = self.known.get(&key) {
            return *row;
        }
        let owner = self.recording.owners.get(life.owner.0 as usize).copied().unwrap_or_default();
        let operator = if owner.operator == TextId(0) { owner.node } else { owner.operator };
        let module = self.modules.of(life);
        let kind = Kind {
            module: self.texts.number(module),
            operator: self.text(operator),
            place: self.place(life.owner),
            category: life.category,
            name: self.text(life.name),
            tensor: self.text(life.tensor),
            holder: self.text(life.holder),
        };
        let row = self.list.len() as u32;
        self.list.push(kind);
        self.known.insert(key, row);
        row
    }

    fn text(&mut self, id: TextId) -> u32 {
        let text = self.recording.texts.get(id);
        self.texts.number(text.strip_prefix(self.folder).unwrap_or(text))
    }

    /// The user's line of an owner, plus one, with all that called it.
    fn place(&mut self, owner: OwnerId) -> u32 {
        if let Some(row) = self.place_of.get(&owner) {
            return *row;
        }
        let mut caller = 0;
        for Frame { file, function, line, .. } in self.source.users_lines(owner) {
            let (file, function) = (self.text(file), self.text(function));
            let place = CallSite { caller, file, line, function };
            let places = &mut self.places;
            caller = *self.row_of.entry(place).or_insert_with(|| {
                places.push(place);
                places.len() as u32
            });
        }
        self.place_of.insert(owner, caller);
        caller
    }

    /// File and line of a row; `None` if they are not known.
    pub(crate) fn line(&self, kind: &Kind) -> Option<(&'a str, u32)> {
        let place = self.places.get(kind.place.checked_sub(1)? as usize)?;
        Some((self.texts.list[place.file as usize], place.line))
    }
}
