//! Compares what is inferred of a snapshot with what a recorder noted of the same run: `score RECORDING SNAPSHOT`.
//!
//! Both see the same requests, so an allocation is known again by its number. Prints one JSON object with the bytes alive
//! at the peak: all, with a category, with the right one; and those with a module, and with one of the right class. With
//! `--half`, the first half of the trace is taken away first, as if history had been turned on in the middle of the run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;

use allocator::{Settings, reproduce};
use anatomy::Modules;
use anatomy::lives::{Life, Lives};
use recording::{Event, Recording};
use serde_json::json;
use snapshot::Action;

struct Files;

impl infer::Sources for Files {
    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(file).ok()
    }
}

/// A recording, its lives by the number of the request, and the time of its peak.
struct Side {
    recording: Recording,
    lives: Lives,
    numbers: HashMap<usize, usize>,
    peak: usize,
}

fn side(recording: Recording) -> Side {
    let settings = Settings::of(&recording.about).expect("settings that exist");
    let timeline = reproduce(&recording, &settings).timeline;
    let lives = Lives::of(&recording, &timeline);
    let requests = recording.events.iter().enumerate();
    let requests = requests.filter(|(_, event)| matches!(event, Event::Alloc { .. }));
    let numbers = requests.enumerate().map(|(number, (at, _))| (at + 1, number)).collect();
    let peak = timeline.moments.iter().enumerate();
    let peak = peak.max_by_key(|(at, moment)| (moment.allocated, std::cmp::Reverse(*at)));
    Side { peak: peak.map_or(0, |(at, _)| at + 1), recording, lives, numbers }
}

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [truth, snapshot, ..] = paths.as_slice() else { panic!("score RECORDING SNAPSHOT") };
    let read = |path: &String| fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let truth = side(recording::file::read(&read(truth)).expect("a recording"));
    let mut found = snapshot::read(&read(snapshot)).expect("a snapshot");
    let older = if paths.contains(&"--half".to_owned()) { cut(&mut found) } else { Older::new() };
    let skipped = older.values().map(|(_, next)| *next).max().unwrap_or(0);
    let older: HashMap<u64, usize> =
        older.into_iter().map(|(at, (number, _))| (at, number)).collect();
    let found = snapshot::with_clues(&found).into_iter().max_by_key(|(r, _)| r.events.len());
    let (plain, clues) = found.expect("a device");
    let found = side(infer::infer(plain, &clues, &Files));
    let numbers = Numbers { older, skipped };
    print!("{}", compare(&truth, &found, &numbers, paths.contains(&"--loud".to_owned())));
}

/// What a stack is called by words in the names of its functions, the innermost first: the rules of Mosaic
/// (github.com/facebookresearch/mosaic, `AllocationType`), read in November 2026 and described here in our own words. Its rules
/// for files of its own (`parallel/layers.py`, FSDP1's) are left out: no script has such frames.
#[derive(Clone, Copy, PartialEq)]
enum Words {
    Activation,
    Parameter,
    Backward,
    Optimizer,
    Nothing,
}

impl Words {
    /// Generously: all that a backward pass makes may be called that.
    fn agrees(self, category: &str) -> bool {
        match self {
            Words::Activation => category == "activations",
            Words::Parameter => category == "weights",
            Words::Backward => matches!(category, "gradients" | "temporaries" | "workspace"),
            Words::Optimizer => category == "optimizer",
            Words::Nothing => false,
        }
    }
}

fn by_words(recording: &Recording, life: &Life) -> Words {
    let mut at = recording.owners.get(life.owner.0 as usize).and_then(|owner| owner.stack);
    while let Some(stack) = at.and_then(|id| recording.stacks.get(id.0 as usize)) {
        let frame = recording.frames.get(stack.frame.0 as usize).copied().unwrap_or_default();
        let name = recording.texts.get(frame.function);
        match name {
            _ if name.contains("forward") => return Words::Activation,
            _ if name.contains("param") => return Words::Parameter,
            _ if name.contains("backward") || name == "clip_grad_norm_" => return Words::Backward,
            "_init_group" | "custom_adamw" => return Words::Optimizer,
            _ => at = stack.caller.filter(|caller| Some(*caller) < at),
        }
    }
    Words::Nothing
}

/// A gradient whose parameter the recorder does not know: it does not say which class is right.
const SOME_PARAMETER: &str = "gradient of a parameter";

/// The class whose pass runs. Frames cannot tell a class from the one it takes its pass from: FSDP2 gives every module
/// a class of its own, and attention a plain layer another name.
fn own(class: &str) -> String {
    let class = class.strip_prefix("FSDP").filter(|rest| !rest.is_empty()).unwrap_or(class);
    class.replace("NonDynamicallyQuantizableLinear", "Linear")
}

/// What was there when a trace was cut, by address: the number of its request, and of the next one.
type Older = HashMap<u64, (usize, usize)>;

/// How requests are known again in a trace that was cut.
struct Numbers {
    older: HashMap<u64, usize>,
    skipped: usize,
}

/// Takes the first half of the trace away, and the frames of what is older.
fn cut(snapshot: &mut snapshot::Snapshot) -> Older {
    let trace = snapshot.device_traces.iter_mut().max_by_key(|trace| trace.len()).expect("a trace");
    let rest = trace.split_off(trace.len() / 2);
    let (mut live, mut next) = (HashMap::new(), 0);
    for entry in trace.iter() {
        match entry.action {
            Action::Alloc => {
                live.insert(entry.address, next);
                next += 1;
            }
            Action::FreeCompleted => drop(live.remove(&entry.address)),
            _ => {}
        }
    }
    *trace = rest;
    let made: HashSet<u64> =
        trace.iter().filter(|it| it.action == Action::Alloc).map(|it| it.address).collect();
    let blocks = snapshot.segments.iter_mut().flat_map(|segment| &mut segment.blocks);
    blocks.filter(|block| !made.contains(&block.address)).for_each(|block| block.stack = None);
    live.into_iter().map(|(address, number)| (address, (number, next))).collect()
}

fn compare(truth: &Side, found: &Side, numbers: &Numbers, is_loud: bool) -> serde_json::Value {
    let by_number: HashMap<usize, &Life> = truth
        .lives
        .list
        .iter()
        .filter_map(|life| Some((*truth.numbers.get(&life.born)?, life)))
        .collect();
    let (of_truth, of_found) = (Modules::new(&truth.recording), Modules::new(&found.recording));
    let class = |side: &Side, path: &str| -> String {
        let text = |id| side.recording.texts.get(id);
        let modules = side.recording.modules.iter();
        let own = modules.rev().find(|module| text(module.path) == path);
        own.map_or(String::new(), |module| text(module.class).to_owned())
    };
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    let mut mistakes: BTreeMap<String, u64> = BTreeMap::new();
    let mut classes: BTreeMap<String, u64> = BTreeMap::new();
    for life in found.lives.list.iter().filter(|life| life.is_alive(found.peak)) {
        let number = match life.born {
            0 => numbers.older.get(&life.address).copied(),
            born => found.numbers.get(&born).map(|number| number + numbers.skipped),
        };
        let other = number.and_then(|number| by_number.get(&number));
        let Some(other) = other.filter(|other| other.requested == life.requested) else {
            *sums.entry("unmatched").or_default() += life.requested;
            continue;
        };
        let mut add =
            |key, is: bool| *sums.entry(key).or_default() += if is { life.requested } else { 0 };
        let (right, got) = (other.category.name(), life.category.name());
        add("bytes", true);
        let peer = by_words(&found.recording, life);
        add("peer_known", peer != Words::Nothing);
        add("peer_right", peer.agrees(right));
        add("known", got != "unknown");
        add("right", got == right);
        add("wrong", got != "unknown" && got != right);
        let is_any = truth.recording.texts.get(other.name) == SOME_PARAMETER;
        let right_class = if is_any { "" } else { of_truth.of(other) };
        let [right_class, got_class] =
            [class(truth, right_class), class(found, of_found.of(life))].map(|it| own(&it));
        add("in_modules", !right_class.is_empty());
        add("class_right", !right_class.is_empty() && right_class == got_class);
        add("class_known", !right_class.is_empty() && !got_class.is_empty());
        if got != right {
            *mistakes.entry(format!("{right} as {got}")).or_default() += life.requested;
        }
        if !right_class.is_empty() && right_class != got_class {
            *classes.entry(format!("{right} {right_class} as {got_class}")).or_default() +=
                life.requested;
        }
    }
    if is_loud {
        let mut all: Vec<(&String, &u64)> = mistakes.iter().chain(&classes).collect();
        all.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        all.iter().take(14).for_each(|(what, bytes)| eprintln!("  {:>9} KiB {what}", *bytes >> 10));
    }
    json!({ "sums": sums, "mistakes": mistakes })
}
