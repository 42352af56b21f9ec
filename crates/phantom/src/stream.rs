//! Streams: everything on them is done at once, so they only carry identity, priority, capture, and
//! what the host has waited for.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use cuda_abi::handles::Kind;
use cuda_abi::types::{Handle, HostFunction, StreamCallback};

use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::state::lock;
use crate::{capture, context, event, handles};

/// Priorities of the streams that were made with one.
static PRIORITIES: Mutex<BTreeMap<Handle, c_int>> = Mutex::new(BTreeMap::new());

pub(crate) fn priority_range(least: Option<&mut c_int>, greatest: Option<&mut c_int>) -> Answer {
    if let Some(least) = least {
        *least = 0;
    }
    if let Some(greatest) = greatest {
        *greatest = -5;
    }
    Ok(())
}

/// For the doorway: streams that were made, beside the one that every card has.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a name that C and Python see")]
pub static fathom_streams: AtomicU64 = AtomicU64::new(0);

pub(crate) fn create(out: &mut Handle) -> Answer {
    *out = handles::make(Kind::Stream)?;
    fathom_streams.fetch_add(1, Relaxed);
    Ok(())
}

pub(crate) fn create_with_priority(out: &mut Handle, _flags: c_uint, priority: c_int) -> Answer {
    create(out)?;
    lock(&PRIORITIES).insert(*out, priority.clamp(-5, 0));
    Ok(())
}

pub(crate) fn destroy(stream: Handle) -> Answer {
    lock(&PRIORITIES).remove(&stream);
    capture::forget_stream(stream);
    Ok(())
}

pub(crate) fn priority(stream: Handle, out: &mut c_int) -> Answer {
    *out = lock(&PRIORITIES).get(&stream).copied().unwrap_or(0);
    Ok(())
}

pub(crate) fn context(_stream: Handle, out: &mut Handle) -> Answer {
    context::current(out)
}

/// `cudaEventWaitExternal`, and the same of `cudaEventRecord`: a node of the graph, not of the capture.
pub(crate) const EXTERNAL: c_uint = 1;

pub(crate) fn wait_event(stream: Handle, event: Handle, flags: c_uint) -> Answer {
    if flags & EXTERNAL == 0 {
        capture::wait_event(stream, event, event::was_recorded(event))?;
    }
    event::join(stream, event);
    Ok(())
}

/// Work before the callback is done already: it runs at once, on the caller's thread.
pub(crate) fn add_callback(stream: Handle, callback: StreamCallback, data: Raw<c_void>) -> Answer {
    let callback = callback.ok_or(Failure::InvalidValue)?;
    // SAFETY: the caller asks for exactly this call.
    unsafe { callback(stream, 0, data.0) };
    Ok(())
}

/// As [`add_callback`]; inside a capture the function belongs to the graph and does not run now.
pub(crate) fn launch_host_function(
    stream: Handle,
    function: HostFunction,
    data: Raw<c_void>,
) -> Answer {
    let function = function.ok_or(Failure::InvalidValue)?;
    if capture::is_of_capture(stream) {
        capture::add_work(stream)?;
    } else {
        // SAFETY: the caller asks for exactly this call.
        unsafe { function(data.0) };
    }
    Ok(())
}
