//! Work that takes time. Kernels take none here, except the one that exists to take some:
//! `torch.cuda._sleep`. A stream is busy until it is done, and so is every stream that waits for it.
//!
//! The host never sleeps for it: when it waits, the clock is put forward.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use cuda_abi::checked::Dim3;
use cuda_abi::types::Handle;

use crate::error::Answer;
use crate::ffi::Raw;
use crate::order::StreamName;
use crate::{capture, config, device, event, launch, taint};

/// Time since the clock was first looked at, as the card sees it.
pub(crate) type Moment = Duration;

/// Which streams are busy, and until when.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    began: Option<Instant>,
    /// What the host did not have to wait for.
    skipped: Duration,
    until: BTreeMap<StreamName, Moment>,
}

impl Busy {
    pub(crate) const fn new() -> Busy {
        Busy { began: None, skipped: Duration::ZERO, until: BTreeMap::new() }
    }

    pub(crate) fn now(&mut self) -> Moment {
        self.began.get_or_insert_with(Instant::now).elapsed() + self.skipped
    }

    /// The stream does something for so long, after what it does already.
    pub(crate) fn work(&mut self, stream: StreamName, time: Duration) {
        let start = self.now();
        let start = self.done_at(stream, start);
        self.until.insert(stream, start + time);
    }

    /// When everything is done that the stream has been given so far.
    pub(crate) fn done_at(&self, stream: StreamName, now: Moment) -> Moment {
        self.until.get(&stream).copied().unwrap_or_default().max(now)
    }

    pub(crate) fn is_busy(&mut self, stream: StreamName) -> bool {
        let now = self.now();
        now < self.done_at(stream, now)
    }

    /// What follows on the stream begins no earlier.
    pub(crate) fn join(&mut self, stream: StreamName, moment: Moment) {
        let until = self.until.entry(stream).or_default();
        *until = moment.max(*until);
    }

    /// The host waits until then.
    pub(crate) fn wait(&mut self, moment: Moment) {
        let now = self.now();
        self.skipped += moment.saturating_sub(now);
    }

    /// The host waits for all streams of a card.
    pub(crate) fn wait_device(&mut self, device: c_int) {
        let all = self.until.iter().filter(|((of, _), _)| *of == device).map(|(_, until)| *until);
        if let Some(last) = all.max() {
            self.wait(last);
        }
    }
}

/// The handle of the kernel behind `torch.cuda._sleep`.
static SLEEPER: AtomicUsize = AtomicUsize::new(0);

/// Is it this kernel? PyTorch has one, and its name is as old as the function.
pub(crate) fn note_kernel(function: Handle, name: &CStr) {
    if name.to_bytes().windows(11).any(|part| part == b"spin_kernel") {
        SLEEPER.store(function.0, Relaxed);
    }
}

/// Launches a kernel; the one that sleeps keeps its stream busy for as many cycles as it is told.
pub(crate) fn launch(
    function: Handle,
    _grid: Dim3,
    _block: Dim3,
    arguments: Raw<Raw<i64>>,
    _shared: usize,
    stream: Handle,
) -> Answer {
    if function.0 == SLEEPER.load(Relaxed) && !capture::is_of_capture(stream) {
        let first = arguments.read(1)?.first().copied().unwrap_or(Raw(std::ptr::null_mut()));
        let cycles = first.read(1)?.first().copied();
        let per_second = f64::from(config::get().card.clock_khz.max(1)) * 1e3;
        let seconds = cycles.unwrap_or(0).max(0) as f64 / per_second;
        event::keep_busy((device::current_ordinal(), stream.0), Duration::from_secs_f64(seconds));
    }
    capture::add_work(stream)?;
    taint::launched(arguments);
    launch::kernel()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: StreamName = (0, 0);
    const SIDE: StreamName = (0, 64);
    const LONG: Duration = Duration::from_secs(1000);

    #[test]
    fn a_wait_puts_the_clock_forward() {
        let mut busy = Busy::new();
        assert!(!busy.is_busy(MAIN));
        busy.work(SIDE, LONG);
        busy.work(SIDE, LONG);
        let done = busy.done_at(SIDE, Duration::ZERO);
        assert!(busy.is_busy(SIDE) && !busy.is_busy(MAIN) && LONG * 2 <= done);
        busy.join(MAIN, done);
        assert!(busy.is_busy(MAIN));
        busy.wait(done);
        assert!(!busy.is_busy(SIDE) && !busy.is_busy(MAIN));
        busy.work((1, 0), LONG);
        busy.wait_device(0);
        assert!(busy.is_busy((1, 0)), "another card");
        busy.wait_device(1);
        assert!(!busy.is_busy((1, 0)));
    }
}
