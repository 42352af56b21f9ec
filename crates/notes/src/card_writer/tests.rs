//! A writer on a file in memory: what is noted, what PyTorch's history says, and the recording that comes of both.

use std::cell::RefCell;
use std::rc::Rc;

use recording::{Phase, Recording, text};

use super::*;
use crate::parts::Part;
use crate::stacks::Running;
use crate::state::{Area, Function};
use crate::work_areas::{WorkArea, WorkAreas};

/// A file that can be read while a writer has it.
#[derive(Clone, Default)]
struct Paper(Rc<RefCell<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The code of a frame of ours; that of the user's frames is their line.
const OURS: usize = 0x100;

/// The module `net`, number 1, whose function `linear` is called in line 12.
struct Script {
    state: State,
    writer: CardWriter<Paper>,
    paper: Paper,
    function: PartNumber,
}

impl Script {
    fn new() -> Script {
        let mut state = State::default();
        let linear = Function { name: "linear".to_owned(), ..Function::default() };
        state.functions.push(linear);
        let walk = [40, OURS, 12].map(|code| Running { code, at: 0 });
        let stack = state.stacks.number(walk.into_iter(), 0, |_| ());
        let function = state.parts.number(Part { module: 1, function: 1, stack, node: None });
        let paper = Paper::default();
        let mut writer = CardWriter::new(paper.clone(), "{}", 0).unwrap();
        writer.add_module("net", "Net");
        Script { state, writer, paper, function }
    }

    /// The three steps.
    fn write(&mut self, entries: &[Entry], notes: &[Note], batch: Batch<'_>) {
        let wanted = self.writer.look(&mut self.state, entries);
        for (stack, below, running) in &wanted.stacks {
            let line = running.code as u32;
            let user = Frame { file: "train.py".into(), line, ..Frame::default() };
            self.writer.add_frame(*stack, *below, (running.code != OURS).then_some(&user));
        }
        wanted.owners.iter().for_each(|new| self.writer.add_owner(new));
        let frames = [Frame { file: "data.py".into(), line: 3, ..Frame::default() }];
        let outside = wanted.outside.iter();
        let outside =
            outside.map(|each| (each.index, self.writer.owner_outside(*each, &frames))).collect();
        let batch = Batch { entries, notes, outside, ..batch };
        self.writer.write(&mut self.state, &batch);
        self.writer.flush().unwrap();
    }

    fn recording(mut self) -> Recording {
        self.writer.finish(&[], "{}").unwrap();
        recording::file::read(&self.paper.0.borrow()).unwrap()
    }

    /// Events alone, as text.
    fn events(self) -> Vec<String> {
        self.recording().events.iter().map(ToString::to_string).collect()
    }
}

fn entry(line: &str, serial: u64) -> Entry {
    let event = text::parse(line).unwrap()[0];
    Entry { event: Some(event), is_request: line.starts_with("free_requested"), serial }
}

fn note(serial: u64, address: u64, what: What) -> Note {
    Note { serial, device: 0, address, what }
}

#[test]
fn an_allocation_belongs_to_the_function_that_ran() {
    let mut script = Script::new();
    let serial = script.state.parts.begin(script.function);
    script.write(&[entry("alloc 0xa 100", serial)], &[], Batch::default());
    assert!(script.state.functions[1].allocates);
    // The same part again: it is described once.
    let again = script.state.parts.begin(script.function);
    let entries = [entry("alloc 0xb 100", again)];
    let wanted = script.writer.look(&mut script.state, &entries);
    assert!(wanted.owners.is_empty() && wanted.stacks.is_empty());
    script.write(&entries, &[], Batch::default());
    let recording = script.recording();
    let owner = recording.owners[1];
    let texts = [owner.module, owner.operator].map(|id| recording.texts.get(id));
    assert_eq!(texts, ["net", "linear"]);
    let stack = recording.stacks[owner.stack.unwrap().0 as usize];
    let caller = recording.stacks[stack.caller.unwrap().0 as usize];
    let lines = [stack, caller].map(|stack| recording.frames[stack.frame.0 as usize].line);
    assert_eq!((lines, caller.caller), ([12, 40], None), "frames of ours are left out");
    assert_eq!(recording.owners.len(), 2);
    let lines: Vec<String> = recording.events.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["alloc 0xa 100 stream 0 owner 1", "alloc 0xb 100 stream 0 owner 1"]);
}

#[test]
fn outside_of_functions_the_historys_own_frames_say_the_line() {
    let mut script = Script::new();
    let module = script.state.parts.number(Part { module: 1, ..Part::default() });
    let serial = script.state.parts.begin(module);
    script.write(
        &[entry("alloc 0xa 100", serial), entry("oom 9 free 1", 99)],
        &[],
        Batch::default(),
    );
    let recording = script.recording();
    let lines: Vec<String> = recording.events.iter().map(ToString::to_string).collect();
    assert_eq!(lines[0], "alloc 0xa 100 stream 0 owner 1");
    assert_eq!(lines[2], "owner_of 0x0 owner 2", "of a part that nobody knows");
    let file = |owner: usize| {
        let stack = recording.stacks[recording.owners[owner].stack.unwrap().0 as usize];
        recording.texts.get(recording.frames[stack.frame.0 as usize].file)
    };
    assert_eq!((file(1), file(2)), ("data.py", "data.py"));
    let module = |owner: usize| recording.texts.get(recording.owners[owner].module);
    assert_eq!((module(1), module(2)), ("net", ""));
}

#[test]
fn notes_stand_after_the_events_of_their_part() {
    let mut script = Script::new();
    let [first, second] = [(); 2].map(|()| script.state.parts.begin(script.function));
    let word = script.state.words.of("fc.weight");
    let entries = [entry("alloc 0xa 100", first), entry("alloc 0xb 100", second)];
    let notes = [
        note(first, 0xa, What::Name { category: Category::Weights, word }),
        Note { device: 1, ..note(first, 0xa, What::Tensor { word }) },
        note(second, 0, What::Phase { phase: Phase::Forward, step: 1 }),
    ];
    script.write(&entries, &notes, Batch::default());
    let events = script.events();
    let kinds: Vec<&str> = events.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["alloc", "name", "alloc", "phase"], "{events:?}");
}

#[test]
fn what_is_known_at_once_follows_its_allocation() {
    let mut script = Script::new();
    let serial = script.state.parts.begin(script.function);
    let word = script.state.words.of("FSDP");
    let name = Some((Category::Unsharded, word));
    let area = script.state.area(Area { name, area: word });
    script.state.begin_in_area(serial, area);
    script.state.casts.insert(serial, vec![(64, 0x77)]);
    let entries = [entry("alloc 0xa 64", serial), entry("alloc 0xb 32", serial)];
    assert_eq!(script.writer.look(&mut script.state, &entries).parameters, [0x77]);
    let mut workspaces = WorkAreas::default();
    workspaces.add(serial, 0xb, WorkArea { name: "cuBLAS", is_soft: false });
    let parameters = Map::from_iter([(0x77, "fc.weight".to_owned())]);
    let batch = Batch { workspaces: Some(&workspaces), parameters, ..Batch::default() };
    script.write(&entries, &[], batch);
    let recording = script.recording();
    let named = |event: &Event| match event {
        Event::Mark(Mark::Name { address, category, name }) => {
            Some((*address, category.name(), recording.texts.get(*name)))
        }
        _ => None,
    };
    let named: Vec<_> = recording.events.iter().filter_map(named).collect();
    assert_eq!(
        named,
        [
            (0xa, "unsharded_weights", "FSDP"),
            (0xa, "casts", "cast of fc.weight"),
            (0xb, "unsharded_weights", "FSDP"),
            (0xb, "workspace", "cuBLAS"),
        ]
    );
}

/// A search and the run that follows it often get the same block.
#[test]
fn one_address_has_one_use_after_another() {
    let mut script = Script::new();
    let serial = script.state.parts.begin(script.function);
    let words = ["alloc", "free_completed"].repeat(4);
    let entries: Vec<_> =
        words.iter().map(|word| entry(&format!("{word} 0xa 64"), serial)).collect();
    let mut workspaces = WorkAreas::default();
    let [search, run] = [("search", true), ("run", false)];
    for (name, is_soft) in [search, search, search, run, search, run, run] {
        workspaces.add(serial, 0xa, WorkArea { name, is_soft });
    }
    script.write(&entries, &[], Batch { workspaces: Some(&workspaces), ..Batch::default() });
    let events = script.events();
    let marks: Vec<_> = events.iter().filter(|line| !line.contains("free")).collect();
    let kinds: Vec<&str> = marks.iter().map(|line| line.split(' ').next().unwrap()).collect();
    let (a, n, s) = ("alloc", "name", "soft");
    assert_eq!(kinds, [a, n, s, a, n, a, n, s, a, n], "{marks:?}");
}

#[test]
fn a_free_that_was_done_at_once_is_requested_too() {
    let mut script = Script::new();
    let entries = [
        entry("free_completed 0xa 64", 1),
        entry("free_requested 0xb 64", 1),
        entry("free_completed 0xb 64", 1),
    ];
    script.write(&entries, &[], Batch::default());
    let requested = "free_requested 0xa 64,free_completed 0xa 64";
    assert_eq!(
        script.events().join(","),
        format!("{requested},{}", requested.replace("0xa", "0xb"))
    );
}

#[test]
fn frees_that_wait_for_streams_are_marked_until_they_are_done() {
    let mut script = Script::new();
    let entries = [
        entry("free_requested 0xa 64", 3),
        entry("free_requested 0xb 64", 3),
        entry("free_completed 0xb 64", 3),
        entry("free_requested 0xc 64", 4),
        entry("free_completed 0xc 64", 5),
    ];
    let batch = Batch { waits: Some(&[(3, 4)]), ..Batch::default() };
    script.write(&entries, &[], batch);
    let events = script.events();
    let marks =
        events.iter().filter(|line| line.starts_with("deferred") || line.starts_with("idle"));
    // Free 0 was done in part 4; nobody saw free 1 done, so it is at the end.
    assert_eq!(marks.collect::<Vec<_>>(), ["deferred", "deferred", "idle free 0", "idle free 1"]);
}

#[test]
fn unnamed_bytes_are_those_alive_since_all_was_named() {
    let mut script = Script::new();
    let entries =
        [entry("alloc 0xa 64", 1), entry("alloc 0xb 32", 1), entry("free_completed 0xb 32", 1)];
    script.write(&entries, &[], Batch::default());
    assert_eq!(script.writer.unnamed(&script.state), 64);
    let word = script.state.words.of("fc.weight");
    script.state.notes.is_news(0xa, word, 2, 0);
    assert_eq!(script.writer.unnamed(&script.state), 0);
    // Given out again, it is another tensor.
    script.write(&[entry("alloc 0xa 16", 3)], &[], Batch::default());
    assert_eq!(script.writer.unnamed(&script.state), 16);
    script.writer.all_named();
    assert_eq!(script.writer.unnamed(&script.state), 0);
}
