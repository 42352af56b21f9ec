//! Events: complete as soon as they are recorded, unless the stream sleeps (`busy.rs`); or, if asked
//! for, as late as a real card might complete them (`order.rs`).
//!
//! PyTorch's allocator asks whether events are complete before it takes back memory that other streams
//! used. Each such question is noted, with the part of the script at which a real card would have had
//! to say yes: the recording tells from it how much the peak depends on the order of work.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use cuda_abi::handles::Kind;
use cuda_abi::types::Handle;

use crate::busy::{Busy, Moment};
use crate::error::{Answer, Failure};
use crate::order::{Order, Point, StreamName};
use crate::state::lock;
use crate::stream::EXTERNAL;
use crate::workspaces::fathom_part;
use crate::{capture, config, device, handles, status, workspaces};

/// The least time between two events. Kernels take none here, and what is left is noise: with a
/// floor all trials of an autotuner tie, and it makes the same choice in every run.
const LEAST_MILLISECONDS: f32 = 100.0;

/// Who asks for the same event so often, and launches nothing meanwhile, waits for it.
const PATIENCE: u32 = 1000;

/// More than this is not remembered: nobody is asking.
const MOST: usize = 1 << 20;

/// An event, as it was last recorded.
struct Recorded {
    /// When it was recorded, and when it is complete.
    at: Moment,
    done: Moment,
    point: Point,
    part: u64,
    /// Plans of cuDNN that its thread had run.
    runs: u64,
    /// How often it was asked for since the last launch, and how many launches there were then.
    asked: (u32, u64),
}

/// An event that was asked for: recorded in one part of the script, certainly complete in another.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    recorded: u64,
    done: u64,
}

struct Events {
    recorded: BTreeMap<Handle, Recorded>,
    order: Order,
    busy: Busy,
    /// Asked for, and not certainly complete.
    open: Vec<(Point, u64)>,
    waits: Vec<Wait>,
}

static EVENTS: Mutex<Events> = Mutex::new(Events {
    recorded: BTreeMap::new(),
    order: Order::new(),
    busy: Busy::new(),
    open: Vec::new(),
    waits: Vec::new(),
});

impl Events {
    /// The host has waited for something: which of the open questions does that answer?
    fn settle(&mut self) {
        let Events { order, open, waits, .. } = self;
        open.retain(|(point, recorded)| match order.done_in(*point) {
            Some(done) if waits.len() < MOST => {
                waits.push(Wait { recorded: *recorded, done });
                false
            }
            Some(_) => false,
            None => true,
        });
    }

    fn wait(&mut self, wait: impl FnOnce(&mut Order, u64)) {
        wait(&mut self.order, fathom_part.load(Relaxed));
        self.settle();
    }

    /// Notes the question, and says whether the event is complete.
    fn ask(&mut self, event: Handle) -> bool {
        let Some(recorded) = self.recorded.get_mut(&event) else { return true };
        let launches = status::page().launches.load(Relaxed);
        let (times, before) = recorded.asked;
        recorded.asked = (if launches == before { times + 1 } else { 1 }, launches);
        let is_first = before == 0 && times == 0;
        let (point, part, is_polled) = (recorded.point, recorded.part, PATIENCE < times);
        let done = recorded.done;
        if is_polled {
            self.busy.wait(done);
            self.wait(|order, now| order.wait(point, now));
        }
        if is_first && part != 0 && self.open.len() < MOST {
            self.open.push((point, part));
            self.settle();
        }
        let is_certain = self.order.done_in(point).is_some();
        done <= self.busy.now() && (is_certain || !config::get().late_events)
    }
}

pub(crate) fn create(out: &mut Handle) -> Answer {
    *out = handles::make(Kind::Event)?;
    Ok(())
}

pub(crate) fn destroy(event: Handle) -> Answer {
    lock(&EVENTS).recorded.remove(&event);
    capture::forget_event(event);
    Ok(())
}

pub(crate) fn was_recorded(event: Handle) -> bool {
    lock(&EVENTS).recorded.contains_key(&event)
}

pub(crate) fn record_with_flags(event: Handle, stream: Handle, flags: c_uint) -> Answer {
    match flags & EXTERNAL != 0 && capture::is_of_capture(stream) {
        true => capture::add_external_event(event, stream),
        false => record(event, stream),
    }
}

pub(crate) fn record(event: Handle, stream: Handle) -> Answer {
    capture::record_event(event, stream)?;
    let mut events = lock(&EVENTS);
    let point = events.order.record((device::current_ordinal(), stream.0));
    let part = fathom_part.load(Relaxed);
    let at = events.busy.now();
    let done = events.busy.done_at(point.stream, at);
    let runs = workspaces::runs();
    events.recorded.insert(event, Recorded { at, done, point, part, runs, asked: (0, 0) });
    Ok(())
}

pub(crate) fn elapsed(out: &mut f32, start: Handle, end: Handle) -> Answer {
    let recorded = &lock(&EVENTS).recorded;
    let one = |event| recorded.get(&event).ok_or(Failure::InvalidHandle);
    let (start, end) = (one(start)?, one(end)?);
    workspaces::timed(start.runs, end.runs);
    let time = end.done.saturating_sub(start.done).as_secs_f32() * 1e3;
    let has_slept = end.at < end.done || start.at < start.done;
    *out = if has_slept { time } else { time.max(LEAST_MILLISECONDS) };
    Ok(())
}

pub(crate) fn query(event: Handle) -> Answer {
    capture::wait_for_event(event)?;
    let is_done = lock(&EVENTS).ask(event);
    if is_done { Ok(()) } else { Err(Failure::NotReady) }
}

pub(crate) fn wait(event: Handle) -> Answer {
    capture::wait_for_event(event)?;
    let mut events = lock(&EVENTS);
    if let Some((point, done)) = events.recorded.get(&event).map(|one| (one.point, one.done)) {
        events.busy.wait(done);
        events.wait(|order, part| order.wait(point, part));
    }
    Ok(())
}

/// What follows on the stream comes after the event.
pub(crate) fn join(stream: Handle, event: Handle) {
    let mut events = lock(&EVENTS);
    if let Some((point, done)) = events.recorded.get(&event).map(|one| (one.point, one.done)) {
        let stream = (device::current_ordinal(), stream.0);
        events.busy.join(stream, done);
        events.order.join(stream, point);
    }
}

/// The stream has something to do for so long.
pub(crate) fn keep_busy(stream: StreamName, time: Duration) {
    lock(&EVENTS).busy.work(stream, time);
}

pub(crate) fn query_stream(stream: Handle) -> Answer {
    capture::wait_for_stream(stream)?;
    let is_busy = lock(&EVENTS).busy.is_busy((device::current_ordinal(), stream.0));
    if is_busy { Err(Failure::NotReady) } else { Ok(()) }
}

pub(crate) fn wait_stream(stream: Handle) -> Answer {
    capture::wait_for_stream(stream)?;
    let stream = (device::current_ordinal(), stream.0);
    let mut events = lock(&EVENTS);
    let done = events.busy.done_at(stream, Moment::ZERO);
    events.busy.wait(done);
    events.wait(|order, part| order.wait_stream(stream, part));
    Ok(())
}

pub(crate) fn wait_device() -> Answer {
    capture::wait_for_device()?;
    let device = device::current_ordinal();
    let mut events = lock(&EVENTS);
    events.busy.wait_device(device);
    events.wait(|order, part| order.wait_device(device, part));
    Ok(())
}

/// For the doorway: moves up to `room` waits, oldest first; gives how many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fathom_waits(out: *mut Wait, room: u64) -> u64 {
    let waits = &mut lock(&EVENTS).waits;
    let count = waits.len().min(room as usize);
    // SAFETY: the doorway passes an array of `room` rows.
    let out = unsafe { std::slice::from_raw_parts_mut(out, count) };
    out.copy_from_slice(&waits[..count]);
    waits.drain(..count);
    count as u64
}
