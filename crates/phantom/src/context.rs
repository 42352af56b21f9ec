//! Contexts of the driver: one primary context per card, its handle the ordinal plus one.

use std::ffi::{c_int, c_uint};

use cuda_abi::types::Handle;

use crate::error::Answer;
use crate::{config, device, state};

fn handle_of(ordinal: c_int) -> Handle {
    Handle(0x6_0000_0000 + 64 * (ordinal as usize + 1))
}

fn ordinal_of(context: Handle) -> c_int {
    (context.0.saturating_sub(0x6_0000_0000) / 64) as c_int - 1
}

pub(crate) fn primary_retain(out: &mut Handle, ordinal: c_int) -> Answer {
    state::device(ordinal)?;
    *out = handle_of(ordinal);
    Ok(())
}

pub(crate) fn primary_state(
    ordinal: c_int,
    flags: Option<&mut c_uint>,
    active: &mut c_int,
) -> Answer {
    state::device(ordinal)?;
    if let Some(flags) = flags {
        *flags = 0;
    }
    *active = 1;
    Ok(())
}

pub(crate) fn create(out: &mut Handle, _flags: c_uint, ordinal: c_int) -> Answer {
    device::set_current(ordinal)?;
    primary_retain(out, ordinal)
}

pub(crate) fn current(out: &mut Handle) -> Answer {
    *out = handle_of(device::current_ordinal());
    Ok(())
}

pub(crate) fn set_current(context: Handle) -> Answer {
    if context == Handle::default() {
        return Ok(());
    }
    device::set_current(ordinal_of(context).max(0))
}

pub(crate) fn device(out: &mut c_int) -> Answer {
    device::current(out)
}

pub(crate) fn flags(out: &mut c_uint) -> Answer {
    *out = 0;
    Ok(())
}

pub(crate) fn id(context: Handle, out: &mut u64) -> Answer {
    *out = context.0 as u64;
    Ok(())
}

pub(crate) fn api_version(_context: Handle, out: &mut c_uint) -> Answer {
    *out = config::get().cuda_version as c_uint;
    Ok(())
}
