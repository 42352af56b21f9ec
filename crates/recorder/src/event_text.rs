//! The text that PyTorch attaches to events, as the script sees it.

use notes::{local, metadata};
use pyo3::prelude::*;

use crate::note_taker::NoteTaker;
use crate::texts::Text;

#[pymethods]
impl NoteTaker {
    /// The script sets a text for the events of this thread.
    fn set_text(&self, py: Python<'_>, text: Text) -> PyResult<()> {
        local::with(self.id, |local| local.text = Some(text.0).filter(|text| !text.is_empty()));
        self.resume(py).map(drop)
    }

    /// The text that the script has set in this thread.
    fn text(&self) -> String {
        local::with(self.id, |local| local.text.clone()).unwrap_or_default()
    }

    /// What the script has set, of a text of an event.
    #[staticmethod]
    fn own_text(text: Text) -> String {
        metadata::own(&text).to_owned()
    }
}
