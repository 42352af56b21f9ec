//! The cards that all processes of a run share (see `contract::cards`): who holds how much, and the most
//! that was ever held at once.
//!
//! There is no daemon. Whoever changes the page has its turn, in microseconds; the turn of a process that
//! was killed in the middle is taken from it. Rows of processes that have ended count no longer.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use contract::cards::{Cards, FILE, MAGIC, MAX_PROCESSES, Row};

use crate::config;
use crate::error::Failure;

/// Looks at a turn that does not end before its owner is looked for.
const PATIENCE: u32 = 200;

/// No row yet, or none was left.
const NONE: usize = usize::MAX;

/// The row of this process.
static OWN: AtomicUsize = AtomicUsize::new(NONE);

/// The page, mapped at the first call; without a run, or if its folder is full, it is private memory.
fn page() -> &'static Cards {
    static PAGE: OnceLock<&'static Cards> = OnceLock::new();
    PAGE.get_or_init(|| {
        let page = map();
        page.magic.store(MAGIC, Relaxed);
        page
    })
}

fn map() -> &'static Cards {
    let length = size_of::<Cards>();
    let file = config::get().run.as_ref().and_then(|run| {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(run.join(FILE));
        let file = file.and_then(|file| reserve(&file, length).map(|()| file));
        file.inspect_err(|error| {
            eprintln!(
                "fathom: {}: {error}; this process is counted as if it were alone",
                run.display()
            );
        })
        .ok()
    });
    let (flags, fd) = match &file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping of the right length; the file, if any, has it.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0)
    };
    assert!(address != libc::MAP_FAILED, "no memory for the page of the cards");
    // SAFETY: zeros or what other processes wrote, aligned to a page, never unmapped, all atomics.
    unsafe { &*address.cast::<Cards>() }
}

/// Room on the disk for a file that is mapped: without it, a write to the mapping would be fatal.
pub(crate) fn reserve(file: &std::fs::File, length: usize) -> std::io::Result<()> {
    // SAFETY: a file descriptor that is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length as libc::off_t) } {
        0 => Ok(()),
        code => Err(std::io::Error::from_raw_os_error(code)),
    }
}

/// Gives this process a row, before it uses a card.
pub(crate) fn join() {
    let pid = std::process::id();
    let turn = Turn::take();
    turn.forget_the_dead();
    let rows = &turn.page.rows;
    // A row with this number is of what ran here before an `exec`.
    let old = rows.iter().position(|row| row.pid.load(Relaxed) == pid);
    let Some(place) = old.or_else(|| rows.iter().position(|row| row.pid.load(Relaxed) == 0)) else {
        eprintln!("fathom: more than {MAX_PROCESSES} processes use cards; {pid} is not counted");
        return;
    };
    clear(&rows[place]);
    rows[place].started.store(started(pid).unwrap_or(0), Relaxed);
    rows[place].pid.store(pid, Relaxed);
    OWN.store(place, Relaxed);
}

fn clear(row: &Row) {
    row.pid.store(0, Relaxed);
    for held in &row.held {
        held.context.store(0, Relaxed);
        held.used.store(0, Relaxed);
    }
}

/// The page while nobody else changes it.
pub(crate) struct Turn {
    page: &'static Cards,
}

impl Turn {
    /// Waits until nobody else changes the page.
    pub(crate) fn take() -> Turn {
        let (page, own) = (page(), std::process::id());
        let mut looks = 0;
        loop {
            match page.changing.compare_exchange(0, own, AcqRel, Acquire) {
                Ok(_) => return Turn { page },
                Err(other) if PATIENCE < looks && other != own && !is_alive(other, 0) => {
                    if page.changing.compare_exchange(other, own, AcqRel, Acquire).is_ok() {
                        return Turn { page };
                    }
                }
                Err(_) if looks < PATIENCE => std::thread::yield_now(),
                Err(_) => std::thread::sleep(Duration::from_micros(100)),
            }
            looks += 1;
        }
    }

    /// Rows of processes that have ended are free again.
    pub(crate) fn forget_the_dead(&self) {
        let own = std::process::id();
        for row in &self.page.rows {
            let pid = row.pid.load(Relaxed);
            if pid != 0 && pid != own && !is_alive(pid, row.started.load(Relaxed)) {
                clear(row);
            }
        }
    }

    fn own(&self) -> Option<&Row> {
        self.page.rows.get(OWN.load(Relaxed))
    }

    /// What all other processes hold of a card.
    pub(crate) fn held_by_others(&self, card: usize) -> u64 {
        let own = std::process::id();
        holders(card).filter(|holder| holder.pid != own).map(|holder| holder.bytes()).sum()
    }

    /// This process gets a context on a card, if there is room for it.
    pub(crate) fn add_context(&self, card: usize, bytes: u64, total: u64) -> Result<(), Failure> {
        let own = self.own().map(|row| &row.held[card].context);
        if own.is_some_and(|context| context.load(Relaxed) != 0) {
            return Ok(()); // another thread was first
        }
        let held: u64 = holders(card).map(|holder| holder.bytes()).sum();
        if total.saturating_sub(held) < bytes {
            return Err(Failure::OutOfMemory);
        }
        own.into_iter().for_each(|context| context.store(bytes, Relaxed));
        self.note_peak(card);
        Ok(())
    }

    /// What this process holds of a card besides its context.
    pub(crate) fn set_used(&self, card: usize, used: u64) {
        let Some(row) = self.own() else { return };
        if row.held[card].used.swap(used, Relaxed) < used {
            self.note_peak(card);
        }
    }

    fn note_peak(&self, card: usize) {
        let peak = &self.page.peaks[card];
        let sum = holders(card).map(|holder| holder.bytes()).sum();
        if sum <= peak.bytes.load(Relaxed) {
            return;
        }
        peak.bytes.store(sum, Relaxed);
        let holders = holders(card).map(|holder| (holder.pid, holder.context, holder.used));
        let shares = holders.chain(std::iter::once((0, 0, 0)));
        for (share, (pid, context, used)) in peak.shares.iter().zip(shares) {
            share.pid.store(u64::from(pid), Relaxed);
            share.context.store(context, Relaxed);
            share.used.store(used, Relaxed);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Whoever took the turn from us is the owner now.
        let own = std::process::id();
        let _ = self.page.changing.compare_exchange(own, 0, Release, Ordering::Relaxed);
    }
}

/// A process that holds memory of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    pub(crate) context: u64,
    pub(crate) used: u64,
}

impl Holder {
    /// All that it holds.
    pub(crate) fn bytes(self) -> u64 {
        self.context + self.used
    }
}

/// Who holds memory of a card; a look without a turn, which management tools may take too.
pub(crate) fn holders(card: usize) -> impl Iterator<Item = Holder> {
    let all = page().rows.iter().map(move |row| Holder {
        pid: row.pid.load(Relaxed),
        context: row.held[card].context.load(Relaxed),
        used: row.held[card].used.load(Relaxed),
    });
    all.filter(|holder| holder.pid != 0 && holder.bytes() != 0)
}

/// As [`holders`], without processes that have ended.
pub(crate) fn living_holders(card: usize) -> Vec<Holder> {
    let started = |pid| page().rows.iter().find(|row| row.pid.load(Relaxed) == pid);
    holders(card)
        .filter(|holder| {
            is_alive(holder.pid, started(holder.pid).map_or(0, |row| row.started.load(Relaxed)))
        })
        .collect()
}

/// Whether the process that started then still runs; without a time, whether any of that number does.
fn is_alive(pid: u32, at: u64) -> bool {
    match started(pid) {
        Some(found) => at == 0 || found == at,
        None => false,
    }
}

/// When a process started; `None` if it has ended, also if nobody has asked yet how.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; state is the first field behind it, the time the 20th.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X" | "x")).then(|| fields.nth(18)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_a_dead_child_is_not() {
        let own = std::process::id();
        let at = started(own).unwrap();
        assert!(is_alive(own, at) && is_alive(own, 0) && !is_alive(own, at + 1));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        while is_alive(pid, 0) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Dead although it was not waited for.
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn the_turn_of_a_dead_process_is_taken_over() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let turn = Turn::take();
        turn.page.changing.store(child.id(), Relaxed);
        drop(turn); // no longer ours
        drop(Turn::take());
        assert_ne!(page().changing.load(Relaxed), child.id());
    }

    #[test]
    fn processes_share_a_card() {
        join();
        let (card, total) = (3, 1000);
        let turn = Turn::take();
        // Another process that lives: the one that started this one.
        let parent = std::os::unix::process::parent_id();
        let other = &turn.page.rows[100];
        other.pid.store(parent, Relaxed);
        other.held[card].used.store(600, Relaxed);
        turn.forget_the_dead();
        assert_eq!(turn.held_by_others(card), 600);
        assert_eq!(turn.add_context(card, 401, total), Err(Failure::OutOfMemory));
        turn.add_context(card, 100, total).unwrap();
        turn.set_used(card, 300);
        let peak = &turn.page.peaks[card];
        assert_eq!(peak.bytes.load(Relaxed), 1000);
        let mut shares: Vec<u64> =
            peak.shares[..3].iter().map(|share| share.used.load(Relaxed)).collect();
        shares.sort_unstable();
        assert_eq!(shares, [0, 300, 600]);
        turn.set_used(card, 100);
        assert_eq!(peak.bytes.load(Relaxed), 1000, "the most stays");
        // It started at another time: the number is used again, the memory is free.
        other.started.store(1, Relaxed);
        turn.forget_the_dead();
        assert_eq!((turn.held_by_others(card), living_holders(card).len()), (0, 1));
    }
}
