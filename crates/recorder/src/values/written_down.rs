//! The recipe that a call leaves, with what the host's tensors held.

use std::sync::{Arc, OnceLock};

use pyo3::intern;
use pyo3::prelude::*;

use super::call::Call;
use super::geometry::Geometry;
use super::given::Before;
use super::ledger::Ledger;
use super::recipe::{Input, Recipe, Source};
use super::value::Bytes;

/// Storages larger than this many times what a tensor of the host's spans are not copied whole.
const SPARSE: u64 = 4;

impl Ledger {
    pub(super) fn recipe<'py>(
        &self,
        py: Python<'py>,
        call: &Call<'_, 'py>,
        before: Before<'py>,
        written: &[usize],
    ) -> PyResult<Option<Recipe>> {
        let Some((args, named)) = before.kept else { return Ok(None) };
        let mut inputs = Vec::with_capacity(before.given.len());
        for (number, (given, geometry)) in
            before.given.into_iter().zip(before.geometries).enumerate()
        {
            let is_written = written.contains(&number);
            let (source, geometry) = match (given.value, geometry) {
                (Some(value), Some(geometry)) => (Source::Card(value), geometry),
                _ => match self.copy_of_host(&given.tensor)? {
                    Some((bytes, geometry)) => (Source::Host(bytes), geometry),
                    None => return Ok(None),
                },
            };
            inputs.push(Input { source, geometry, is_written });
        }
        Ok(Some(Recipe {
            function: call.function.clone().unbind(),
            name: before.name,
            args,
            named,
            inputs,
            outputs: OnceLock::new(),
            autocast: self.autocast(py)?,
            seed: before.seed,
        }))
    }

    /// What a tensor of the host's holds, copied; `None` if there is no room for it.
    fn copy_of_host(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Option<(Arc<Bytes>, Geometry)>> {
        let mut geometry = Geometry::of(&self.tensors, tensor)?;
        let (first, last) = geometry.span();
        let tensor = match last - first <= SPARSE * geometry.bytes() {
            true => tensor.clone(),
            false => {
                let whole = tensor.call_method0(intern!(tensor.py(), "contiguous"))?;
                geometry = Geometry::of(&self.tensors, &whole)?;
                whole
            }
        };
        let (first, last) = geometry.span();
        if !self.has_room(tensor.py(), last - first)? {
            return Ok(None);
        }
        let start = self.tensors.address(&tensor)?.unwrap_or(0) as *const u8;
        let length = (last - first) as usize;
        let bytes = match length {
            0 => Vec::new(),
            // SAFETY: a tensor of the host's, alive, whose elements lie in these bytes.
            _ => unsafe { std::slice::from_raw_parts(start, length) }.to_vec(),
        };
        geometry.offset = 0;
        Ok(Some((Bytes::new(bytes), geometry)))
    }
}
