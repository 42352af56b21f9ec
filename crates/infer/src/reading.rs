//! What the frames of each stack say, read once from the outermost frame inwards.

use std::collections::{HashMap, HashSet};

use recording::{Frame, Module, Phase, Recording, StackId, Text, TextId};

use crate::cpp;
use crate::rules::{self, BASES, CLASSES, COMPILERS, Says};
use crate::sources::{Sources, class_at};

/// What a stack says of what is allocated in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// The pass or step that runs; `None` if no frame says.
    pub(crate) phase: Option<Phase>,
    /// The autograd node, in a backward pass.
    pub(crate) node: TextId,
    /// The operator that Python called.
    pub(crate) operator: TextId,
    /// Path of the module, by the classes that call each other; 0 outside of modules.
    pub(crate) module: TextId,
    /// What the innermost frame says that says what this is.
    pub(crate) says: Option<Says>,
    /// A frame of Python runs.
    pub(crate) has_python: bool,
    /// Frames of C++ are there.
    pub(crate) has_cpp: bool,
    /// A tensor is made, where frames of C++ are there to tell.
    pub(crate) makes_tensor: bool,
    /// A library is called that has workspaces.
    pub(crate) calls_library: bool,
    /// Inside an `__init__` of Python, or where models are loaded.
    pub(crate) builds: bool,
    /// Gradients are set to nothing.
    pub(crate) zeroes: bool,
    /// The innermost `__init__`.
    pub(crate) built: Option<Frame>,
    /// The line of `nn.Module._apply` that runs: parameters and buffers have their own.
    pub(crate) applied: Option<Frame>,
    /// The pass of the innermost module, which `module` leaves out until all is read.
    own: Option<Frame>,
    /// Something that was called as a module has not shown its pass yet: the first frame below the call.
    waiting: Option<Option<Frame>>,
}

/// Reads stacks; what it finds goes to the recording's texts and modules.
pub(crate) struct Reader<'a> {
    sources: &'a dyn Sources,
    files: HashMap<TextId, Option<String>>,
    classes: HashMap<(Frame, TextId), TextId>,
    rows: HashMap<(TextId, TextId), Option<Says>>,
    names: HashMap<TextId, cpp::Name>,
    modules: Vec<Module>,
    paths: HashSet<TextId>,
    /// `2d` if convolutions of images run, for layers whose class does not tell.
    dimensions: &'static str,
}

/// The readings of all stacks of a recording, whose texts and modules grow.
pub(crate) fn read(recording: &mut Recording, sources: &dyn Sources) -> Vec<Reading> {
    let mut reader = Reader {
        sources,
        files: HashMap::new(),
        classes: HashMap::new(),
        rows: HashMap::new(),
        names: HashMap::new(),
        modules: Vec::new(),
        paths: HashSet::new(),
        dimensions: dimensions(&recording.texts),
    };
    let mut readings: Vec<Reading> = Vec::with_capacity(recording.stacks.len());
    for stack in &recording.stacks {
        let above = stack.caller.and_then(|StackId(caller)| readings.get(caller as usize));
        let above = above.copied().unwrap_or_default();
        let frame = recording.frames.get(stack.frame.0 as usize).copied().unwrap_or_default();
        readings.push(reader.next(above, frame, &mut recording.texts));
    }
    for reading in &mut readings {
        reader.end(reading, &mut recording.texts);
    }
    recording.modules.extend(reader.modules);
    readings
}

impl Reader<'_> {
    /// A stack with one more frame.
    fn next(&mut self, above: Reading, frame: Frame, texts: &mut Text) -> Reading {
        let file = texts.get(frame.file);
        let is_generated =
            file.starts_with('<') || file.contains(".py:") || file.contains("ipykernel");
        match file.ends_with(".py") || is_generated {
            true => self.python(above, frame, texts),
            false => self.cpp(above, frame, texts),
        }
    }

    fn cpp(&mut self, above: Reading, frame: Frame, texts: &mut Text) -> Reading {
        let name = match self.names.get(&frame.function) {
            Some(name) => *name,
            None => {
                let name = cpp::read(texts.get(frame.function).to_owned().as_str(), texts);
                self.names.insert(frame.function, name);
                name
            }
        };
        let mut next = above;
        next.has_cpp |= name.is_cpp;
        next.makes_tensor |= name.makes_tensor;
        next.calls_library |= name.calls_library;
        if name.node != TextId(0) {
            (next.node, next.operator) = (name.node, TextId(0));
        }
        if next.operator == TextId(0) {
            next.operator = name.operator;
        }
        say(&mut next, name.says);
        next
    }

    fn python(&mut self, above: Reading, frame: Frame, texts: &mut Text) -> Reading {
        let mut next = above;
        let is_first = !above.has_python;
        (next.has_python, next.operator) = (true, TextId(0));
        let says = self.row(frame, texts);
        let function = texts.get(frame.function);
        // Threads of the engine begin with the backward function of the user's own.
        let file = texts.get(frame.file);
        if is_first && function == "apply" && file.ends_with("torch/autograd/function.py") {
            next.phase = Some(Phase::Backward);
        }
        let is_init = function == "__init__" && says.is_none();
        next.builds |= is_init || (says == Some(Says::Builds) && above.says != Some(Says::Copies));
        next.built = if is_init { Some(frame) } else { above.built };
        if function == "_apply" && says == Some(Says::Builds) {
            next.applied = Some(frame);
        }
        if file.ends_with("torch/nn/functional.py") {
            next.operator = frame.function;
        }
        if says == Some(Says::Call) {
            if let Some(outer) = above.own.or(above.waiting.flatten()) {
                next.module = self.module(above.module, outer, TextId(0), texts);
            }
            (next.own, next.waiting) = (None, Some(None));
            // A forward pass that runs again inside of a backward pass is part of it.
            if next.phase != Some(Phase::Backward) {
                next.phase = Some(Phase::Forward);
            }
            return next;
        }
        say(&mut next, says);
        if let Some(waiting) = above.waiting {
            if is_pass(function) || is_compiled(file, function) {
                (next.own, next.waiting) = (Some(frame), None);
            } else {
                next.waiting = Some(waiting.or(Some(frame)));
            }
        }
        next
    }

    /// A module that never showed its pass is named by the first frame below its call.
    fn end(&mut self, reading: &mut Reading, texts: &mut Text) {
        if let Some(own) = reading.own.or(reading.waiting.flatten()) {
            reading.module = self.module(reading.module, own, reading.operator, texts);
        }
    }

    /// What the table says of a frame.
    fn row(&mut self, frame: Frame, texts: &Text) -> Option<Says> {
        *self.rows.entry((frame.file, frame.function)).or_insert_with(|| {
            let file = texts.get(frame.file).replace('\\', "/");
            rules::says(&file, texts.get(frame.function))
        })
    }

    /// The path of a module below another, by its class.
    fn module(
        &mut self,
        above: TextId,
        frame: Frame,
        operator: TextId,
        texts: &mut Text,
    ) -> TextId {
        let file = texts.get(frame.file).replace('\\', "/");
        if COMPILERS.iter().any(|part| file.contains(part)) {
            return above;
        }
        let class = self.class(frame, operator, texts);
        let (path, above) = (texts.get(class).to_owned(), texts.get(above));
        let path = if above.is_empty() { path } else { format!("{above}.{path}") };
        let path = texts.intern(&path);
        if self.paths.insert(path) {
            self.modules.push(Module { path, class });
        }
        path
    }

    /// `Linear`, or where its pass is written: `model:12`.
    fn class(&mut self, frame: Frame, operator: TextId, texts: &mut Text) -> TextId {
        if let Some(known) = self.classes.get(&(frame, operator)) {
            return *known;
        }
        let file = texts.get(frame.file).to_owned();
        let sources = self.sources;
        let text = self.files.entry(frame.file).or_insert_with(|| sources.text(&file));
        let function = texts.get(frame.function);
        let found = text.as_ref().and_then(|text| class_at(text, frame.line, function));
        let is_compiled = is_compiled(&file, texts.get(frame.function));
        let found = found.or(is_compiled.then(|| "OptimizedModule".to_owned()));
        let name = found
            .or_else(|| of_torch(&file, texts.get(operator)).map(str::to_owned))
            .unwrap_or_else(|| {
                let stem = file.rsplit(['/', '\\']).next().unwrap_or(&file);
                format!("{}:{}", stem.trim_end_matches(".py").replace('.', "_"), frame.line)
            });
        let base = BASES.iter().find(|(base, _)| *base == name);
        let name = base.map_or(name, |(_, plain)| format!("{plain}{}", self.dimensions));
        let class = texts.intern(&name);
        self.classes.insert((frame, operator), class);
        class
    }
}

/// What an inner frame says overrides what an outer one said, as far as it is about the same.
fn say(next: &mut Reading, says: Option<Says>) {
    match says {
        // A forward pass inside of an optimizer is its closure; a step inside of a backward pass is part of it.
        Some(Says::Runs(phase)) => next.phase = Some(phase),
        // What a model is copied from was built before.
        Some(Says::Builds) if next.says == Some(Says::Copies) => {}
        Some(Says::Is(..) | Says::Keeps(..) | Says::Copies | Says::Builds) => next.says = says,
        Some(Says::Zeroes) => next.zeroes = true,
        Some(Says::Call) | None => {}
    }
}

/// Of the convolutions that run; most work on images.
fn dimensions(texts: &Text) -> &'static str {
    let runs = |name: &str| texts.iter().any(|text| text.starts_with(name));
    match () {
        () if runs("at::_ops::conv2d::") => "2d",
        () if runs("at::_ops::conv3d::") => "3d",
        () if runs("at::_ops::conv1d::") => "1d",
        () => "2d",
    }
}

/// Names of functions that are a module's pass.
fn is_pass(function: &str) -> bool {
    function == "forward" || function == "_forward" || function.starts_with("forward_")
}

/// The call of a module that was compiled. `_fn` is around functions that must not be, such as hooks of FSDP.
fn is_compiled(file: &str, function: &str) -> bool {
    file.ends_with("torch/_dynamo/eval_frame.py") && function != "_fn"
}

/// The class of torch's own whose pass is in a file, where the operator tells.
fn of_torch(file: &str, operator: &str) -> Option<&'static str> {
    let file = file.replace('\\', "/");
    let (_, name) = file.rsplit_once("torch/nn/modules/")?;
    let rows = CLASSES.iter().find(|(stem, _)| name.strip_suffix(".py") == Some(stem))?.1;
    rows.iter().find(|(word, _)| word.is_empty() || *word == operator).map(|(_, class)| *class)
}
