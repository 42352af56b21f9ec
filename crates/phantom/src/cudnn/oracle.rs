//! Who answers a question about a graph: the answers of earlier runs, else the real cuDNN, which is
//! loaded for that, else the model.
//!
//! With `cudnn.benchmark` PyTorch finalizes a plan for every configuration that cuDNN proposes, some thirty a
//! convolution and milliseconds each, to time them all. Here they tie and the first is kept. So only the first plan of a
//! graph is finalized by the real library; of the others the work area is asked, which their configurations know, and
//! they are finalized when they come to be used.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::c_int;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock};

use contract::work::Source as By;

use super::answers::{Answers, Reply, sealed, unsealed};
use super::digest::Digest;
use super::graph::{Node, attribute, kind, value};
use super::real::{self, FIRST_VERSION, Library, Twin};
use super::{device, model};
use crate::error::{Answer, Failure};
use crate::state::lock;
use crate::{config, status};

/// To be raised when the phantom answers cuDNN's own questions (driver, NVRTC) in another way: that
/// can change what cuDNN says, and answers of earlier releases must not be found.
const GENERATION: i64 = 1;

/// What PyTorch wants to know about a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Whether it can be finalized.
    Finalize,
    /// Up to `wanted` values of an attribute.
    Values { name: c_int, kind: c_int, wanted: i64 },
    /// Up to `wanted` descriptors of type `kind` out of an attribute.
    Nodes { name: c_int, kind: c_int, wanted: i64 },
}

impl Question {
    /// The question's key, for a node asked in the world that `seed` stands for.
    fn key(self, seed: u128, node: &Node) -> u128 {
        let digest = Digest::new().key(seed).key(node.key);
        match self {
            Question::Finalize => digest.field(b"finalize"),
            Question::Values { name, kind, wanted } => {
                digest.field(b"values").number(name.into()).number(kind.into()).number(wanted)
            }
            Question::Nodes { name, kind, wanted } => {
                digest.field(b"nodes").number(name.into()).number(kind.into()).number(wanted)
            }
        }
        .finish()
    }

    fn is_workspace(self) -> bool {
        use attribute::{CONFIG_WORKSPACE, PLAN_WORKSPACE};
        matches!(self, Question::Values { name: PLAN_WORKSPACE | CONFIG_WORKSPACE, .. })
    }
}

/// A real cuDNN that can answer, loaded or not.
struct Source {
    path: &'static Path,
    version: usize,
    answers: Answers,
    /// Digest of all that answers depend on beside the graph: version and card.
    seed: u128,
    /// Graphs of which the real library has finalized a plan.
    planned: Mutex<HashSet<u128>>,
}

thread_local! {
    /// The graph whose plan this thread ran last.
    static LAST_RUN: Cell<u128> = const { Cell::new(0) };
}

/// Answers a question. The twins are those of the descriptors found, where cuDNN was asked just now.
pub(crate) fn ask(node: &Node, question: Question) -> (Reply, Vec<Twin>) {
    let (reply, twins, known) = match source() {
        Some(source) => source.ask(node, question),
        None => (modelled(node, question), Vec::new(), By::Modelled),
    };
    if let (true, Some(bytes)) = (question.is_workspace(), reply.number()) {
        // Asked again, it says the same.
        let _ = node.workspace.set((known, bytes));
    }
    (reply, twins)
}

fn modelled(node: &Node, question: Question) -> Reply {
    model::reply(node, question, config::get().card.compute_capability)
}

fn source() -> Option<&'static Source> {
    static SOURCE: OnceLock<Option<Source>> = OnceLock::new();
    SOURCE.get_or_init(Source::find).as_ref()
}

impl Source {
    fn find() -> Option<Source> {
        let config = config::get();
        let path = config.cudnn.as_deref()?;
        let folder = config.cache.as_ref().map(|cache| cache.join("cudnn"));
        let version = version_of(path, folder.as_deref())?;
        if version < FIRST_VERSION {
            return None;
        }
        let card = device::describe(&config.card, config.cuda_version);
        let answers = Answers::open(folder.as_deref(), &format!("{version}-{}", config.card.name));
        let world = Digest::new().number(GENERATION).number(version as i64);
        let seed = world.field(card.as_bytes()).finish();
        Some(Source { path, version, answers, seed, planned: Mutex::default() })
    }

    fn ask(&self, node: &Node, question: Question) -> (Reply, Vec<Twin>, By) {
        let key = question.key(self.seed, node);
        let known = self.answers.get(key).or_else(|| self.workspace_of_waiting(node, question));
        let (reply, twins) = match known {
            Some(reply) => (reply, Vec::new()),
            None => match real::library(self.path) {
                Some(library) => {
                    let (reply, twins) = forward(library, node, question);
                    self.answers.put(key, &reply);
                    (reply, twins)
                }
                None => return (modelled(node, question), Vec::new(), By::Modelled),
            },
        };
        status::page().cudnn_version.store(self.version as u32, Relaxed);
        (reply, twins, By::Exact)
    }
}

impl Source {
    /// The work area of a plan that the real library has not finalized: its configuration has it, too.
    fn workspace_of_waiting(&self, plan: &Node, question: Question) -> Option<Reply> {
        let Question::Values { name: attribute::PLAN_WORKSPACE, wanted: 1, .. } = question else {
            return None;
        };
        let is_finalized = lock(&plan.twin).is_some();
        (!is_finalized).then(|| self.configured_workspace(plan)).flatten()
    }

    fn configured_workspace(&self, plan: &Node) -> Option<Reply> {
        let config = plan.nodes(attribute::PLAN_CONFIG).first()?;
        let name = attribute::CONFIG_WORKSPACE;
        let (reply, ..) =
            self.ask(config, Question::Values { name, kind: value::INT64, wanted: 1 });
        reply.number().map(|_| reply)
    }

    /// Whether a plan need not be finalized yet: another one of its graph was, and its work area is known.
    fn can_wait(&self, plan: &Node) -> bool {
        let is_known = self.answers.get(Question::Finalize.key(self.seed, plan)).is_some();
        let graph = model::graph_of(plan).map(|graph| graph.key);
        let has_plan = graph.is_some_and(|graph| lock(&self.planned).contains(&graph));
        !is_known && has_plan && self.configured_workspace(plan).is_some()
    }
}

/// A plan is about to run. The one that a search keeps is the first that it runs: it must be what cuDNN accepts.
pub(crate) fn run(plan: &Node) -> Answer {
    let graph = model::graph_of(plan).map_or(0, |graph| graph.key);
    if LAST_RUN.replace(graph) == graph {
        return Ok(());
    }
    finalize(plan)
}

fn finalize(node: &Node) -> Answer {
    match ask(node, Question::Finalize).0.status {
        0 => Ok(()),
        code => Err(Failure::Cudnn(code)),
    }
}

/// Asks the real library.
fn forward(library: &Library, node: &Node, question: Question) -> (Reply, Vec<Twin>) {
    let outcome = match question {
        Question::Finalize => library.realize(node).map(|()| (Reply::default(), Vec::new())),
        Question::Values { name, kind, wanted } => library
            .get(node, name, kind, wanted)
            .map(|(count, bytes)| (Reply { status: 0, count, bytes }, Vec::new())),
        Question::Nodes { name, kind, wanted } => library
            .get_nodes(node, name, wanted, kind)
            .map(|(count, twins)| (Reply { count, ..Reply::default() }, twins)),
    };
    outcome.unwrap_or_else(|failure| {
        (Reply::failure(crate::error::Library::Cudnn.code(Err(failure))), Vec::new())
    })
}

/// The version of the library at `path`, without loading it if an earlier run has.
///
/// `libraries.txt` has lines of version, size, time of change and path: a library that was replaced
/// is not taken for the old one.
fn version_of(path: &Path, folder: Option<&Path>) -> Option<usize> {
    let metadata = fs::metadata(path).ok()?;
    let time = (metadata.mtime(), metadata.mtime_nsec());
    let identity = format!("{} {}.{:09} {}", metadata.len(), time.0, time.1, path.display());
    let index = folder.map(|folder| folder.join("libraries.txt"));
    let lines = index.as_ref().and_then(|index| fs::read_to_string(index).ok()).unwrap_or_default();
    let known = lines.lines().filter_map(unsealed).find_map(|line| {
        let (version, of) = line.split_once(' ')?;
        (of == identity).then(|| version.parse().ok()).flatten()
    });
    if known.is_some() {
        return known;
    }
    let version = real::version(path)?;
    if let Some(index) = index {
        // Without the line the next run loads the library again, no more.
        let _ = fs::create_dir_all(index.parent()?).and_then(|()| {
            let mut file = fs::OpenOptions::new().append(true).create(true).open(index)?;
            file.write_all(sealed(&format!("{version} {identity}")).as_bytes())
        });
    }
    Some(version)
}

/// Finalizes a node: cuDNN judges graphs and what is made of them; their parts are judged with them.
pub(crate) fn judge(node: &Node) -> Result<(), Failure> {
    let is_judged = matches!(
        node.kind,
        kind::ENGINE
            | kind::ENGINE_CONFIG
            | kind::HEURISTIC
            | kind::PLAN
            | kind::GRAPH
            | kind::KERNEL_CACHE
    );
    if !is_judged {
        return Ok(());
    }
    if !has_its_part(node) {
        return Err(Failure::InvalidValue);
    }
    if node.kind != kind::PLAN {
        return finalize(node);
    }
    let source = source();
    if source.is_some_and(|source| source.can_wait(node)) {
        return Ok(());
    }
    finalize(node)?;
    if let (Some(source), Some(graph)) = (source, model::graph_of(node)) {
        lock(&source.planned).insert(graph.key);
    }
    Ok(())
}

/// Whether a descriptor has the part that it is about. The real library follows it without a look.
fn has_its_part(node: &Node) -> bool {
    let (name, part) = match node.kind {
        kind::HEURISTIC => (attribute::HEURISTIC_GRAPH, kind::GRAPH),
        kind::ENGINE => (attribute::ENGINE_GRAPH, kind::GRAPH),
        kind::ENGINE_CONFIG => (attribute::CONFIG_ENGINE, kind::ENGINE),
        kind::PLAN => (attribute::PLAN_CONFIG, kind::ENGINE_CONFIG),
        _ => return true,
    };
    node.nodes(name).first().is_some_and(|found| found.kind == part)
}
