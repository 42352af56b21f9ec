//! Bytes to [`Snapshot`]: the pickle's values, then the structs made from them.
//!
//! Keys that are missing get what older versions of torch mean by it; keys that are unknown are
//! passed over. Each list is walked once, and no more entries are made than the file has values.

mod cache;
mod events;
mod segments;
mod settings;
mod traces;
mod typed;
mod values;

use crate::error::{Error, Lookalike};
use crate::keys::Word;
use crate::model::{Action, Form, Snapshot, TraceEntry};
use crate::pickle::{self, Node, NodeId};
use events::Events;
use values::Values;

/// Reads a snapshot of any torch version from 1.13 on.
///
/// A sound snapshot without events is no error: ask [`Snapshot::contents`].
pub fn read(bytes: &[u8]) -> Result<Snapshot, Error> {
    if let Some(lookalike) = Lookalike::of(bytes) {
        return Err(Error::NotPickle(lookalike));
    }
    let mut events = Events::default();
    let arena = pickle::load_with(bytes, &mut events)?;
    let top = Top::find(&arena)?;
    let mut values = Values::new(&arena, events);
    let mut snapshot = Snapshot::default();
    if let Some(node) = top.traces {
        snapshot.device_traces = values.traces(node)?;
    }
    if let Some(node) = top.segments {
        snapshot.segments = values.segments(node)?;
    }
    if let Some(node) = top.settings {
        snapshot.settings =
            Some(values.settings(node).map_err(|wrong| wrong.within("allocator_settings"))?);
    }
    if let Some(node) = top.annotations {
        snapshot.annotations = Some(values.annotations(node)?);
    }
    snapshot.host_segments = top.host_segments.map(|node| values.count(node));
    snapshot.host_events = top.host_traces.map(|node| values.count(node));
    let unknown = |entry: &&TraceEntry| matches!(entry.action, Action::Other(_));
    snapshot.unknown_actions =
        snapshot.device_traces.iter().flatten().filter(unknown).count() as u64;
    snapshot.form = form(&snapshot, &top, values.has_block_addresses);
    snapshot.tables = values.cache.interner.finish();
    Ok(snapshot)
}

/// The parts of the file.
#[derive(Default)]
struct Top {
    list_form: bool,
    segments: Option<NodeId>,
    traces: Option<NodeId>,
    settings: Option<NodeId>,
    annotations: Option<NodeId>,
    host_segments: Option<NodeId>,
    host_traces: Option<NodeId>,
}

impl Top {
    fn find(arena: &pickle::Arena<'_>) -> Result<Self, Error> {
        let mut top = Top::default();
        match arena.node(arena.root()) {
            Node::List(items) => {
                // A list of something else is told by its first item.
                if let Some(first) = arena.items(items).next() {
                    let keys = match arena.node(first) {
                        Node::Dict(items) => arena.pairs(items).map(|(key, _)| key).collect(),
                        _ => Vec::new(),
                    };
                    let has = |word: Word| {
                        keys.iter().any(|&key| arena.text(key) == Some(word.text().as_bytes()))
                    };
                    if !has(Word::Blocks) || !has(Word::TotalSize) {
                        let found =
                            format!("a list whose first item is {}", described(arena, first));
                        return Err(Error::NotSnapshot { found });
                    }
                }
                top.list_form = true;
                top.segments = Some(arena.root());
            }
            Node::Dict(items) => {
                for (key, value) in arena.pairs(items) {
                    let Some(text) = arena.text(key) else { continue };
                    match Word::of(text) {
                        Word::Segments => top.segments = Some(value),
                        Word::DeviceTraces => top.traces = Some(value),
                        Word::AllocatorSettings => top.settings = Some(value),
                        Word::ExternalAnnotations => top.annotations = Some(value),
                        Word::HostSegments => top.host_segments = Some(value),
                        Word::HostTraces => top.host_traces = Some(value),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        if top.segments.is_none() && top.traces.is_none() {
            return Err(Error::NotSnapshot { found: described(arena, arena.root()) });
        }
        Ok(top)
    }
}

/// A few words on a value: its type, and the first keys of a dict.
fn described(arena: &pickle::Arena<'_>, node: NodeId) -> String {
    let value = arena.node(node);
    let Node::Dict(items) = value else { return format!("a value of type `{}`", value.kind()) };
    let keys: Vec<String> = arena
        .pairs(items)
        .filter_map(|(key, _)| arena.text(key))
        .take(3)
        .map(|key| {
            let key = String::from_utf8_lossy(key.get(..40).unwrap_or(key));
            format!("`{}`", key.escape_debug())
        })
        .collect();
    match keys.is_empty() {
        true => "a dict without names as keys".to_owned(),
        false => format!("a dict with the keys {}, …", keys.join(", ")),
    }
}

/// The newest key that is there tells the version.
fn form(snapshot: &Snapshot, top: &Top, has_block_addresses: bool) -> Form {
    let settings = snapshot.settings.as_ref();
    let any = |has: fn(&TraceEntry) -> bool| {
        snapshot.device_traces.iter().any(|trace| trace.iter().any(has))
    };
    if top.list_form {
        Form::List
    } else if top.host_segments.is_some() || top.host_traces.is_some() {
        Form::V2_14
    } else if settings.is_some_and(|settings| settings.max_round_threshold.is_some()) {
        Form::V2_13
    } else if any(|entry| entry.pool.is_some()) {
        Form::V2_12
    } else if any(|entry| entry.user_metadata.is_some()) {
        Form::V2_10To2_11
    } else if settings.is_some_and(|set| set.graph_capture_record_stream_reuse.is_some()) {
        Form::V2_9
    } else if any(|entry| entry.compile_context.is_some()) {
        Form::V2_8
    } else if top.annotations.is_some() {
        Form::V2_5To2_7
    } else if settings.is_some() {
        Form::V2_3To2_4
    } else if any(|entry| entry.time_us != 0) {
        Form::V2_2
    } else if has_block_addresses {
        Form::V2_1
    } else {
        Form::V2_0
    }
}
