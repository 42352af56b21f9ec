//! Captures of CUDA graphs: which streams take part, and which calls a capture does not survive.
//!
//! While a stream is captured, its work is not done, so nobody can wait for it: such a call fails, and
//! the capture with it. Calls that might wait behind the scenes (`cudaMalloc`) are refused according to
//! two modes: that of the capture, and that of the thread which calls.

mod calls;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, ThreadId};

use cuda_abi::types::Handle;

use crate::device;
use crate::error::{Answer, Failure};
use crate::graph::Nodes;
use crate::state::lock;

pub(crate) use calls::{
    add_node, begin, begin_to_graph, dependencies, end, exchange_mode, info, info_v2, is_capturing,
    update_dependencies, update_dependencies_v2,
};

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
