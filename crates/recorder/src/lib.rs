//! The recorder's hot paths, as a module of Python: which part of the script runs, what is said of tensors, what the
//! graph keeps, and the file that all this is written to. What is called seldom is Python, in `python/fathom`.
//!
//! Everything is noted by number and address: no tensor is held. Nothing here is an object that Python's collector
//! counts, so garbage is collected when it would be without us.

mod attribute;
mod code;
mod deferred;
mod entry;
mod functions;
mod graph;
mod hash;
mod history;
mod hooks;
mod known;
mod local;
mod lock;
mod notes;
mod owners;
mod parts;
mod passes;
mod pen;
mod phantom;
mod said;
mod saved;
mod scribe;
mod small;
mod sources;
mod stacks;
mod state;
mod tensors;
mod torch;
mod words;
mod writing;

use pyo3::prelude::*;

#[pymodule]
fn fathom_recorder(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<functions::Functions>()?;
    module.add_class::<hooks::RegisterHook>()?;
    module.add_class::<small::Small>()?;
    module.add_class::<sources::Whose>()?;
    module.add_class::<scribe::Scribe>()
}
