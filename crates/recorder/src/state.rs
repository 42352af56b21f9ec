//! All that is known of the script. It is locked for moments in which no code of Python's can run.

use pyo3::prelude::*;
use pyo3::types::PyList;
use recording::Category;

use crate::hash::Map;
use crate::known::Casts;
use crate::notes::Notes;
use crate::parts::Parts;
use crate::saved::Saved;
use crate::sources::Sources;
use crate::stacks::{StackNumber, Stacks};
use crate::texts::Text;
use crate::words::{Word, Words};

/// A function of torch.
#[derive(Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Whether its results are data that the script brings to the card.
    pub(crate) is_factory: bool,
    /// Whether its arguments are facts.
    pub(crate) is_looked_at: bool,
    /// Whether it has allocated something.
    pub(crate) allocates: bool,
}

/// What distributed training is doing, and what its tensors are called.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Area {
    pub(crate) name: Option<(Category, Word)>,
    pub(crate) area: Word,
}

/// `Modules.paths` and `Modules.classes`.
pub(crate) struct Modules {
    pub(crate) paths: Py<PyList>,
    pub(crate) classes: Py<PyList>,
}

impl Modules {
    pub(crate) fn path(&self, py: Python<'_>, module: u32) -> PyResult<String> {
        Text::str(&self.paths.bind(py).get_item(module as usize)?)
    }
}

pub(crate) struct State {
    pub(crate) parts: Parts,
    pub(crate) stacks: Stacks,
    pub(crate) words: Words,
    pub(crate) notes: Notes,
    pub(crate) saved: Saved,
    pub(crate) casts: Casts,
    /// Number 0 is no function.
    pub(crate) functions: Vec<Function>,
    /// Numbered from 1 on.
    pub(crate) area_list: Vec<Area>,
    /// The area in which a part began, by its serial number.
    pub(crate) areas: Map<u64, u32>,
    pub(crate) modules: Modules,
    pub(crate) sources: Sources,
}

impl State {
    pub(crate) fn new(modules: Modules, sources: Sources) -> State {
        let none = Function::default();
        State {
            parts: Parts::default(),
            stacks: Stacks::default(),
            words: Words::default(),
            notes: Notes::default(),
            saved: Saved::default(),
            casts: Casts::default(),
            functions: vec![none],
            area_list: Vec::new(),
            areas: Map::default(),
            modules,
            sources,
        }
    }

    /// The innermost line of the user's own code in a stack, as `train.py:12`.
    pub(crate) fn user_line(
        &self,
        py: Python<'_>,
        mut stack: StackNumber,
    ) -> PyResult<Option<String>> {
        while let Some(entry) = self.stacks.entry(stack) {
            let (file, _, line) = crate::code::describe(py, &entry.code, entry.at)?;
            if self.sources.is_users(&file) {
                return Ok(Some(format!("{file}:{line}")));
            }
            stack = entry.caller;
        }
        Ok(None)
    }

    /// The number of an area, new or known.
    pub(crate) fn area(&mut self, area: Area) -> u32 {
        let known = self.area_list.iter().position(|known| *known == area);
        let at = known.unwrap_or_else(|| {
            self.area_list.push(area);
            self.area_list.len() - 1
        });
        at as u32 + 1
    }
}
