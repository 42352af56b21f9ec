//! Places where values that are not known, or modelled, decide something.

use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Decided<'a> {
    operator: &'a str,
    file: Option<&'a str>,
    line: Option<u64>,
    library_file: Option<&'a str>,
    library_line: Option<u64>,
    why: &'a str,
    assumed: &'a str,
    count: u64,
}

impl<'a> Decided<'a> {
    pub(super) fn of(decision: &'a study::Decision) -> Decided<'a> {
        let (place, library) = (decision.place.as_ref(), decision.library.as_ref());
        Decided {
            operator: &decision.operator,
            file: place.map(|(file, _)| file.as_str()),
            line: place.map(|(_, line)| *line),
            library_file: library.map(|(file, _)| file.as_str()),
            library_line: library.map(|(_, line)| *line),
            why: &decision.why,
            assumed: &decision.assumed,
            count: decision.count,
        }
    }
}
