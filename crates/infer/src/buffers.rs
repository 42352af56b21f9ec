//! Buffers and parameters come to the card by one function, `nn.Module._apply`; the line tells which is which.

use std::collections::{BTreeSet, HashMap, HashSet};

use recording::{Frame, Recording, StackId, TextId};

use crate::reading::Reading;
use crate::sources::Sources;

/// In every version, the line for buffers is the last of the function, and this far from the one for parameters.
const APART: std::ops::RangeInclusive<u32> = 15..=120;

/// The frames of `_apply` that move buffers.
pub(crate) fn lines(
    recording: &Recording,
    sources: &dyn Sources,
    readings: &[Reading],
    stacks: &[Option<StackId>],
) -> HashSet<Frame> {
    let applied =
        stacks.iter().flatten().filter_map(|stack| readings.get(stack.0 as usize)?.applied);
    let frames: HashSet<Frame> = applied.collect();
    let mut by_file: HashMap<TextId, BTreeSet<u32>> = HashMap::new();
    for frame in &frames {
        by_file.entry(frame.file).or_default().insert(frame.line);
    }
    let mut found = HashSet::new();
    for (file, lines) in by_file {
        let text = sources.text(recording.texts.get(file));
        let of_buffers = |line: &u32| match &text {
            Some(text) => {
                let source = text.lines().nth((*line as usize).saturating_sub(1));
                source.is_some_and(|source| source.contains("fn(buf"))
            }
            None => {
                let first = lines.first().copied().unwrap_or(*line);
                lines.last() == Some(line) && APART.contains(&(line - first))
            }
        };
        let buffers: HashSet<u32> = lines.iter().copied().filter(of_buffers).collect();
        found.extend(frames.iter().filter(|at| at.file == file && buffers.contains(&at.line)));
    }
    found
}
