//! Who allocated: the snapshot's strings, frames and stacks as a recording's tables.
//!
//! A snapshot lists each stack in full; a recording shares the outer parts. Only what a device's
//! events name is taken over, each once.

use std::collections::HashMap;

use recording::{Frame, FrameId, Owner, OwnerId, Recording, Stack, StackId, Text, TextId};

use crate::model::TraceEntry;
use crate::tables::{self, StringId, Tables};

/// What tells owners apart: stack and text of the snapshot.
type Origin = (Option<tables::StackId>, Option<StringId>);

/// Fills a recording's tables.
pub(super) struct Owners<'a> {
    from: &'a Tables,
    texts: Text,
    frames: Vec<Frame>,
    stacks: Vec<Stack>,
    owners: Vec<Owner>,
    frame_of: HashMap<tables::FrameId, FrameId>,
    stack_of: HashMap<tables::StackId, Option<StackId>>,
    /// Stacks by innermost frame and caller: how outer parts are shared.
    nodes: HashMap<(FrameId, Option<StackId>), StackId>,
    owner_of: HashMap<Origin, OwnerId>,
    /// The last answer: neighbouring events often have one origin.
    last: Option<(Origin, OwnerId)>,
}

impl<'a> Owners<'a> {
    /// Nothing taken over yet but the owner of whom nothing is known, who has number 0.
    pub(super) fn new(from: &'a Tables) -> Owners<'a> {
        Owners {
            from,
            texts: Text::default(),
            frames: Vec::new(),
            stacks: Vec::new(),
            owners: vec![Owner::default()],
            frame_of: HashMap::new(),
            stack_of: HashMap::new(),
            nodes: HashMap::new(),
            owner_of: HashMap::from([((None, None), OwnerId(0))]),
            last: None,
        }
    }

    /// The owner of an allocation: where the forward pass made it, if that is known.
    pub(super) fn of(&mut self, entry: &TraceEntry) -> OwnerId {
        self.of_stacks(entry.forward_stack, entry.stack, entry.user_metadata)
    }

    /// The same from its parts, as a block has them too.
    pub(super) fn of_stacks(
        &mut self,
        forward: Option<tables::StackId>,
        stack: Option<tables::StackId>,
        text: Option<StringId>,
    ) -> OwnerId {
        let forward = forward.filter(|stack| !self.from.stack(*stack).is_empty());
        let key = (forward.or(stack), text);
        if let Some((last, owner)) = self.last
            && last == key
        {
            return owner;
        }
        let owner = match self.owner_of.get(&key) {
            Some(owner) => *owner,
            None => self.add(key),
        };
        self.last = Some((key, owner));
        owner
    }

    fn add(&mut self, key: Origin) -> OwnerId {
        let stack = key.0.and_then(|stack| self.stack(stack));
        let operator = key.1.map_or(TextId::default(), |text| self.text(text));
        let owner = Owner { operator, stack, ..Owner::default() };
        let id = match owner == Owner::default() {
            true => OwnerId(0),
            false => {
                self.owners.push(owner);
                OwnerId((self.owners.len() - 1) as u32)
            }
        };
        self.owner_of.insert(key, id);
        id
    }

    /// A string as a text.
    pub(super) fn text(&mut self, string: StringId) -> TextId {
        self.texts.intern(self.from.string(string))
    }

    /// A stack, built from its outermost frame inwards; `None` if it has no frame.
    pub(super) fn stack(&mut self, stack: tables::StackId) -> Option<StackId> {
        if let Some(known) = self.stack_of.get(&stack) {
            return *known;
        }
        let mut caller = None;
        for frame in self.from.stack(stack).iter().rev() {
            let frame = self.frame(*frame);
            let next = StackId(self.stacks.len() as u32);
            let id = *self.nodes.entry((frame, caller)).or_insert(next);
            if id == next {
                self.stacks.push(Stack { frame, caller });
            }
            caller = Some(id);
        }
        self.stack_of.insert(stack, caller);
        caller
    }

    fn frame(&mut self, id: tables::FrameId) -> FrameId {
        if let Some(known) = self.frame_of.get(&id) {
            return *known;
        }
        let frame = self.from.frame(id).map_or(Frame::default(), |frame| Frame {
            file: self.text(frame.filename),
            function: self.text(frame.name),
            line: frame.line,
            ..Frame::default()
        });
        self.frames.push(frame);
        let number = FrameId((self.frames.len() - 1) as u32);
        self.frame_of.insert(id, number);
        number
    }

    /// Hands the tables over.
    pub(super) fn fill(self, recording: &mut Recording) {
        recording.texts = self.texts;
        recording.frames = self.frames;
        recording.stacks = self.stacks;
        recording.owners = self.owners;
    }
}
