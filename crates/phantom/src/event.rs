//! Events: complete as soon as they are recorded, with the host's time; or, if asked for, as late as
//! a real card might complete them (`order.rs`).
//!
//! PyTorch's allocator asks whether events are complete before it takes back memory that other streams
//! used. Each such question is noted, with the part of the script at which a real card would have had
//! to say yes: the recording tells from it how much the peak depends on the order of work.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use cuda_abi::types::Handle;

use crate::error::{Answer, Failure};
use crate::order::{Order, Point};
use crate::state::{lock, new_handle};
use crate::workspaces::fathom_part;
use crate::{config, device, graph, status};

/// The least time between two events. Kernels take none here, and what is left is noise: with a
/// floor all trials of an autotuner tie, and it makes the same choice in every run.
const LEAST_MILLISECONDS: f32 = 100.0;

/// Who asks for the same event so often, and launches nothing meanwhile, waits for it.
const PATIENCE: u32 = 1000;

/// More than this is not remembered: nobody is asking.
const MOST: usize = 1 << 20;

/// An event, as it was last recorded.
struct Recorded {
    at: Instant,
    point: Point,
    part: u64,
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
    /// Asked for, and not certainly complete.
    open: Vec<(Point, u64)>,
    waits: Vec<Wait>,
}

static EVENTS: Mutex<Events> = Mutex::new(Events {
    recorded: BTreeMap::new(),
    order: Order::new(),
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

    /// Notes the question, and says whether the event is certainly complete.
    fn ask(&mut self, event: Handle) -> bool {
        let Some(recorded) = self.recorded.get_mut(&event) else { return true };
        let launches = status::page().launches.load(Relaxed);
        let (times, before) = recorded.asked;
        recorded.asked = (if launches == before { times + 1 } else { 1 }, launches);
        let is_first = before == 0 && times == 0;
        let (point, part, is_polled) = (recorded.point, recorded.part, PATIENCE < times);
        if is_polled {
            self.wait(|order, now| order.wait(point, now));
        }
        if is_first && part != 0 && self.open.len() < MOST {
            self.open.push((point, part));
            self.settle();
        }
        self.order.done_in(point).is_some()
    }
}

pub(crate) fn create(out: &mut Handle) -> Answer {
    *out = new_handle();
    Ok(())
}

pub(crate) fn destroy(event: Handle) -> Answer {
    lock(&EVENTS).recorded.remove(&event);
    graph::forget_event(event);
    Ok(())
}

pub(crate) fn record(event: Handle, stream: Handle) -> Answer {
    let mut events = lock(&EVENTS);
    let point = events.order.record((device::current_ordinal(), stream.0));
    let part = fathom_part.load(Relaxed);
    events.recorded.insert(event, Recorded { at: Instant::now(), point, part, asked: (0, 0) });
    drop(events);
    graph::mark_event(event, stream);
    Ok(())
}

pub(crate) fn elapsed(out: &mut f32, start: Handle, end: Handle) -> Answer {
    let recorded = &lock(&EVENTS).recorded;
    let time = |event| recorded.get(&event).map(|one| one.at).ok_or(Failure::InvalidHandle);
    let (start, end) = (time(start)?, time(end)?);
    let time = end.saturating_duration_since(start).as_secs_f32() * 1e3;
    *out = time.max(LEAST_MILLISECONDS);
    Ok(())
}

pub(crate) fn query(event: Handle) -> Answer {
    let is_done = lock(&EVENTS).ask(event);
    if is_done || !config::get().late_events { Ok(()) } else { Err(Failure::NotReady) }
}

pub(crate) fn wait(event: Handle) -> Answer {
    let mut events = lock(&EVENTS);
    if let Some(point) = events.recorded.get(&event).map(|recorded| recorded.point) {
        events.wait(|order, part| order.wait(point, part));
    }
    Ok(())
}

/// What follows on the stream comes after the event.
pub(crate) fn join(stream: Handle, event: Handle) {
    let mut events = lock(&EVENTS);
    if let Some(point) = events.recorded.get(&event).map(|recorded| recorded.point) {
        events.order.join((device::current_ordinal(), stream.0), point);
    }
}

pub(crate) fn wait_stream(stream: Handle) -> Answer {
    let device: c_int = device::current_ordinal();
    lock(&EVENTS).wait(|order, part| order.wait_stream((device, stream.0), part));
    Ok(())
}

pub(crate) fn wait_device() -> Answer {
    let device: c_int = device::current_ordinal();
    lock(&EVENTS).wait(|order, part| order.wait_device(device, part));
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
