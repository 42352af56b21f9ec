//! Theano: `Error allocating 33554432 bytes of device memory (out of memory). Driver report 21364736 bytes free and …`

use super::{Family, Memory, Window, reading, says, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "theano",
    speaker: "Theano",
    kind: Kind::Framework,
    memory: Memory::Device,
    means: "the driver had less left than was asked for",
    facts: &[],
    raises: true,
    heads: &[says("bytesofdevicememory")],
    fill,
    steps: |_| vec![step("who has the GPU", "nvidia-smi")],
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    // `Error` in front of it may have been taken for a label.
    let asked = window.before.rfind("allocating").map(|at| &window.before[at..]);
    account.figures.tried = asked.and_then(|asked| reading::bytes(asked, "allocating"));
    account.figures.free = reading::bytes(text, "driverreport");
    account.figures.capacity = reading::bytes(text, "bytesfreeand");
}
