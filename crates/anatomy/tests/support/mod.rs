//! Recordings written down by hand: who allocates what, and what it is called.
#![allow(dead_code, reason = "each test uses a part")]

use allocator::{Settings, Timeline, replay};
use anatomy::{Anatomy, dissect};
use recording::{
    Category, Event, Frame, FrameId, Mark, Module, Owner, OwnerId, Phase, Recording, Stack, StackId,
};

/// A recording that grows line by line. Addresses are labels: the replay gives its own.
pub(crate) struct Script {
    pub(crate) recording: Recording,
    next: u64,
    sizes: std::collections::HashMap<u64, u64>,
}

impl Script {
    pub(crate) fn new() -> Script {
        let mut recording = Recording::default();
        recording.owners.push(Owner::default());
        Script { recording, next: 1 << 20, sizes: std::collections::HashMap::new() }
    }

    pub(crate) fn phase(&mut self, phase: Phase, step: u32) {
        self.recording.events.push(Event::Mark(Mark::Phase { phase, step }));
    }

    pub(crate) fn module(&mut self, path: &str, class: &str) {
        let texts = &mut self.recording.texts;
        let (path, class) = (texts.intern(path), texts.intern(class));
        self.recording.modules.push(Module { path, class });
    }

    /// An owner; the files are a call stack, outermost first.
    pub(crate) fn owner(&mut self, module: &str, operator: &str, stack: &[(&str, u32)]) -> OwnerId {
        let mut caller = None;
        for (file, line) in stack {
            let function = self.recording.texts.intern("main");
            let file = self.recording.texts.intern(file);
            let frame = FrameId(self.recording.frames.len() as u32);
            let line = *line;
            self.recording.frames.push(Frame { file, function, line, ..Frame::default() });
            self.recording.stacks.push(Stack { frame, caller });
            caller = Some(StackId(self.recording.stacks.len() as u32 - 1));
        }
        let texts = &mut self.recording.texts;
        let (module, operator) = (texts.intern(module), texts.intern(operator));
        let owner = Owner { module, operator, stack: caller, ..Owner::default() };
        self.recording.owners.push(owner);
        OwnerId(self.recording.owners.len() as u32 - 1)
    }

    pub(crate) fn alloc(&mut self, size: u64, owner: OwnerId) -> u64 {
        let address = self.next;
        self.next += size.next_multiple_of(512) + 512;
        self.sizes.insert(address, size);
        let event = Event::Alloc { address, size, stream: 0, owner, pool: (0, 0) };
        self.recording.events.push(event);
        address
    }

    pub(crate) fn name(&mut self, address: u64, category: Category, name: &str) {
        let name = self.recording.texts.intern(name);
        self.recording.events.push(Event::Mark(Mark::Name { address, category, name }));
    }

    pub(crate) fn area(&mut self, address: u64, area: &str) {
        let area = self.recording.texts.intern(area);
        self.recording.events.push(Event::Mark(Mark::Area { address, area }));
    }

    pub(crate) fn tensor(&mut self, address: u64, what: &str) {
        let what = self.recording.texts.intern(what);
        self.recording.events.push(Event::Mark(Mark::Tensor { address, what }));
    }

    pub(crate) fn free(&mut self, address: u64) {
        let size = self.sizes[&address];
        self.recording.events.push(Event::FreeRequested { address, size });
        self.recording.events.push(Event::FreeCompleted { address, size });
    }

    pub(crate) fn dissect(&self) -> (Timeline, Anatomy) {
        let timeline = replay(&self.recording, &Settings::default());
        let anatomy = dissect(&self.recording, &timeline);
        (timeline, anatomy)
    }
}
