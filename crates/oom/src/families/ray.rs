//! Ray: its own monitor ends tasks before the kernel does.

use super::{Fact, Family, Memory, Window, reading, says, step};
use crate::account::{Account, Kind, Process};

pub(super) const FAMILY: Family = Family {
    id: "ray",
    speaker: "Ray",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "Ray ended a task because the node was about to run out of its memory",
    facts: &[Fact {
        says: "above `RAY_memory_usage_threshold` (0.95) Ray ends the newest task that can be tried again; more CPUs \
               per task run fewer at once",
        source: "https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html",
    }],
    raises: true,
    heads: &[
        says("noderunninglowonmemory"),
        says("nodewasrunninglowonmemory"),
        says("rayoutofmemoryerror:"),
        says("killedduetomemorypressure(oom)"),
    ],
    fill,
    steps: |_| vec![step("who uses the node's memory", "ray memory --stats-only && free -h")],
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    // `was running was 59.49GB / 62.58GB (0.950744)`, `is used (11.8 / 12.3 GB)`
    let pair = reading::rest(text, "wasrunningwas").or_else(|| reading::rest(text, "isused("));
    let Some((used, rest)) = pair.and_then(|pair| pair.split_once('/')) else { return };
    let all = crate::amount::Amount::at(rest);
    account.figures.capacity = all.map(|(amount, _)| amount);
    // The unit may stand behind the second number alone.
    let used = match used.ends_with('b') {
        true => used.to_owned(),
        false => format!("{used}gb"),
    };
    account.figures.used = crate::amount::Amount::at(&used).map(|(amount, _)| amount);
    let memory = reading::behind(text, "memoryused=");
    if let Some((pid, memory)) = reading::number(text, "pid=").zip(memory) {
        account.processes.push(Process { pid, name: String::new(), memory });
    }
}
