//! Lets this process, and all that it starts, change files in named folders only: for runs that nobody asked for by name,
//! and for such as reach code which saves, while what they would save is not real.
//!
//! The kernel sees to it (Landlock), whatever the script calls: Python, C, another program. Reading stays as it is.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

/// The first version that also guards against cutting a file short, of Linux 6.2. Without all of it nothing is certain.
const NEEDED: ABI = ABI::V3;

/// Ports at which processes of one training meet: PyTorch's own, and those that the kernel gives to whoever asks for any.
/// Rules know ports, not machines; services to which one uploads listen below these.
const MEETING: [std::ops::RangeInclusive<u16>; 2] = [29_400..=29_600, 32_768..=60_999];

/// From here on no file outside of `writable` is made, changed, renamed or removed by this thread and what it starts.
/// Where the kernel can, nothing is sent to services of other machines and no other process gets a signal. Must be called
/// while there is one thread.
pub fn restrict(writable: &[PathBuf]) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessNet::ConnectTcp)?
        .scope(Scope::Signal)?
        .create()?;
    for port in MEETING.into_iter().flatten() {
        rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    rules = rules.set_compatibility(CompatLevel::HardRequirement);
    for path in writable {
        rules = allow(rules, path)?;
    }
    rules.restrict_self().map(|_| ())
}

fn allow(rules: RulesetCreated, path: &Path) -> Result<RulesetCreated, RulesetError> {
    // What is not there cannot be written to.
    let Ok(place) = PathFd::new(path) else { return Ok(rules) };
    let all = AccessFs::from_write(NEEDED);
    let rights = if path.is_dir() { all } else { all & AccessFs::from_file(NEEDED) };
    rules.add_rule(PathBeneath::new(place, rights))
}
