//! Texts of Python's, which may hold what is not UTF-8: names of files above all.

use std::ops::Deref;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A text; bytes that are not UTF-8 are `�`.
#[derive(Clone)]
pub(crate) struct Text(pub(crate) String);

impl Text {
    pub(crate) fn of(value: &Bound<'_, PyString>) -> Text {
        if let Ok(text) = value.to_cow() {
            return Text(text.into_owned());
        }
        // As Python reads names of files: each such byte is half of a character.
        let py = value.py();
        let given = (intern!(py, "utf-8"), intern!(py, "surrogateescape"));
        let bytes = value.call_method1(intern!(py, "encode"), given);
        let bytes = bytes.ok().and_then(|bytes| bytes.cast_into::<PyBytes>().ok());
        Text(match bytes {
            Some(bytes) => String::from_utf8_lossy(bytes.as_bytes()).into_owned(),
            None => value.to_string_lossy().into_owned(),
        })
    }

    /// What Python would print of a value.
    pub(crate) fn str(value: &Bound<'_, PyAny>) -> PyResult<String> {
        Ok(Text::of(&value.str()?).0)
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Text> {
        Ok(Text::of(&value.to_owned().cast_into::<PyString>()?))
    }
}
