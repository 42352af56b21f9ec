//! Writing a recording in pieces, while the script runs: what a killed process has written can still be read.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

use super::chunk::append;
use super::read::StreamAndPool;
use super::write::{numbers, place_row};
use super::{MAGIC, VERSION, events, finish};
use crate::owner::{Frame, FrameId, Owner, OwnerId, Stack, StackId, Text, TextId};
use crate::{Event, Module, Segment};

/// Interns what events refer to, and writes both, the tables before the events.
#[derive(Debug)]
pub struct Writer<W> {
    file: W,
    texts: Text,
    frames: HashMap<Frame, u32>,
    stacks: HashMap<Stack, u32>,
    owners: HashMap<Owner, u32>,
    places: HashMap<StreamAndPool, u32>,
    pending: Pending,
}

/// Rows that wait for the next [`Writer::flush`].
#[derive(Debug, Default)]
struct Pending {
    texts: Vec<u8>,
    frames: Vec<u8>,
    sources: Vec<u8>,
    stacks: Vec<u8>,
    owners: Vec<u8>,
    modules: Vec<u8>,
    places: Vec<u8>,
    events: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file; `about` is a JSON object.
    pub fn new(mut file: W, about: &str) -> io::Result<Writer<W>> {
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        let mut writer = Writer {
            file,
            texts: Text::default(),
            frames: HashMap::new(),
            stacks: HashMap::new(),
            owners: HashMap::new(),
            places: HashMap::new(),
            pending: Pending::default(),
        };
        writer.place(StreamAndPool::default());
        writer.owner(Owner::default());
        writer.about(about)?;
        Ok(writer)
    }

    /// More facts of the run, as a JSON object.
    pub fn about(&mut self, json: &str) -> io::Result<()> {
        self.chunk(b"ABOU", json.as_bytes())
    }

    /// The number of a text.
    pub fn text(&mut self, text: &str) -> TextId {
        let known = self.texts.len();
        let id = self.texts.intern(text);
        if id.0 as usize == known {
            self.pending.texts.extend_from_slice(&(text.len() as u32).to_le_bytes());
            self.pending.texts.extend_from_slice(text.as_bytes());
        }
        id
    }

    /// The number of a frame.
    pub fn frame(&mut self, frame: Frame) -> FrameId {
        let row = [frame.file.0, frame.function.0, frame.line];
        let known = self.frames.len();
        let number = intern(&mut self.frames, frame, &mut self.pending.frames, || numbers(row));
        if frame.source != TextId(0) && number as usize == known {
            self.pending.sources.extend(numbers([number, frame.source.0]));
        }
        FrameId(number)
    }

    /// The number of a frame on top of a stack.
    pub fn stack(&mut self, stack: Stack) -> StackId {
        let row = [stack.frame.0, stack.caller.map_or(0, |caller| caller.0 + 1)];
        StackId(intern(&mut self.stacks, stack, &mut self.pending.stacks, || numbers(row)))
    }

    /// The number of an owner.
    pub fn owner(&mut self, owner: Owner) -> OwnerId {
        let stack = owner.stack.map_or(0, |stack| stack.0 + 1);
        let row = [owner.module.0, owner.operator.0, owner.node.0, stack];
        OwnerId(intern(&mut self.owners, owner, &mut self.pending.owners, || numbers(row)))
    }

    /// Adds a module; each is given once.
    pub fn module(&mut self, module: Module) {
        self.pending.modules.extend(numbers([module.path.0, module.class.0]));
    }

    /// Adds an event.
    pub fn event(&mut self, event: &Event) {
        let place = self.place(events::place(event));
        self.pending.events.extend_from_slice(&events::encode(event, place));
    }

    fn place(&mut self, place: StreamAndPool) -> u16 {
        let rows = &mut self.pending.places;
        intern(&mut self.places, place, rows, || place_row(&place)) as u16
    }

    /// Writes what waits: an event only names what stands before it.
    pub fn flush(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let tables: [(&[u8; 4], _); 8] = [
            (b"TEXT", pending.texts),
            (b"FRAM", pending.frames),
            (b"SRCE", pending.sources),
            (b"STAC", pending.stacks),
            (b"OWNR", pending.owners),
            (b"MODU", pending.modules),
            (b"PLAC", pending.places),
            (b"EVNT", pending.events),
        ];
        for (tag, payload) in tables.iter().filter(|(_, payload)| !payload.is_empty()) {
            self.chunk(tag, payload)?;
        }
        self.file.flush()
    }

    /// The last state, and the end.
    pub fn finish(&mut self, segments: &[Segment]) -> io::Result<()> {
        let mut payload = Vec::new();
        for segment in segments {
            let place = self.place(StreamAndPool { stream: segment.stream, pool: segment.pool });
            payload.extend(finish::encode(segment, place));
        }
        self.flush()?;
        if !payload.is_empty() {
            self.chunk(b"FINI", &payload)?;
        }
        self.chunk(b"DONE", &[])?;
        self.file.flush()
    }

    fn chunk(&mut self, tag: &[u8; 4], payload: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(payload.len() + super::chunk::HEADER);
        append(&mut bytes, tag, payload);
        self.file.write_all(&bytes)
    }
}

/// The number of a row, which is written if it is new.
fn intern<Row: Hash + Eq>(
    known: &mut HashMap<Row, u32>,
    row: Row,
    pending: &mut Vec<u8>,
    bytes: impl FnOnce() -> Vec<u8>,
) -> u32 {
    let next = known.len() as u32;
    *known.entry(row).or_insert_with(|| {
        pending.extend(bytes());
        next
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::read;
    use crate::{Block, BlockState, Mark, Phase};

    fn alloc(writer: &mut Writer<&mut Vec<u8>>, line: u32) -> Event {
        let (file, source) = (writer.text("train.py"), writer.text("x = f(x)"));
        let function = writer.text("step");
        let frame = writer.frame(Frame { file, function, line, source });
        let stack = Some(writer.stack(Stack { frame, caller: None }));
        let owner = Owner { module: writer.text("encoder"), stack, ..Owner::default() };
        let owner = writer.owner(owner);
        Event::Alloc { address: 4096, size: 512, stream: 7, owner, pool: (0, 1) }
    }

    #[test]
    fn pieces_are_read_as_one_recording() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, r#"{"torch": "2.15"}"#).unwrap();
        let mut events = Vec::new();
        for line in [3, 5, 3] {
            events.push(alloc(&mut writer, line));
            events.push(Event::Mark(Mark::Phase { phase: Phase::Forward, step: line }));
            for event in &events[events.len() - 2..] {
                writer.event(event);
            }
            writer.flush().unwrap();
        }
        let block =
            Block { address: 4096, size: 512, requested: 512, state: BlockState::Allocated };
        let segment = Segment {
            address: 4096,
            size: 2 << 20,
            stream: 7,
            pool: (0, 1),
            large: false,
            expandable: false,
            blocks: vec![block],
        };
        writer.finish(std::slice::from_ref(&segment)).unwrap();
        let recording = read(&bytes).unwrap();
        assert_eq!(recording.events, events);
        assert_eq!(recording.finish, [segment]);
        assert_eq!(recording.about.torch, "2.15");
        assert!(recording.about.complete);
        assert_eq!(
            (recording.frames.len(), recording.stacks.len()),
            (2, 2),
            "known rows are not written again"
        );
        assert_eq!(recording.texts.get(recording.frames[0].source), "x = f(x)");
    }
}
