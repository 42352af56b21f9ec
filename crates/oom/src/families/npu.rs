//! PyTorch's caching allocator on Huawei's NPUs (torch_npu), which has the same words.

use super::{Family, Memory, Window, no_steps, reading, says};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "npu",
    speaker: "PyTorch",
    kind: Kind::Cuda,
    memory: Memory::Device,
    means: "the message has too few numbers to say why",
    facts: &[],
    raises: true,
    heads: &[says("npuoutofmemory")],
    fill,
    steps: no_steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    reading::caching_allocator(account, window);
    account.device = account.device.or_else(|| reading::ordinal(window.text, "(npu"));
}
