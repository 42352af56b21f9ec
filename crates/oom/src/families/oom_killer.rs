//! The kernel's log: `Out of memory: Killed process 25315 (python3) total-vm:…kB, anon-rss:…kB, …`.

use super::{Fact, Family, Head, Memory, Window, also, reading, says, step};
use crate::account::{Account, Kind, Process};
use crate::amount::Amount;

pub(super) const FAMILY: Family = Family {
    id: "oom_killer",
    speaker: "the kernel",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "the kernel ended a process because the machine, or a control group, had no memory left",
    facts: &[Fact {
        says: "when no memory can be reclaimed, the kernel chooses a process and ends it, mostly the largest",
        source: "https://docs.kernel.org/admin-guide/mm/concepts.html",
    }],
    raises: false,
    heads: &[
        says("outofmemory:killedprocess"),
        says("outofmemory:killprocess"),
        // Launchers kill processes too; the kernel says how large it was.
        Head {
            words: "killedprocess",
            near: 300,
            fits: |place| place.near(160).contains("total-vm:"),
        },
        also("invokedoom-killer", 200),
        says("systemd-oomdkilled"),
        says("killedbytheoomkiller"),
        also("oom-kill:constraint=", 200),
    ],
    fill,
    steps: |_| {
        vec![
            step("what was killed, and when", "dmesg -T | grep -i 'killed process'"),
            step("what the machine has left", "free -h"),
        ]
    },
};

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    // What it really had, not what it had reserved as addresses.
    let parts = ["anon-rss:", "file-rss:", "shmem-rss:"];
    let memory = parts.iter().filter_map(|part| reading::behind(text, part)).reduce(Amount::plus);
    let process =
        ["killedprocess", "killprocess"].iter().find_map(|words| reading::rest(text, words));
    let process = process.unwrap_or_default();
    let name =
        reading::rest(process, "(").and_then(|rest| rest.split(')').next()).unwrap_or_default();
    let name = name.get(..name.len().min(32)).unwrap_or_default().to_owned();
    if let Some((pid, memory)) = reading::whole(process).zip(memory) {
        account.processes.push(Process { pid, name, memory });
    }
    // `memory: usage 4194304kB, limit 4194304kB, failcnt 100`
    let group = text.contains("constraint_memcg") || window.before.ends_with("memorycgroup");
    if group {
        account.who = "control group".to_owned();
        let usage =
            [text, window.before].iter().find_map(|text| reading::rest(text, "memory:usage"));
        account.figures.limit = usage.and_then(|rest| reading::behind(rest, ",limit"));
    }
}
