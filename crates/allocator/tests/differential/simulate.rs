//! Our side: the same program, on our allocator and our own card.

use std::collections::BTreeMap;

use allocator::{Allocator, Handle, SegmentSource, Settings, Stats};
use recording::{Event, OwnerId, Segment};

use crate::program::{Operation, Program};
use crate::server::{Server, ServerReply};

/// What our allocator did.
pub(crate) struct Simulation {
    /// As a trace has them.
    pub(crate) events: Vec<Event>,
    /// Segments and blocks at the end.
    pub(crate) finish: Vec<Segment>,
    /// Statistics at the end.
    pub(crate) stats: Stats,
    /// The settings of the program's first lines.
    pub(crate) settings: Settings,
    /// Numbers of events before which the cache was emptied by the program.
    pub(crate) emptied: Vec<usize>,
    /// Did several frees complete at once? PyTorch goes through its streams by hash then.
    pub(crate) shuffled: bool,
}

/// Runs a program. What a card decides freely is as PyTorch had it: addresses of segments, numbers
/// of streams, names of pools. Whether there is room is our own arithmetic.
pub(crate) fn simulate(program: &Program, server: &Server, answer: &ServerReply) -> Simulation {
    let settings = Settings::for_torch(&server.torch).expect("a version that is known");
    // PyTorch's side sets the fraction back to 1 before each program.
    let settings = Settings {
        memory: Some(answer.total),
        context: answer.total - answer.free,
        memory_fraction: Some(1.0),
        ..settings
    };
    let mut machine = Machine {
        allocator: Allocator::new(&settings, TorchsCard::new(answer)),
        settings,
        first_settings: None,
        live: Vec::new(),
        pending: Vec::new(),
        events: Vec::new(),
        emptied: Vec::new(),
        shuffled: false,
        streams: &server.streams,
        pools: &answer.pools,
    };
    program.0.iter().for_each(|operation| machine.step(operation));
    Simulation {
        finish: machine.allocator.segments(),
        stats: machine.allocator.stats,
        settings: machine.first_settings.unwrap_or(machine.settings),
        events: machine.events,
        emptied: machine.emptied,
        shuffled: machine.shuffled,
    }
}

struct Live {
    handle: Handle,
    requested: u64,
    stream: usize,
    /// Used by another stream?
    used: bool,
}

struct Machine<'a> {
    allocator: Allocator<TorchsCard>,
    settings: Settings,
    first_settings: Option<Settings>,
    live: Vec<Live>,
    pending: Vec<(Handle, Event)>,
    events: Vec<Event>,
    emptied: Vec<usize>,
    shuffled: bool,
    streams: &'a [u64],
    pools: &'a BTreeMap<usize, u32>,
}

impl Machine<'_> {
    fn step(&mut self, operation: &Operation) {
        match operation {
            Operation::Settings(conf) => {
                self.settings = self.settings.with_conf(conf).expect("settings PyTorch takes");
                self.allocator.set(&self.settings);
                return;
            }
            Operation::Fraction(fraction) => {
                self.settings.memory_fraction = Some(*fraction);
                self.allocator.set(&self.settings);
                return;
            }
            Operation::Occupied(_) => return,
            _ => drop(self.first_settings.get_or_insert_with(|| self.settings.clone())),
        }
        let count = self.live.len().max(1);
        match *operation {
            Operation::Alloc { size, stream, pool } => self.alloc(size, stream, pool),
            Operation::Free { which } if !self.live.is_empty() => self.free(which % count),
            Operation::Record { which, stream } if !self.live.is_empty() => {
                let block = &mut self.live[which % count];
                block.used |= block.stream != stream;
            }
            Operation::EmptyCache => {
                self.emptied.push(self.events.len());
                self.allocator.empty_cache();
                self.note_completed();
                self.note_segments();
            }
            _ => {}
        }
    }

    fn alloc(&mut self, size: u64, stream: usize, pool: usize) {
        // `process_events`: on the phantom every stream is always done. Inside the scope of a pool it
        // is not called before 2.13.
        if pool == 0 || (2, 13) <= self.settings.version {
            self.shuffled |= 1 < self.pending.len();
            for (handle, event) in std::mem::take(&mut self.pending) {
                self.allocator.complete_free(handle);
                self.events.push(event);
            }
        }
        let raw = self.streams[stream];
        let id = self.pools.get(&pool).map_or((0, 0), |number| (0, *number));
        let rejections = self.allocator.stats.num_oom_rejections;
        let made = self.allocator.malloc(size, raw, id);
        self.note_completed();
        self.note_segments();
        match made {
            Ok(handle) => {
                let (address, _) = self.allocator.block(handle);
                let owner = OwnerId(0);
                self.events.push(Event::Alloc { address, size, stream: raw, owner, pool: id });
                self.live.push(Live { handle, requested: size, stream, used: false });
            }
            // A request that is refused before anything is tried leaves no event.
            Err(_) if rejections != self.allocator.stats.num_oom_rejections => {}
            Err(error) => {
                let free = error.free.unwrap_or(0);
                let (size, stream, pool) = (error.size, raw, id);
                self.events.push(Event::OutOfMemory { size, free, stream, pool });
            }
        }
    }

    fn free(&mut self, which: usize) {
        let Live { handle, requested: size, used, .. } = self.live.remove(which);
        let (address, _) = self.allocator.block(handle);
        self.allocator.request_free(handle);
        self.events.push(Event::FreeRequested { address, size });
        let completed = Event::FreeCompleted { address, size };
        if used {
            self.pending.push((handle, completed));
        } else {
            self.allocator.complete_free(handle);
            self.events.push(completed);
        }
    }

    /// Blocks that a request or `empty_cache` waited for.
    fn note_completed(&mut self) {
        let allocator = &self.allocator;
        let (pending, done) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|(handle, _)| allocator.is_pending(*handle));
        self.pending = pending;
        let done: Vec<(Handle, Event)> = done;
        self.shuffled |= 1 < done.len();
        self.events.extend(done.into_iter().map(|(_, event)| event));
    }

    fn note_segments(&mut self) {
        self.events.append(&mut self.allocator.events);
    }
}

/// A card with its own memory, whose segments lie where PyTorch's card had them.
struct TorchsCard {
    left: u64,
    /// Addresses of PyTorch's segment events, in order, and whether they are maps.
    theirs: Vec<(u64, bool)>,
    /// How many of them have come.
    seen: usize,
    /// Reserved ranges so far.
    ranges: Vec<std::ops::Range<u64>>,
}

/// Where addresses lie that PyTorch's card did not tell.
const ELSEWHERE: u64 = 1 << 60;

impl TorchsCard {
    fn new(answer: &ServerReply) -> TorchsCard {
        let mut theirs = Vec::new();
        for event in &answer.recording.events {
            match event {
                Event::SegmentAlloc { address, .. }
                | Event::SegmentFree { address, .. }
                | Event::SegmentUnmap { address, .. } => theirs.push((*address, false)),
                Event::SegmentMap { address, .. } => theirs.push((*address, true)),
                _ => {}
            }
        }
        TorchsCard { left: answer.free, theirs, seen: 0, ranges: Vec::new() }
    }

    fn take(&mut self, size: u64) -> bool {
        let fits = size <= self.left;
        if fits {
            self.left -= size;
            self.seen += 1;
        }
        fits
    }
}

impl SegmentSource for TorchsCard {
    fn allocate(&mut self, size: u64, _stream: u64, _pool: (u32, u32)) -> Option<u64> {
        let next = self.theirs.get(self.seen).map_or(ELSEWHERE, |(address, _)| *address);
        self.take(size).then_some(next)
    }

    fn reserve(&mut self, size: u64) -> Option<u64> {
        // The next pages PyTorch mapped, unless they lie in a range that is known. A guess only: there
        // may be no room for the pages of this one. The comparison does not depend on it.
        let next = self.theirs.get(self.seen).filter(|(_, maps)| *maps);
        let new = next.filter(|(at, _)| !self.ranges.iter().any(|range| range.contains(at)));
        let elsewhere = ELSEWHERE + ((self.ranges.len() as u64) << 48);
        let address = new.map_or(elsewhere, |(address, _)| *address);
        self.ranges.push(address..address + size);
        Some(address)
    }

    fn map(&mut self, _address: u64, size: u64, _stream: u64, _pool: (u32, u32)) -> bool {
        self.take(size)
    }

    fn give_back(&mut self, event: &Event) {
        if let Event::SegmentFree { size, .. } | Event::SegmentUnmap { size, .. } = event {
            self.left += size;
            self.seen += 1;
        }
    }

    fn free_bytes(&self) -> Option<u64> {
        Some(self.left)
    }
}
