//! Captures of CUDA graphs: which streams take part, and which calls a capture does not survive.
//!
//! While a stream is captured, its work is not done, so nobody can wait for it: such a call fails, and
//! the capture with it. Calls that might wait behind the scenes (`cudaMalloc`) are refused according to
//! two modes: that of the capture, and that of the thread which calls.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, ThreadId};

use cuda_abi::handles::Kind;
use cuda_abi::types::{Address, Handle};

use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::graph::Nodes;
use crate::state::lock;
use crate::{config, device, graph, handles};

/// `cudaStreamCaptureMode`: whom a capture keeps from unsafe calls, and which captures keep a thread from
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Every thread; the default of both.
    Global = 0,
    /// The thread that captures.
    ThreadLocal = 1,
    Relaxed = 2,
}

impl Mode {
    fn of(number: c_int) -> Result<Mode, Failure> {
        let all = [Mode::Global, Mode::ThreadLocal, Mode::Relaxed];
        all.into_iter().find(|mode| *mode as c_int == number).ok_or(Failure::InvalidValue)
    }
}

/// A capture under way.
struct Capture {
    graph: Handle,
    /// Made for the capture: without it, nobody knows the graph.
    is_new: bool,
    mode: Mode,
    thread: ThreadId,
    device: c_int,
    origin: Handle,
    is_invalid: bool,
    nodes: Nodes,
}

/// A place in a capture: what comes next there comes after these nodes.
#[derive(Clone)]
struct CapturePoint {
    capture: u64,
    ends: Vec<Handle>,
}

/// All captures by number, streams that take part, and events recorded in one.
struct Captures {
    all: BTreeMap<u64, Capture>,
    streams: BTreeMap<Handle, CapturePoint>,
    events: BTreeMap<Handle, CapturePoint>,
    begun: u64,
}

static CAPTURES: Mutex<Captures> = Mutex::new(Captures {
    all: BTreeMap::new(),
    streams: BTreeMap::new(),
    events: BTreeMap::new(),
    begun: 0,
});

/// The stream that all others may depend on, by its two names.
const LEGACY: [Handle; 2] = [Handle(0), Handle(1)];

/// How many captures are under way: work is not slowed down where there are none.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

impl Captures {
    fn of_stream(&mut self, stream: Handle) -> Option<&mut Capture> {
        let place = self.streams.get(&stream)?;
        self.all.get_mut(&place.capture)
    }

    /// A capture is lost, and its owner learns it at the end.
    fn lose(&mut self, number: u64) {
        self.all.get_mut(&number).into_iter().for_each(|capture| capture.is_invalid = true);
    }

    /// Loses the captures that `is_hit` names.
    fn lose_all(&mut self, is_hit: impl Fn(&Capture) -> bool) -> Answer {
        let mut is_lost = false;
        for capture in self.all.values_mut().filter(|capture| is_hit(capture)) {
            capture.is_invalid = true;
            is_lost = true;
        }
        if is_lost { Err(Failure::CaptureUnsupported) } else { Ok(()) }
    }

    /// Refuses what cannot go into a capture that is lost already.
    fn check_valid(&mut self, stream: Handle) -> Answer {
        match self.of_stream(stream) {
            Some(capture) if capture.is_invalid => Err(Failure::CaptureInvalidated),
            _ => Ok(()),
        }
    }
}

/// Whether anything is captured.
pub(crate) fn is_under_way() -> bool {
    UNDER_WAY.load(Relaxed) != 0
}

pub(crate) fn is_of_capture(stream: Handle) -> bool {
    UNDER_WAY.load(Relaxed) != 0 && lock(&CAPTURES).streams.contains_key(&stream)
}

/// Work goes to a stream: a node of the graph, if the stream is captured.
pub(crate) fn add_work(stream: Handle) -> Answer {
    if UNDER_WAY.load(Relaxed) == 0 {
        return Ok(());
    }
    let mut captures = lock(&CAPTURES);
    captures.check_valid(stream)?;
    let Captures { all, streams, .. } = &mut *captures;
    if let Some(place) = streams.get_mut(&stream)
        && let Some(capture) = all.get_mut(&place.capture)
    {
        place.ends = vec![capture.nodes.add(&place.ends)?];
    }
    Ok(())
}

/// Work goes to a stream that is not known here, of a library: the graph of this thread is not empty.
pub(crate) fn add_work_somewhere() -> Answer {
    if UNDER_WAY.load(Relaxed) == 0 {
        return Ok(());
    }
    let thread = thread::current().id();
    let mut captures = lock(&CAPTURES);
    let mut own = captures.all.values_mut().filter(|capture| capture.thread == thread);
    own.try_for_each(|capture| capture.nodes.add(&[]).map(|_| ()))
}

/// A library is told its stream; PyTorch does so before it gives it work.
pub(crate) fn set_library_stream(_library: Handle, stream: Handle) -> Answer {
    add_work(stream)
}

/// As [`set_library_stream`], for a plan of cuFFT.
pub(crate) fn set_plan_stream(_plan: c_int, stream: Handle) -> Answer {
    add_work(stream)
}

/// The graph records the event when it is launched.
pub(crate) fn add_external_event(event: Handle, stream: Handle) -> Answer {
    add_work(stream)?;
    let mut captures = lock(&CAPTURES);
    captures.of_stream(stream).into_iter().for_each(|capture| capture.nodes.events.push(event));
    Ok(())
}

/// A call that may wait for work of the card without saying so.
pub(crate) fn unsafe_call() -> Answer {
    if UNDER_WAY.load(Relaxed) == 0 {
        return Ok(());
    }
    let (mode, thread) = (MODE.get(), thread::current().id());
    if mode == Mode::Relaxed {
        return Ok(());
    }
    lock(&CAPTURES).lose_all(|capture| match capture.mode {
        Mode::Relaxed => false,
        Mode::Global if mode == Mode::Global => true,
        _ => capture.thread == thread,
    })
}

/// The host waits for a stream, or asks whether it is done.
pub(crate) fn wait_for_stream(stream: Handle) -> Answer {
    if UNDER_WAY.load(Relaxed) == 0 {
        return Ok(());
    }
    let mut captures = lock(&CAPTURES);
    captures.check_valid(stream)?;
    let Some(capture) = captures.streams.get(&stream).map(|place| place.capture) else {
        return Ok(());
    };
    captures.lose(capture);
    Err(Failure::CaptureUnsupported)
}

/// The host waits for all work of the current card.
pub(crate) fn wait_for_device() -> Answer {
    let device = device::current_ordinal();
    lock(&CAPTURES).lose_all(|capture| capture.device == device)
}

/// The host waits for an event, or asks whether it is complete.
pub(crate) fn wait_for_event(event: Handle) -> Answer {
    if UNDER_WAY.load(Relaxed) == 0 {
        return Ok(());
    }
    let mut captures = lock(&CAPTURES);
    if let Some(capture) = captures.events.get(&event).map(|place| place.capture) {
        captures.lose(capture);
        return Err(Failure::CapturedEvent);
    }
    drop(captures);
    unsafe_call()
}

/// An event recorded on a capturing stream belongs to the capture; the host may not wait for it.
pub(crate) fn record_event(event: Handle, stream: Handle) -> Answer {
    let mut captures = lock(&CAPTURES);
    captures.check_valid(stream)?;
    match captures.streams.get(&stream).cloned() {
        Some(place) => captures.events.insert(event, place),
        None => captures.events.remove(&event),
    };
    Ok(())
}

/// A stream that waits for such an event takes part in the capture. One that captures cannot wait for
/// work outside, of which its graph would know nothing.
pub(crate) fn wait_event(stream: Handle, event: Handle, was_recorded: bool) -> Answer {
    let mut captures = lock(&CAPTURES);
    captures.check_valid(stream)?;
    let Captures { streams, events, .. } = &mut *captures;
    let lost = match (streams.get_mut(&stream), events.get(&event)) {
        (None, None) => return Ok(()),
        (None, Some(from)) => {
            streams.insert(stream, from.clone());
            return Ok(());
        }
        (Some(own), Some(from)) if own.capture == from.capture => {
            own.ends.extend(&from.ends);
            own.ends.sort_unstable();
            own.ends.dedup();
            return Ok(());
        }
        (Some(_), None) if !was_recorded => return Ok(()),
        (Some(own), Some(_)) => (own.capture, Failure::CaptureMerge),
        (Some(own), None) => (own.capture, Failure::CaptureIsolation),
    };
    captures.lose(lost.0);
    Err(lost.1)
}

pub(crate) fn forget_stream(stream: Handle) {
    lock(&CAPTURES).streams.remove(&stream);
}

pub(crate) fn forget_event(event: Handle) {
    lock(&CAPTURES).events.remove(&event);
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Captures of one test are not hit by the calls of another.
    static ALONE: Mutex<()> = Mutex::new(());

    fn stream() -> Handle {
        handles::make(Kind::Stream).unwrap()
    }

    /// Modes of a capture and of a thread; whether this thread, and another, may call `cudaMalloc`.
    #[test]
    fn unsafe_calls_are_refused_by_both_modes() {
        let _alone = lock(&ALONE);
        let cases = [
            (0, 0, false, false),
            (0, 1, false, true),
            (0, 2, true, true),
            (1, 0, false, true),
            (1, 1, false, true),
            (2, 0, true, true),
        ];
        for (of_capture, of_thread, here, elsewhere) in cases {
            let call = |mode: c_int| {
                let mut mode = mode;
                exchange_mode(&mut mode).unwrap();
                let answer = unsafe_call();
                exchange_mode(&mut mode).unwrap();
                answer.is_ok()
            };
            for is_here in [true, false] {
                let (stream, mut out) = (stream(), Handle::default());
                begin(stream, of_capture).unwrap();
                let may = match is_here {
                    true => call(of_thread),
                    false => thread::scope(|scope| scope.spawn(|| call(of_thread)).join().unwrap()),
                };
                assert_eq!(may, if is_here { here } else { elsewhere }, "{of_capture} {of_thread}");
                assert_eq!(end(stream, Some(&mut out)).is_ok(), may);
            }
        }
    }

    #[test]
    fn waiting_ends_a_capture_in_every_mode() {
        let _alone = lock(&ALONE);
        for mode in 0..3 {
            let (stream, other, mut out) = (stream(), stream(), Handle(1));
            begin(stream, mode).unwrap();
            assert_eq!(wait_for_stream(other), Ok(()));
            assert_eq!(wait_for_stream(stream), Err(Failure::CaptureUnsupported));
            assert_eq!(wait_for_stream(stream), Err(Failure::CaptureInvalidated));
            let mut status = 0;
            is_capturing(stream, &mut status).unwrap();
            assert_eq!(status, 2);
            assert_eq!(end(stream, Some(&mut out)), Err(Failure::CaptureInvalidated));
            assert_eq!(
                (out, end(stream, Some(&mut out))),
                (Handle::default(), Err(Failure::IllegalState))
            );
        }
    }

    #[test]
    fn streams_must_come_back() {
        let _alone = lock(&ALONE);
        let (origin, side, event, back) = (stream(), stream(), stream(), stream());
        let mut out = Handle::default();
        let fork = || {
            begin(origin, 2).unwrap();
            record_event(event, origin).unwrap();
            wait_event(side, event, true).unwrap();
            add_work(side).unwrap();
        };
        fork();
        assert_eq!(end(side, Some(&mut out)), Err(Failure::CaptureUnmatched));
        assert_eq!(end(origin, Some(&mut out)), Err(Failure::CaptureInvalidated));
        fork();
        assert_eq!(end(origin, Some(&mut out)), Err(Failure::CaptureUnjoined));
        fork();
        record_event(back, side).unwrap();
        assert_eq!(wait_for_event(back), Err(Failure::CapturedEvent));
        assert_eq!(end(origin, Some(&mut out)), Err(Failure::CaptureInvalidated));
        fork();
        // By way of a third stream.
        let third = stream();
        record_event(back, side).unwrap();
        wait_event(third, back, true).unwrap();
        add_work(third).unwrap();
        record_event(back, third).unwrap();
        wait_event(origin, back, true).unwrap();
        assert_eq!(end(origin, Some(&mut out)), Ok(()));
        begin(origin, 0).unwrap();
        assert_eq!(wait_event(origin, event, false), Ok(()), "never recorded");
        assert_eq!(wait_event(origin, event, true), Err(Failure::CaptureIsolation));
        assert_eq!(end(origin, Some(&mut out)), Err(Failure::CaptureInvalidated));
    }
}
