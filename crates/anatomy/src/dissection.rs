//! One moment taken apart, by every dimension.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use allocator::Timeline;
use recording::{Category, Event, OwnerId, Phase, Recording, TextId};

use crate::account::Around;
use crate::alike::{self, Pattern};
use crate::anatomy::{
    Alike, Dissection, LibraryLine, LineBytes, Named, Origin, PhaseBytes, Tensor, When,
};
use crate::areas::areas;
use crate::categories::Categories;
use crate::ledger;
use crate::lives::{Life, Lives, NEVER, Naming};
use crate::modules::Modules;
use crate::source::{Source, in_package};
use crate::tensors;

/// With bytes and blocks.
type LibraryLines = Vec<(LibraryLine, u64, u64)>;

/// How many kinds of the largest tensors are kept.
const KINDS: usize = 20;

/// All that is needed to cut.
pub(crate) struct Knife<'a> {
    recording: &'a Recording,
    timeline: &'a Timeline,
    lives: &'a Lives,
    around: &'a Around,
    modules: Modules<'a>,
    source: Source<'a>,
    /// Times at which backward passes ended.
    backward_ends: Vec<usize>,
}

impl<'a> Knife<'a> {
    pub(crate) fn new(
        recording: &'a Recording,
        timeline: &'a Timeline,
        lives: &'a Lives,
        around: &'a Around,
    ) -> Knife<'a> {
        let (modules, source) = (Modules::new(recording), Source::new(recording));
        let next = lives.spans.windows(2).map(|pair| (pair[0].when.phase, pair[1].from));
        let backward_ends =
            next.filter(|(phase, _)| *phase == Some(Phase::Backward)).map(|(_, end)| end).collect();
        Knife { recording, timeline, lives, around, modules, source, backward_ends }
    }

    /// The state after this many events.
    pub(crate) fn cut(&self, time: usize) -> Dissection {
        let mut alive: Vec<&Life> =
            self.lives.list.iter().filter(|life| life.is_alive(time)).collect();
        alive.sort_by_key(|life| (std::cmp::Reverse(life.requested), life.born, life.address));
        let mut categories = Categories::default();
        let mut modules: HashMap<&str, (u64, u64)> = HashMap::new();
        for life in &alive {
            categories.add(life.category, life.requested, life.block);
            let (own, saved) = modules.entry(self.modules.of(life)).or_default();
            *own += life.block;
            *saved += if life.category == Category::Activations { life.block } else { 0 };
        }
        let moment = ledger::moment(self.timeline, time);
        let tensors = categories.sum() - categories.rounding;
        Dissection {
            time,
            when: self.when(time),
            allocated: moment.allocated,
            requested: moment.requested,
            reserved: moment.reserved,
            raised_by: self.raised_by(time),
            categories,
            modules: self.modules.tree(&modules),
            lines: self.lines(&alive),
            operators: self.operators(&alive),
            evidence: self.evidence(&alive),
            areas: areas(self.recording, &alive),
            born: born(&alive),
            alike: self.alike(&alive),
            tensors: alive.iter().map(|life| self.tensor(life, time)).collect(),
            private: crate::private::private(self.timeline, time),
            ledger: ledger::ledger(self.around, self.timeline, time, &self.lives.list, tensors),
        }
    }

    fn when(&self, time: usize) -> When {
        let spans = &self.lives.spans;
        let next = spans.partition_point(|span| span.from <= time);
        spans[next.saturating_sub(1)].when
    }

    /// The allocation of the last event.
    fn raised_by(&self, time: usize) -> Option<Origin> {
        match self.recording.events.get(time.checked_sub(1)?)? {
            Event::Alloc { owner, .. } => Some(self.origin(*owner)),
            _ => None,
        }
    }

    /// An owner in words.
    pub(crate) fn text(&self, id: TextId) -> &str {
        self.recording.texts.get(id)
    }

    pub(crate) fn origin(&self, owner: OwnerId) -> Origin {
        let text = |id: TextId| self.recording.texts.get(id).to_owned();
        let row = self.recording.owners.get(owner.0 as usize).copied().unwrap_or_default();
        let frame = self.source.line(owner).unwrap_or_default();
        Origin {
            module: text(row.module),
            operator: text(row.operator),
            node: text(row.node),
            file: text(frame.file),
            function: text(frame.function),
            line: frame.line,
            library: self.library(owner),
        }
    }

    fn library(&self, owner: OwnerId) -> LibraryLine {
        let Some(frame) = self.source.library(owner) else { return LibraryLine::default() };
        let text = |id: TextId| self.recording.texts.get(id);
        LibraryLine {
            file: in_package(text(frame.file)).to_owned(),
            line: frame.line,
            function: text(frame.function).to_owned(),
        }
    }

    /// What makes two allocations of one place: the user's line, module and operator.
    pub(crate) fn site(&self, owner: OwnerId) -> (TextId, u32, TextId, TextId) {
        let frame = self.source.line(owner).unwrap_or_default();
        let row = self.recording.owners.get(owner.0 as usize).copied().unwrap_or_default();
        (frame.file, frame.line, row.module, self.operator(owner))
    }

    fn lines(&self, alive: &[&Life]) -> Vec<LineBytes> {
        let frame = |life: &Life| self.source.line(life.owner).unwrap_or_default();
        let mut words: HashMap<(TextId, u32), (TextId, TextId)> = HashMap::new();
        let sums = sum_by(alive, |life| {
            let frame = frame(life);
            words.entry((frame.file, frame.line)).or_insert((frame.function, frame.source));
            (frame.file, frame.line)
        });
        let mut led_to = self.led_to(alive);
        let text = |id: TextId| self.recording.texts.get(id).to_owned();
        let mut lines: Vec<LineBytes> = sums
            .into_iter()
            .map(|(key, (bytes, count))| {
                let (function, source) = words[&key];
                let (file, function, source) = (text(key.0), text(function), text(source));
                let library = led_to.remove(&key).unwrap_or_default();
                LineBytes { file, line: key.1, function, source, bytes, count, library }
            })
            .collect();
        lines.sort_by(|a, b| (b.bytes, &a.file, a.line).cmp(&(a.bytes, &b.file, b.line)));
        lines
    }

    /// For each of the user's lines the lines of packages that it has led to.
    fn led_to(&self, alive: &[&Life]) -> HashMap<(TextId, u32), LibraryLines> {
        let mut sums: BTreeMap<(u32, u32, LibraryLine), (u64, u64)> = BTreeMap::new();
        for (owner, (bytes, count)) in sum_by(alive, |life| life.owner) {
            let (frame, library) =
                (self.source.line(owner).unwrap_or_default(), self.library(owner));
            if !library.file.is_empty() {
                let sum = sums.entry((frame.file.0, frame.line, library)).or_default();
                *sum = (sum.0 + bytes, sum.1 + count);
            }
        }
        let mut found: HashMap<_, LibraryLines> = HashMap::new();
        for ((file, line, library), (bytes, count)) in sums {
            found.entry((TextId(file), line)).or_default().push((library, bytes, count));
        }
        found.values_mut().for_each(|rows| rows.sort_by_key(|row| std::cmp::Reverse(row.1)));
        found
    }

    /// The operator of an owner, or its autograd node.
    fn operator(&self, owner: OwnerId) -> TextId {
        let row = self.recording.owners.get(owner.0 as usize).copied().unwrap_or_default();
        if row.operator == TextId(0) { row.node } else { row.operator }
    }

    fn operators(&self, alive: &[&Life]) -> Vec<Named> {
        self.named(sum_by(alive, |life| self.operator(life.owner)))
    }

    /// By what the categories are known.
    fn evidence(&self, alive: &[&Life]) -> Vec<Named> {
        if !self.lives.is_inferred {
            return Vec::new();
        }
        self.named(sum_by(alive, |life| life.evidence))
    }

    /// Sums with the texts of their keys, the largest first.
    fn named(&self, sums: HashMap<TextId, (u64, u64)>) -> Vec<Named> {
        let name = |id: TextId| self.recording.texts.get(id).to_owned();
        let mut rows: Vec<Named> = sums
            .into_iter()
            .map(|(id, (bytes, count))| Named { name: name(id), bytes, count })
            .collect();
        rows.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
        rows
    }

    /// Tensors alike, of lives in the order of their size.
    pub(crate) fn alike(&self, alive: &[&Life]) -> Vec<Alike> {
        let mut kinds: Vec<(&Life, u64, Pattern, Pattern)> = Vec::new();
        let mut places = HashMap::new();
        for life in alive {
            let frame = self.source.line(life.owner).unwrap_or_default();
            let key = (life.requested, life.tensor, life.category, frame.file, frame.line);
            let next = kinds.len();
            let place = *places.entry(key).or_insert(next);
            if KINDS <= place {
                continue;
            }
            if place == next {
                kinds.push((life, 0, Pattern::default(), Pattern::default()));
            }
            let (_, count, names, modules) = &mut kinds[place];
            *count += 1;
            names.add(self.recording.texts.get(life.name));
            modules.add(self.modules.of(life));
        }
        let kind = |(life, count, names, modules): (&Life, u64, Pattern, Pattern)| {
            alike::kind(self.tensor(life, life.born), count, &names, &modules)
        };
        kinds.into_iter().map(kind).collect()
    }

    fn tensor(&self, life: &Life, time: usize) -> Tensor {
        let (dtype, shape) = tensors::dtype_and_shape(self.recording.texts.get(life.tensor));
        let module = self.modules.of(life).to_owned();
        Tensor {
            bytes: life.requested,
            block: life.block,
            dtype,
            shape,
            category: life.category,
            name: self.recording.texts.get(life.name).to_owned(),
            known_by: self.recording.texts.get(life.evidence).to_owned(),
            also: self.other_names(life),
            origin: Origin { module, ..self.origin(life.owner) },
            born: life.when,
            made: life.born,
            freed: (life.freed != NEVER).then(|| self.when(life.freed)),
            outlived: self.outlived(life, time),
            is_soft: life.is_soft,
        }
    }

    /// Backward passes that were to use it and have ended: what a pass reaches is named before it begins.
    fn outlived(&self, life: &Life, time: usize) -> u32 {
        let kept = |naming: &&Naming| naming.category == Category::Activations;
        let pass = |naming: &Naming| self.backward_ends.partition_point(|end| *end < naming.time);
        let mut passes: Vec<usize> =
            self.lives.names_of(life).iter().filter(kept).map(pass).collect();
        passes.dedup();
        let has_ended =
            |pass: &&usize| self.backward_ends.get(**pass).is_some_and(|end| *end <= time);
        passes.iter().filter(has_ended).count() as u32
    }

    fn other_names(&self, life: &Life) -> Vec<(Category, String)> {
        let mut others = Vec::new();
        for naming in self.lives.names_of(life) {
            let other = (naming.category, self.recording.texts.get(naming.name).to_owned());
            if (naming.category, naming.name) != (life.category, life.name)
                && !others.contains(&other)
            {
                others.push(other);
            }
        }
        others
    }
}

/// Bytes and number of blocks by some key.
fn sum_by<Key: Eq + Hash>(
    alive: &[&Life],
    mut key: impl FnMut(&Life) -> Key,
) -> HashMap<Key, (u64, u64)> {
    let mut sums = HashMap::new();
    for life in alive {
        let (bytes, count) = sums.entry(key(life)).or_insert((0, 0));
        *bytes += life.block;
        *count += 1;
    }
    sums
}

fn born(alive: &[&Life]) -> Vec<PhaseBytes> {
    let sums: HashMap<Option<Phase>, (u64, u64)> = sum_by(alive, |life| life.when.phase);
    let mut phases: Vec<PhaseBytes> = sums
        .into_iter()
        .map(|(phase, (bytes, count))| PhaseBytes { phase, bytes, count })
        .collect();
    phases.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.phase));
    phases
}
