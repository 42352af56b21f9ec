//! A pickle virtual machine that executes nothing.
//!
//! Given bytes, [`load`] gives an [`Arena`] of plain values: None, bool, int, float, str, bytes,
//! tuple, list, set and dict. Protocols 0 to 5. An instruction that would import or call
//! something is refused, without exception: no snapshot contains one.

mod arena;
mod cursor;
mod error;
mod machine;
pub(crate) mod opcode;
mod rare;
mod stack;
mod text;

pub use arena::{Arena, Children, Items, Node, NodeId};
pub use error::Error;
pub(crate) use stack::{Pairs, Value};

/// Takes dicts as they are completed, so that they need not be kept as values.
///
/// A snapshot is a million dicts of a few numbers; taken at once, they never fill memory.
pub(crate) trait Fold {
    /// Takes a dict and gives it a number, or leaves it to the arena.
    fn dict(&mut self, arena: &Arena<'_>, pairs: Pairs<'_>) -> Option<u32>;
}

/// A [`Fold`] that leaves everything.
struct Leave;

impl Fold for Leave {
    fn dict(&mut self, _: &Arena<'_>, _: Pairs<'_>) -> Option<u32> {
        None
    }
}

/// Reads one pickle; bytes after its end are ignored, as CPython does.
pub fn load(input: &[u8]) -> Result<Arena<'_>, Error> {
    load_with(input, &mut Leave)
}

/// Reads one pickle; dicts that `fold` takes are [`Node::Record`] in the arena.
pub(crate) fn load_with<'a>(input: &'a [u8], fold: &mut impl Fold) -> Result<Arena<'a>, Error> {
    machine::Machine::new(input, fold).run()
}
