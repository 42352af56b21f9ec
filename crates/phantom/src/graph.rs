//! CUDA graphs: captures are tracked, since PyTorch's allocator asks for them; replays do nothing.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;

use cuda_abi::types::{Address, Handle};

use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::state::{lock, new_handle};

/// A capture under way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capture {
    id: u64,
    graph: Handle,
}

/// Streams that capture, and events recorded inside a capture.
#[derive(Default)]
struct Captures {
    streams: BTreeMap<Handle, Capture>,
    events: BTreeMap<Handle, Capture>,
    begun: u64,
}

static CAPTURES: Mutex<Captures> =
    Mutex::new(Captures { streams: BTreeMap::new(), events: BTreeMap::new(), begun: 0 });

pub(crate) fn capture_of(stream: Handle) -> Option<Capture> {
    lock(&CAPTURES).streams.get(&stream).copied()
}

/// An event recorded on a capturing stream carries the capture.
pub(crate) fn mark_event(event: Handle, stream: Handle) {
    let mut captures = lock(&CAPTURES);
    match captures.streams.get(&stream).copied() {
        Some(capture) => captures.events.insert(event, capture),
        None => captures.events.remove(&event),
    };
}

/// A stream that waits for such an event takes part in the capture.
pub(crate) fn join_capture(stream: Handle, event: Handle) {
    let mut captures = lock(&CAPTURES);
    if let Some(capture) = captures.events.get(&event).copied() {
        captures.streams.entry(stream).or_insert(capture);
    }
}

pub(crate) fn forget_stream(stream: Handle) {
    lock(&CAPTURES).streams.remove(&stream);
}

pub(crate) fn forget_event(event: Handle) {
    lock(&CAPTURES).events.remove(&event);
}

pub(crate) fn is_capturing(stream: Handle, out: &mut c_int) -> Answer {
    *out = c_int::from(capture_of(stream).is_some());
    Ok(())
}

pub(crate) fn capture_info(
    stream: Handle,
    status: &mut c_int,
    id: Option<&mut u64>,
    graph: Option<&mut Handle>,
    dependencies: Option<&mut Address>,
    edges: Option<&mut Address>,
    count: Option<&mut usize>,
) -> Answer {
    if let Some(edges) = edges {
        *edges = Address(0);
    }
    capture_info_v2(stream, status, id, graph, dependencies, count)
}

pub(crate) fn capture_info_v2(
    stream: Handle,
    status: &mut c_int,
    id: Option<&mut u64>,
    graph: Option<&mut Handle>,
    dependencies: Option<&mut Address>,
    count: Option<&mut usize>,
) -> Answer {
    let capture = capture_of(stream);
    *status = c_int::from(capture.is_some());
    if let (Some(out), Some(capture)) = (id, capture) {
        *out = capture.id;
    }
    if let (Some(out), Some(capture)) = (graph, capture) {
        *out = capture.graph;
    }
    if let Some(dependencies) = dependencies {
        *dependencies = Address(0);
    }
    if let Some(count) = count {
        *count = 0;
    }
    Ok(())
}

fn begin(stream: Handle, graph: Handle) -> Answer {
    let mut captures = lock(&CAPTURES);
    if captures.streams.contains_key(&stream) {
        return Err(Failure::InvalidValue);
    }
    captures.begun += 1;
    let capture = Capture { id: captures.begun, graph };
    captures.streams.insert(stream, capture);
    Ok(())
}

pub(crate) fn begin_capture(stream: Handle) -> Answer {
    begin(stream, new_handle())
}

pub(crate) fn begin_capture_to_graph(stream: Handle, graph: Handle) -> Answer {
    begin(stream, graph)
}

pub(crate) fn end_capture(stream: Handle, out: &mut Handle) -> Answer {
    let mut captures = lock(&CAPTURES);
    let capture = captures.streams.remove(&stream).ok_or(Failure::InvalidValue)?;
    captures.streams.retain(|_, other| *other != capture);
    captures.events.retain(|_, other| *other != capture);
    *out = capture.graph;
    Ok(())
}

/// The caller's wish becomes the mode; the old one was "global".
pub(crate) fn exchange_mode(mode: &mut c_int) -> Answer {
    *mode = 0;
    Ok(())
}

pub(crate) fn make_handle(out: &mut Handle) -> Answer {
    *out = new_handle();
    Ok(())
}

pub(crate) fn create(out: &mut Handle) -> Answer {
    make_handle(out)
}

pub(crate) fn instantiate(out: &mut Handle, _graph: Handle) -> Answer {
    make_handle(out)
}

/// A captured graph is never empty, or PyTorch would warn about it.
pub(crate) fn nodes(_graph: Handle, nodes: Raw<Handle>, count: &mut usize) -> Answer {
    nodes.write(&[new_handle()]);
    *count = 1;
    Ok(())
}

pub(crate) fn destroy(_graph: Handle) -> Answer {
    Ok(())
}
