//! Writing a whole recording at once.

use std::collections::HashMap;

use super::chunk::append;
use super::read::StreamAndPool;
use super::{MAGIC, VERSION, about, events, finish};
use crate::owner::{StackId, TextId};
use crate::{Event, Recording};

/// Payloads are cut here: small enough to lose little in a kill, large enough to cost nothing.
const CHUNK: usize = 1 << 18;

/// The file of a recording. Its numbers must be those of its own tables.
pub fn write(recording: &Recording) -> Vec<u8> {
    let mut file = Vec::with_capacity(events::ROW * recording.events.len() + (1 << 12));
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    append(&mut file, b"ABOU", &about::json(&recording.about));
    append_tables(&mut file, recording);
    let places = Places::of(recording);
    rows(&mut file, b"PLAC", places.list.iter().map(place_row));
    let event_row = |event: &Event| events::encode(event, places.number(events::place(event)));
    rows(&mut file, b"STRT", recording.start.iter().map(event_row));
    rows(&mut file, b"EVNT", recording.events.iter().map(event_row));
    let segments = recording.finish.iter().map(|segment| {
        let place = StreamAndPool { stream: segment.stream, pool: segment.pool };
        finish::encode(segment, places.number(place))
    });
    rows(&mut file, b"FINI", segments);
    if recording.about.complete {
        append(&mut file, b"DONE", &[]);
    }
    file
}

fn append_tables(file: &mut Vec<u8>, recording: &Recording) {
    let stack_number = |stack: Option<StackId>| stack.map_or(0, |stack| stack.0 + 1);
    let texts = recording
        .texts
        .iter()
        .skip(1)
        .map(|text| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat());
    rows(file, b"TEXT", texts);
    let frames = recording.frames.iter().map(|frame| [frame.file.0, frame.function.0, frame.line]);
    rows(file, b"FRAM", frames.map(numbers));
    let sources = (0..).zip(&recording.frames).filter(|(_, frame)| frame.source != TextId(0));
    rows(file, b"SRCE", sources.map(|(number, frame)| numbers([number, frame.source.0])));
    let stacks = recording.stacks.iter().map(|stack| [stack.frame.0, stack_number(stack.caller)]);
    rows(file, b"STAC", stacks.map(numbers));
    let owners = recording
        .owners
        .iter()
        .map(|owner| [owner.module.0, owner.operator.0, owner.node.0, stack_number(owner.stack)]);
    rows(file, b"OWNR", owners.map(numbers));
    let modules = recording.modules.iter().map(|module| [module.path.0, module.class.0]);
    rows(file, b"MODU", modules.map(numbers));
}

pub(super) fn numbers<const N: usize>(row: [u32; N]) -> Vec<u8> {
    row.iter().flat_map(|number| number.to_le_bytes()).collect()
}

pub(super) fn place_row(place: &StreamAndPool) -> Vec<u8> {
    let (a, b) = place.pool;
    [&place.stream.to_le_bytes()[..], &a.to_le_bytes(), &b.to_le_bytes()].concat()
}

/// Rows in as many chunks as they need.
fn rows<Row: AsRef<[u8]>>(file: &mut Vec<u8>, tag: &[u8; 4], rows: impl Iterator<Item = Row>) {
    let mut payload = Vec::new();
    for row in rows {
        payload.extend_from_slice(row.as_ref());
        if CHUNK <= payload.len() {
            append(file, tag, &payload);
            payload.clear();
        }
    }
    if !payload.is_empty() {
        append(file, tag, &payload);
    }
}

/// Streams and pools that occur, numbered; number 0 is always the default stream and pool.
struct Places {
    list: Vec<StreamAndPool>,
    numbers: HashMap<StreamAndPool, u16>,
}

impl Places {
    fn of(recording: &Recording) -> Places {
        let default = StreamAndPool::default();
        let mut places = Places { list: vec![default], numbers: HashMap::from([(default, 0)]) };
        let events = recording.start.iter().chain(&recording.events).map(events::place);
        let finish = recording.finish.iter();
        let finish =
            finish.map(|segment| StreamAndPool { stream: segment.stream, pool: segment.pool });
        for place in events.chain(finish).filter(|place| *place != default) {
            places.numbers.entry(place).or_insert_with(|| {
                places.list.push(place);
                u16::try_from(places.list.len() - 1).expect("at most 65,536 streams and pools")
            });
        }
        places
    }

    fn number(&self, place: StreamAndPool) -> u16 {
        self.numbers.get(&place).copied().unwrap_or(0)
    }
}
