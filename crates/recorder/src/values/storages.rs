//! Which value each storage holds.
//!
//! Addresses are used again, and PyTorch's cache does not say when. So an entry holds a weak reference to the storage
//! it was made for: when that has ended, so has what was known of its memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;

use super::value::{State, Value};
use crate::tensors::Lies;

struct Entry {
    /// The storage, by its weak reference.
    storage: usize,
    bytes: u64,
    value: Arc<Value>,
}

/// PyTorch's functions on weak references of storages.
pub(crate) struct Weak {
    is_expired: Py<PyAny>,
    free: Py<PyAny>,
}

impl Weak {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Weak> {
        let class = py.import("torch")?.getattr("UntypedStorage")?;
        let get = |name: &str| Ok::<_, PyErr>(class.getattr(name)?.unbind());
        Ok(Weak { is_expired: get("_expired")?, free: get("_free_weak_ref")? })
    }

    pub(crate) fn is_expired(&self, py: Python<'_>, storage: usize) -> PyResult<bool> {
        self.is_expired.bind(py).call1((storage,))?.is_truthy()
    }

    fn free(&self, py: Python<'_>, storage: usize) -> PyResult<()> {
        self.free.bind(py).call1((storage,)).map(drop)
    }
}

/// By where storages begin.
#[derive(Default)]
pub(crate) struct Storages(BTreeMap<u64, Entry>);

/// What was taken out of the table, to be let go when it is not locked.
pub(crate) type Ended = Vec<(usize, Arc<Value>)>;

impl Storages {
    /// The value of the storage that lies there, if it is known.
    pub(crate) fn get(
        &self,
        py: Python<'_>,
        weak: &Weak,
        lies: &Lies,
    ) -> PyResult<Option<Arc<Value>>> {
        let Some(entry) = self.0.get(&lies.start) else { return Ok(None) };
        if entry.bytes != lies.bytes {
            return Ok(None);
        }
        // The same memory may be another storage's as well, as by `dlpack`.
        if entry.storage != lies.storage && weak.is_expired(py, entry.storage)? {
            return Ok(None);
        }
        Ok(Some(entry.value.clone()).filter(|value| !value.is_unknown()))
    }

    /// The storage holds this from here on; `hold` makes a weak reference to it.
    pub(crate) fn set(
        &mut self,
        lies: &Lies,
        value: Arc<Value>,
        hold: impl FnOnce() -> PyResult<usize>,
    ) -> PyResult<Ended> {
        if let Some(entry) = self.0.get_mut(&lies.start)
            && entry.bytes == lies.bytes
            && entry.storage == lies.storage
        {
            let old = std::mem::replace(&mut entry.value, value);
            return Ok(vec![(0, old)]);
        }
        let ended = self.clear(lies.start, lies.start + lies.bytes);
        self.0.insert(lies.start, Entry { storage: hold()?, bytes: lies.bytes, value });
        Ok(ended)
    }

    pub(crate) fn replace(&mut self, start: u64, value: Arc<Value>) -> Option<Arc<Value>> {
        self.0.get_mut(&start).map(|entry| std::mem::replace(&mut entry.value, value))
    }

    /// Nothing is known of these addresses any more.
    pub(crate) fn clear(&mut self, start: u64, end: u64) -> Ended {
        let mut found = Vec::new();
        for (at, entry) in self.0.range(..end).rev() {
            // No two overlap, so the first that ends before is the last to be looked at.
            if at + entry.bytes <= start {
                break;
            }
            found.push(*at);
        }
        found
            .iter()
            .filter_map(|at| self.0.remove(at))
            .map(|entry| (entry.storage, entry.value))
            .collect()
    }

    /// Takes out the storages that have ended.
    pub(crate) fn sweep(&mut self, py: Python<'_>, weak: &Weak) -> PyResult<Ended> {
        let mut ended = Vec::new();
        for (at, entry) in &self.0 {
            if weak.is_expired(py, entry.storage)? {
                ended.push(*at);
            }
        }
        Ok(ended
            .iter()
            .filter_map(|at| self.0.remove(at))
            .map(|entry| (entry.storage, entry.value))
            .collect())
    }

    /// Values of storages, each with where it lies.
    pub(crate) fn values(&self) -> impl Iterator<Item = (u64, &Arc<Value>)> {
        self.0.iter().map(|(at, entry)| (*at, &entry.value))
    }

    /// The value of whatever lies at these addresses, and where that begins.
    pub(crate) fn at(&self, start: u64, end: u64) -> Option<(u64, usize, Arc<Value>)> {
        let (at, entry) = self.0.range(..=start).next_back()?;
        (end <= at + entry.bytes).then(|| (*at, entry.storage, entry.value.clone()))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Lets go of what was taken out.
pub(crate) fn release(py: Python<'_>, weak: &Weak, ended: Ended) -> PyResult<()> {
    for (storage, value) in ended {
        drop(value);
        if storage != 0 {
            weak.free(py, storage)?;
        }
    }
    Ok(())
}

/// A value that is not known.
pub(crate) fn unknown(bytes: u64) -> Arc<Value> {
    Value::new(State::Unknown, bytes)
}
