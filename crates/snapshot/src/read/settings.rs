//! The allocator settings a snapshot names.

use crate::keys::Word;
use crate::model::AllocatorSettings;
use crate::pickle::{Node, NodeId};
use crate::read::typed::{Typed, Wrong};
use crate::read::values::Values;

impl Values<'_> {
    pub(super) fn settings(&mut self, node: NodeId) -> Result<AllocatorSettings, Wrong> {
        let mut settings = AllocatorSettings::default();
        let items = self.arena.dict(node)?;
        for (key, value) in self.arena.pairs(items) {
            let key = self.word(key);
            match key {
                Word::Conf => settings.conf = self.arena.text_of(key, value)?.into_owned(),
                Word::MaxSplitSize => settings.max_split_size = self.arena.i64(key, value)?,
                Word::GarbageCollectionThreshold => {
                    settings.garbage_collection_threshold = self.arena.f64(key, value)?;
                }
                Word::ExpandableSegments => {
                    settings.expandable_segments = self.arena.bool(key, value)?
                }
                Word::PinnedNumRegisterThreads => {
                    settings.pinned_num_register_threads = self.arena.i64(key, value)?;
                }
                Word::ReleaseLockOnCudamalloc => {
                    settings.release_lock_on_cudamalloc = self.arena.bool(key, value)?;
                }
                Word::PinnedUseCudaHostRegister => {
                    settings.pinned_use_cuda_host_register = self.arena.bool(key, value)?;
                }
                Word::RoundupPower2Divisions => {
                    settings.roundup_power2_divisions = self.divisions(value)?;
                }
                Word::GraphCaptureRecordStreamReuse => {
                    settings.graph_capture_record_stream_reuse = Some(self.arena.bool(key, value)?);
                }
                Word::MaxRoundThreshold => {
                    settings.max_round_threshold = Some(self.arena.i64(key, value)?);
                }
                Word::MaxCachedSize => settings.max_cached_size = Some(self.arena.i64(key, value)?),
                _ => {}
            }
        }
        Ok(settings)
    }

    /// `{"1": 0, "2": 0, …}`: divisions by start of the interval in MiB, in ascending order.
    fn divisions(&mut self, node: NodeId) -> Result<Vec<(u64, u64)>, Wrong> {
        let key = Word::RoundupPower2Divisions;
        let wrong = |found| Wrong { key, expected: "a dict of sizes in MiB", found };
        let Node::Dict(items) = self.arena.node(node) else {
            return Err(wrong(self.arena.node(node).kind()));
        };
        let mut divisions = Vec::new();
        for (start, value) in self.arena.pairs(items) {
            let start =
                self.arena.text_of(key, start)?.parse().map_err(|_| wrong("another key"))?;
            divisions.push((start, self.arena.u64(key, value)?));
        }
        divisions.sort_unstable();
        Ok(divisions)
    }
}
