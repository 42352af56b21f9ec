//! The module an allocation belongs to, and modules as a tree.

use std::collections::HashMap;

use recording::{Category, Recording, TextId};

use crate::anatomy::ModuleBytes;
use crate::lives::Life;

/// Path and class of every module that the recorder named.
pub(crate) fn named(recording: &Recording) -> Vec<(String, String)> {
    let text = |id: TextId| recording.texts.get(id).to_owned();
    recording.modules.iter().map(|module| (text(module.path), text(module.class))).collect()
}

/// Finds the module of a life.
pub struct Modules<'a> {
    recording: &'a Recording,
    known: HashMap<&'a str, TextId>,
    /// Whose parameters have names without a dot.
    root: Option<&'a str>,
}

impl<'a> Modules<'a> {
    /// Reads the modules of a recording.
    pub fn new(recording: &'a Recording) -> Modules<'a> {
        let text = |id: TextId| recording.texts.get(id);
        let known: HashMap<&str, TextId> =
            recording.modules.iter().map(|module| (text(module.path), module.class)).collect();
        // A model is named by its class; the modules of the largest have their plain paths.
        let is_class = |path: &str, class: &str| {
            path.strip_prefix(class).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
        };
        let has_children = |path: &str| {
            known.keys().any(|other| other.strip_prefix(path).is_some_and(|r| r.starts_with('.')))
        };
        let mut roots = recording.modules.iter().filter_map(|module| {
            let path = text(module.path);
            is_class(path, text(module.class)).then_some(path)
        });
        let root = roots.find(|path| !has_children(path));
        Modules { recording, known, root }
    }

    /// The path of a life's module: that of its name, since parameters are made outside of modules;
    /// else the one that was running.
    pub fn of(&self, life: &Life) -> &'a str {
        let name = self.recording.texts.get(life.name);
        let own = match life.category {
            Category::Weights
            | Category::Gradients
            | Category::Optimizer
            | Category::Buffers
            | Category::ModelCopies
            | Category::Casts => self.of_parameter(name),
            _ => None,
        };
        let owner = self.recording.owners.get(life.owner.0 as usize);
        own.unwrap_or_else(|| owner.map_or("", |owner| self.recording.texts.get(owner.module)))
    }

    /// `encoder.fc` of `exp_avg of encoder.fc.weight`.
    fn of_parameter(&self, name: &'a str) -> Option<&'a str> {
        let name = name.rsplit_once(" of ").map_or(name, |(_, name)| name);
        let mut path = name;
        while let Some((above, _)) = path.rsplit_once('.') {
            if self.known.contains_key(above) {
                return Some(above);
            }
            path = above;
        }
        if name.is_empty() { None } else { self.root }
    }

    /// The class of a module.
    fn class(&self, path: &str) -> &'a str {
        self.known.get(path).map_or("", |class| self.recording.texts.get(*class))
    }

    /// Bytes (own, saved) by path as a tree in preorder. Modules keep the order in which the recording
    /// lists them; what belongs to no module comes first.
    pub(crate) fn tree(&self, own: &HashMap<&'a str, (u64, u64)>) -> Vec<ModuleBytes> {
        let mut order: HashMap<&str, usize> = HashMap::from([("", 0)]);
        for (index, module) in self.recording.modules.iter().enumerate() {
            order.entry(self.recording.texts.get(module.path)).or_insert(index + 1);
        }
        let mut nodes: HashMap<&str, Node<'_>> = HashMap::new();
        for (path, (bytes, saved)) in own {
            let line: Vec<&str> = lineage(path).collect();
            for (depth, part) in line.iter().enumerate() {
                let node = nodes.entry(part).or_default();
                node.total += bytes;
                node.saved += saved;
                if depth + 1 == line.len() {
                    node.own += bytes;
                }
                if node.place.is_empty() {
                    let place =
                        |path: &&'a str| (order.get(path).copied().unwrap_or(usize::MAX), *path);
                    node.place = line[..=depth].iter().map(place).collect();
                }
            }
        }
        let mut nodes: Vec<Node<'_>> = nodes.into_values().collect();
        nodes.sort_by(|a, b| a.place.cmp(&b.place));
        self.list(&nodes)
    }

    fn list(&self, nodes: &[Node<'_>]) -> Vec<ModuleBytes> {
        let mut above: Vec<usize> = Vec::new();
        let mut list = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            above.truncate(node.place.len() - 1);
            let path = node.place.last().map_or("", |(_, path)| path);
            list.push(ModuleBytes {
                path: path.to_owned(),
                class: self.class(path).to_owned(),
                parent: above.last().copied(),
                own: node.own,
                total: node.total,
                saved: node.saved,
            });
            above.push(index);
        }
        list
    }
}

/// A module of the tree. Its place is the order and path of each module from the top down to it.
#[derive(Default)]
struct Node<'a> {
    place: Vec<(usize, &'a str)>,
    own: u64,
    total: u64,
    saved: u64,
}

/// `a`, `a.b` and `a.b.c` for `a.b.c`; what is deeper than any model counts as one level.
fn lineage(path: &str) -> impl Iterator<Item = &str> {
    const DEEPEST: usize = 64;
    let dots = path.match_indices('.').take(DEEPEST).map(|(at, _)| &path[..at]);
    dots.chain([path])
}
