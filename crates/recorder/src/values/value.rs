//! The contents of a storage at one moment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;

use super::plan::Cut;
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

/// A moment of a process: how many nanoseconds were left for what a script must know, and in which step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) nanoseconds: u64,
    pub(crate) era: u64,
}

/// What it takes to know a value, found at some moment: many decisions may ask for the same one, as for each token of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    pub(crate) seconds: f64,
    pub(crate) found: Moment,
}

impl Price {
    /// What it takes at least by now: whatever was computed since then need not be computed again.
    pub(crate) fn at_least(&self, now: Moment) -> Option<f64> {
        let spent = self.found.nanoseconds.saturating_sub(now.nanoseconds) as f64 * 1e-9;
        (self.found.era == now.era).then_some(self.seconds - spent)
    }
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
    /// What it takes, if that was too much: in full, and with numbers that stand for others.
    prices: Mutex<[Option<Price>; 2]>,
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
            prices: Mutex::default(),
        })
    }

    /// What it takes at least, if it was found to take too much and is still to be made.
    pub(crate) fn price(&self, cut: Cut, now: Moment) -> Option<f64> {
        let price = self.prices.lock().unwrap_or_else(PoisonError::into_inner)[cut as usize];
        let seconds = price?.at_least(now)?;
        matches!(self.state(), State::Made(_)).then_some(seconds)
    }

    /// The highest counts: each is what it takes at least.
    pub(crate) fn set_price(&self, cut: Cut, price: Price) {
        let mut prices = self.prices.lock().unwrap_or_else(PoisonError::into_inner);
        let before = prices[cut as usize].and_then(|before| before.at_least(price.found));
        if before.is_none_or(|before| before < price.seconds) {
            prices[cut as usize] = Some(price);
        }
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
