//! What CUDA has to begin a capture, to ask about it and to end it.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use cuda_abi::handles::Kind;
use cuda_abi::types::{Address, Handle};

use super::{CAPTURES, Capture, CapturePoint, Captures, LEGACY, MODE, Mode, UNDER_WAY};
use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::graph::Nodes;
use crate::state::lock;
use crate::{config, device, graph, handles};

/// `cudaStreamCaptureStatus`: none, active, invalidated.
fn status_of(capture: Option<&Capture>) -> c_int {
    capture.map_or(0, |capture| if capture.is_invalid { 2 } else { 1 })
}

pub(crate) fn is_capturing(stream: Handle, out: &mut c_int) -> Answer {
    *out = status_of(lock(&CAPTURES).of_stream(stream).as_deref());
    Ok(())
}

pub(crate) fn info(
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
    info_v2(stream, status, id, graph, dependencies, count)
}

/// The dependencies stay where they are until the stream is used again.
pub(crate) fn info_v2(
    stream: Handle,
    status: &mut c_int,
    id: Option<&mut u64>,
    graph: Option<&mut Handle>,
    dependencies: Option<&mut Address>,
    count: Option<&mut usize>,
) -> Answer {
    let captures = lock(&CAPTURES);
    let place = captures.streams.get(&stream);
    let capture = place.and_then(|place| captures.all.get(&place.capture));
    *status = status_of(capture);
    if let (Some(out), Some(place)) = (id, place) {
        *out = place.capture;
    }
    if let (Some(out), Some(capture)) = (graph, capture) {
        *out = capture.graph;
    }
    if let Some(dependencies) = dependencies {
        *dependencies = Address(place.map_or(0, |place| place.ends.as_ptr() as u64));
    }
    if let Some(count) = count {
        *count = place.map_or(0, |place| place.ends.len());
    }
    Ok(())
}

/// What a node of a capture that is under way comes after.
pub(crate) fn dependencies(node: Handle) -> Option<Vec<Handle>> {
    let captures = lock(&CAPTURES);
    captures.all.values().find_map(|capture| capture.nodes.before(node))
}

/// Begins a capture; without a graph it gets a new one.
fn begin_into(stream: Handle, graph: Option<Handle>, mode: c_int) -> Answer {
    let mode = Mode::of(mode)?;
    if LEGACY.contains(&stream) {
        return Err(Failure::CaptureUnsupported);
    }
    let mut captures = lock(&CAPTURES);
    if captures.streams.contains_key(&stream) {
        return Err(Failure::IllegalState);
    }
    captures.begun += 1;
    let capture = captures.begun;
    let new = Capture {
        graph: graph.map_or_else(|| handles::make(Kind::Graph), Ok)?,
        is_new: graph.is_none(),
        mode,
        thread: thread::current().id(),
        device: device::current_ordinal(),
        origin: stream,
        is_invalid: false,
        nodes: Nodes::default(),
    };
    captures.all.insert(capture, new);
    captures.streams.insert(stream, CapturePoint { capture, ends: Vec::new() });
    UNDER_WAY.store(captures.all.len(), Relaxed);
    Ok(())
}

pub(crate) fn begin(stream: Handle, mode: c_int) -> Answer {
    begin_into(stream, None, mode)
}

pub(crate) fn begin_to_graph(
    stream: Handle,
    graph: Handle,
    _dependencies: Address,
    _edges: Address,
    _count: usize,
    mode: c_int,
) -> Answer {
    begin_into(stream, Some(graph), mode)
}

/// A node that the caller adds by itself to a graph which is being captured.
pub(crate) fn add_node(graph: Handle, before: &[Handle]) -> Option<Result<Handle, Failure>> {
    let mut captures = lock(&CAPTURES);
    let capture = captures.all.values_mut().find(|capture| capture.graph == graph)?;
    Some(capture.nodes.add(before))
}

/// CUDA 13 has an array of edges before the count.
pub(crate) fn update_dependencies(
    stream: Handle,
    nodes: Raw<Handle>,
    third: usize,
    fourth: usize,
    fifth: usize,
) -> Answer {
    match config::get().cuda_version < 13000 {
        true => update_dependencies_v2(stream, nodes, 0, third, fourth),
        false => update_dependencies_v2(stream, nodes, third, fourth, fifth),
    }
}

/// What comes next on the stream comes after these nodes: too, or only after them.
pub(crate) fn update_dependencies_v2(
    stream: Handle,
    nodes: Raw<Handle>,
    _edges: usize,
    count: usize,
    flags: usize,
) -> Answer {
    let nodes = graph::read_nodes(nodes, count)?;
    let mut captures = lock(&CAPTURES);
    captures.check_valid(stream)?;
    let Captures { all, streams, .. } = &mut *captures;
    let place = streams.get_mut(&stream).ok_or(Failure::IllegalState)?;
    let capture = all.get(&place.capture).ok_or(Failure::IllegalState)?;
    if nodes.iter().any(|node| capture.nodes.before(*node).is_none()) {
        return Err(Failure::InvalidValue);
    }
    // `cudaStreamUpdateCaptureDependenciesFlags` is an int: what lies above it in the register says nothing.
    match flags as u32 {
        0 => place.ends.extend(nodes),
        1 => place.ends = nodes,
        _ => return Err(Failure::InvalidValue),
    }
    place.ends.sort_unstable();
    place.ends.dedup();
    Ok(())
}

/// Who knows the graph already may leave `out` away.
pub(crate) fn end(stream: Handle, out: Option<&mut Handle>) -> Answer {
    let mut unwanted = Handle::default();
    let out = out.unwrap_or(&mut unwanted);
    *out = Handle::default();
    let mut captures = lock(&CAPTURES);
    let place = captures.streams.get(&stream).cloned().ok_or(Failure::IllegalState)?;
    let capture = captures.of_stream(stream).ok_or(Failure::IllegalState)?;
    if capture.origin != stream {
        capture.is_invalid = true;
        return Err(Failure::CaptureUnmatched);
    }
    if capture.mode != Mode::Relaxed && capture.thread != thread::current().id() {
        capture.is_invalid = true;
        return Err(Failure::CaptureWrongThread);
    }
    let number = place.capture;
    let capture = captures.all.remove(&number).ok_or(Failure::IllegalState)?;
    let reached = capture.nodes.up_to(&place.ends);
    let members = captures.streams.values().filter(|member| member.capture == number);
    let is_joined = members.flat_map(|member| &member.ends).all(|node| reached.contains(node));
    captures.streams.retain(|_, member| member.capture != number);
    captures.events.retain(|_, recorded| recorded.capture != number);
    UNDER_WAY.store(captures.all.len(), Relaxed);
    if capture.is_invalid || !is_joined {
        if capture.is_new {
            graph::forget(capture.graph);
            handles::end(Kind::Graph, capture.graph)?;
        }
        let why = [Failure::CaptureUnjoined, Failure::CaptureInvalidated];
        return Err(why[usize::from(capture.is_invalid)]);
    }
    graph::keep(capture.graph, capture.nodes);
    *out = capture.graph;
    Ok(())
}

/// The caller's wish becomes the thread's mode, and the old one the caller's.
pub(crate) fn exchange_mode(mode: &mut c_int) -> Answer {
    let wanted = Mode::of(*mode)?;
    *mode = MODE.replace(wanted) as c_int;
    Ok(())
}
