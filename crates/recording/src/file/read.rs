//! Reading: chunk by chunk, each row checked before it is kept. Memory stays proportional to the file.

use super::chunk::{Chunk, u32_at, u64_at};
use super::error::Error;
use super::{MAGIC, VERSION, about, events, finish};
use crate::owner::{Frame, FrameId, Owner, Stack, StackId, TextId};
use crate::{Event, Module, Recording};

/// Stream and pool of a block or segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct StreamAndPool {
    /// The raw stream.
    pub(super) stream: u64,
    /// Private pool, as (0, 0) for the default pool.
    pub(super) pool: (u32, u32),
}

/// What was read so far, and what the file's numbers mean.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) recording: Recording,
    /// The file may hold a text twice, the recording does not.
    texts: Vec<TextId>,
    places: Vec<StreamAndPool>,
}

/// Reads a file. One that ends inside a chunk is a killed run's: `about.complete` is false then.
pub fn read(bytes: &[u8]) -> Result<Recording, Error> {
    let (magic, rest) = bytes.split_first_chunk().ok_or(Error::NotARecording)?;
    let (version, mut rest) = rest.split_first_chunk().ok_or(Error::NotARecording)?;
    let found = u32::from_le_bytes(*version);
    if magic != MAGIC || found == 0 {
        return Err(Error::NotARecording);
    }
    if VERSION < found {
        return Err(Error::NewerVersion { found });
    }
    let mut tables = Tables { texts: vec![TextId(0)], ..Tables::default() };
    while let Some(chunk) = Chunk::first(rest, (bytes.len() - rest.len()) as u64) {
        let (chunk, tail) = chunk?;
        tables.take(&chunk)?;
        rest = tail;
    }
    tables.recording.about.complete &= rest.is_empty();
    Ok(tables.recording)
}

impl Tables {
    fn take(&mut self, chunk: &Chunk<'_>) -> Result<(), Error> {
        match chunk.tag {
            b"ABOU" => {
                let merged = about::merge(&mut self.recording.about, chunk.payload);
                merged.map_err(|why| chunk.wrong(0, why))
            }
            b"TEXT" => self.take_texts(chunk),
            b"FRAM" => self.take_rows(chunk, Tables::frame),
            b"SRCE" => self.take_rows(chunk, Tables::source),
            b"STAC" => self.take_rows(chunk, Tables::stack),
            b"OWNR" => self.take_rows(chunk, Tables::owner),
            b"MODU" => self.take_rows(chunk, Tables::module),
            b"PLAC" => {
                let rows = chunk.rows(16)?.map(|(_, row)| StreamAndPool {
                    stream: u64_at(row, 0),
                    pool: (u32_at(row, 8), u32_at(row, 12)),
                });
                self.places.extend(rows);
                Ok(())
            }
            b"EVNT" => {
                let mut kept = std::mem::take(&mut self.recording.events);
                let taken = self.take_events(chunk, &mut kept);
                self.recording.events = kept;
                taken
            }
            b"STRT" => {
                let mut kept = std::mem::take(&mut self.recording.start);
                let taken = self.take_events(chunk, &mut kept);
                self.recording.start = kept;
                taken
            }
            b"FINI" => {
                let segments = finish::decode(chunk, self)?;
                self.recording.finish.extend(segments);
                Ok(())
            }
            b"DONE" => {
                self.recording.about.complete = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_texts(&mut self, chunk: &Chunk<'_>) -> Result<(), Error> {
        let mut rest = chunk.payload;
        while !rest.is_empty() {
            let at = chunk.payload.len() - rest.len();
            let short = || chunk.wrong(at, "the last text is not whole");
            let (length, tail) = rest.split_first_chunk().ok_or_else(short)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (text, tail) = tail.split_at_checked(length).ok_or_else(short)?;
            let text = str::from_utf8(text).map_err(|error| chunk.wrong(at, error.to_string()))?;
            self.texts.push(self.recording.texts.intern(text));
            rest = tail;
        }
        Ok(())
    }

    /// Rows of `N` numbers of 32 bits.
    fn take_rows<const N: usize>(
        &mut self,
        chunk: &Chunk<'_>,
        take: fn(&mut Tables, [u32; N]) -> Result<(), String>,
    ) -> Result<(), Error> {
        for (at, row) in chunk.rows(4 * N)? {
            let numbers = std::array::from_fn(|index| u32_at(row, 4 * index));
            take(self, numbers).map_err(|why| chunk.wrong(at, why))?;
        }
        Ok(())
    }

    fn take_events(&self, chunk: &Chunk<'_>, events: &mut Vec<Event>) -> Result<(), Error> {
        drop(chunk.rows(events::ROW)?);
        let (rows, _) = chunk.payload.as_chunks();
        events.reserve(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let event = events::decode(row, self);
            events.push(event.map_err(|why| chunk.wrong(index * events::ROW, why))?);
        }
        Ok(())
    }

    fn frame(&mut self, [file, function, line]: [u32; 3]) -> Result<(), String> {
        let (file, function) = (self.text(file)?, self.text(function)?);
        self.recording.frames.push(Frame { file, function, line, source: TextId(0) });
        Ok(())
    }

    fn source(&mut self, [frame, text]: [u32; 2]) -> Result<(), String> {
        let (frames, text) = (self.recording.frames.len(), self.text(text)?);
        let frame = self.recording.frames.get_mut(frame as usize);
        frame.ok_or_else(|| format!("its frame is not among {frames}"))?.source = text;
        Ok(())
    }

    fn stack(&mut self, [frame, caller]: [u32; 2]) -> Result<(), String> {
        let frames = self.recording.frames.len();
        if frames <= frame as usize {
            return Err(format!("frame {frame} is not among {frames}"));
        }
        let caller = self.stack_number(caller)?;
        self.recording.stacks.push(Stack { frame: FrameId(frame), caller });
        Ok(())
    }

    fn owner(&mut self, [module, operator, node, stack]: [u32; 4]) -> Result<(), String> {
        let (module, operator) = (self.text(module)?, self.text(operator)?);
        let (node, stack) = (self.text(node)?, self.stack_number(stack)?);
        self.recording.owners.push(Owner { module, operator, node, stack });
        Ok(())
    }

    fn module(&mut self, [path, class]: [u32; 2]) -> Result<(), String> {
        let module = Module { path: self.text(path)?, class: self.text(class)? };
        self.recording.modules.push(module);
        Ok(())
    }

    /// Stacks are written plus one: 0 is none. Only stacks that came before count, so there is no
    /// way round in a circle.
    fn stack_number(&self, plus_one: u32) -> Result<Option<StackId>, String> {
        let stacks = self.recording.stacks.len();
        match plus_one.checked_sub(1) {
            Some(number) if stacks <= number as usize => {
                Err(format!("stack {number} is not among the {stacks} before"))
            }
            number => Ok(number.map(StackId)),
        }
    }

    /// The recording's number of a file's text.
    pub(super) fn text(&self, number: u32) -> Result<TextId, String> {
        let known = self.texts.get(number as usize).copied();
        known.ok_or_else(|| format!("text {number} is not among {}", self.texts.len()))
    }

    /// The place of a number.
    pub(super) fn place(&self, number: u16) -> Result<StreamAndPool, String> {
        let known = self.places.get(number as usize).copied();
        known.ok_or_else(|| format!("place {number} is not among {}", self.places.len()))
    }
}
