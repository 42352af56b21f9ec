//! The real cuDNN, loaded only when a question has no known answer.
//!
//! It is asked without a device: a device property made from the catalogue's card takes the place
//! of the handle. [`Twin`] is a descriptor in that library, built by replaying what PyTorch set.

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use super::device;
use super::graph::{Attribute, Node, Origin, Value, attribute, bytes_of, is_told, kind, value};
use crate::config;
use crate::error::Failure;
use crate::state::lock;

/// The first version that takes a device property.
pub(crate) const FIRST_VERSION: usize = 90_800;

type Create = unsafe extern "C" fn(c_int, *mut usize) -> c_int;
type OnDescriptor = unsafe extern "C" fn(usize) -> c_int;
type Set = unsafe extern "C" fn(usize, c_int, c_int, i64, *const c_void) -> c_int;
type Get = unsafe extern "C" fn(usize, c_int, c_int, i64, *mut i64, *mut c_void) -> c_int;
type Version = unsafe extern "C" fn() -> usize;

/// The loaded library.
pub(crate) struct Library {
    create: Create,
    destroy: OnDescriptor,
    set: Set,
    get: Get,
    finalize: OnDescriptor,
    pub(crate) version: usize,
    /// One call at a time: cuDNN promises less than two autograd threads need.
    turn: Mutex<()>,
    device: OnceLock<Option<Twin>>,
}

/// The library at `path`, loaded at the first call; `None` if it is missing or too old.
pub(crate) fn library(path: &Path) -> Option<&'static Library> {
    LIBRARY
        .get_or_init(|| Library::load(path))
        .as_ref()
        .filter(|library| library.device().is_some())
}

/// The version of the library at `path`, even if it is too old to answer.
pub(crate) fn version(path: &Path) -> Option<usize> {
    LIBRARY.get_or_init(|| Library::load(path)).as_ref().map(|library| library.version)
}

static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();

/// A descriptor of the real library; destroyed there when dropped.
#[derive(Debug)]
pub(crate) struct Twin(usize);

impl Drop for Twin {
    fn drop(&mut self) {
        if let Some(Some(library)) = LIBRARY.get() {
            let _turn = lock(&library.turn);
            // SAFETY: the descriptor was made by this library and is destroyed once.
            unsafe { (library.destroy)(self.0) };
        }
    }
}

fn check(code: c_int) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure::Cudnn(code)) }
}

impl Library {
    fn load(path: &Path) -> Option<Library> {
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        // Deep binding: its calls of cuDNN functions must find itself, not the phantom.
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
        // SAFETY: a terminated path; the library stays loaded for the life of the process.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        if handle.is_null() {
            return None;
        }
        let symbol = |name: &CStr| {
            // SAFETY: a terminated name; null where there is no such symbol.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        let [create, destroy] =
            [symbol(c"cudnnBackendCreateDescriptor")?, symbol(c"cudnnBackendDestroyDescriptor")?];
        let [set, get] =
            [symbol(c"cudnnBackendSetAttribute")?, symbol(c"cudnnBackendGetAttribute")?];
        let [finalize, version] = [symbol(c"cudnnBackendFinalize")?, symbol(c"cudnnGetVersion")?];
        // SAFETY: these are cuDNN's functions of these names, with the signatures of version 9.
        Some(unsafe {
            Library {
                create: std::mem::transmute::<*mut c_void, Create>(create),
                destroy: std::mem::transmute::<*mut c_void, OnDescriptor>(destroy),
                set: std::mem::transmute::<*mut c_void, Set>(set),
                get: std::mem::transmute::<*mut c_void, Get>(get),
                finalize: std::mem::transmute::<*mut c_void, OnDescriptor>(finalize),
                version: std::mem::transmute::<*mut c_void, Version>(version)(),
                turn: Mutex::new(()),
                device: OnceLock::new(),
            }
        })
    }

    /// The card as a device property; `None` if this version takes none.
    fn device(&self) -> Option<&Twin> {
        self.device.get_or_init(|| self.make_device().ok()).as_ref()
    }

    fn make_device(&self) -> Result<Twin, Failure> {
        if self.version < FIRST_VERSION {
            return Err(Failure::NotSupported);
        }
        let config = config::get();
        let text = device::describe(&config.card, config.cuda_version);
        let twin = self.create(kind::DEVICE)?;
        self.set(&twin, attribute::DEVICE_TEXT, value::CHAR, text.as_bytes())?;
        self.finalize(&twin)?;
        Ok(twin)
    }

    fn create(&self, kind: c_int) -> Result<Twin, Failure> {
        let _turn = lock(&self.turn);
        let mut descriptor = 0;
        // SAFETY: the out-argument is valid.
        check(unsafe { (self.create)(kind, &mut descriptor) })?;
        Ok(Twin(descriptor))
    }

    fn set(&self, twin: &Twin, name: c_int, kind: c_int, bytes: &[u8]) -> Result<(), Failure> {
        let _turn = lock(&self.turn);
        let count = bytes.len() / bytes_of(kind);
        // SAFETY: a live descriptor, and `count` values of the type behind the pointer.
        check(unsafe { (self.set)(twin.0, name, kind, count as i64, bytes.as_ptr().cast()) })
    }

    fn finalize(&self, twin: &Twin) -> Result<(), Failure> {
        let _turn = lock(&self.turn);
        // SAFETY: a live descriptor.
        check(unsafe { (self.finalize)(twin.0) })
    }

    /// Reads up to `wanted` values of an attribute of `node`: how many there are, and their bytes.
    pub(crate) fn get(
        &self,
        node: &Node,
        name: c_int,
        kind: c_int,
        wanted: i64,
    ) -> Result<(i64, Vec<u8>), Failure> {
        let wanted_bytes = usize::try_from(wanted).unwrap_or(0) * bytes_of(kind);
        let mut bytes = vec![0; wanted_bytes];
        let count = self.with_twin(node, |twin| self.read(twin, name, kind, wanted, &mut bytes))?;
        bytes.truncate(usize::try_from(count).unwrap_or(0) * bytes_of(kind));
        Ok((count, bytes))
    }

    /// Reads up to `wanted` descriptors of type `result_kind` out of an attribute of `node`.
    pub(crate) fn get_nodes(
        &self,
        node: &Node,
        name: c_int,
        wanted: i64,
        result_kind: c_int,
    ) -> Result<(i64, Vec<Twin>), Failure> {
        self.with_twin(node, |twin| self.read_twins(twin, name, wanted, result_kind))
    }

    fn read_twins(
        &self,
        twin: &Twin,
        name: c_int,
        wanted: i64,
        result_kind: c_int,
    ) -> Result<(i64, Vec<Twin>), Failure> {
        let mut twins =
            (0..wanted).map(|_| self.create(result_kind)).collect::<Result<Vec<_>, _>>()?;
        let mut bytes: Vec<u8> = twins.iter().flat_map(|twin| twin.0.to_ne_bytes()).collect();
        let count = self.read(twin, name, value::DESCRIPTOR, wanted, &mut bytes)?;
        twins.truncate(usize::try_from(count).unwrap_or(0));
        Ok((count, twins))
    }

    fn read(
        &self,
        twin: &Twin,
        name: c_int,
        kind: c_int,
        wanted: i64,
        bytes: &mut [u8],
    ) -> Result<i64, Failure> {
        let _turn = lock(&self.turn);
        let mut count = 0;
        let out = if bytes.is_empty() { std::ptr::null_mut() } else { bytes.as_mut_ptr().cast() };
        // SAFETY: a live descriptor, and room for `wanted` values of the type.
        check(unsafe { (self.get)(twin.0, name, kind, wanted, &mut count, out) })?;
        Ok(count)
    }

    /// Makes the twin of a node unless it exists: cuDNN's verdict on finalizing it.
    pub(crate) fn realize(&self, node: &Node) -> Result<(), Failure> {
        self.with_twin(node, |_| Ok(()))
    }

    fn with_twin<T>(
        &self,
        node: &Node,
        work: impl FnOnce(&Twin) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // A node's parts are locked after the node itself; parts never lead back to it.
        let mut twin = lock(&node.twin);
        if twin.is_none() {
            *twin = Some(self.make_twin(node)?);
        }
        twin.as_ref().map_or(Err(Failure::Unknown), work)
    }

    fn make_twin(&self, node: &Node) -> Result<Twin, Failure> {
        match &node.origin {
            Origin::Built(attributes) => self.replay(node.kind, attributes),
            Origin::Result { parent, attribute, index } => self.with_twin(parent, |parent| {
                let (_, mut twins) =
                    self.read_twins(parent, *attribute, *index as i64 + 1, node.kind)?;
                if twins.len() == index + 1 { twins.pop() } else { None }.ok_or(Failure::NotFound)
            }),
        }
    }

    /// Sets in the real library what PyTorch set in ours, with the card in place of the handle.
    fn replay(&self, kind: c_int, attributes: &[Attribute]) -> Result<Twin, Failure> {
        let card = self.device().ok_or(Failure::NotSupported)?;
        let twin = self.create(kind)?;
        if kind == kind::DEVICE {
            let config = config::get();
            let text = device::describe(&config.card, config.cuda_version);
            self.set(&twin, attribute::DEVICE_TEXT, value::CHAR, text.as_bytes())?;
        } else {
            for attribute in attributes.iter().filter(|attribute| is_told(attribute)) {
                self.replay_one(&twin, attribute)?;
            }
        }
        let device_attribute = match kind {
            kind::HEURISTIC => Some(attribute::HEURISTIC_DEVICE),
            kind::ENGINE => Some(attribute::ENGINE_DEVICE),
            kind::PLAN => Some(attribute::PLAN_DEVICE),
            _ => None,
        };
        if let Some(name) = device_attribute {
            self.set(&twin, name, value::DESCRIPTOR, &card.0.to_ne_bytes())?;
        }
        self.finalize(&twin)?;
        Ok(twin)
    }

    fn replay_one(&self, twin: &Twin, attribute: &Attribute) -> Result<(), Failure> {
        match &attribute.value {
            Value::Bytes(bytes) => self.set(twin, attribute.name, attribute.kind, bytes),
            Value::Nodes(nodes) => {
                let mut bytes = Vec::new();
                for node in nodes {
                    // The node is kept alive by the attribute, so its twin is too.
                    let part = self.with_twin(node, |part| Ok(part.0))?;
                    bytes.extend(part.to_ne_bytes());
                }
                self.set(twin, attribute.name, attribute.kind, &bytes)
            }
        }
    }
}
