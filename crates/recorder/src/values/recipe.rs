//! How a value is made: a function, and what it is given.

use std::sync::{Arc, Weak};

use pyo3::prelude::*;

use super::arguments::Argument;
use super::geometry::Geometry;
use super::value::{Bytes, Value};

/// Where a tensor that a function is given has its elements from.
#[derive(Debug)]
pub(crate) enum Source {
    Card(Arc<Value>),
    /// A copy of host memory: what the tensor spans, from its first byte on.
    Host(Arc<Bytes>),
}

#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) source: Source,
    pub(crate) geometry: Geometry,
    /// The function writes to it, and what it writes is wanted.
    pub(crate) is_written: bool,
}

impl Input {
    /// The same for inputs that are the same memory.
    pub(crate) fn key(&self) -> usize {
        match &self.source {
            Source::Card(value) => Arc::as_ptr(value) as usize,
            Source::Host(bytes) => Arc::as_ptr(bytes) as usize,
        }
    }
}

/// Which tensor of a call holds an output.
#[derive(Clone, Debug)]
pub(crate) enum OutputSlot {
    /// Of the result: itself, or a member of its lists.
    Result(Vec<usize>),
    /// An argument that was written to, by its number among the inputs.
    Written(usize),
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) value: Weak<Value>,
    pub(crate) place: OutputSlot,
    pub(crate) geometry: Geometry,
}

/// A call that can be made again on the CPU. It holds no tensor.
#[derive(Debug)]
pub(crate) struct Recipe {
    pub(crate) function: Py<PyAny>,
    pub(crate) name: Arc<str>,
    pub(crate) args: Vec<Argument>,
    pub(crate) named: Vec<(String, Argument)>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: std::sync::OnceLock<Vec<Output>>,
    /// The type of autocast that was on.
    pub(crate) autocast: Option<Py<PyAny>>,
    /// What random numbers are drawn from.
    pub(crate) seed: Option<(u64, u64)>,
}

impl Recipe {
    pub(crate) fn outputs(&self) -> &[Output] {
        self.outputs.get().map_or(&[], Vec::as_slice)
    }

    /// Values of the card that it needs.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.inputs.iter().filter_map(|input| match &input.source {
            Source::Card(value) => Some(value),
            Source::Host(_) => None,
        })
    }
}

impl Drop for Recipe {
    /// Without recursion: a chain of recipes may be longer than the stack.
    fn drop(&mut self) {
        let mut waiting: Vec<Arc<Value>> = Vec::new();
        take_values(&mut self.inputs, &mut waiting);
        while let Some(value) = waiting.pop() {
            let Some(value) = Arc::into_inner(value) else { continue };
            for recipe in value.take_recipes().into_iter().flatten() {
                if let Some(mut recipe) = Arc::into_inner(recipe) {
                    take_values(&mut recipe.inputs, &mut waiting);
                }
            }
        }
    }
}

fn take_values(inputs: &mut Vec<Input>, into: &mut Vec<Arc<Value>>) {
    into.extend(inputs.drain(..).filter_map(|input| match input.source {
        Source::Card(value) => Some(value),
        Source::Host(_) => None,
    }));
}
