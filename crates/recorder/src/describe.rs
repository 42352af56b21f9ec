//! What a writer has to be told before it can write: what only Python knows of code objects, modules and parameters.

use notes::stacks::{Running, StackNumber};
use notes::{Frame, Map, Wanted};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use recording::OwnerId;

use crate::entry::Entry;
use crate::lock::lock;
use crate::note_taker::NoteTaker;
use crate::texts::Text;
use crate::writing::CardFile;

impl NoteTaker {
    /// Describes all that is wanted; gives the owners of events outside of functions and nodes, by their index.
    pub(crate) fn describe(
        &self,
        py: Python<'_>,
        writer: &mut CardFile,
        wanted: &Wanted,
        entries: &[Entry<'_>],
    ) -> PyResult<Map<usize, OwnerId>> {
        for (stack, below, running) in &wanted.stacks {
            let (file, function, line) = self.code(py, *running)?;
            let frame = self.frame(file, function, line);
            writer.add_frame(*stack, *below, frame.as_ref());
        }
        wanted.owners.iter().for_each(|new| writer.add_owner(new));
        let mut outside = Map::default();
        for event in &wanted.outside {
            let frames = entries[event.index].frames()?.into_iter();
            let frames: Vec<Frame> = frames
                .filter_map(|(file, function, line)| self.frame(file, function, line))
                .collect();
            outside.insert(event.index, writer.owner_outside(*event, &frames));
        }
        Ok(outside)
    }

    /// The innermost line of the user's own code in a stack, as `train.py:12`.
    pub(crate) fn user_line(&self, py: Python<'_>, stack: StackNumber) -> PyResult<Option<String>> {
        let down: Vec<Running> =
            self.quietly(|state| state.stacks.down(stack).map(|(_, running)| running).collect());
        for running in down {
            let (file, _, line) = self.code(py, running)?;
            if lock(&self.sources).is_users(&file) {
                return Ok(Some(format!("{file}:{line}")));
            }
        }
        Ok(None)
    }

    /// A frame with the text of its line; `None` if it is ours.
    pub(crate) fn frame(&self, file: String, function: String, line: u32) -> Option<Frame> {
        let mut sources = lock(&self.sources);
        if sources.is_ours(&file) {
            return None;
        }
        let source = sources.line(&file, line);
        Some(Frame { file, function, line, source })
    }

    fn code(&self, py: Python<'_>, running: Running) -> PyResult<(String, String, u32)> {
        describe(py, &self.codes.get(py, running.code)?, running.at)
    }
}

/// Names of parameters by their ids, of those in the dictionary.
pub(crate) fn parameters(
    names: &Bound<'_, PyDict>,
    wanted: &[usize],
) -> PyResult<Map<usize, String>> {
    let mut found = Map::default();
    for id in wanted {
        if let Some(name) = names.get_item(id)? {
            found.insert(*id, Text::str(&name)?);
        }
    }
    Ok(found)
}

/// File, name and line of code that has run up to an instruction.
fn describe(py: Python<'_>, code: &Py<PyAny>, at: i32) -> PyResult<(String, String, u32)> {
    let code = code.bind(py);
    let name = code.getattr(intern!(py, "co_qualname"));
    let name = name.or_else(|_| code.getattr(intern!(py, "co_name")))?;
    let file = code.getattr(intern!(py, "co_filename"))?;
    Ok((Text::str(&file)?, Text::str(&name)?, line(code, at)?))
}

fn line(code: &Bound<'_, PyAny>, at: i32) -> PyResult<u32> {
    let py = code.py();
    for lines in code.call_method0(intern!(py, "co_lines"))?.try_iter()? {
        let (start, end, line): (i32, i32, Option<u32>) = lines?.extract()?;
        if start <= at && at < end {
            if let Some(line) = line {
                return Ok(line);
            }
            break;
        }
    }
    code.getattr(intern!(py, "co_firstlineno"))?.extract()
}
