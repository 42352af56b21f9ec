//! A process that signal 9 ended: a bare `Killed`, exit code 137, -9 in the summaries of launchers.

use super::{Fact, Family, Head, Memory, Place, Window, also, reading, says, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "killed",
    speaker: "the system",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "signal 9 (SIGKILL) ended the process from outside. Most often that is the kernel when the machine or its \
            container runs out of memory; a batch system, a time limit or a person can do it too. A full GPU does not: \
            it raises an error",
    facts: &[Fact {
        says: "when no memory can be reclaimed, the kernel chooses a process and ends it, mostly the largest",
        source: "https://docs.kernel.org/admin-guide/mm/concepts.html",
    }],
    raises: false,
    heads: &[
        Head { words: "killed", near: 0, fits: is_killed },
        says("iskilledbysignal:killed"),
        also("signal9(sigkill)", 200),
        says("interruptedbysignal9:sigkill"),
        says("terminatedbysignalsigkill"),
        says("diedwith<signals.sigkill:9>"),
        says("sigkill(-9)"),
        also("exitcode:-9", 160),
        says("returncode=-9"),
        // Colab, Kaggle and Jupyter.
        says("yoursessioncrashedafterusingallavailableram"),
        says("triedtoallocatemorememorythanisavailable"),
        says("kernelappearstohavedied"),
        Head { words: "exitcode137", near: 0, fits: is_whole },
        Head { words: "exitcode:137", near: 0, fits: is_whole },
        Head { words: "exitedwithcode137", near: 0, fits: is_whole },
        Head { words: "exitstatus137", near: 0, fits: is_whole },
    ],
    fill,
    steps: |_| {
        vec![
            step("whether the kernel did it", "dmesg -T | grep -i 'killed process'"),
            step("what the machine has left", "free -h"),
        ]
    },
};

/// A line of its own, or a shell's: `job.sh: line 28:  8156 Killed   python3 main.py`, `[1]  4024 killed  python`.
fn is_killed(place: &Place<'_>) -> bool {
    let (before, after) = (place.before, place.line.get("killed".len()..).unwrap_or_default());
    let ends = matches!(after, "" | ":9" | "." | "!" | "**" | "`" | "```" | "(coredumped)");
    let number = before.len() - before.bytes().rev().take_while(u8::is_ascii_digit).count();
    let is_shell = number < before.len()
        && (number == 0 || (before[..number].ends_with(':') && before.contains(":line")));
    // `[00:00<?, ?it/s]Killed`: a bar had not ended its line.
    let is_behind_bar = before.ends_with("it/s]");
    let is_shell = is_shell || matches!(before, "zsh:" | "bash:" | "sh:");
    is_shell || (ends && (before.is_empty() || is_behind_bar))
}

/// 137 is 128 and the signal, and no part of a longer number.
fn is_whole(place: &Place<'_>) -> bool {
    let end = place.rest.find("137").map_or(0, |at| at + 3);
    !place.rest[end..].starts_with(|c: char| c.is_ascii_digit())
}

fn fill(account: &mut Account, window: &Window<'_>) {
    account.sure =
        window.head.ends_with("availableram") || window.head.ends_with("thanisavailable");
    // torchrun says which rank: `rank : 0 (local_rank: 0) exitcode : -9`, `failed (exitcode: -9) local_rank: 3`.
    let before = window.before.get(window.before.len().saturating_sub(160)..).unwrap_or_default();
    let summary = before.rfind("rank:").map(|at| &before[at..]);
    account.rank = summary
        .filter(|_| window.head == "exitcode:-9" || window.head.starts_with("signal9"))
        .and_then(|text| reading::ordinal(text, "rank:"))
        .or_else(|| {
            let text = window.text.get(..60.min(window.text.len()))?;
            reading::ordinal(text, "local_rank:")
        });
}
