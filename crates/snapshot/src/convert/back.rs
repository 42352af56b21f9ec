//! A recording as a snapshot, so that pytorch.org/memory_viz opens it.

use std::collections::HashMap;

use recording::{BlockState, Event, Mark, Owner, OwnerId, Recording, Segment};

use crate::convert::MOST_DEVICES;
use crate::model::{
    self, Action, AllocatorSettings, Block, Form, PoolId, SegmentKind, Snapshot, TraceEntry,
};
use crate::tables::{Frame, FrameId, Interner, StackId, StringId};

/// A snapshot of one recording: every event with its owner's frames, and the segments at the end.
///
/// `finish` are the recording's own segments, or what a replay leaves where it has none. The form is
/// the one that the recording's torch writes, so that reading it again gives the same rules; names of
/// modules and operators need `user_metadata`, which makes it at least 2.10.
pub fn from_recording(recording: &Recording, finish: &[Segment]) -> Snapshot {
    let mut writer = Writer::new(recording);
    // Torch counts devices in a signed byte; a larger number is no device of a real process.
    let device = recording.about.device.min(MOST_DEVICES as u32 - 1);
    let mut trace: Vec<TraceEntry> = Vec::with_capacity(recording.events.len());
    for event in &recording.events {
        match *event {
            Event::Mark(Mark::Owner { address, owner }) => {
                writer.own(address, owner, trace.last_mut());
            }
            _ => trace.extend(writer.entry(event)),
        }
    }
    let segments = finish.iter().map(|segment| writer.segment(segment, device)).collect();
    let mut device_traces = vec![Vec::new(); device as usize];
    device_traces.push(trace);
    let form = writer.form;
    let settings = AllocatorSettings {
        conf: recording.about.allocator_settings.clone(),
        expandable_segments: finish.iter().any(|segment| segment.expandable),
        graph_capture_record_stream_reuse: (Form::V2_9 <= form).then_some(false),
        max_round_threshold: (Form::V2_13 <= form).then_some(-1),
        max_cached_size: (Form::V2_13 <= form).then_some(-1),
        ..AllocatorSettings::default()
    };
    Snapshot {
        form,
        segments,
        device_traces,
        settings: (Form::V2_3To2_4 <= form).then_some(settings),
        annotations: (Form::V2_5To2_7 <= form).then(Vec::new),
        host_segments: (Form::V2_14 <= form).then_some(0),
        host_events: (Form::V2_14 <= form).then_some(0),
        unknown_actions: 0,
        tables: writer.interner.finish(),
    }
}

/// The form that a version of torch writes; the newest for a version that is not known.
fn form(torch: &str) -> Form {
    let mut parts = torch.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(2), Some(minor)) => match minor {
            0 | 1 => Form::V2_1,
            2 => Form::V2_2,
            3 | 4 => Form::V2_3To2_4,
            5..=7 => Form::V2_5To2_7,
            8 => Form::V2_8,
            9 => Form::V2_9,
            10 | 11 => Form::V2_10To2_11,
            12 => Form::V2_12,
            13 => Form::V2_13,
            _ => Form::V2_14,
        },
        (Some(1), _) => Form::V2_1,
        _ => Form::V2_14,
    }
}

struct Writer<'a> {
    recording: &'a Recording,
    form: Form,
    interner: Interner,
    /// Snapshot's ids by row of the recording's tables.
    frames: Vec<FrameId>,
    owners: HashMap<OwnerId, (Option<StackId>, Option<StringId>)>,
    /// Who holds the block at an address; frees name the same stack.
    live: HashMap<u64, (OwnerId, u64)>,
    no_context: StringId,
    nameless: StringId,
}

impl<'a> Writer<'a> {
    fn new(recording: &'a Recording) -> Writer<'a> {
        let mut interner = Interner::default();
        let frames = recording.frames.iter().map(|frame| {
            let name = interner.string(recording.texts.get(frame.function));
            let filename = interner.string(recording.texts.get(frame.file));
            interner.frame(Frame { name, filename, line: frame.line })
        });
        let frames = frames.collect();
        let named = recording.owners.iter().any(|owner| !names(recording, owner).is_empty());
        let form = form(&recording.about.torch);
        Writer {
            recording,
            form: if named { form.max(Form::V2_10To2_11) } else { form },
            no_context: interner.string("N/A"),
            nameless: interner.string(""),
            interner,
            frames,
            owners: HashMap::new(),
            live: HashMap::new(),
        }
    }

    /// Stack and names of an owner.
    fn owner(&mut self, id: OwnerId) -> (Option<StackId>, Option<StringId>) {
        if let Some(known) = self.owners.get(&id) {
            return *known;
        }
        let owner = self.recording.owners.get(id.0 as usize).copied().unwrap_or_default();
        let mut frames = Vec::new();
        let mut at = owner.stack;
        // A caller stands before its callee in the table: a damaged one cannot turn in circles.
        while let Some(stack) = at.and_then(|id| self.recording.stacks.get(id.0 as usize)) {
            frames.extend(self.frames.get(stack.frame.0 as usize));
            at = stack.caller.filter(|caller| at.is_some_and(|id| caller.0 < id.0));
        }
        let stack = self.interner.stack(&frames);
        let names = self.interner.string(&names(self.recording, &owner));
        let found = (Some(stack), Some(names));
        self.owners.insert(id, found);
        found
    }

    /// Who made an allocation that is older than the trace; or whose request it was that just failed.
    fn own(&mut self, address: u64, owner: OwnerId, last: Option<&mut TraceEntry>) {
        if address != 0 {
            let stream = self.stream_of(address);
            self.live.insert(address, (owner, stream));
        } else if let Some(failed) = last.filter(|entry| entry.action == Action::Oom) {
            let (stack, names) = self.owner(owner);
            failed.stack = stack;
            failed.user_metadata = failed.user_metadata.and(names);
        }
    }

    fn entry(&mut self, event: &Event) -> Option<TraceEntry> {
        let (action, address, size, stream, pool) = match *event {
            Event::Alloc { address, size, stream, pool, owner } => {
                self.live.insert(address, (owner, stream));
                (Action::Alloc, address, size, stream, pool)
            }
            Event::FreeRequested { address, size } => {
                (Action::FreeRequested, address, size, self.stream_of(address), (0, 0))
            }
            Event::FreeCompleted { address, size } => {
                (Action::FreeCompleted, address, size, self.stream_of(address), (0, 0))
            }
            Event::SegmentAlloc { address, size, stream, pool } => {
                (Action::SegmentAlloc, address, size, stream, pool)
            }
            Event::SegmentFree { address, size, stream, pool } => {
                (Action::SegmentFree, address, size, stream, pool)
            }
            Event::SegmentMap { address, size, stream, pool } => {
                (Action::SegmentMap, address, size, stream, pool)
            }
            Event::SegmentUnmap { address, size, stream, pool } => {
                (Action::SegmentUnmap, address, size, stream, pool)
            }
            Event::OutOfMemory { size, stream, pool, .. } => (Action::Oom, 0, size, stream, pool),
            Event::Mark(_) => return None,
        };
        let holder = match event {
            Event::FreeCompleted { .. } => self.live.remove(&address),
            _ => self.live.get(&address).copied(),
        };
        let (stack, names) = holder.map_or((None, None), |(owner, _)| self.owner(owner));
        let free = if let Event::OutOfMemory { free, .. } = *event { free } else { 0 };
        Some(TraceEntry {
            action,
            address,
            size,
            stream,
            time_us: 0,
            device_free: free,
            stack: Some(stack.unwrap_or_else(|| self.interner.stack(&[]))),
            forward_stack: None,
            compile_context: (Form::V2_8 <= self.form).then_some(self.no_context),
            user_metadata: (Form::V2_10To2_11 <= self.form)
                .then_some(names.unwrap_or(self.nameless)),
            pool: (Form::V2_12 <= self.form).then_some(PoolId(pool.0, pool.1)),
        })
    }

    fn stream_of(&self, address: u64) -> u64 {
        self.live.get(&address).map_or(0, |(_, stream)| *stream)
    }

    fn segment(&mut self, segment: &Segment, device: u32) -> model::Segment {
        let sum = |wanted: fn(BlockState) -> bool, bytes: fn(&recording::Block) -> u64| {
            segment.blocks.iter().filter(|block| wanted(block.state)).map(bytes).sum::<u64>()
        };
        let is_active = |state| state != BlockState::Inactive;
        let blocks = segment.blocks.iter().map(|block| {
            let holder = self.live.get(&block.address).filter(|_| is_active(block.state)).copied();
            let stack = holder.and_then(|(owner, _)| self.owner(owner).0);
            Block {
                address: block.address,
                size: block.size,
                requested_size: Some(block.requested),
                state: match block.state {
                    BlockState::Allocated => model::BlockState::Allocated,
                    BlockState::PendingFree => model::BlockState::PendingFree,
                    BlockState::Inactive => model::BlockState::Inactive,
                },
                stack: Some(stack.unwrap_or_else(|| self.interner.stack(&[]))),
                forward_stack: None,
            }
        });
        let blocks = blocks.collect();
        model::Segment {
            device,
            address: segment.address,
            total_size: segment.size,
            allocated_size: sum(|state| state == BlockState::Allocated, |block| block.size),
            active_size: sum(|state| state != BlockState::Inactive, |block| block.size),
            requested_size: Some(sum(
                |state| state != BlockState::Inactive,
                |block| block.requested,
            )),
            stream: segment.stream,
            kind: if segment.large { SegmentKind::Large } else { SegmentKind::Small },
            pool: Some(PoolId(segment.pool.0, segment.pool.1)),
            is_expandable: segment.expandable,
            stack: Some(self.interner.stack(&[])),
            blocks,
        }
    }
}

/// Module, operator and node of an owner in one line.
fn names(recording: &Recording, owner: &Owner) -> String {
    let texts = [owner.module, owner.operator, owner.node].map(|id| recording.texts.get(id));
    let known: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    known.join(" · ")
}
