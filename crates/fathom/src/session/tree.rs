//! The processes below one, by `/proc`.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// One process at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    /// Ticks since the machine started: numbers are given again, but not at the same time.
    started: u64,
}

impl Process {
    /// `None` if there is none with this number.
    pub(super) fn read(pid: u32) -> Option<Process> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name in parentheses may hold anything; what follows the last one are numbers.
        let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Process {
            pid,
            parent: number(1)? as u32,
            group: number(2)? as u32,
            started: number(19)?,
        })
    }

    /// Sends a signal to this process, never to another that got its number since.
    pub(super) fn send(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid as i32) else { return };
        let is_the_same = || Process::read(self.pid).is_some_and(|now| now.started == self.started);
        // A process that is gone already needs no signal.
        #[cfg(target_os = "linux")]
        if let Ok(handle) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            if is_the_same() {
                let _ = rustix::process::pidfd_send_signal(&handle, signal);
            }
            return;
        }
        // Before Linux 5.3.
        if is_the_same() {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Numbers of all processes that can be seen.
pub(super) fn numbers() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// All that a process started, and what these started.
pub(super) fn below(root: u32) -> Vec<Process> {
    descendants(root, numbers().filter_map(Process::read).collect())
}

/// Numbers of each of these processes and of all below it, seen at one time.
pub(crate) fn trees(roots: &[u32]) -> Vec<Vec<u32>> {
    if roots.is_empty() {
        return Vec::new();
    }
    let all: Vec<Process> = numbers().filter_map(Process::read).collect();
    let tree = |root: &u32| {
        let below = descendants(*root, all.clone());
        std::iter::once(*root).chain(below.iter().map(|process| process.pid)).collect()
    };
    roots.iter().map(tree).collect()
}

fn descendants(root: u32, mut others: Vec<Process>) -> Vec<Process> {
    let mut tree: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        let (children, rest): (Vec<Process>, Vec<Process>) =
            others.into_iter().partition(|process| process.parent == parent);
        others = rest;
        parents.extend(children.iter().map(|child| child.pid));
        tree.extend(children);
    }
    tree
}

/// Ends a process and all that it started, at once.
pub(crate) fn kill(root: u32) {
    for process in Process::read(root).into_iter().chain(below(root)) {
        process.send(Signal::KILL);
    }
}

/// Takes note of the end of a child, if it has ended: else its number stays.
pub(super) fn reap(pid: u32) {
    let pid = Pid::from_raw(pid as i32);
    let _ = rustix::process::waitpid(pid, rustix::process::WaitOptions::NOHANG);
}

/// What nobody looks after any more is handed to this process, instead of to the machine's first one.
pub(super) fn adopt_orphans() {
    // Without it, orphans are only missed where their parents die first.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_and_what_it_started_are_found_and_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & sleep 60 & echo; wait"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Read::read(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let own = below(std::process::id());
        assert!(own.iter().any(|process| process.pid == child.id()));
        let tree = below(child.id());
        assert_eq!(tree.len(), 2, "{tree:?}");
        let other = Process { started: 0, ..tree[0] };
        other.send(Signal::KILL);
        assert_eq!(below(child.id()).len(), 2, "another process of that number is not meant");
        kill(child.id());
        assert!(!child.wait().unwrap().success());
        assert!(tree.iter().all(|process| {
            (0..500).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                is_gone(process)
            })
        }));
    }

    /// Gone, or dead and not yet taken note of by its new parent.
    fn is_gone(process: &Process) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
        Process::read(process.pid) != Some(*process)
            && Process::read(process.pid).is_none_or(|now| now.started != process.started)
            || stat.contains(") Z ")
    }
}
