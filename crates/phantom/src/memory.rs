//! Device memory: allocation, queries, and copies that move nothing.
//!
//! The device computes nothing, so copies have little to move. What is known of the card's values is
//! the doorway's business ([`reads`]): it is told what copies bring, and asked for what is read back.
//! What it does not know is read as zeros, never as the stale bytes of memory that no kernel wrote.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering::Relaxed;

use cuda_abi::types::{Address, Handle};

use crate::error::{Answer, Failure};
use crate::state::{self, Side, phantom};
use crate::{capture, config, device, fresh, host, pool, reach, reads, status};

/// Copies to the card of up to this much are written: the doorway's bound for small tensors.
pub(crate) const SMALL_COPY: usize = 512 << 10;

/// The runtime gives null for no bytes.
pub(crate) fn malloc(out: &mut Address, size: usize) -> Answer {
    if size == 0 {
        *out = Address(0);
        return Ok(());
    }
    malloc_some(out, size)
}

/// The driver has no allocations without bytes.
pub(crate) fn malloc_some(out: &mut Address, size: usize) -> Answer {
    if size == 0 {
        return Err(Failure::InvalidValue);
    }
    capture::unsafe_call()?;
    let (index, device) = state::device(device::current_ordinal())?;
    device::touch(index)?;
    let result = device.with_arena(index, |arena| arena.allocate(size as u64));
    *out = Address(result.inspect_err(|_| status::note_refusal(index, size as u64))?);
    Ok(())
}

/// Managed memory is counted as the card's own: on the card is where it is used. There is none
/// without bytes, in the runtime neither.
pub(crate) fn malloc_managed(out: &mut Address, size: usize) -> Answer {
    malloc_some(out, size)
}

/// Memory of the pool can be freed like any other.
pub(crate) fn free(address: Address) -> Answer {
    if address.0 == 0 {
        return Ok(());
    }
    capture::unsafe_call()?;
    let phantom = phantom()?;
    let index = phantom.device_of(address.0).ok_or(Failure::InvalidValue)?;
    if pool::owns(index, address) {
        return pool::free(address);
    }
    let length = phantom.devices[index].with_arena(index, |arena| arena.release(address.0))?;
    state::discard(address.0, length);
    Ok(())
}

pub(crate) fn info(free: &mut usize, total: &mut usize) -> Answer {
    let (index, device) = state::device(device::current_ordinal())?;
    device::touch(index)?;
    *free = device.with_arena(index, |arena| arena.available()) as usize;
    *total = phantom()?.card.memory_bytes as usize;
    Ok(())
}

/// Whether a copy can take `size` bytes from the host. Large ones are not read.
fn can_take(from: Address, size: usize, is_read: bool) -> bool {
    let start = from.0 as usize;
    match is_read {
        true => reach::is_readable(start, size),
        false => reach::has_readable_ends(start, size),
    }
}

/// Whether a copy can put `size` bytes to the host. Where large ones mostly go, memory that was allocated
/// here, nobody needs to be asked.
fn can_put(to: Address, size: usize) -> bool {
    (SMALL_COPY < size && host::is_own(to.0, size as u64))
        || reach::is_writable(to.0 as usize, size)
}

pub(crate) fn copy(to: Address, from: Address, size: usize) -> Answer {
    let phantom = phantom()?;
    if size == 0 {
        return Ok(());
    }
    let sides = (phantom.side(to.0, size)?, phantom.side(from.0, size)?);
    let is_told = config::get().values;
    match sides {
        (Side::Card, Side::Card) => move_small(to, from, size),
        (Side::Card, Side::Host) if !can_take(from, size, is_told) => {
            return Err(Failure::InvalidValue);
        }
        (Side::Card, Side::Host) if is_told => bring(to, from, size),
        (Side::Card, Side::Host) => {}
        (Side::Host, _) if !can_put(to, size) => return Err(Failure::InvalidValue),
        (Side::Host, Side::Host) if !can_take(from, size, true) => {
            return Err(Failure::InvalidValue);
        }
        (Side::Host, Side::Card) => fetch(to, from, size),
        // SAFETY: both ranges can be reached: memory of the host that was just looked at.
        (Side::Host, Side::Host) => unsafe {
            (from.0 as *const u8).copy_to(to.0 as *mut u8, size);
        },
    }
    Ok(())
}

/// From the host to the card. Nothing reads the card's own memory but what is small: see [`fresh`].
fn bring(to: Address, from: Address, size: usize) {
    // SAFETY: `size` bytes at `from`, host memory, were just looked at.
    let bytes = unsafe { std::slice::from_raw_parts(from.0 as *const u8, size) };
    reads::wrote(to.0, bytes);
    if size <= SMALL_COPY {
        // SAFETY: device memory is always mapped, and the range lies inside an allocation.
        unsafe { bytes.as_ptr().copy_to(to.0 as *mut u8, size) };
        fresh::note(to.0, size);
    } else {
        fresh::forget(to.0, size);
    }
}

/// From the card to the host: what is known, else zeros.
fn fetch(to: Address, from: Address, size: usize) {
    // SAFETY: `size` bytes at `to`, host memory, can be written, and the caller wants them to be.
    let out = unsafe { std::slice::from_raw_parts_mut(to.0 as *mut u8, size) };
    if fresh::covers(from.0, size) {
        // SAFETY: device memory is always mapped.
        unsafe { (from.0 as *const u8).copy_to(out.as_mut_ptr(), size) };
        return;
    }
    if reads::read(from.0, size, out) {
        return;
    }
    if SMALL_COPY < size {
        status::page().zero_reads.fetch_add(1, Relaxed);
    }
    out.fill(0);
}

/// Whether the driver takes this for an address on a card: it also knows pinned memory.
fn is_on_card(address: Address) -> bool {
    let on_card = phantom().is_ok_and(|phantom| phantom.device_of(address.0).is_some());
    on_card || host::is_pinned(address.0, 1)
}

pub(crate) fn copy_to_card(to: Address, from: Address, size: usize) -> Answer {
    if size != 0 && !is_on_card(to) {
        return Err(Failure::InvalidValue);
    }
    copy(to, from, size)
}

pub(crate) fn copy_to_host(to: Address, from: Address, size: usize) -> Answer {
    if size != 0 && !is_on_card(from) {
        return Err(Failure::InvalidValue);
    }
    copy(to, from, size)
}

pub(crate) fn copy_on_card(to: Address, from: Address, size: usize) -> Answer {
    copy_to_host(to, from, size)?;
    copy_to_card(to, from, size)
}

/// Moves a payload between two places on cards, if it is known.
pub(crate) fn move_small(to: Address, from: Address, size: usize) {
    let on_card = |address: Address| {
        phantom().is_ok_and(|phantom| phantom.side(address.0, size) == Ok(Side::Card))
    };
    if reads::is_seen() {
        fresh::forget(to.0, size);
    }
    let is_told = config::get().values && !reads::is_seen() && to.0 != from.0;
    if is_told && on_card(to) && on_card(from) {
        put_small(to, size, read_small(from, size).as_deref());
    }
}

/// Writes a small payload to a card, or says that nobody knows what is there now.
pub(crate) fn put_small(to: Address, size: usize, payload: Option<&[u8]>) {
    let Some(payload) = payload else { return reads::lost(to.0, size) };
    // SAFETY: device memory is always mapped, and the payload is a copy, so nothing overlaps.
    unsafe { payload.as_ptr().copy_to_nonoverlapping(to.0 as *mut u8, payload.len()) };
    fresh::note(to.0, payload.len());
    reads::wrote(to.0, payload);
}

/// A small payload on a card; `None` if it is large, elsewhere or not known.
pub(crate) fn read_small(from: Address, size: usize) -> Option<Vec<u8>> {
    if SMALL_COPY < size || phantom().ok()?.side(from.0, size) != Ok(Side::Card) {
        return None;
    }
    let mut payload = vec![0; size];
    if !reads::look(from.0, size, &mut payload) {
        if !fresh::covers(from.0, size) {
            return None;
        }
        // SAFETY: device memory is always mapped, and the caller's buffer has `size` bytes.
        unsafe { (from.0 as *const u8).copy_to(payload.as_mut_ptr(), size) };
    }
    Some(payload)
}

/// Changes a small payload on a card in place; what is not known stays so, and what cannot be computed is lost.
pub(crate) fn change_small(at: Address, size: usize, change: impl FnOnce(&mut [u8]) -> bool) {
    let changed =
        read_small(at, size).and_then(|mut payload| change(&mut payload).then_some(payload));
    put_small(at, size, changed.as_deref());
}

/// The bytes from the first row's start to the last row's end.
fn extent(pitch: usize, width: usize, height: usize) -> Result<usize, Failure> {
    let extent = pitch.checked_mul(height - 1).and_then(|rows| rows.checked_add(width));
    extent.ok_or(Failure::InvalidValue)
}

pub(crate) fn copy_2d(
    to: Address,
    to_pitch: usize,
    from: Address,
    from_pitch: usize,
    width: usize,
    height: usize,
) -> Answer {
    if to_pitch < width || from_pitch < width {
        return Err(Failure::InvalidPitch);
    }
    if width == 0 || height == 0 {
        return Ok(());
    }
    let phantom = phantom()?;
    let (to_extent, from_extent) =
        (extent(to_pitch, width, height)?, extent(from_pitch, width, height)?);
    let to_host = phantom.side(to.0, to_extent)? == Side::Host;
    let from_host = phantom.side(from.0, from_extent)? == Side::Host;
    if (to_host && !can_put(to, to_extent)) || (from_host && !can_take(from, from_extent, to_host))
    {
        return Err(Failure::InvalidValue);
    }
    for row in 0..height {
        let target = Address(to.0 + (row * to_pitch) as u64);
        copy(target, Address(from.0 + (row * from_pitch) as u64), width)?;
    }
    Ok(())
}

pub(crate) fn copy_peer(
    to: Address,
    to_device: c_int,
    from: Address,
    from_device: c_int,
    size: usize,
) -> Answer {
    state::device(to_device)?;
    state::device(from_device)?;
    copy(to, from, size)
}

/// Small memory of the card is set for real, and so is host memory that was registered.
pub(crate) fn set(address: Address, value: c_int, size: usize) -> Answer {
    fill(address, &[value as u8], size)
}

pub(crate) fn set_8(address: Address, value: c_uint, count: usize) -> Answer {
    fill(address, &[value as u8], count)
}

pub(crate) fn set_16(address: Address, value: c_uint, count: usize) -> Answer {
    fill(address, &(value as u16).to_ne_bytes(), count)
}

pub(crate) fn set_32(address: Address, value: c_uint, count: usize) -> Answer {
    fill(address, &value.to_ne_bytes(), count)
}

/// Writes an element `count` times.
fn fill(address: Address, element: &[u8], count: usize) -> Answer {
    let size = count.checked_mul(element.len()).ok_or(Failure::InvalidValue)?;
    if size == 0 {
        return phantom().map(|_| ());
    }
    let side = phantom()?.side(address.0, size)?;
    let is_aligned = address.0.is_multiple_of(element.len() as u64);
    if !is_aligned || (side == Side::Host && !is_open(address, size)) {
        return Err(Failure::InvalidValue);
    }
    if side == Side::Card && (SMALL_COPY < size || !config::get().values) {
        fresh::forget(address.0, size);
        reads::lost(address.0, size);
        return Ok(());
    }
    // SAFETY: the range lies in one allocation of a card, which is mapped, or in registered memory of
    // the host, which can be written.
    let bytes = unsafe { std::slice::from_raw_parts_mut(address.0 as *mut u8, size) };
    match element {
        [byte] => bytes.fill(*byte),
        _ => bytes.chunks_exact_mut(element.len()).for_each(|place| place.copy_from_slice(element)),
    }
    if side == Side::Card {
        fresh::note(address.0, size);
        reads::wrote(address.0, bytes);
    }
    Ok(())
}

/// Whether a card may write to this memory of the host.
fn is_open(address: Address, size: usize) -> bool {
    host::is_pinned(address.0, size as u64) && can_put(address, size)
}

/// A range of a card that is only given advice about.
pub(crate) fn whole_range(address: Address, size: usize) -> Answer {
    match phantom()?.side(address.0, size)? {
        Side::Card if 0 < size => Ok(()),
        _ => Err(Failure::InvalidValue),
    }
}

/// A word that a stream writes or waits for: of a card, or of pinned memory.
pub(crate) fn word(stream: Handle, address: Address) -> Answer {
    const BYTES: usize = 4;
    let is_good = match phantom()?.side(address.0, BYTES)? {
        Side::Card => true,
        Side::Host => host::is_pinned(address.0, BYTES as u64),
    };
    if is_good { capture::add_work(stream) } else { Err(Failure::InvalidValue) }
}
