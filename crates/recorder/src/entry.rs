//! PyTorch's memory history, as Python's dictionaries give it.

use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use recording::{Block, BlockState, Event, OwnerId, Segment};

use crate::texts::Text;

/// How names of files end that are not of Python's: sources and libraries of C++; `??` where nobody knows.
const CPP: [&str; 8] = ["??", ".cpp", ".cc", ".c", ".cu", ".h", ".hpp", ".so"];

/// One event of the history.
pub(crate) struct Entry<'py> {
    dict: Bound<'py, PyDict>,
    event: Option<Event>,
    is_request: bool,
}

impl<'py> Entry<'py> {
    pub(crate) fn read(entry: Bound<'py, PyAny>) -> PyResult<Entry<'py>> {
        let py = entry.py();
        let dict = entry.cast_into::<PyDict>()?;
        let action = get(&dict, intern!(py, "action"))?.cast_into::<PyString>()?;
        let action = action.to_cow()?;
        let size: u64 = get(&dict, intern!(py, "size"))?.extract()?;
        let address = || get(&dict, intern!(py, "addr"))?.extract::<u64>();
        let is_request = &*action == "free_requested";
        let event = match &*action {
            "free_requested" | "free" => Some(Event::FreeRequested { address: address()?, size }),
            "free_completed" => Some(Event::FreeCompleted { address: address()?, size }),
            _ => None,
        };
        // Our own snapshots are of a pool that does not exist.
        if event.is_some() || &*action == "snapshot" {
            return Ok(Entry { dict, event, is_request });
        }
        let stream: u64 = get(&dict, intern!(py, "stream"))?.extract()?;
        let pool = match dict.get_item(intern!(py, "pool_id"))? {
            Some(pool) if !pool.is_none() => pool.extract()?,
            _ => (0, 0),
        };
        let event = match &*action {
            "alloc" => Event::Alloc { address: address()?, size, stream, owner: OwnerId(0), pool },
            "segment_alloc" => Event::SegmentAlloc { address: address()?, size, stream, pool },
            "segment_free" => Event::SegmentFree { address: address()?, size, stream, pool },
            "segment_map" => Event::SegmentMap { address: address()?, size, stream, pool },
            "segment_unmap" => Event::SegmentUnmap { address: address()?, size, stream, pool },
            "oom" => {
                let free = get(&dict, intern!(py, "device_free"))?.extract()?;
                Event::OutOfMemory { size, free, stream, pool }
            }
            _ => return Ok(Entry { dict, event: None, is_request }),
        };
        Ok(Entry { dict, event: Some(event), is_request })
    }

    /// Without Python, of a part whose serial number is given, or in the entry's own text.
    pub(crate) fn plain(&self, serial: Option<u64>) -> PyResult<notes::Entry> {
        let serial = serial.map_or_else(|| self.serial(), Ok)?;
        Ok(notes::Entry { event: self.event, is_request: self.is_request, serial })
    }

    /// The serial number in the text that the recorder attached; 0 if it is not ours.
    fn serial(&self) -> PyResult<u64> {
        let text = self.dict.get_item(intern!(self.dict.py(), "user_metadata"))?;
        let Some(text) = text else { return Ok(0) };
        Ok(notes::metadata::serial(&Text::of(text.cast::<PyString>()?)))
    }

    /// File, function and line of the frames that ran, outermost first.
    pub(crate) fn frames(&self) -> PyResult<Vec<(String, String, u32)>> {
        let py = self.dict.py();
        let Some(frames) = self.dict.get_item(intern!(py, "frames"))? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for frame in frames.try_iter()? {
            let frame = frame?.cast_into::<PyDict>()?;
            let text = |name| Text::str(&get(&frame, name)?);
            let line: i64 = get(&frame, intern!(py, "line"))?.extract()?;
            let (file, function) = (text(intern!(py, "filename"))?, text(intern!(py, "name"))?);
            // Frames of C++ are there if the script has asked for them.
            if file.is_empty() || file.contains(".so.") || CPP.iter().any(|end| file.ends_with(end))
            {
                continue;
            }
            found.push((file, function, u32::try_from(line).unwrap_or(0)));
        }
        found.reverse();
        Ok(found)
    }
}

/// The segments of one card.
pub(crate) fn segments(list: &Bound<'_, PyList>, device: u16) -> PyResult<Vec<Segment>> {
    let mut found = Vec::new();
    for segment in list.iter() {
        let segment = segment.cast_into::<PyDict>()?;
        let number =
            |name: &str| segment.get_item(name)?.map_or(Ok(0), |value| value.extract::<u64>());
        if number("device")? != u64::from(device) {
            continue;
        }
        let pool = segment.get_item("segment_pool_id")?;
        let kind = segment.get_item("segment_type")?;
        found.push(Segment {
            address: number("address")?,
            size: number("total_size")?,
            stream: number("stream")?,
            pool: pool.map_or(Ok((0, 0)), |pool| pool.extract())?,
            large: kind.is_some_and(|kind| kind.eq("large").unwrap_or(false)),
            expandable: segment
                .get_item("is_expandable")?
                .map_or(Ok(false), |is| is.is_truthy())?,
            blocks: blocks(&segment)?,
        });
    }
    Ok(found)
}

fn blocks(segment: &Bound<'_, PyDict>) -> PyResult<Vec<Block>> {
    let mut found = Vec::new();
    let Some(blocks) = segment.get_item("blocks")? else { return Ok(found) };
    for block in blocks.try_iter()? {
        let block = block?.cast_into::<PyDict>()?;
        let number =
            |name: &str| block.get_item(name)?.map_or(Ok(0), |value| value.extract::<u64>());
        let state = block.get_item("state")?;
        let state = state.map_or(Ok(String::new()), |state| state.extract())?;
        let state = match &*state {
            "active_awaiting_free" => Some(BlockState::PendingFree),
            name => BlockState::from_name(name),
        };
        let state = state.ok_or_else(|| PyKeyError::new_err("state of a block"))?;
        let (address, size) = (number("address")?, number("size")?);
        found.push(Block { address, size, requested: number("requested_size")?, state });
    }
    Ok(found)
}

fn get<'py>(dict: &Bound<'py, PyDict>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    dict.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_string()))
}
