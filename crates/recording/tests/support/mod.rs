//! Random recordings whose numbers are those of their own tables.

use proptest::collection::vec;
use proptest::prelude::*;
use recording::{
    About, Block, BlockState, Category, Counters, Event, Facts, Frame, FrameId, Mark, Module,
    Owner, OwnerId, Parameters, Phase, Recording, Saved, Segment, Stack, StackId, TextId,
};

type Pool = (u32, u32);

pub(crate) fn recordings() -> impl Strategy<Value = Recording> {
    let numbers = || vec(any::<[u32; 4]>(), 0..6);
    let tables = (vec(".{0,8}", 0..6), numbers(), numbers(), numbers(), numbers());
    let events = || vec(raw_events(), 0..40);
    let finish = vec(segments(), 0..4);
    (abouts(), tables, events(), events(), finish).prop_map(assemble)
}

type Tables = (Vec<String>, Vec<[u32; 4]>, Vec<[u32; 4]>, Vec<[u32; 4]>, Vec<[u32; 4]>);
type Parts = (About, Tables, Vec<Event>, Vec<Event>, Vec<Segment>);

/// Random numbers are brought into the range of the tables they refer to.
fn assemble(
    (about, (texts, frames, stacks, owners, modules), start, events, finish): Parts,
) -> Recording {
    let mut recording = Recording { about, finish, ..Recording::default() };
    for text in &texts {
        recording.texts.intern(text);
    }
    let length = recording.texts.len() as u32;
    let text = |number: u32| TextId(number % length);
    recording.frames.push(Frame::default());
    recording.frames.extend(frames.iter().map(|[a, b, line, c]| Frame {
        file: text(*a),
        function: text(*b),
        line: *line,
        source: text(*c),
    }));
    for [frame, caller, ..] in stacks {
        let frame = FrameId(frame % recording.frames.len() as u32);
        let caller = earlier(caller, recording.stacks.len());
        recording.stacks.push(Stack { frame, caller });
    }
    recording.owners.push(Owner::default());
    for [module, operator, node, stack] in owners {
        let stack = earlier(stack, recording.stacks.len());
        let (module, operator, node) = (text(module), text(operator), text(node));
        recording.owners.push(Owner { module, operator, node, stack });
    }
    let modules = modules.iter().map(|[a, b, ..]| Module { path: text(*a), class: text(*b) });
    recording.modules.extend(modules);
    let count = recording.owners.len() as u32;
    let fit = |mut event: Event| {
        match &mut event {
            Event::Alloc { owner, .. } | Event::Mark(Mark::Owner { owner, .. }) => owner.0 %= count,
            Event::Mark(Mark::Holder { by, .. }) => by.0 %= length,
            Event::Mark(Mark::Area { area, .. }) => area.0 %= length,
            Event::Mark(Mark::Evidence { by, .. }) => by.0 %= length,
            Event::Mark(Mark::Name { name, .. }) => name.0 %= length,
            Event::Mark(Mark::Tensor { what, .. }) => what.0 %= length,
            _ => {}
        }
        event
    };
    recording.start = start.into_iter().map(fit).collect();
    recording.events = events.into_iter().map(fit).collect();
    recording
}

fn earlier(number: u32, length: usize) -> Option<StackId> {
    (number % (length as u32 + 1)).checked_sub(1).map(StackId)
}

fn abouts() -> impl Strategy<Value = About> {
    let parameters =
        any::<(u64, u64, u64, u64)>().prop_map(|(total, trainable, frozen, unused)| Parameters {
            total,
            trainable,
            frozen,
            unused,
        });
    let counters = any::<[u64; 5]>().prop_map(|numbers| Counters {
        allocated_peak: numbers[0],
        reserved_peak: numbers[1],
        requested_peak: numbers[2],
        allocated: numbers[3],
        reserved: numbers[4],
    });
    let optional = (proptest::option::of(parameters), proptest::option::of(counters));
    let facts = proptest::collection::vec(("[a-z_]{1,9}", any::<String>()), 0..4);
    let words = ("[a-z0-9.+]{0,9}", "[a-zA-Z_:,0-9]{0,20}");
    (words, any::<(u64, u64, u32, bool)>(), optional, facts).prop_map(
        |((torch, allocator_settings), numbers, (parameters, counters), seen)| {
            let (memory_bytes, context_bytes, device, complete) = numbers;
            let mut facts = Facts::default();
            seen.iter().for_each(|(kind, value)| facts.add(kind, value));
            About {
                facts,
                saved: Some(Saved { kept: memory_bytes, outputs: context_bytes }),
                torch,
                allocator_settings,
                memory_bytes,
                context_bytes,
                device,
                parameters,
                counters,
                complete,
            }
        },
    )
}

fn places() -> impl Strategy<Value = (u64, Pool)> {
    prop_oneof![Just((0, (0, 0))), any::<(u64, Pool)>()]
}

fn raw_events() -> impl Strategy<Value = Event> {
    (0u8..18, any::<(u64, u64, u32)>(), places(), 0..Phase::ALL.len(), 0..Category::ALL.len())
        .prop_map(|(kind, (address, size, number), (stream, pool), phase, category)| match kind {
            0 => Event::Alloc { address, size, stream, owner: OwnerId(number), pool },
            1 => Event::FreeRequested { address, size },
            2 => Event::FreeCompleted { address, size },
            3 => Event::SegmentAlloc { address, size, stream, pool },
            4 => Event::SegmentFree { address, size, stream, pool },
            5 => Event::SegmentMap { address, size, stream, pool },
            6 => Event::SegmentUnmap { address, size, stream, pool },
            7 => Event::OutOfMemory { size, free: address, stream, pool },
            8 => Event::Mark(Mark::Phase { phase: Phase::ALL[phase], step: number }),
            9 => Event::Mark(Mark::Name {
                address,
                category: Category::ALL[category],
                name: TextId(number),
            }),
            10 => Event::Mark(Mark::Owner { address, owner: OwnerId(number) }),
            11 => Event::Mark(Mark::Holder { address, by: TextId(number) }),
            14 => Event::Mark(Mark::Area { address, area: TextId(number) }),
            15 => Event::Mark(Mark::Soft { address }),
            16 => Event::Mark(Mark::Evidence { address, by: TextId(number) }),
            12 => Event::Mark(Mark::Deferred),
            13 => Event::Mark(Mark::Idle { free: number }),
            _ => Event::Mark(Mark::Tensor { address, what: TextId(number) }),
        })
}

fn segments() -> impl Strategy<Value = Segment> {
    let states = [BlockState::Allocated, BlockState::PendingFree, BlockState::Inactive];
    let blocks =
        (any::<[u64; 3]>(), 0..3usize).prop_map(move |([address, size, requested], state)| Block {
            address,
            size,
            requested,
            state: states[state],
        });
    (any::<(u64, u64)>(), places(), any::<(bool, bool)>(), vec(blocks, 0..4)).prop_map(
        |((address, size), (stream, pool), (large, expandable), blocks)| Segment {
            address,
            size,
            stream,
            pool,
            large,
            expandable,
            blocks,
        },
    )
}
