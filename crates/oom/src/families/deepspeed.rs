//! DeepSpeed's warning that PyTorch's cache is emptied within a step: nothing failed, but little is missing.

use super::{Family, Memory, Window, no_steps, reading, says};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "deepspeed",
    speaker: "DeepSpeed",
    kind: Kind::Library,
    memory: Memory::Device,
    means: "PyTorch found no room, emptied its cache and tried again, with success; each time costs time",
    facts: &[],
    raises: false,
    heads: &[says("pytorchallocatorcacheflushessincelaststep")],
    fill,
    steps: no_steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.cause = Some(Cause::Warning);
    let digits = window.before.bytes().rev().take_while(u8::is_ascii_digit).count();
    let number = window.before.get(window.before.len() - digits..).unwrap_or_default();
    reading::count(account, "flushes", number.parse().ok());
}
