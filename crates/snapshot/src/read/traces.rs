//! Events by device, and annotations.

use std::ops::Range;

use crate::error::Error;
use crate::keys::Word;
use crate::model::{Annotation, TraceEntry};
use crate::pickle::{Items, Node, NodeId, Value};
use crate::read::events;
use crate::read::typed::{Typed, Wrong};
use crate::read::values::Values;

impl Values<'_> {
    pub(super) fn traces(&mut self, node: NodeId) -> Result<Vec<Vec<TraceEntry>>, Error> {
        let place = "device_traces";
        let arena = self.arena;
        let items = arena.list(Word::Other, node).map_err(|wrong| wrong.within(place))?;
        let list = |(device, node)| {
            let place = |wrong: Wrong| wrong.within(&format!("{place}[{device}]"));
            arena.list(Word::Other, node).map_err(place)
        };
        let lists: Vec<Items> =
            arena.items(items).enumerate().map(list).collect::<Result<_, _>>()?;
        if let Some(ranges) = self.ranges(&lists) {
            return Ok(self.split(ranges));
        }
        self.charge(lists.len())?;
        lists.into_iter().enumerate().map(|(device, list)| self.trace(device, list)).collect()
    }

    /// The records each list consists of, if they are in file order and none is listed twice.
    fn ranges(&self, lists: &[Items]) -> Option<Vec<Range<usize>>> {
        let mut end = 0;
        let range = |list: &Items| {
            let mut records = self.arena.items(*list).map(|node| match self.arena.node(node) {
                Node::Record(record) => Some(record as usize),
                _ => None,
            });
            let start = match records.next() {
                Some(first) => first?,
                None => return Some(end..end),
            };
            if start < end {
                return None;
            }
            end = start + 1;
            for record in records {
                if record? != end {
                    return None;
                }
                end += 1;
            }
            Some(start..end)
        };
        lists.iter().map(range).collect()
    }

    /// Hands out the events that were taken while the pickle was read; the first device, which
    /// mostly has them all, gets them without a copy.
    fn split(&mut self, ranges: Vec<Range<usize>>) -> Vec<Vec<TraceEntry>> {
        let mut entries = std::mem::take(&mut self.entries);
        let mut traces: Vec<Vec<TraceEntry>> = ranges
            .into_iter()
            .rev()
            .map(|range| {
                entries.truncate(range.end);
                match range.start {
                    0 => std::mem::take(&mut entries),
                    start => entries.split_off(start),
                }
            })
            .collect();
        traces.reverse();
        traces
    }

    /// Events that stand in the file in another order, or were not taken.
    fn trace(&mut self, device: usize, list: Items) -> Result<Vec<TraceEntry>, Error> {
        let (arena, len) = (self.arena, self.arena.len(list));
        self.charge(len)?;
        let mut trace = Vec::with_capacity(len);
        for (index, node) in arena.items(list).enumerate() {
            trace.push(
                self.entry(node)
                    .map_err(|wrong| wrong.within(&format!("device_traces[{device}][{index}]")))?,
            );
        }
        Ok(trace)
    }

    fn entry(&mut self, node: NodeId) -> Result<TraceEntry, Wrong> {
        if let Node::Record(record) = self.arena.node(node)
            && let Some(&entry) = self.entries.get(record as usize)
        {
            return Ok(entry);
        }
        let items = self.arena.dict(node)?;
        let pairs = self.arena.pairs(items).map(|(key, value)| (key, Value::Node(value)));
        events::entry(&mut self.cache, self.arena, pairs)
    }

    pub(super) fn annotations(&mut self, node: NodeId) -> Result<Vec<Annotation>, Error> {
        let place = "external_annotations";
        let items = self.arena.list(Word::Other, node).map_err(|wrong| wrong.within(place))?;
        let (arena, len) = (self.arena, self.arena.len(items));
        self.charge(len)?;
        let annotations = arena.items(items).enumerate().map(|(index, node)| {
            self.annotation(node).map_err(|wrong| wrong.within(&format!("{place}[{index}]")))
        });
        annotations.collect()
    }

    fn annotation(&mut self, node: NodeId) -> Result<Annotation, Wrong> {
        let (mut stage, mut name, mut device, mut time_us) = (None, None, 0, 0);
        let items = self.arena.dict(node)?;
        for (key, value) in self.arena.pairs(items) {
            let key = self.word(key);
            match key {
                Word::Stage => stage = Some(value),
                Word::Name => name = Some(value),
                Word::Device => device = self.arena.u32(key, value)?,
                Word::TimeUs => time_us = self.arena.u64(key, value)?,
                _ => {}
            }
        }
        let stage = stage.ok_or_else(|| Wrong::missing(Word::Stage, "a str"))?;
        let name = name.ok_or_else(|| Wrong::missing(Word::Name, "a str"))?;
        let (stage, name) = (self.string(Word::Stage, stage)?, self.string(Word::Name, name)?);
        Ok(Annotation { stage, name, device, time_us })
    }
}
