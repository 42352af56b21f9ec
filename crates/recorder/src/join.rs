//! The text that PyTorch attaches to events: a part's serial number, and after it what the script itself has set.

use pyo3::prelude::*;

use crate::local;
use crate::scribe::Scribe;
use crate::texts::Text;

/// Between the two; no text of the script's is likely to hold it.
const END: char = '\u{1f}';

pub(crate) fn text(serial: u64, own: Option<&str>) -> String {
    own.map_or_else(|| serial.to_string(), |own| format!("{serial}{END}{own}"))
}

/// The serial number in a text; 0 if it is not of ours.
pub(crate) fn serial(text: &str) -> u64 {
    text.split(END).next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[pymethods]
impl Scribe {
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
        text.split_once(END).map_or(String::new(), |(_, own)| own.to_owned())
    }
}
