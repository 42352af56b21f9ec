//! The contents of a storage at one moment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;

use super::recipe::Recipe;

/// Bytes that are held for values, in all.
static HELD: AtomicU64 = AtomicU64::new(0);

/// Bytes of host memory, counted while they are held.
#[derive(Debug)]
pub(crate) enum Bytes {
    Own(Box<[u8]>),
    /// Those of a tensor of the host's that nobody writes to: where they begin, and how many they are.
    Of(Py<PyAny>, usize, usize),
}

impl Bytes {
    pub(crate) fn new(bytes: Vec<u8>) -> Arc<Bytes> {
        Bytes::counted(Bytes::Own(bytes.into_boxed_slice()))
    }

    /// # Safety
    /// The tensor's memory begins at `start`, has `length` bytes, and is not written to.
    pub(crate) unsafe fn of(tensor: Py<PyAny>, start: u64, length: usize) -> Arc<Bytes> {
        Bytes::counted(Bytes::Of(tensor, start as usize, length))
    }

    fn counted(bytes: Bytes) -> Arc<Bytes> {
        HELD.fetch_add(bytes.get().len() as u64, Relaxed);
        Arc::new(bytes)
    }

    pub(crate) fn held() -> u64 {
        HELD.load(Relaxed)
    }

    pub(crate) fn get(&self) -> &[u8] {
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Of(_, _, 0) => &[],
            // SAFETY: by what whoever made it promised; the tensor is held.
            Bytes::Of(_, start, length) => unsafe {
                std::slice::from_raw_parts(*start as *const u8, *length)
            },
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        HELD.fetch_sub(self.get().len() as u64, Relaxed);
    }
}

/// What is known of it.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Its bytes, as they lie in the storage.
    Data(Arc<Bytes>),
    /// What a function gives.
    Made(Arc<Recipe>),
    /// One number with a fraction that cannot be had, such as a norm of gradients: scripts print and compare it.
    Number,
    /// Nobody has written to it: a script that reads it reads what happens to be there.
    Undefined,
    /// It cannot be had.
    Unknown,
}

/// One version of what a storage holds. A write in place makes another one.
#[derive(Debug)]
pub(crate) struct Value {
    state: Mutex<State>,
    /// Of the storage.
    pub(crate) bytes: u64,
    /// What counts instead if it turns out to be too dear: statistics of norm layers, like weights, then stay what they were.
    pub(crate) before: OnceLock<Arc<Value>>,
    /// Made before the first model ran: weights, data that stays. It is kept however long.
    pub(crate) is_early: AtomicBool,
    /// It stands for what later steps would have: a weight that an optimizer has changed, and what is made of such.
    pub(crate) is_modelled: AtomicBool,
    /// How it was computed, if it can be again: its bytes may then be given up for others.
    again: Mutex<Option<Arc<Recipe>>>,
}

impl Value {
    pub(crate) fn new(state: State, bytes: u64) -> Arc<Value> {
        Arc::new(Value {
            state: Mutex::new(state),
            bytes,
            before: OnceLock::new(),
            is_early: AtomicBool::new(false),
            is_modelled: AtomicBool::new(false),
            again: Mutex::new(None),
        })
    }

    /// It was computed: it holds these bytes, until they are given up.
    pub(crate) fn settle(&self, bytes: Arc<Bytes>) {
        if let State::Made(recipe) = self.set(State::Data(bytes)) {
            *self.again.lock().unwrap_or_else(PoisonError::into_inner) = Some(recipe);
        }
    }

    /// Its bytes are given up, if they can be computed again.
    pub(crate) fn give_up(&self) {
        let recipe = self.again.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(recipe) = recipe.filter(|_| self.is_data()) {
            drop(self.set(State::Made(recipe)));
        }
    }

    /// Its recipes, for whoever drops it.
    pub(crate) fn take_recipes(&self) -> [Option<Arc<Recipe>>; 2] {
        let made = match self.set(State::Unknown) {
            State::Made(recipe) => Some(recipe),
            _ => None,
        };
        [made, self.again.lock().unwrap_or_else(PoisonError::into_inner).take()]
    }

    /// It is never computed again.
    pub(crate) fn forget_how(&self) {
        let recipe = self.again.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(recipe);
    }

    pub(crate) fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives the old one back, so that nothing is dropped under the lock.
    pub(crate) fn set(&self, state: State) -> State {
        std::mem::replace(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(*self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Unknown)
    }

    /// Whether it is one number with a fraction that a recipe gives.
    pub(crate) fn is_number(&self) -> bool {
        let State::Made(recipe) = self.state() else { return false };
        recipe.outputs().iter().any(|output| {
            let geometry = &output.geometry;
            let is_single = geometry.size.is_empty() && geometry.is_fraction;
            is_single && std::ptr::eq(output.value.as_ptr(), self)
        })
    }

    pub(crate) fn is_data(&self) -> bool {
        matches!(*self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Data(_))
    }
}
