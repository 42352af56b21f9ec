//! [`Snapshot`] to bytes, in the form of torch's own files.
//!
//! Keys that a snapshot does not have (older versions of torch) are left out, so that a file
//! read and written again says the same. Files before torch 2.1 become the form of 2.1.

mod encoder;

use crate::keys::Word;
use crate::model::{
    Action, AllocatorSettings, Annotation, Block, BlockState, PoolId, Segment, SegmentKind,
    Snapshot, TraceEntry,
};
use crate::tables::StackId;
use encoder::Encoder;

/// Writes a snapshot as a pickle of protocol 4, each frame and stack once.
///
/// Host memory, which is only counted, is written as empty lists.
pub fn write(snapshot: &Snapshot) -> Vec<u8> {
    let mut out = Encoder::new(&snapshot.tables);
    out.dict(|out| {
        out.key(Word::Segments);
        out.list(&snapshot.segments, segment);
        out.key(Word::DeviceTraces);
        out.list(&snapshot.device_traces, |out, trace| out.list(trace, entry));
        if let Some(settings) = &snapshot.settings {
            out.key(Word::AllocatorSettings);
            self::settings(out, settings);
        }
        if let Some(annotations) = &snapshot.annotations {
            out.key(Word::ExternalAnnotations);
            out.list(annotations, annotation);
        }
        for (key, count) in
            [(Word::HostSegments, snapshot.host_segments), (Word::HostTraces, snapshot.host_events)]
        {
            if count.is_some() {
                out.key(key);
                out.list::<()>(&[], |_, ()| {});
            }
        }
    });
    out.finish()
}

fn segment(out: &mut Encoder<'_>, segment: &Segment) {
    out.dict(|out| {
        out.int_at(Word::Device, segment.device.into());
        out.int_at(Word::Address, segment.address);
        out.int_at(Word::TotalSize, segment.total_size);
        out.int_at(Word::AllocatedSize, segment.allocated_size);
        out.int_at(Word::ActiveSize, segment.active_size);
        if let Some(size) = segment.requested_size {
            out.int_at(Word::RequestedSize, size);
        }
        out.int_at(Word::Stream, segment.stream);
        out.key(Word::SegmentType);
        out.key(match segment.kind {
            SegmentKind::Small => Word::Small,
            SegmentKind::Large => Word::Large,
        });
        pool_at(out, Word::SegmentPoolId, segment.pool);
        out.key(Word::IsExpandable);
        out.bool(segment.is_expandable);
        stack_at(out, Word::Frames, segment.stack);
        out.key(Word::Blocks);
        out.list(&segment.blocks, block);
    });
}

fn block(out: &mut Encoder<'_>, block: &Block) {
    out.dict(|out| {
        out.int_at(Word::Address, block.address);
        out.int_at(Word::Size, block.size);
        if let Some(size) = block.requested_size {
            out.int_at(Word::RequestedSize, size);
        }
        out.key(Word::State);
        out.key(match block.state {
            BlockState::Allocated => Word::ActiveAllocated,
            BlockState::PendingFree => Word::ActivePendingFree,
            BlockState::Inactive => Word::Inactive,
        });
        stack_at(out, Word::Frames, block.stack);
        stack_at(out, Word::ForwardFrames, block.forward_stack);
    });
}

fn entry(out: &mut Encoder<'_>, entry: &TraceEntry) {
    out.dict(|out| {
        out.key(Word::Action);
        action(out, entry.action);
        match entry.action {
            Action::Oom => out.int_at(Word::DeviceFree, entry.device_free),
            _ => out.int_at(Word::Addr, entry.address),
        }
        out.int_at(Word::Size, entry.size);
        out.int_at(Word::Stream, entry.stream);
        if entry.time_us != 0 {
            out.int_at(Word::TimeUs, entry.time_us);
        }
        for (key, text) in [
            (Word::CompileContext, entry.compile_context),
            (Word::UserMetadata, entry.user_metadata),
        ] {
            if let Some(text) = text {
                out.key(key);
                out.string(text);
            }
        }
        pool_at(out, Word::PoolId, entry.pool);
        stack_at(out, Word::Frames, entry.stack);
        stack_at(out, Word::ForwardFrames, entry.forward_stack);
    });
}

fn action(out: &mut Encoder<'_>, action: Action) {
    out.key(match action {
        Action::Alloc => Word::Alloc,
        Action::FreeRequested => Word::FreeRequested,
        Action::FreeCompleted => Word::FreeCompleted,
        Action::SegmentAlloc => Word::SegmentAlloc,
        Action::SegmentFree => Word::SegmentFree,
        Action::SegmentMap => Word::SegmentMap,
        Action::SegmentUnmap => Word::SegmentUnmap,
        Action::Oom => Word::Oom,
        Action::Snapshot => Word::Snapshot,
        Action::Annotate => Word::Annotate,
        Action::Other(name) => return out.string(name),
    });
}

fn settings(out: &mut Encoder<'_>, settings: &AllocatorSettings) {
    let flag = |out: &mut Encoder<'_>, key, value| {
        out.key(key);
        out.bool(value);
    };
    let number = |out: &mut Encoder<'_>, key, value| {
        out.key(key);
        out.int(value);
    };
    out.dict(|out| {
        out.key(Word::Conf);
        out.text(&settings.conf);
        number(out, Word::MaxSplitSize, settings.max_split_size);
        out.key(Word::GarbageCollectionThreshold);
        out.float(settings.garbage_collection_threshold);
        flag(out, Word::ExpandableSegments, settings.expandable_segments);
        number(out, Word::PinnedNumRegisterThreads, settings.pinned_num_register_threads);
        flag(out, Word::ReleaseLockOnCudamalloc, settings.release_lock_on_cudamalloc);
        flag(out, Word::PinnedUseCudaHostRegister, settings.pinned_use_cuda_host_register);
        if let Some(value) = settings.graph_capture_record_stream_reuse {
            flag(out, Word::GraphCaptureRecordStreamReuse, value);
        }
        if let Some(value) = settings.max_round_threshold {
            number(out, Word::MaxRoundThreshold, value);
        }
        if let Some(value) = settings.max_cached_size {
            number(out, Word::MaxCachedSize, value);
        }
        out.key(Word::RoundupPower2Divisions);
        out.dict(|out| {
            for &(start, divisions) in &settings.roundup_power2_divisions {
                out.text(&start.to_string());
                out.unsigned(divisions);
            }
        });
    });
}

fn annotation(out: &mut Encoder<'_>, annotation: &Annotation) {
    out.dict(|out| {
        out.key(Word::Stage);
        out.string(annotation.stage);
        out.key(Word::Name);
        out.string(annotation.name);
        out.int_at(Word::Device, annotation.device.into());
        out.int_at(Word::TimeUs, annotation.time_us);
    });
}

fn pool_at(out: &mut Encoder<'_>, key: Word, pool: Option<PoolId>) {
    if let Some(PoolId(first, second)) = pool {
        out.key(key);
        out.pair(first.into(), second.into());
    }
}

fn stack_at(out: &mut Encoder<'_>, key: Word, stack: Option<StackId>) {
    if let Some(stack) = stack {
        out.key(key);
        out.stack(stack);
    }
}
