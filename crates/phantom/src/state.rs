//! The state of the phantom in this process: its cards and their memory, built at the first call.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use cuda_abi::types::Handle;
use gpus::Card;

use crate::arena::{Arena, PAGE};
use crate::error::Failure;
use crate::pool::Pool;
use crate::virtual_memory::Mappings;
use crate::{config, status};

/// Address space asked for, over all cards; halved until the system grants it.
const LARGEST_SPAN: u64 = 1 << 44;

/// One card.
pub(crate) struct Device {
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

/// The state, or the driver's own refusal in a forked child.
pub(crate) fn phantom() -> Result<&'static Phantom, Failure> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(Failure::Initialization);
    }
    Ok(PHANTOM.get_or_init(Phantom::new))
}

/// A device by its ordinal.
pub(crate) fn device(ordinal: i32) -> Result<(usize, &'static Device), Failure> {
    let index = usize::try_from(ordinal).map_err(|_| Failure::InvalidDevice)?;
    let device = phantom()?.devices.get(index).ok_or(Failure::InvalidDevice)?;
    Ok((index, device))
}

/// Takes a lock; the state stays usable if a thread died while holding it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A fresh opaque handle: never null, aligned as a pointer would be, never used twice.
pub(crate) fn new_handle() -> Handle {
    static NEXT: AtomicUsize = AtomicUsize::new(0x5_0000_0000);
    Handle(NEXT.fetch_add(64, Ordering::Relaxed))
}

impl Phantom {
    fn new() -> Phantom {
        let config = config::get();
        let (base, span) = reserve_addresses(config.device_count as u64);
        let card = &config.card;
        let capacity = card.memory_bytes.saturating_sub(card.context_bytes);
        let devices = (0..config.device_count as u64)
            .map(|index| Device {
                arena: Mutex::new(Arena::new(base + index * span, span, capacity)),
                pool: Mutex::default(),
                mappings: Mutex::default(),
            })
            .collect();
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(mark_forked)) };
        Phantom { card, devices, base, span }
    }

    /// The card whose memory contains `address`.
    pub(crate) fn device_of(&self, address: u64) -> Option<usize> {
        let index = address.checked_sub(self.base)? / self.span;
        (index < self.devices.len() as u64).then_some(index as usize)
    }
}

unsafe extern "C" fn mark_forked() {
    FORKED.store(true, Ordering::Relaxed);
}

impl Device {
    /// Works on this card's memory and reports what is in use afterwards.
    pub(crate) fn with_arena<T>(&self, index: usize, work: impl FnOnce(&mut Arena) -> T) -> T {
        let mut arena = lock(&self.arena);
        let result = work(&mut arena);
        status::note_used(index, arena.used());
        result
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
