//! CUDA graphs: the nodes that were captured into them, and in which order; replays do nothing.
//! Captures themselves are in `capture/`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{c_int, c_uint};
use std::sync::Mutex;

use cuda_abi::handles::Kind;
use cuda_abi::types::Handle;

use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::state::lock;
use crate::{capture, config, event, handles, launch, reads};

/// Nodes of a graph, each with those that it comes after. Their handles end with them.
#[derive(Default)]
pub(crate) struct Nodes {
    before: HashMap<Handle, Vec<Handle>>,
    /// Events that a launch of the graph records.
    pub(crate) events: Vec<Handle>,
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in self.before.keys() {
            // Nobody else ends a node, so it is there.
            let _ = handles::end(Kind::GraphNode, *node);
        }
    }
}

impl Nodes {
    /// A new node that comes after these.
    pub(crate) fn add(&mut self, before: &[Handle]) -> Result<Handle, Failure> {
        let node = handles::make(Kind::GraphNode)?;
        self.before.insert(node, before.to_vec());
        Ok(node)
    }

    /// What a node comes after.
    pub(crate) fn before(&self, node: Handle) -> Option<Vec<Handle>> {
        self.before.get(&node).cloned()
    }

    /// These nodes, and all that come before them.
    pub(crate) fn up_to(&self, ends: &[Handle]) -> HashSet<Handle> {
        let (mut found, mut open) = (HashSet::new(), ends.to_vec());
        while let Some(node) = open.pop() {
            if found.insert(node) {
                open.extend(self.before.get(&node).into_iter().flatten());
            }
        }
        found
    }
}

/// Graphs that were captured, and the events of those that can be launched.
struct Graphs {
    captured: BTreeMap<Handle, Nodes>,
    executable: BTreeMap<Handle, Vec<Handle>>,
    /// Graphs inside the conditional nodes of a graph, an array for each node. Callers are given the array,
    /// so it stays where it is until the graph is destroyed.
    bodies: BTreeMap<Handle, Vec<Box<[Handle]>>>,
}

static GRAPHS: Mutex<Graphs> = Mutex::new(Graphs {
    captured: BTreeMap::new(),
    executable: BTreeMap::new(),
    bodies: BTreeMap::new(),
});

/// `cudaGraphNodeTypeConditional`.
const CONDITIONAL: c_int = 13;

/// More graphs than `if`, `while` and `switch` have in practice; a larger number is a mistake of the caller.
const MOST_BODIES: c_uint = 1 << 10;

/// More nodes than one comes after; a larger number is a mistake of the caller.
const MOST_NODES: usize = 1 << 20;

/// The beginning of `cudaGraphNodeParams`, as a conditional node has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Parameters {
    kind: c_int,
    reserved: [c_int; 3],
    condition: u64,
    /// `cudaGraphConditionalNodeType`: if, while, switch.
    branch: c_int,
    size: c_uint,
    /// Where the caller finds the graphs of the branches.
    bodies: u64,
}

/// A capture has ended; a graph can have several.
pub(crate) fn keep(graph: Handle, mut nodes: Nodes) {
    let mut graphs = lock(&GRAPHS);
    let kept = graphs.captured.entry(graph).or_default();
    kept.before.extend(std::mem::take(&mut nodes.before));
    kept.events.append(&mut nodes.events);
}

pub(crate) fn create(out: &mut Handle) -> Answer {
    *out = handles::make(Kind::Graph)?;
    Ok(())
}

pub(crate) fn instantiate(out: &mut Handle, graph: Handle) -> Answer {
    *out = handles::make(Kind::GraphExec)?;
    let mut graphs = lock(&GRAPHS);
    let events = graphs.captured.get(&graph).map(|nodes| nodes.events.clone()).unwrap_or_default();
    graphs.executable.insert(*out, events);
    Ok(())
}

/// The work of a graph takes no time; the events in it are recorded, if they are still there.
pub(crate) fn launch(graph: Handle, stream: Handle) -> Answer {
    capture::add_work(stream)?;
    let events = lock(&GRAPHS).executable.get(&graph).cloned().unwrap_or_default();
    for event in events {
        if handles::check(Kind::Event, event).is_ok() {
            event::record(event, stream)?;
        }
    }
    reads::graph_launched();
    launch::kernel()
}

/// CUDA 13 has an array of edges before the count.
pub(crate) fn add_node(
    out: &mut Handle,
    graph: Handle,
    before: Raw<Handle>,
    third: usize,
    fourth: usize,
    fifth: usize,
) -> Answer {
    match config::get().cuda_version < 13000 {
        true => add_node_v2(out, graph, before, 0, third, fourth),
        false => add_node_v2(out, graph, before, third, fourth, fifth),
    }
}

/// A node that was not captured: of a graph that is being captured, or of one that is made by hand.
pub(crate) fn add_node_v2(
    out: &mut Handle,
    graph: Handle,
    before: Raw<Handle>,
    _edges: usize,
    count: usize,
    parameters: usize,
) -> Answer {
    let place = Raw(parameters as *mut Parameters);
    let mut given = *place.read(1)?.first().ok_or(Failure::InvalidValue)?;
    let is_conditional = given.kind == CONDITIONAL;
    if is_conditional && !(1..=MOST_BODIES).contains(&given.size) {
        return Err(Failure::InvalidValue);
    }
    let before = read_nodes(before, count)?;
    let node = match capture::add_node(graph, &before) {
        Some(node) => node?,
        None => lock(&GRAPHS).captured.entry(graph).or_default().add(&before)?,
    };
    if is_conditional {
        let bodies = (0..given.size)
            .map(|_| handles::make(Kind::Graph))
            .collect::<Result<Box<[Handle]>, _>>()?;
        given.bodies = bodies.as_ptr() as u64;
        lock(&GRAPHS).bodies.entry(graph).or_default().push(bodies);
        place.write(&[given])?;
    }
    *out = node;
    Ok(())
}

/// Nodes that a caller names; all of them are alive.
pub(crate) fn read_nodes(nodes: Raw<Handle>, count: usize) -> Result<Vec<Handle>, Failure> {
    if MOST_NODES < count || (nodes.is_null() && 0 < count) {
        return Err(Failure::InvalidValue);
    }
    let nodes = nodes.read(count)?;
    nodes.iter().try_for_each(|node| handles::check(Kind::GraphNode, *node))?;
    Ok(nodes)
}

/// PyTorch warns of a graph that is empty. Of one that was made by hand nothing is known: it gets a node.
pub(crate) fn nodes(graph: Handle, out: Raw<Handle>, count: &mut usize) -> Answer {
    let mut graphs = lock(&GRAPHS);
    let nodes = match graphs.captured.entry(graph) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => {
            let mut nodes = Nodes::default();
            nodes.add(&[])?;
            place.insert(nodes)
        }
    };
    let all: Vec<Handle> = nodes.before.keys().copied().collect();
    fill(&all, out, count)
}

/// As many handles as there is room for; a null array only gets the count.
fn fill(all: &[Handle], out: Raw<Handle>, count: &mut usize) -> Answer {
    out.write(&all[..all.len().min(*count)])?;
    *count = all.len();
    Ok(())
}

/// CUDA 13 has an array of edges before the count.
pub(crate) fn dependencies(
    node: Handle,
    out: Raw<Handle>,
    third: Raw<usize>,
    fourth: Raw<usize>,
) -> Answer {
    let count = if config::get().cuda_version < 13000 { third } else { fourth };
    let found = capture::dependencies(node)
        .or_else(|| lock(&GRAPHS).captured.values().find_map(|nodes| nodes.before(node)))
        .ok_or(Failure::InvalidValue)?;
    let mut room = count.read(1)?.first().copied().ok_or(Failure::InvalidValue)?;
    fill(&found, out, &mut room)?;
    count.write(&[room])
}

pub(crate) fn destroy(graph: Handle) -> Answer {
    forget(graph);
    Ok(())
}

/// What is known of a graph that has ended, and of those inside of it, which end with it.
pub(crate) fn forget(graph: Handle) {
    let mut graphs = lock(&GRAPHS);
    let mut open = vec![graph];
    while let Some(graph) = open.pop() {
        graphs.captured.remove(&graph);
        for body in graphs.bodies.remove(&graph).unwrap_or_default().iter().flatten() {
            // It may have been destroyed before.
            let _ = handles::end(Kind::Graph, *body);
            open.push(*body);
        }
    }
}

pub(crate) fn destroy_executable(graph: Handle) -> Answer {
    lock(&GRAPHS).executable.remove(&graph);
    Ok(())
}
