//! Parts of the script as owners in the file.

use pyo3::prelude::*;
use pyo3::types::PyList;
use recording::{Frame, Module, Owner, OwnerId, Stack, StackId, TextId};

use crate::entry::Entry;
use crate::parts::{NOTHING, Part};
use crate::pen::Pen;
use crate::stacks::StackNumber;
use crate::state::State;
use crate::texts::Text;

impl Pen {
    /// A part as an owner; outside of functions the history's own frames say the line.
    pub(crate) fn owner(
        &mut self,
        py: Python<'_>,
        state: &mut State,
        serial: u64,
        entry: &Entry<'_>,
    ) -> PyResult<OwnerId> {
        let number = state.parts.at(serial);
        if let Some(owner) = number.and_then(|number| self.owners.get(&number)) {
            return Ok(*owner);
        }
        let part = state.parts.get(number.unwrap_or(NOTHING));
        if let Some(number) = number
            && (part.function != 0 || part.node.is_some())
        {
            state.functions[part.function as usize].allocates = true;
            let owner = self.new_owner(py, state, part, None)?;
            self.owners.insert(number, owner);
            return Ok(owner);
        }
        let frames = entry.frames()?;
        if number.is_none() && frames.is_empty() {
            return Ok(OwnerId(0));
        }
        let stack = self.stack_of(state, frames);
        self.new_owner(py, state, part, stack)
    }

    fn new_owner(
        &mut self,
        py: Python<'_>,
        state: &mut State,
        part: Part,
        stack: Option<StackId>,
    ) -> PyResult<OwnerId> {
        let stack = match stack {
            Some(stack) => Some(stack),
            None => self.stack(py, state, part.stack)?,
        };
        let module = state.modules.path(py, part.module)?;
        let module = self.file.text(&module);
        let operator = self.file.text(&state.functions[part.function as usize].name);
        let node = part.node.map_or(TextId(0), |word| self.text(state, word));
        Ok(self.file.owner(Owner { module, operator, node, stack }))
    }

    /// The number of a stack in the file; frames of ours are left out.
    fn stack(
        &mut self,
        py: Python<'_>,
        state: &mut State,
        number: StackNumber,
    ) -> PyResult<Option<StackId>> {
        let mut waiting = vec![number];
        while let Some(number) = waiting.last() {
            if self.stacks.contains_key(number) {
                waiting.pop();
                continue;
            }
            let Some(entry) = state.stacks.entry(*number) else { return Ok(None) };
            let Some(below) = self.stacks.get(&entry.caller).copied() else {
                waiting.push(entry.caller);
                continue;
            };
            let (file, function, line) = crate::code::describe(py, &entry.code, entry.at)?;
            let found = self.frame(state, &file, &function, line, below);
            self.stacks.insert(*number, found);
        }
        Ok(self.stacks[&number])
    }

    fn stack_of(
        &mut self,
        state: &mut State,
        frames: Vec<(String, String, u32)>,
    ) -> Option<StackId> {
        frames.into_iter().fold(None, |below, (file, function, line)| {
            self.frame(state, &file, &function, line, below)
        })
    }

    /// A frame on top of a stack.
    fn frame(
        &mut self,
        state: &mut State,
        file: &str,
        function: &str,
        line: u32,
        caller: Option<StackId>,
    ) -> Option<StackId> {
        if state.sources.is_ours(file) {
            return caller;
        }
        let source = state.sources.line(file, line);
        let (file, function) = (self.file.text(file), self.file.text(function));
        let source = self.file.text(&source);
        let frame = self.file.frame(Frame { file, function, line, source });
        Some(self.file.stack(Stack { frame, caller }))
    }

    pub(crate) fn modules(&mut self, py: Python<'_>, state: &State) -> PyResult<()> {
        let (paths, classes) = (state.modules.paths.bind(py), state.modules.classes.bind(py));
        for index in self.modules..paths.len().min(classes.len()) {
            let text = |list: &Bound<'_, PyList>| Text::str(&list.get_item(index)?);
            let (path, class) = (text(paths)?, text(classes)?);
            let module = Module { path: self.file.text(&path), class: self.file.text(&class) };
            self.file.module(module);
            self.modules = index + 1;
        }
        Ok(())
    }
}
