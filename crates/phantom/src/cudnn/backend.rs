//! The backend API: descriptors of graphs, and the questions PyTorch asks about them.
//!
//! Handles are the phantom's own; [`super::graph`] keeps what was set, [`super::oracle`] finds the
//! answers.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard};

use cuda_abi::handles::Kind;
use cuda_abi::types::Handle;

use super::graph::{Attribute, Draft, Node, Value, attribute, bytes_of, kind, value};
use super::model;
use super::oracle::{self, Question};
use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::state::{lock, phantom};
use crate::{handles, status, taint, workspaces};

/// `CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED`.
const NOT_FINALIZED: Failure = Failure::Cudnn(2004);

/// More values than any attribute has; what is above is a mistake of the caller.
const MOST_VALUES: i64 = 1 << 20;

/// Above all kinds of descriptors that there are, with room for those of the next versions.
const LAST_KIND: c_int = 255;

enum Descriptor {
    Draft(Draft),
    Final(Arc<Node>),
    /// Addresses for an execution that does not happen; that of the work area is remembered.
    VariantPack {
        workspace: u64,
    },
}

type Descriptors = BTreeMap<Handle, Descriptor>;

/// The live descriptors; refused in a forked child, where another thread may have held the lock.
fn descriptors() -> Result<MutexGuard<'static, Descriptors>, Failure> {
    static DESCRIPTORS: Mutex<Descriptors> = Mutex::new(BTreeMap::new());
    phantom()?;
    Ok(lock(&DESCRIPTORS))
}

pub(crate) fn create(descriptor_kind: c_int, out: &mut Handle) -> Answer {
    let descriptor = match descriptor_kind {
        kind::VARIANT_PACK => Descriptor::VariantPack { workspace: 0 },
        0..=LAST_KIND => Descriptor::Draft(Draft::new(descriptor_kind)),
        _ => return Err(Failure::InvalidValue),
    };
    *out = handles::make(Kind::BackendDescriptor)?;
    descriptors()?.insert(*out, descriptor);
    Ok(())
}

pub(crate) fn destroy(handle: Handle) -> Answer {
    let gone = descriptors()?.remove(&handle);
    // After the lock is released: the real library may have work to do.
    if let Some(Descriptor::Final(node)) = gone {
        node.release();
    }
    Ok(())
}

/// Nothing is executed. No more is asked about a plan that is in use, so its twin can go: PyTorch
/// keeps up to 10,000 plans, and each holds a hundred KiB in the real library.
pub(crate) fn execute(_handle: Handle, plan: Handle, pack: Handle) -> Answer {
    let descriptors = descriptors()?;
    let node = node(&descriptors, plan)?;
    let Some(Descriptor::VariantPack { workspace }) = descriptors.get(&pack) else {
        return Err(Failure::InvalidValue);
    };
    let workspace = *workspace;
    drop(descriptors);
    oracle::run(&node)?;
    node.release();
    let work = model::kind_of(&node);
    let known = node.workspace.get().copied();
    workspaces::note_plan(work, workspace, node.key, known);
    if let Some((source, bytes)) = known {
        status::note_work(work, source, bytes);
    }
    Ok(())
}

pub(crate) fn set(
    handle: Handle,
    name: c_int,
    value_kind: c_int,
    count: i64,
    values: Raw<c_void>,
) -> Answer {
    let count = values_count(count)?;
    if value_kind == value::ADDRESS {
        // Before the lock: the doorway waits for Python, and Python may be waiting for cuDNN.
        taint::pointed_to(&Raw(values.0.cast::<u64>()).read(count)?);
    }
    let mut descriptors = descriptors()?;
    if let Some(Descriptor::VariantPack { workspace }) = descriptors.get_mut(&handle) {
        if name == attribute::VARIANT_PACK_WORKSPACE {
            let address = Raw(values.0.cast::<u64>()).read(count.min(1))?;
            *workspace = address.first().copied().unwrap_or(0);
        }
        return Ok(());
    }
    let value = if value_kind == value::DESCRIPTOR {
        let parts = Raw(values.0.cast::<Handle>()).read(count)?;
        Value::Nodes(parts.iter().map(|part| node(&descriptors, *part)).collect::<Result<_, _>>()?)
    } else {
        Value::Bytes(Raw(values.0.cast::<u8>()).read(count * bytes_of(value_kind))?)
    };
    match descriptors.get_mut(&handle) {
        Some(Descriptor::Draft(draft)) => {
            draft.set(Attribute { name, kind: value_kind, value });
            Ok(())
        }
        _ => Err(Failure::InvalidHandle),
    }
}

pub(crate) fn finalize(handle: Handle) -> Answer {
    let mut open = descriptors()?;
    let draft = match open.get_mut(&handle) {
        Some(Descriptor::Draft(draft)) => std::mem::replace(draft, Draft::new(draft.kind)),
        Some(_) => return Ok(()),
        None => return Err(Failure::InvalidHandle),
    };
    drop(open);
    let node = Arc::new(Node::built(draft));
    // A descriptor that cuDNN rejects stays an empty draft: all one can do with it is destroy it.
    oracle::judge(&node)?;
    let replaced = descriptors()?.insert(handle, Descriptor::Final(node));
    drop(replaced);
    Ok(())
}

pub(crate) fn get(
    handle: Handle,
    name: c_int,
    value_kind: c_int,
    wanted: i64,
    count: Option<&mut i64>,
    values: Raw<c_void>,
) -> Answer {
    let room = if values.0.is_null() { 0 } else { values_count(wanted)? };
    let node = node(&*descriptors()?, handle)?;
    let found = if value_kind == value::DESCRIPTOR {
        fill_nodes(&node, name, &Raw(values.0.cast::<Handle>()).read(room)?)?
    } else {
        let question = Question::Values { name, kind: value_kind, wanted: room as i64 };
        let (reply, _) = oracle::ask(&node, question);
        check(reply.status)?;
        values.write_bytes(&reply.bytes)?;
        reply.count
    };
    if let Some(count) = count {
        *count = found;
    }
    Ok(())
}

/// Turns the caller's empty descriptors into the results that an attribute of `node` has.
fn fill_nodes(node: &Arc<Node>, name: c_int, handles: &[Handle]) -> Result<i64, Failure> {
    let kinds = {
        let descriptors = descriptors()?;
        handles
            .iter()
            .map(|handle| kind_of(&descriptors, *handle))
            .collect::<Result<Vec<_>, _>>()?
    };
    let kind = kinds.first().copied().unwrap_or(kind::ENGINE_CONFIG);
    let question = Question::Nodes { name, kind, wanted: handles.len() as i64 };
    let (reply, twins) = oracle::ask(node, question);
    check(reply.status)?;
    let mut twins = twins.into_iter();
    let found = usize::try_from(reply.count).unwrap_or(0).min(handles.len());
    let mut descriptors = descriptors()?;
    let replaced: Vec<Option<Descriptor>> = (0..found)
        .map(|index| {
            let result = Node::result(kind, node, name, index, twins.next());
            descriptors.insert(handles[index], Descriptor::Final(Arc::new(result)))
        })
        .collect();
    drop(descriptors);
    drop(replaced);
    Ok(reply.count)
}

fn values_count(count: i64) -> Result<usize, Failure> {
    match count {
        0..=MOST_VALUES => Ok(count as usize),
        _ => Err(Failure::InvalidValue),
    }
}

fn check(status: c_int) -> Answer {
    if status == 0 { Ok(()) } else { Err(Failure::Cudnn(status)) }
}

fn node(descriptors: &Descriptors, handle: Handle) -> Result<Arc<Node>, Failure> {
    match descriptors.get(&handle) {
        Some(Descriptor::Final(node)) => Ok(node.clone()),
        Some(_) => Err(NOT_FINALIZED),
        None => Err(Failure::InvalidHandle),
    }
}

fn kind_of(descriptors: &Descriptors, handle: Handle) -> Result<c_int, Failure> {
    match descriptors.get(&handle) {
        Some(Descriptor::Draft(draft)) => Ok(draft.kind),
        Some(Descriptor::Final(node)) => Ok(node.kind),
        _ => Err(Failure::InvalidHandle),
    }
}
