//! Every allocation with its birth, its death, its owner and its name, in one pass over the events.

use std::collections::{BTreeMap, HashMap};

use allocator::Timeline;
use recording::{BlockState, Category, Event, Mark, Owner, OwnerId, Phase, Recording, TextId};

use crate::anatomy::When;
use crate::categories::outranks;
use crate::tensors;

/// A time that never comes.
pub const NEVER: usize = usize::MAX;

/// One allocation. Times count events that have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Where its block is in the timeline.
    pub address: u64,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes of its block.
    pub block: u64,
    /// Handed out; 0 if it was there from the start.
    pub born: usize,
    /// Given back by its user: `memory_allocated` falls.
    pub freed: usize,
    /// Back in its pool: no stream uses it any more.
    pub returned: usize,
    pub owner: OwnerId,
    /// What it is, by the strongest of its names.
    pub category: Category,
    /// The first name of that category.
    pub name: TextId,
    /// Dtype and shape of the first tensor that fills it.
    pub tensor: TextId,
    /// What keeps it from being freed; 0 if nobody said.
    pub holder: TextId,
    /// By what its category is known, where nobody recorded it; 0 if it was recorded, or is not known.
    pub evidence: TextId,
    /// The method of distributed training it belongs to; 0 if it belongs to none.
    pub area: TextId,
    /// PyTorch would have gone on without it.
    pub is_soft: bool,
    /// Phase and step of its birth.
    pub when: When,
}

impl Life {
    /// Is it handed out at this time?
    pub fn is_alive(&self, time: usize) -> bool {
        self.born <= time && time < self.freed
    }
}

/// A name that an allocation was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Naming {
    /// Index of the life.
    pub life: u32,
    /// What it was said to be.
    pub category: Category,
    /// And its name.
    pub name: TextId,
    /// How many events had happened.
    pub time: usize,
}

/// A phase that runs from a time on, up to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its mark has happened.
    pub from: usize,
    /// Which, and of which step.
    pub when: When,
}

/// All allocations of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lives {
    /// In the order of birth.
    pub list: Vec<Life>,
    /// Indices of lives in the order in which they were freed.
    pub frees: Vec<u32>,
    /// All names, life by life, in the order in which they were given.
    pub names: Vec<Naming>,
    /// Phases in order; never empty.
    pub spans: Vec<Span>,
    /// Whose request failed last; nobody if none did or nobody said.
    pub refused: OwnerId,
    /// Whether anything has a name.
    pub has_names: bool,
    /// Whether names were inferred: then what has none stays unknown.
    pub is_inferred: bool,
}

impl Lives {
    /// The lives of a recording, as far as its timeline goes.
    pub fn of(recording: &Recording, timeline: &Timeline) -> Lives {
        let mut pass = Pass::open(recording, timeline);
        let mut synchronized = timeline.synchronized.iter().copied().peekable();
        for (index, moment) in timeline.moments.iter().enumerate() {
            if synchronized.next_if_eq(&index).is_some() {
                pass.return_all(index + 1);
            }
            pass.event(index + 1, &recording.events[index], (moment.address, moment.block));
        }
        let mut lives = pass.lives;
        lives.settle(recording);
        lives
    }

    /// The names of a life of the list.
    pub fn names_of(&self, life: &Life) -> &[Naming] {
        let same_age = self.list.partition_point(|other| other.born < life.born);
        let found = self.list[same_age..].iter().position(|other| std::ptr::eq(other, life));
        let Some(index) = found.map(|found| (same_age + found) as u32) else { return &[] };
        let first = self.names.partition_point(|naming| naming.life < index);
        let end = self.names.partition_point(|naming| naming.life <= index);
        &self.names[first..end]
    }

    /// Whoever has no name is a temporary of its owner, or unknown. What a forward pass makes and a
    /// backward pass frees was kept for it, be it by a checkpoint or a node that shows nothing.
    fn settle(&mut self, recording: &Recording) {
        self.has_names = !self.names.is_empty();
        self.names.sort_by_key(|naming| naming.life);
        let nobody = Owner::default();
        let Lives { list, spans, has_names, is_inferred, .. } = self;
        let has_names = *has_names && !*is_inferred;
        for life in list.iter_mut().filter(|life| life.category == Category::Unknown) {
            let owner = recording.owners.get(life.owner.0 as usize).unwrap_or(&nobody);
            // Where nothing was named, or names were inferred, having no name says nothing.
            if has_names && *owner != nobody {
                let is_kept = life.when.phase == Some(Phase::Forward)
                    && life.freed != NEVER
                    && phase_at(spans, life.freed) == Some(Phase::Backward);
                life.category = if is_kept { Category::Activations } else { Category::Temporaries };
            }
        }
    }
}

/// The phase that runs at a time.
fn phase_at(spans: &[Span], time: usize) -> Option<Phase> {
    let after = spans.partition_point(|span| span.from < time);
    spans[..after].last()?.when.phase
}

/// The pass over the events.
struct Pass {
    lives: Lives,
    /// Handed out, by the recording's address.
    live: BTreeMap<u64, u32>,
    /// Given back, and still used by a stream.
    pending: HashMap<u64, u32>,
    when: When,
    /// Bytes of the tensor that each text of the recording tells of; 0 for other texts.
    sizes: Vec<u64>,
    /// Whether each owner is in a module.
    is_in_module: Vec<bool>,
}

impl Pass {
    fn open(recording: &Recording, timeline: &Timeline) -> Pass {
        // What comes before the first mark belongs to it: the recorder begins with one.
        let first = recording.events.iter().find_map(|event| match event {
            Event::Mark(Mark::Phase { phase, step }) => Some((*phase, *step)),
            _ => None,
        });
        let when = first.map_or(When::default(), |(phase, step)| When { phase: Some(phase), step });
        let lives = Lives { spans: vec![Span { from: 0, when }], ..Lives::default() };
        let sizes = recording.texts.iter().map(|text| tensors::bytes(text).unwrap_or(0)).collect();
        let is_in_module = recording.owners.iter().map(|owner| owner.module != TextId(0)).collect();
        let (live, pending) = (BTreeMap::new(), HashMap::new());
        let mut pass = Pass { lives, live, pending, when, sizes, is_in_module };
        pass.start(recording, timeline);
        pass
    }

    /// What was there before the first event.
    fn start(&mut self, recording: &Recording, timeline: &Timeline) {
        let mut owners = HashMap::new();
        for event in &recording.start {
            if let Event::Alloc { address, owner, .. } = event {
                owners.insert(*address, *owner);
            }
        }
        for block in timeline.start.iter().flat_map(|segment| &segment.blocks) {
            let owner = owners.get(&block.address).copied().unwrap_or_default();
            let asked = block.requested.min(block.size);
            match block.state {
                BlockState::Allocated => {
                    self.hand_out(block.address, (block.address, block.size), asked, owner, 0);
                }
                BlockState::PendingFree => {
                    self.hand_out(block.address, (block.address, block.size), asked, owner, 0);
                    self.give_back(block.address, 0);
                }
                BlockState::Inactive => {}
            }
        }
        // It was made before the recording: in which phase is not known.
        self.lives.list.iter_mut().for_each(|life| life.when = When::default());
        for event in &recording.start {
            if let Event::Mark(mark) = event {
                self.mark(0, *mark);
            }
        }
    }

    fn event(&mut self, time: usize, event: &Event, block: (u64, u64)) {
        match *event {
            // PyTorch went on without it.
            Event::Alloc { .. } if block.1 == 0 => {}
            Event::Alloc { address, size, owner, .. } => {
                self.hand_out(address, block, size.min(block.1), owner, time);
            }
            Event::FreeRequested { address, .. } => self.give_back(address, time),
            Event::FreeCompleted { address, .. } => {
                self.give_back(address, time);
                let life = self.pending.get(&address).copied();
                // A replay that puts the completion off gives no address here: a wait for all streams
                // follows, and returns the block then.
                if let Some(life) = life.filter(|_| block.0 != 0) {
                    self.pending.remove(&address);
                    self.lives.list[life as usize].returned = time;
                }
            }
            Event::Mark(mark) => self.mark(time, mark),
            _ => {}
        }
    }

    fn hand_out(
        &mut self,
        recorded: u64,
        (address, block): (u64, u64),
        requested: u64,
        owner: OwnerId,
        born: usize,
    ) {
        let (freed, returned, when) = (NEVER, NEVER, self.when);
        let category = Category::Unknown;
        let [name, tensor, holder, evidence, area] = [TextId(0); 5];
        self.live.insert(recorded, self.lives.list.len() as u32);
        self.lives.list.push(Life {
            address,
            requested,
            block,
            born,
            freed,
            returned,
            owner,
            category,
            name,
            tensor,
            holder,
            evidence,
            area,
            is_soft: false,
            when,
        });
    }

    fn give_back(&mut self, recorded: u64, time: usize) {
        if let Some(life) = self.live.remove(&recorded) {
            self.lives.list[life as usize].freed = time;
            self.lives.frees.push(life);
            self.pending.insert(recorded, life);
        }
    }

    /// All streams were waited for.
    fn return_all(&mut self, time: usize) {
        for (_, life) in self.pending.drain() {
            self.lives.list[life as usize].returned = time;
        }
    }

    fn mark(&mut self, time: usize, mark: Mark) {
        match mark {
            Mark::Phase { phase, step } => {
                self.when = When { phase: Some(phase), step };
                self.lives.spans.push(Span { from: time, when: self.when });
            }
            Mark::Name { address, category, name } => {
                if let Some(index) = self.containing(address) {
                    self.lives.names.push(Naming { life: index, category, name, time });
                    // What one model has made and another is given is no input of the script's.
                    let owner = self.lives.list[index as usize].owner.0 as usize;
                    let is_made = self.is_in_module.get(owner).copied().unwrap_or(false);
                    if category == Category::Inputs && is_made {
                        return;
                    }
                    let life = &mut self.lives.list[index as usize];
                    // Which model is a copy of another is known when one of them is trained.
                    let models = [Category::Weights, Category::ModelCopies];
                    let is_known_better =
                        models.contains(&category) && models.contains(&life.category);
                    if outranks(category, life.category)
                        || is_known_better && category != life.category
                    {
                        (life.category, life.name) = (category, name);
                    }
                }
            }
            Mark::Tensor { address, what } => {
                if let Some(index) = self.containing(address) {
                    let life = &mut self.lives.list[index as usize];
                    // One that lies in a part of the block, or lay there before, tells nothing of it.
                    let is_whole = self.sizes.get(what.0 as usize) == Some(&life.requested);
                    if is_whole && life.tensor == TextId(0) {
                        life.tensor = what;
                    }
                }
            }
            Mark::Owner { address: 0, owner } => self.lives.refused = owner,
            Mark::Owner { address, owner } => {
                if let Some(index) = self.containing(address) {
                    self.lives.list[index as usize].owner = owner;
                }
            }
            Mark::Holder { address, by } => {
                if let Some(index) = self.containing(address) {
                    self.lives.list[index as usize].holder = by;
                }
            }
            Mark::Area { address, area } => {
                if let Some(index) = self.containing(address) {
                    self.lives.list[index as usize].area = area;
                }
            }
            Mark::Soft { address } => {
                if let Some(index) = self.containing(address) {
                    self.lives.list[index as usize].is_soft = true;
                }
            }
            Mark::Evidence { address, by } => {
                self.lives.is_inferred = true;
                if let Some(index) = self.containing(address) {
                    self.lives.list[index as usize].evidence = by;
                }
            }
            // When streams are done changes what is reserved, not what is allocated.
            Mark::Deferred | Mark::Idle { .. } => {}
        }
    }

    /// The life whose block contains an address of the recording.
    fn containing(&self, address: u64) -> Option<u32> {
        let (start, life) = self.live.range(..=address).next_back()?;
        (address - start < self.lives.list[*life as usize].block).then_some(*life)
    }
}
