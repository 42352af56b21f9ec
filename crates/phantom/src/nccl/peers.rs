//! Sends and receives between two ranks. All ranks do the same: what a rank receives is what it
//! sends to itself in the same group of calls, else what it sends on, as in a ring.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;

use cuda_abi::types::{Address, Handle};

use super::values::bytes_of;
use super::{clique, get};
use crate::error::Answer;
use crate::memory;

/// One end of a message.
struct End {
    communicator: Handle,
    buffer: Address,
    bytes: usize,
    is_to_itself: bool,
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static SENDS: RefCell<Vec<End>> = const { RefCell::new(Vec::new()) };
    static RECEIVES: RefCell<Vec<End>> = const { RefCell::new(Vec::new()) };
}

fn end(
    buffer: Address,
    count: usize,
    dtype: c_int,
    peer: c_int,
    communicator: Handle,
) -> Result<End, crate::error::Failure> {
    let own = get(communicator)?;
    own.has(peer)?;
    let is_to_itself = own.rank as c_int == peer;
    let bytes = count.saturating_mul(bytes_of(dtype));
    Ok(End { communicator, buffer, bytes, is_to_itself })
}

pub(crate) fn send(
    buffer: Address,
    count: usize,
    dtype: c_int,
    peer: c_int,
    communicator: Handle,
) -> Answer {
    let end = end(buffer, count, dtype, peer, communicator)?;
    SENDS.with_borrow_mut(|sends| sends.push(end));
    close_if_alone()
}

pub(crate) fn recv(
    buffer: Address,
    count: usize,
    dtype: c_int,
    peer: c_int,
    communicator: Handle,
) -> Answer {
    let end = end(buffer, count, dtype, peer, communicator)?;
    RECEIVES.with_borrow_mut(|receives| receives.push(end));
    close_if_alone()
}

/// A broadcast. Where every rank is the root of one in the same group, they gather from all: then
/// the others' parts are what this rank broadcasts itself.
pub(super) fn note_broadcast(
    communicator: Handle,
    buffer: Address,
    bytes: usize,
    is_root: bool,
) -> Answer {
    let ends = if is_root { &SENDS } else { &RECEIVES };
    let end = End { communicator, buffer, bytes, is_to_itself: is_root };
    ends.with_borrow_mut(|ends| ends.push(end));
    close_if_alone()
}

pub(crate) fn group_start() -> Answer {
    DEPTH.set(DEPTH.get().saturating_add(1));
    Ok(())
}

pub(crate) fn group_end() -> Answer {
    DEPTH.set(DEPTH.get().saturating_sub(1));
    close_if_alone()
}

/// Outside of groups every call is a group of its own.
fn close_if_alone() -> Answer {
    if DEPTH.get() == 0 {
        let (sends, receives) = (SENDS.take(), RECEIVES.take());
        for receive in &receives {
            if let Some(send) = matching(&sends, receive) {
                memory::move_small(receive.buffer, send.buffer, receive.bytes);
            }
        }
        clique::answer();
    }
    Ok(())
}

fn matching<'a>(sends: &'a [End], receive: &End) -> Option<&'a End> {
    let alike =
        |send: &&End| send.communicator == receive.communicator && send.bytes == receive.bytes;
    let to_itself = sends.iter().filter(alike).find(|send| send.is_to_itself);
    to_itself.or_else(|| sends.iter().find(alike))
}
