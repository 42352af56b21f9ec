//! What is known of an allocation by its size or its address alone.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::hash::Map;
use crate::texts::Text;

/// Parameters that autocast may cast in a part: bytes of the cast, and the parameter's id.
pub(crate) type Casts = Map<u64, Vec<(u64, usize)>>;

/// Of the events that are written together.
pub(crate) struct Known<'py> {
    pub(crate) workspaces: Map<(u64, u64), &'static str>,
    pub(crate) waits: Option<Vec<(u64, u64)>>,
    /// Names of parameters, by their ids.
    pub(crate) names: Bound<'py, PyDict>,
}

impl Known<'_> {
    /// The name of a cast of this size in this part, which is then no longer waited for.
    pub(crate) fn cast(
        &self,
        casts: &mut Casts,
        serial: u64,
        size: u64,
    ) -> PyResult<Option<String>> {
        let Some(waiting) = casts.get_mut(&serial) else { return Ok(None) };
        let Some(at) = waiting.iter().position(|(bytes, _)| *bytes == size) else {
            return Ok(None);
        };
        let (_, parameter) = waiting.remove(at);
        let name = self.names.get_item(parameter)?;
        let name = name.map_or(Ok("a parameter".to_owned()), |name| Text::str(&name))?;
        Ok(Some(format!("cast of {name}")))
    }
}
