//! The state of the phantom in this process: its cards and their memory, built at the first call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use gpus::Card;

use crate::arena::{Arena, PAGE};
use crate::cards::Turn;
use crate::error::Failure;
use crate::pool::Pool;
use crate::virtual_memory::Mappings;
use crate::{cards, config, ipc, status, visible};

/// Address space asked for, over all cards; halved until the system grants it.
const LARGEST_SPAN: u64 = 1 << 44;

/// One card, as this process has it.
pub(crate) struct Device {
    /// Its number in the machine.
    pub(crate) card: usize,
    arena: Mutex<Arena>,
    pub(crate) pool: Mutex<Pool>,
    pub(crate) mappings: Mutex<Mappings>,
}

/// All cards of this process; they are alike.
pub(crate) struct Phantom {
    pub(crate) card: &'static Card,
    pub(crate) devices: Vec<Device>,
    /// Start of the first card's addresses.
    pub(crate) base: u64,
    /// Addresses of one card.
    pub(crate) span: u64,
}

static PHANTOM: OnceLock<Phantom> = OnceLock::new();

/// Set in the child of a fork after CUDA was used: as with the real driver, it cannot go on there.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this is the child of a process that had used CUDA.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// The state, or the driver's own refusal in a forked child.
pub(crate) fn phantom() -> Result<&'static Phantom, Failure> {
    if is_forked() {
        return Err(Failure::Initialization);
    }
    Ok(PHANTOM.get_or_init(Phantom::new))
}

/// Whether anything has used CUDA in this process.
pub(crate) fn is_built() -> bool {
    PHANTOM.get().is_some()
}

/// A device by its ordinal.
pub(crate) fn device(ordinal: i32) -> Result<(usize, &'static Device), Failure> {
    let devices = &phantom()?.devices;
    if devices.is_empty() {
        return Err(Failure::NoDevice);
    }
    let index = usize::try_from(ordinal).map_err(|_| Failure::InvalidDevice)?;
    let device = devices.get(index).ok_or(Failure::InvalidDevice)?;
    Ok((index, device))
}

/// Takes a lock; the state stays usable if a thread died while holding it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Phantom {
    fn new() -> Phantom {
        let config = config::get();
        let cards = visible::cards();
        let (base, span) = reserve_addresses(cards.len() as u64);
        let devices = (0..).zip(&cards).map(|(index, card)| Device {
            card: *card,
            arena: Mutex::new(Arena::new(base + index * span, span, 0)),
            pool: Mutex::default(),
            mappings: Mutex::default(),
        });
        let (card, devices) = (&config.card, devices.collect());
        cards::join();
        (0..).zip(&cards).for_each(|(index, card)| status::note_card(index, *card));
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(mark_forked)) };
        Phantom { card, devices, base, span }
    }

    /// The card whose memory contains `address`.
    pub(crate) fn device_of(&self, address: u64) -> Option<usize> {
        let index = address.checked_sub(self.base)? / self.span;
        (index < self.devices.len() as u64).then_some(index as usize)
    }

    /// The card that `size` bytes at `address` lie on, inside one live allocation; `None` for the host.
    pub(crate) fn place(&self, address: u64, size: u64) -> Result<Option<usize>, Failure> {
        match self.device_of(address) {
            Some(index) if self.devices[index].holds(address, size) => Ok(Some(index)),
            Some(_) => Err(Failure::InvalidValue),
            None => Ok(None),
        }
    }

    /// As [`Phantom::place`], where it does not matter which card it is.
    pub(crate) fn side(&self, address: u64, size: usize) -> Result<Side, Failure> {
        Ok(if self.place(address, size as u64)?.is_some() { Side::Card } else { Side::Host })
    }
}

/// Where a range of bytes lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Host,
    Card,
}

unsafe extern "C" fn mark_forked() {
    FORKED.store(true, Ordering::Relaxed);
}

impl Device {
    /// Works on this card's memory, of which other processes may hold a part, and reports what is in use
    /// afterwards.
    pub(crate) fn with_arena<T>(&self, index: usize, work: impl FnOnce(&mut Arena) -> T) -> T {
        let mut arena = lock(&self.arena);
        let turn = Turn::take();
        turn.forget_the_dead();
        let others = turn.held_by_others(self.card) + status::context_of(index);
        arena.set_capacity(config::get().card.available_bytes().saturating_sub(others));
        let result = work(&mut arena);
        turn.set_used(self.card, arena.used());
        drop(turn);
        status::note_used(index, arena.used());
        result
    }

    /// Looks at this card's memory and changes nothing.
    pub(crate) fn look<T>(&self, work: impl FnOnce(&Arena) -> T) -> T {
        work(&lock(&self.arena))
    }
    /// The allocation around an address, the mapped piece, or another process's memory: start and length.
    pub(crate) fn containing(&self, address: u64) -> Option<(u64, u64)> {
        let found = lock(&self.arena).containing(address);
        let found = found.or_else(|| lock(&self.mappings).containing(address));
        found.or_else(|| ipc::opened_at(address))
    }

    /// Whether all of a range is memory that somebody has: one allocation, mapped pages in a row, or memory
    /// of another process.
    pub(crate) fn holds(&self, start: u64, size: u64) -> bool {
        let found = lock(&self.arena).containing(start);
        match found {
            None => {
                lock(&self.mappings).covers(start, size)
                    || ipc::opened_at(start)
                        .is_some_and(|(first, length)| size <= length - (start - first))
            }
            Some((first, length))
                if start - first <= length && size <= length - (start - first) =>
            {
                lock(&self.pool).allows(first, start, size)
            }
            Some(_) => false,
        }
    }
}

/// Address space that costs nothing until it is written to.
fn reserve_addresses(cards: u64) -> (u64, u64) {
    let mut span = LARGEST_SPAN;
    loop {
        let total = (span * cards.max(1) + PAGE) as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping, kept for the life of the process.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                total,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
        if address != libc::MAP_FAILED {
            // SAFETY: the range was just mapped. No huge pages: a written byte costs 4 KiB, not 2 MiB;
            // and no part of it in core dumps.
            unsafe {
                libc::madvise(address, total, libc::MADV_NOHUGEPAGE);
                libc::madvise(address, total, libc::MADV_DONTDUMP);
            }
            return ((address as u64).next_multiple_of(PAGE), span);
        }
        span /= 2;
        assert!(PAGE < span, "no address space for the phantom's memory");
    }
}

/// Forgets what was written to a range of device memory, so that it costs no host memory.
pub(crate) fn discard(start: u64, length: u64) {
    ipc::withdraw(start, length);
    // SAFETY: the range is part of the phantom's own mapping; its content is no longer wanted.
    unsafe { libc::madvise(start as *mut libc::c_void, length as usize, libc::MADV_DONTNEED) };
}

/// For the doorway: where the cards' memory lies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fathom_arena(base: *mut u64, bytes: *mut u64) -> i32 {
    let Ok(phantom) = phantom() else { return 3 };
    // SAFETY: the doorway passes two valid addresses.
    unsafe {
        base.write(phantom.base);
        bytes.write(phantom.span * phantom.devices.len() as u64);
    }
    0
}
