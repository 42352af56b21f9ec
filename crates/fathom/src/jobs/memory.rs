//! The host's memory: what is available to this process, by the machine and by its control groups, and what
//! processes hold.

use std::fs;
use std::path::{Path, PathBuf};

use super::room::Held;
use crate::session;

/// Bytes that can be taken without driving this machine, or a control group that we are in, out of memory.
/// `None` where nothing says so.
pub(crate) fn available() -> Option<u64> {
    available_below(Path::new("/"))
}

/// The same for the files below a folder that stands for `/`.
fn available_below(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let machine = kilobytes(&read("proc/meminfo"), "MemAvailable:");
    let groups = groups(&read("proc/self/cgroup"), &read("proc/self/mountinfo"));
    let left = groups.iter().flat_map(|group| left_in(root, group));
    left.chain(machine).min()
}

/// A control group that limits memory: where its kind is mounted, and its folder from there.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    is_second_version: bool,
    mount: PathBuf,
    path: PathBuf,
}

/// The groups that this process is in, of both versions.
fn groups(own: &str, mounts: &str) -> Vec<Group> {
    let group = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_second_version = controllers.is_empty();
        if !is_second_version && !controllers.split(',').any(|it| it == "memory") {
            return None;
        }
        let (root, mount) = mounts.lines().find_map(|line| mounted(line, is_second_version))?;
        let (path, root) = (Path::new(path), Path::new(root));
        // In a container the mount may begin at a group of its own, which paths are counted from.
        let path = path.strip_prefix(root).or(path.strip_prefix("/")).unwrap_or(path);
        Some(Group { is_second_version, mount: mount.into(), path: path.to_owned() })
    };
    own.lines().filter_map(group).collect()
}

/// Root and place of a mount of control groups, if this line is one of that version.
fn mounted(line: &str, is_second_version: bool) -> Option<(&str, &str)> {
    let (place, kind) = line.split_once(" - ")?;
    let (mut place, mut kind) = (place.split(' ').skip(3), kind.split(' '));
    let (root, mount) = (place.next()?, place.next()?);
    let (kind, options) = (kind.next()?, kind.nth(1)?);
    let is_of_memory = match is_second_version {
        true => kind == "cgroup2",
        false => kind == "cgroup" && options.split(',').any(|it| it == "memory"),
    };
    is_of_memory.then_some((root, mount))
}

/// What is left in a group and in each one above it, as far as they have limits.
fn left_in(root: &Path, group: &Group) -> Vec<u64> {
    let mount = root.join(group.mount.strip_prefix("/").unwrap_or(&group.mount));
    let folders = group.path.ancestors().map(|path| mount.join(path));
    folders.filter_map(|folder| left(&folder, group.is_second_version)).collect()
}

/// Of files that were read and are not in use, the system makes room by itself.
fn left(folder: &Path, is_second_version: bool) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let number = |name: &str| read(name).trim().parse::<u64>().ok();
    let (limits, used, unused): (&[&str], _, _) = match is_second_version {
        true => (&["memory.max", "memory.high"], "memory.current", "inactive_file"),
        false => (&["memory.limit_in_bytes"], "memory.usage_in_bytes", "total_inactive_file"),
    };
    let limit = limits.iter().filter_map(|name| number(name)).min()?;
    let unused = value(&read("memory.stat"), unused).unwrap_or(0);
    Some(limit.saturating_sub(number(used)?.saturating_sub(unused)))
}

/// The number behind a word at the beginning of a line.
fn value(text: &str, key: &str) -> Option<u64> {
    let mut rows = text.lines().map(str::split_whitespace);
    rows.find_map(|mut words| (words.next()? == key).then(|| words.next()?.parse().ok())?)
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    value(text, key).map(|kilobytes| kilobytes << 10)
}

/// What each of these processes holds with all that it started. Files that are mapped do not count: they are
/// shared, and can be read again.
pub(crate) fn held(roots: &[u32]) -> Vec<Held> {
    let sum = |tree: Vec<u32>| {
        tree.into_iter().fold(Held::default(), |sum, pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let own = of_status(&status);
            Held { now: sum.now + own.now, most: sum.most + own.most }
        })
    };
    session::trees(roots).into_iter().map(sum).collect()
}

fn of_status(status: &str) -> Held {
    let bytes = |key: &str| kilobytes(status, key).unwrap_or(0);
    let without_files = |resident: u64| resident.saturating_sub(bytes("RssFile:"));
    Held { now: without_files(bytes("VmRSS:")), most: without_files(bytes("VmHWM:")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A machine of files: path and content.
    fn machine(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        available_below(root.path())
    }

    const MEMORY: (&str, &str) = ("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:  1048576 kB\n");
    const SECOND: &str =
        "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const FIRST: &str = "33 25 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                         34 25 0:30 /docker/a /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    #[test]
    fn the_machine_alone_and_nothing_at_all() {
        assert_eq!(machine(&[MEMORY]), Some(1024 * MIB));
        assert_eq!(machine(&[]), None);
    }

    #[test]
    fn the_tightest_of_the_groups_above_counts() {
        let of = |inner: &str, outer: &str, current: &str| {
            machine(&[
                MEMORY,
                ("proc/self/cgroup", "0::/slurm/job_7\n"),
                ("proc/self/mountinfo", SECOND),
                ("sys/fs/cgroup/slurm/memory.max", outer),
                ("sys/fs/cgroup/slurm/memory.current", "0\n"),
                ("sys/fs/cgroup/slurm/job_7/memory.max", inner),
                ("sys/fs/cgroup/slurm/job_7/memory.current", current),
                ("sys/fs/cgroup/slurm/job_7/memory.stat", "anon 5\ninactive_file 1048576\n"),
            ])
        };
        assert_eq!(of("max\n", "max\n", "5242880\n"), Some(1024 * MIB));
        assert_eq!(of("104857600\n", "max\n", "5242880\n"), Some(96 * MIB), "100 - (5 - 1)");
        assert_eq!(of("104857600\n", "3145728\n", "5242880\n"), Some(3 * MIB));
        assert_eq!(of("1048576\n", "max\n", "5242880\n"), Some(0), "more than it may");
    }

    #[test]
    fn groups_of_the_first_version_inside_of_a_container() {
        let found = machine(&[
            MEMORY,
            ("proc/self/cgroup", "5:cpu:/docker/a\n4:memory:/docker/a/job\n0::/\n"),
            ("proc/self/mountinfo", FIRST),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4096\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "9437184\n"),
            ("sys/fs/cgroup/memory/memory.stat", "inactive_file 9\ntotal_inactive_file 1048576\n"),
        ]);
        assert_eq!(found, Some(192 * MIB));
    }

    #[test]
    fn this_process_holds_something_and_its_files_do_not_count() {
        let (own, none) = (std::process::id(), u32::MAX);
        let all = held(&[own, none]);
        assert!(0 < all[0].now && all[0].now <= all[0].most);
        assert_eq!(all[1], Held::default());
        let held = of_status("VmHWM:\t 900 kB\nVmRSS:\t 700 kB\nRssFile:\t 300 kB\n");
        assert_eq!(held, Held { now: 400 << 10, most: 600 << 10 });
        assert!(available().is_some_and(|bytes| 0 < bytes));
    }
}
