//! Parts of the script as owners in the file.

use std::io::Write;

use recording::{Event, Module, Owner, OwnerId, Stack, StackId, TextId};

use super::{Batch, CardWriter, Entry};
use crate::hash::Set;
use crate::parts::{NOTHING, Part, PartNumber};
use crate::stacks::{Running, StackNumber};
use crate::state::State;

/// What has to be described before a batch can be written.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Stacks that the file does not have yet, each after the one below it.
    pub stacks: Vec<(StackNumber, StackNumber, Running)>,
    /// Functions and nodes that own something for the first time.
    pub owners: Vec<NewOwner>,
    /// Events outside of functions and nodes: the history's own frames say the line.
    pub outside: Vec<Outside>,
    /// Parameters whose casts are in the batch, by their ids.
    pub parameters: Vec<usize>,
}

/// A function or a node that owns something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOwner {
    number: PartNumber,
    part: Part,
    operator: String,
    node: String,
}

/// An event outside of functions and nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Its index in the batch.
    pub index: usize,
    /// The part that it happened in, if that is known.
    pub part: Option<Part>,
}

/// What a line of code that torch's compiler made stands for.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    /// The module's number.
    pub module: u32,
    /// Where the code was called, if no frame says more.
    pub stack: StackNumber,
    /// The operator of the forward pass, or empty.
    pub operator: &'a str,
    /// The operator of the backward pass, or empty.
    pub node: &'a str,
}

/// A frame, described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The file's path.
    pub file: String,
    /// The function's name.
    pub function: String,
    /// From 1 on.
    pub line: u32,
    /// What stands on that line, if it is the user's.
    pub source: String,
}

impl<W: Write> CardWriter<W> {
    /// What has to be described. Functions that own something are noted as such.
    pub fn look(&self, state: &mut State, entries: &[Entry]) -> Wanted {
        let mut wanted = Wanted::default();
        let (mut seen, mut stacks) = (Set::default(), Set::default());
        for (index, entry) in entries.iter().enumerate() {
            let Some(Event::Alloc { .. } | Event::OutOfMemory { .. }) = entry.event else {
                continue;
            };
            if let Some(Event::Alloc { size, .. }) = entry.event {
                let casts = state.casts.get(&entry.serial).into_iter().flatten();
                let same = casts.filter(|(bytes, _)| *bytes == size);
                wanted.parameters.extend(same.map(|(_, parameter)| *parameter));
            }
            let number = state.parts.at(entry.serial);
            let part = state.parts.get(number.unwrap_or(NOTHING));
            match number.filter(|_| owns_by_itself(&part)) {
                None => wanted.outside.push(Outside { index, part: number.map(|_| part) }),
                Some(number) if self.owners.contains_key(&number) || !seen.insert(number) => {
                    continue;
                }
                Some(number) => {
                    let function = &mut state.functions[part.function as usize];
                    function.allocates = true;
                    let operator = function.name.clone();
                    let node = part.node.map_or("", |word| state.words.text(word)).to_owned();
                    wanted.owners.push(NewOwner { number, part, operator, node });
                }
            }
            let new = state
                .stacks
                .down(part.stack)
                .take_while(|(stack, _)| !self.stacks.contains_key(stack) && stacks.insert(*stack));
            let mut new: Vec<(StackNumber, Running)> = new.collect();
            new.reverse();
            let below =
                |stack: StackNumber| state.stacks.entry(stack).map_or(0, |(below, _)| below);
            wanted.stacks.extend(new.into_iter().map(|(stack, on)| (stack, below(stack), on)));
        }
        wanted
    }

    /// How many modules the file has; number 0 is none.
    pub fn modules(&self) -> usize {
        self.modules.len()
    }

    /// The next module.
    pub fn add_module(&mut self, path: &str, class: &str) {
        let module = Module { path: self.file.text(path), class: self.file.text(class) };
        self.file.module(module);
        self.modules.push(module.path);
    }

    /// A stack: a frame on top of the one below. `None` leaves the frame out, as it is ours.
    pub fn add_frame(&mut self, stack: StackNumber, below: StackNumber, frame: Option<&Frame>) {
        let below = self.stacks.get(&below).copied().flatten();
        let found = match frame {
            Some(frame) => Some(self.on_top(below, frame)),
            None => below,
        };
        self.stacks.insert(stack, found);
    }

    /// A function or a node that owns something.
    pub fn add_owner(&mut self, new: &NewOwner) {
        let owner = self.new_owner(new.part, &new.operator, &new.node, None);
        self.owners.insert(new.number, owner);
    }

    /// The owner of an event outside of functions and nodes; `frames` are those of the history, outermost first.
    pub fn owner_outside(&mut self, outside: Outside, frames: &[Frame]) -> OwnerId {
        if outside.part.is_none() && frames.is_empty() {
            return OwnerId(0);
        }
        let stack = frames.iter().fold(None, |below, frame| Some(self.on_top(below, frame)));
        self.new_owner(outside.part.unwrap_or_default(), "", "", stack)
    }

    /// The owner of what code of torch's compiler allocates; `frames` lead to the line that it stands for.
    pub fn owner_made(&mut self, made: Made<'_>, frames: &[Frame]) -> OwnerId {
        let stack = frames.iter().fold(None, |below, frame| Some(self.on_top(below, frame)));
        let part = Part { module: made.module, stack: made.stack, ..Part::default() };
        self.new_owner(part, made.operator, made.node, stack)
    }

    fn on_top(&mut self, caller: Option<StackId>, frame: &Frame) -> StackId {
        let (file, function) = (self.file.text(&frame.file), self.file.text(&frame.function));
        let (line, source) = (frame.line, self.file.text(&frame.source));
        let frame = self.file.frame(recording::Frame { file, function, line, source });
        self.file.stack(Stack { frame, caller })
    }

    fn new_owner(
        &mut self,
        part: Part,
        operator: &str,
        node: &str,
        stack: Option<StackId>,
    ) -> OwnerId {
        let stack = stack.or_else(|| self.stacks.get(&part.stack).copied().flatten());
        let module = self.modules.get(part.module as usize).copied().unwrap_or(TextId(0));
        let (operator, node) = (self.file.text(operator), self.file.text(node));
        self.file.owner(Owner { module, operator, node, stack })
    }

    /// The owner of an event; nobody if it was not described.
    pub(super) fn owner_of(&self, state: &State, batch: &Batch<'_>, index: usize) -> OwnerId {
        let outside = batch.outside.get(&index);
        let inside = || self.owners.get(&state.parts.at(batch.entries[index].serial)?);
        outside.or_else(inside).copied().unwrap_or(OwnerId(0))
    }
}

/// Functions and nodes know where they were called; a module does not know where inside of it something happens.
fn owns_by_itself(part: &Part) -> bool {
    part.function != 0 || part.node.is_some()
}
