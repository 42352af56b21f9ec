//! The recorder's hot paths, as a module of Python: which part of the script runs, what is said of tensors, what the
//! graph keeps, and the file that all this is written to. What is called seldom is Python, in `python/fathom/_doorway`.
//!
//! Everything is noted by number and address: no tensor is held. Nothing here is an object that Python's collector
//! counts, so garbage is collected when it would be without us.

mod attempt;
mod attribute;
mod border;
mod c_functions;
mod calls;
mod compiled;
mod confine;
mod describe;
mod entry;
mod event_text;
mod faults;
mod functions;
mod graph;
mod hash;
mod history;
mod hooks;
mod lineage;
mod live_objects;
mod lock;
mod modules;
mod note_taker;
mod overrides;
mod passes;
mod phantom;
mod sources;
mod stacks;
mod stand_in;
mod tensor_notes;
mod tensors;
mod texts;
mod torch;
mod values;
mod wrappers;
mod writing;

use pyo3::prelude::*;

#[pymodule]
fn fathom_recorder(module: &Bound<'_, PyModule>) -> PyResult<()> {
    faults::keep_panics_quiet();
    module.add_function(wrap_pyfunction!(faults::fail_at, module)?)?;
    module.add_function(wrap_pyfunction!(faults::places_passed, module)?)?;
    module.add_class::<border::Party>()?;
    module.add_class::<calls::ModuleCall>()?;
    module.add_class::<functions::Functions>()?;
    module.add_class::<hooks::RegisterHook>()?;
    module.add_function(wrap_pyfunction!(c_functions::follow_c_function, module)?)?;
    module.add_function(wrap_pyfunction!(confine::confine, module)?)?;
    module.add_function(wrap_pyfunction!(confine::born, module)?)?;
    module.add_function(wrap_pyfunction!(overrides::set_mode_of_thread, module)?)?;
    module.add_function(wrap_pyfunction!(overrides::is_mode_alone, module)?)?;
    module.add_function(wrap_pyfunction!(live_objects::live_objects, module)?)?;
    module.add_class::<overrides::HasTorchFunction>()?;
    module.add_class::<values::Ledger>()?;
    module.add_class::<sources::FileOwner>()?;
    module.add_class::<note_taker::NoteTaker>()?;
    module.add_class::<wrappers::Around>()?;
    module.add_class::<wrappers::Callback>()?;
    module.add_class::<wrappers::Instead>()?;
    module.add_class::<wrappers::Within>()
}
