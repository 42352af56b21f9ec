//! PyTorch's caching allocator on Huawei's NPUs (torch_npu), which has the same words.

use super::{Family, Memory, Window, also, no_steps, reading, says};
use crate::account::{Account, Kind};
use crate::amount::Amount;

pub(super) const FAMILY: Family = Family {
    id: "npu",
    speaker: "PyTorch",
    kind: Kind::Cuda,
    memory: Memory::Device,
    means: "the message has too few numbers to say why",
    facts: &[],
    raises: true,
    heads: &[
        says("npuoutofmemory"),
        // The driver, where its own pool or the graph engine asked.
        says("memory_allocation_failure("),
        also("callrtmallocfail", 2000),
    ],
    fill,
    steps: no_steps,
};

fn fill(account: &mut Account, window: &Window<'_>) {
    if window.head != "npuoutofmemory" {
        let call = reading::rest(window.text, "callrtmallocfail").unwrap_or_default();
        account.kind = Kind::Library;
        account.who = "Huawei's driver".to_owned();
        account.figures.tried = reading::number(call, "size:").map(Amount::exactly);
        account.device = reading::ordinal(call, "device_id:");
        return;
    }
    reading::caching_allocator(account, window);
    account.device = account.device.or_else(|| reading::ordinal(window.text, "(npu"));
}
