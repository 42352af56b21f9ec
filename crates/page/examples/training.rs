//! Writes the recording of a made-up training run with about as many events as asked for:
//! `training FILE EVENTS`. Tests and benchmarks of the page open it.

use allocator::{Settings, replay};
use recording::{
    Category, Event, Frame, FrameId, Mark, Module, Owner, OwnerId, Phase, Recording, Stack, StackId,
};

const LAYERS: usize = 48;
const MIB: u64 = 1 << 20;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, file, events] = &words[..] else { panic!("training FILE EVENTS") };
    let recording = placed(train(events.parse().expect("a number of events")));
    std::fs::write(file, recording::file::write(&recording)).expect("the file can be written");
    println!("{} events", recording.events.len());
}

/// A recording that grows; addresses are labels until the allocator has placed them.
struct Script {
    recording: Recording,
    next: u64,
    /// A small generator of numbers, always the same ones.
    dice: u64,
}

impl Script {
    fn owner(&mut self, module: &str, operator: &str, line: u32) -> OwnerId {
        let recording = &mut self.recording;
        let texts = &mut recording.texts;
        let file = texts.intern("net.py");
        let function = texts.intern("forward");
        let frame = Frame { file, function, line, ..Frame::default() };
        recording.frames.push(frame);
        let frame = FrameId(recording.frames.len() as u32 - 1);
        recording.stacks.push(Stack { frame, caller: None });
        let stack = Some(StackId(recording.stacks.len() as u32 - 1));
        let (module, operator) = (texts.intern(module), texts.intern(operator));
        recording.owners.push(Owner { module, operator, stack, ..Owner::default() });
        OwnerId(recording.owners.len() as u32 - 1)
    }

    fn phase(&mut self, phase: Phase, step: u32) {
        self.recording.events.push(Event::Mark(Mark::Phase { phase, step }));
    }

    fn alloc(&mut self, size: u64, owner: OwnerId) -> (u64, u64) {
        let address = self.next;
        self.next += 512;
        let event = Event::Alloc { address, size, stream: 0, owner, pool: (0, 0) };
        self.recording.events.push(event);
        (address, size)
    }

    fn named(&mut self, size: u64, owner: OwnerId, category: Category, name: &str) -> (u64, u64) {
        let (address, size) = self.alloc(size, owner);
        let texts = &mut self.recording.texts;
        let (name, what) = (texts.intern(name), texts.intern(&format!("float32[{}]", size / 4)));
        let marks = [Mark::Name { address, category, name }, Mark::Tensor { address, what }];
        self.recording.events.extend(marks.map(Event::Mark));
        (address, size)
    }

    fn free(&mut self, (address, size): (u64, u64)) {
        self.recording.events.push(Event::FreeRequested { address, size });
        self.recording.events.push(Event::FreeCompleted { address, size });
    }

    /// Bytes between a quarter of `size` and all of it.
    fn about(&mut self, size: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        size / 4 + (self.dice >> 33) % (size * 3 / 4)
    }
}

/// The owners of one layer: its parameters, three operators, and the backward pass.
struct Layer {
    name: String,
    forward: [OwnerId; 3],
    backward: OwnerId,
}

fn train(events: usize) -> Recording {
    let mut script = Script { recording: Recording::default(), next: 1 << 20, dice: 7 };
    script.recording.owners.push(Owner::default());
    script.recording.about.torch = "2.15.0".to_owned();
    script.recording.about.memory_bytes = 24 << 30;
    script.recording.about.context_bytes = 256 * MIB;
    script.recording.about.complete = true;
    script.phase(Phase::Construction, 1);
    let layers: Vec<Layer> = (0..LAYERS).map(|index| layer(&mut script, index)).collect();
    for layer in &layers {
        let name = format!("{}.weight", layer.name);
        script.named(16 * MIB, layer.forward[0], Category::Weights, &name);
    }
    let mut step = 1;
    while script.recording.events.len() < events {
        one_step(&mut script, &layers, step);
        step += 1;
    }
    script.recording
}

fn layer(script: &mut Script, index: usize) -> Layer {
    let name = format!("encoder.layers.{index}");
    let texts = &mut script.recording.texts;
    let module = Module { path: texts.intern(&name), class: texts.intern("Layer") };
    script.recording.modules.push(module);
    let operators = ["aten.addmm", "aten.gelu", "aten.layer_norm"];
    let line = 10 + index as u32 % 7;
    let forward = operators.map(|operator| script.owner(&name, operator, line));
    let backward = script.owner(&name, "AddmmBackward0", line);
    Layer { name, forward, backward }
}

fn one_step(script: &mut Script, layers: &[Layer], step: u32) {
    script.phase(Phase::Forward, step);
    let mut kept = Vec::new();
    for layer in layers {
        for (part, owner) in layer.forward.iter().enumerate() {
            let scratch = script.about(8 * MIB);
            let scratch = script.alloc(scratch, *owner);
            let size = (8 + 8 * part as u64) * MIB;
            kept.push(script.named(size, *owner, Category::Activations, "AddmmBackward0.mat1"));
            script.free(scratch);
        }
    }
    script.phase(Phase::Backward, step);
    let mut gradients = Vec::new();
    for layer in layers.iter().rev() {
        let name = format!("grad of {}.weight", layer.name);
        gradients.push(script.named(16 * MIB, layer.backward, Category::Gradients, &name));
        for _ in 0..layer.forward.len() {
            let size = script.about(24 * MIB);
            let scratch = script.alloc(size, layer.backward);
            kept.pop().into_iter().for_each(|saved| script.free(saved));
            script.free(scratch);
        }
    }
    script.phase(Phase::Optimizer, step);
    for gradient in gradients {
        let scratch = script.alloc(gradient.1, layers[0].backward);
        script.free(scratch);
        script.free(gradient);
    }
}

/// The same with true addresses, and with the segments that the allocator took.
fn placed(script: Recording) -> Recording {
    let timeline = replay(&script, &Settings::of(&script.about).expect("a known torch"));
    let mut segments = timeline.segments.iter().peekable();
    let mut places = std::collections::HashMap::new();
    let mut events = Vec::with_capacity(script.events.len());
    for (at, event) in script.events.iter().enumerate() {
        while let Some(segment) = segments.next_if(|segment| segment.at == at) {
            events.push(segment.event);
        }
        let place = timeline.moments[at].address;
        let mut event = *event;
        match &mut event {
            Event::Alloc { address, .. } => {
                places.insert(*address, place);
                *address = place;
            }
            Event::FreeRequested { address, .. }
            | Event::FreeCompleted { address, .. }
            | Event::Mark(Mark::Name { address, .. } | Mark::Tensor { address, .. }) => {
                *address = places[address];
            }
            _ => {}
        }
        events.push(event);
    }
    Recording { events, ..script }
}
