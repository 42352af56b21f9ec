//! Copies and fills as the host gives them to a stream: what they do is in `memory.rs`.

use std::ffi::{c_int, c_uint};

use cuda_abi::types::{Address, Handle};

use crate::error::Answer;
use crate::{capture, event, memory};

/// What the host waits for, on the stream that every card has.
fn waited_for(work: impl FnOnce() -> Answer) -> Answer {
    capture::unsafe_call()?;
    work()?;
    event::wait_stream(Handle::default())
}

pub(crate) fn and_wait(to: Address, from: Address, size: usize) -> Answer {
    waited_for(|| memory::copy(to, from, size))
}

pub(crate) fn to_card_and_wait(to: Address, from: Address, size: usize) -> Answer {
    waited_for(|| memory::copy_to_card(to, from, size))
}

pub(crate) fn to_host_and_wait(to: Address, from: Address, size: usize) -> Answer {
    waited_for(|| memory::copy_to_host(to, from, size))
}

pub(crate) fn on_stream(
    to: Address,
    from: Address,
    size: usize,
    _kind: c_int,
    stream: Handle,
) -> Answer {
    on_stream_of_driver(to, from, size, stream)
}

/// The driver knows the kind from the addresses.
pub(crate) fn on_stream_of_driver(
    to: Address,
    from: Address,
    size: usize,
    stream: Handle,
) -> Answer {
    capture::add_work(stream)?;
    memory::copy(to, from, size)
}

pub(crate) fn to_card(to: Address, from: Address, size: usize, stream: Handle) -> Answer {
    capture::add_work(stream)?;
    memory::copy_to_card(to, from, size)
}

pub(crate) fn to_host(to: Address, from: Address, size: usize, stream: Handle) -> Answer {
    capture::add_work(stream)?;
    memory::copy_to_host(to, from, size)
}

pub(crate) fn on_card(to: Address, from: Address, size: usize, stream: Handle) -> Answer {
    capture::add_work(stream)?;
    memory::copy_on_card(to, from, size)
}

#[allow(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) fn of_rows(
    to: Address,
    to_pitch: usize,
    from: Address,
    from_pitch: usize,
    width: usize,
    height: usize,
    _kind: c_int,
    stream: Handle,
) -> Answer {
    capture::add_work(stream)?;
    memory::copy_2d(to, to_pitch, from, from_pitch, width, height)
}

pub(crate) fn to_peer(
    to: Address,
    to_device: c_int,
    from: Address,
    from_device: c_int,
    size: usize,
    stream: Handle,
) -> Answer {
    capture::add_work(stream)?;
    memory::copy_peer(to, to_device, from, from_device, size)
}

pub(crate) fn fill(address: Address, value: c_int, size: usize, stream: Handle) -> Answer {
    capture::add_work(stream)?;
    memory::set(address, value, size)
}

pub(crate) fn fill_8(address: Address, value: c_uint, count: usize, stream: Handle) -> Answer {
    capture::add_work(stream)?;
    memory::set_8(address, value, count)
}

pub(crate) fn fill_16(address: Address, value: c_uint, count: usize, stream: Handle) -> Answer {
    capture::add_work(stream)?;
    memory::set_16(address, value, count)
}

pub(crate) fn fill_32(address: Address, value: c_uint, count: usize, stream: Handle) -> Answer {
    capture::add_work(stream)?;
    memory::set_32(address, value, count)
}
