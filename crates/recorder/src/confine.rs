//! Lets this process, and all that it starts, change files in named folders only: for runs that reach code which saves,
//! while what they would save is not real.
//!
//! The kernel sees to it (Landlock), whatever the script calls: Python, C, another program. Reading stays as it is.

use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope,
};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// The first version that also guards against cutting a file short, of Linux 6.2. Without all of it nothing is certain.
const NEEDED: ABI = ABI::V3;

/// From here on no file outside of `writable` is made, changed, renamed or removed by this thread and what it starts.
/// Where the kernel can, nothing is sent to other machines and no other process gets a signal. Must be called while
/// there is one thread.
#[pyfunction]
pub(crate) fn confine(writable: Vec<PathBuf>) -> PyResult<()> {
    restrict(&writable).map_err(|error| PyOSError::new_err(error.to_string()))
}

fn restrict(writable: &[PathBuf]) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessNet::ConnectTcp)?
        .scope(Scope::Signal)?
        .create()?
        .set_compatibility(CompatLevel::HardRequirement);
    for path in writable {
        // What is not there cannot be written to.
        let Ok(place) = PathFd::new(path) else { continue };
        let all = AccessFs::from_write(NEEDED);
        let rights = if path.is_dir() { all } else { all & AccessFs::from_file(NEEDED) };
        rules = rules.add_rule(PathBeneath::new(place, rights))?;
    }
    rules.restrict_self().map(|_| ())
}
