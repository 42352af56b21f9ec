//! Where a code object comes from.

use pyo3::intern;
use pyo3::prelude::*;

use crate::texts::Text;

/// File, name and line of code that has run up to an instruction.
pub(crate) fn describe(
    py: Python<'_>,
    code: &Py<PyAny>,
    at: i32,
) -> PyResult<(String, String, u32)> {
    let code = code.bind(py);
    let name = code.getattr(intern!(py, "co_qualname"));
    let name = name.or_else(|_| code.getattr(intern!(py, "co_name")))?;
    let file = code.getattr(intern!(py, "co_filename"))?;
    Ok((Text::str(&file)?, Text::str(&name)?, line(code, at)?))
}

fn line(code: &Bound<'_, PyAny>, at: i32) -> PyResult<u32> {
    let py = code.py();
    for lines in code.call_method0(intern!(py, "co_lines"))?.try_iter()? {
        let (start, end, line): (i32, i32, Option<u32>) = lines?.extract()?;
        if start <= at && at < end {
            if let Some(line) = line {
                return Ok(line);
            }
            break;
        }
    }
    code.getattr(intern!(py, "co_firstlineno"))?.extract()
}
