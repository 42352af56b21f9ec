//! Tries plans of levers on the phantom: the other side of `fit::plan::Bench`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Result, anyhow};
use contract::environment as name;
use contract::files::levers::Lever as Row;
use contract::files::{Flops, Levers};
use fit::checkpoint::Step;
use fit::lever::Own;
use fit::patch::{Changed, Edit, Patch, by_file, edited};
use fit::plan::{Bench, Cause, Fact, Look, Plan, Tried, Written};
use fit::{Knob, Lever, Measured, Outcome};
use recording::Category;
use serde_json::{Value, json};
use study::{Run, Source};

use crate::copied;
use crate::outcome;
use crate::runner::{OnPhantom, Wanted, hinted, measured};
use crate::warm::Job;

/// Of the peak: what explains less is no cause to act on.
const LEAST_SHARE: f64 = 0.01;

/// Of the peak: a module that owns less is not worth freezing.
const LARGE_PART: f64 = 0.1;

/// Modules that are offered for freezing, at most.
const PARTS: usize = 3;

/// What is there whatever the batch.
const STATE: [Category; 3] = [Category::Weights, Category::Gradients, Category::Optimizer];

/// Passes before a step of a trial: the memory of all further ones is the same.
const PASSES: u32 = 2;

/// The variable that settings of the allocator are written into.
const ALLOCATOR: &str = "PYTORCH_CUDA_ALLOC_CONF";

/// Why a plan is not taken that was written.
const NOT_ENOUGH: &str = "a copy with the patch runs out of memory: it is not all that was tried in the script's process";

/// The command, its knobs and the card.
pub(crate) struct Fitting {
    pub(crate) runner: OnPhantom,
    pub(crate) knobs: Vec<Knob>,
    pub(crate) card: gpus::Card,
    /// Once they were counted.
    counts: Option<Flops>,
    /// Plans that were tried, since one search may follow another.
    tried: HashMap<Vec<Lever>, Tried>,
    looks: HashMap<(Vec<Lever>, Vec<Lever>), Look>,
    /// What levers said that are only text.
    texts: Vec<Fact>,
}

impl Fitting {
    pub(crate) fn new(runner: OnPhantom, knobs: Vec<Knob>, card: gpus::Card) -> Fitting {
        let (tried, looks) = (HashMap::new(), HashMap::new());
        Fitting { runner, knobs, card, counts: None, tried, looks, texts: Vec::new() }
    }

    fn wanted(&self, plan: &[Lever], is_limited: bool, record: bool) -> Result<Wanted> {
        let mut setting = self.runner.as_given();
        for lever in plan {
            if let Lever::Knob { name, value } = lever
                && let Some(knob) = self.knobs.iter().find(|knob| knob.name == *name)
            {
                knob.set(value, &mut setting).map_err(hinted)?;
            }
        }
        let own = plan.iter().filter_map(own);
        own.clone().for_each(|own| setting.words.extend(own.words.clone()));
        let of_own = own.flat_map(|own| own.edits.clone());
        let of_levers = self.as_text(plan).flat_map(|fact| fact.edits.clone());
        let edits: Vec<Edit> = of_levers.chain(of_own).collect();
        let changed = changed(&edits, &[]).map_err(|why| anyhow!(why.join("; ")))?;
        setting.texts = changed.into_iter().map(|it| (it.file, it.after)).collect();
        let is_text = |lever: &&Lever| self.texts.iter().any(|fact| fact.lever == lever.id());
        let requests = plan.iter().filter(|it| !is_text(it)).filter_map(request);
        let requests: Vec<Value> = requests.collect();
        if !requests.is_empty() {
            setting.environment.push((name::LEVERS.to_owned(), Value::Array(requests).to_string()));
        }
        for lever in plan {
            if let Lever::Shard(count) = lever {
                setting.world_size.get_or_insert(*count);
            }
        }
        // With two passes a step: the second step is the first one with the optimizer's state.
        if plan.iter().any(Lever::divides) {
            setting.environment.push((name::STEPS.to_owned(), "2".to_owned()));
        }
        let card = match is_limited {
            true => self.card.clone(),
            false => self.card.with_memory(gpus::UNLIMITED_BYTES),
        };
        Ok(Wanted {
            card: Some(card),
            setting,
            record,
            cold: false,
            most: None,
            row: None,
            short: None,
        })
    }

    /// Recorded runs of plans without a limit.
    pub(crate) fn record(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<(Measured, Run)>> {
        self.runner.expect(plans.len());
        let wanted =
            plans.iter().map(|plan| self.wanted(plan, false, true)).collect::<Result<_>>()?;
        let runs = self.runner.run_each(wanted)?;
        Ok(runs.into_iter().map(|(job, run)| (measured(&job, &run), run)).collect())
    }

    /// The script as it is, to count the operations of each module's forward pass.
    fn counting(&self) -> Result<Wanted> {
        let mut wanted = self.wanted(&[], false, false)?;
        wanted.setting.environment.push((name::FLOPS.to_owned(), "on".to_owned()));
        wanted.setting.environment.push((name::STEPS.to_owned(), "1".to_owned()));
        Ok(wanted)
    }

    /// Levers all at once, only to hear whether they find something to act on.
    fn asking(&self, asked: &[Lever]) -> Result<Vec<Wanted>> {
        let (apart, others): (Vec<Lever>, Vec<Lever>) =
            asked.iter().cloned().partition(Lever::is_asked_apart);
        let some = [others, apart].into_iter().filter(|levers| !levers.is_empty());
        some.map(|levers| self.wanted(&levers, false, false)).collect()
    }
}

impl Bench for Fitting {
    type Error = anyhow::Error;

    fn try_all(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Tried>> {
        let new: Vec<&Vec<Lever>> =
            plans.iter().filter(|plan| !self.tried.contains_key(*plan)).collect();
        self.runner.expect(new.len());
        let wanted =
            new.iter().map(|plan| self.wanted(plan, false, false)).collect::<Result<_>>()?;
        let answers = self.runner.answer_each(wanted)?;
        let mut not_run = Tried { measured: Measured::not_run(), facts: Vec::new() };
        for (plan, (job, measured)) in new.into_iter().zip(answers) {
            let said = facts(&job).into_iter().chain(self.as_text(plan).cloned());
            let tried = Tried { facts: said.collect(), measured };
            match tried.measured.outcome {
                fit::Outcome::NotRun => not_run = tried,
                _ => drop(self.tried.insert(plan.clone(), tried)),
            }
        }
        let of = |plan: &Vec<Lever>| self.tried.get(plan).unwrap_or(&not_run).clone();
        Ok(plans.iter().map(of).collect())
    }

    fn on_card(&mut self, plans: &[Vec<Lever>]) -> Result<Vec<Measured>> {
        self.runner.expect(plans.len());
        let wanted =
            plans.iter().map(|plan| self.wanted(plan, true, false)).collect::<Result<_>>()?;
        Ok(self.runner.answer_each(wanted)?.into_iter().map(|(_, answer)| answer).collect())
    }

    fn write(&mut self, plan: &Plan) -> Result<Written> {
        let patch = match self.patch(plan) {
            Ok(patch) => patch,
            Err(in_the_way) => return Ok(Written::InTheWay(in_the_way)),
        };
        let is_outside = |lever: &&Lever| request(lever).is_none();
        let outside: Vec<Lever> = plan.levers.iter().filter(is_outside).cloned().collect();
        let mut wanted = self.wanted(&outside, true, false)?;
        wanted.setting.words.extend(patch.words.clone());
        wanted.setting.environment.extend(patch.environment.clone());
        let texts = patch.files.iter().map(|it| (it.file.clone(), it.after.clone()));
        wanted.setting.texts = texts.collect();
        self.runner.expect(1);
        let measured = self.runner.answer_each(vec![wanted])?.swap_remove(0).1;
        Ok(match &measured.outcome {
            Outcome::Failed(why) => {
                let why = why.lines().next().unwrap_or_default();
                Written::InTheWay(vec![format!("a copy with the patch fails: {why}")])
            }
            Outcome::NotRun => Written::InTheWay(vec!["a copy with it was not run".to_owned()]),
            Outcome::DoesNotFit => Written::InTheWay(vec![NOT_ENOUGH.to_owned()]),
            _ => Written::Patch { patch, measured },
        })
    }

    fn look(&mut self, plan: &[Lever], asked: &[Lever]) -> Result<Look> {
        let key = (plan.to_vec(), asked.to_vec());
        if let Some(known) = self.looks.get(&key) {
            return Ok(known.clone());
        }
        let mut wanted = vec![self.wanted(plan, false, true)?];
        wanted.extend(self.counts.is_none().then(|| self.counting()).transpose()?);
        let asking = wanted.len();
        wanted.extend(self.asking(asked)?);
        self.runner.expect(wanted.len());
        let runs = self.runner.run_each(wanted)?;
        if self.counts.is_none() {
            self.counts = Some(counts(&runs[1].0.folder));
        }
        let is_whole = |run: &&(Job, Run)| run.1.verdict == study::Verdict::Fits;
        let asked = runs[asking..].iter().filter(is_whole);
        let facts: Vec<Fact> = asked.flat_map(|(job, _)| facts(job)).collect();
        let is_text = |fact: &&Fact| {
            fact.applied
                && diagnose::remedies::find(&fact.lever)
                    .is_some_and(|row| row.lever.is_some_and(|it| it.is_text))
        };
        if self.texts.is_empty() {
            self.texts = facts.iter().filter(is_text).cloned().collect();
        }
        let (_, run) = &runs[0];
        // Without its recording no checkpoints are planned: whoever reads the answer should know why.
        let lost = run.notes.iter().filter(|note| note.starts_with(outcome::NOT_KNOWN));
        lost.for_each(|note| self.runner.counts.unread(note.clone()));
        let look = Look { facts, step: self.step(run), ..seen(run) };
        if run.verdict == study::Verdict::Fits {
            self.looks.insert(key, look.clone());
        }
        Ok(look)
    }
}

impl Fitting {
    /// What those of its levers mean that are only text.
    fn as_text<'a>(&'a self, plan: &'a [Lever]) -> impl Iterator<Item = &'a Fact> {
        self.texts.iter().filter(|fact| plan.iter().any(|lever| lever.id() == fact.lever))
    }

    /// All that the levers of a plan mean to write, or what is in the way.
    fn patch(&self, plan: &Plan) -> Result<Patch, Vec<String>> {
        let (mut first, mut then) = (Vec::new(), Vec::new());
        let (mut patch, mut in_the_way) = (Patch::default(), Vec::new());
        for lever in &plan.levers {
            match (lever, plan.facts.iter().find(|fact| fact.lever == lever.id())) {
                (Lever::Knob { .. }, _) => {}
                (Lever::Own(own), _) => {
                    first.extend(own.edits.clone());
                    patch.words.extend(own.words.clone());
                }
                (Lever::Allocator(settings), _) => {
                    patch.environment.push((ALLOCATOR.to_owned(), settings.clone()));
                }
                (_, Some(fact)) if !fact.in_the_way.is_empty() => {
                    in_the_way.extend(fact.in_the_way.clone());
                }
                (_, Some(fact)) if !fact.edits.is_empty() || !fact.words.is_empty() => {
                    let edits = if lever.is_text() { &mut first } else { &mut then };
                    edits.extend(fact.edits.clone());
                    patch.words.extend(fact.words.clone());
                }
                (lever, _) => in_the_way.push(format!("`{}` is written by hand", lever.id())),
            }
        }
        if !in_the_way.is_empty() {
            return Err(in_the_way);
        }
        patch.files = changed(&first, &then)?;
        name(&mut patch).map_err(|error| vec![format!("{error:#}")])?;
        Ok(patch)
    }

    /// What modules save, from the recording of a trial.
    fn step(&self, run: &Run) -> Option<Step> {
        let Source { recording, timeline, .. } = run.study.as_ref()?.source.as_ref()?;
        let Flops { flops, changing } = self.counts.clone().unwrap_or_default();
        let flops_per_byte = self.card.flops() / self.card.bandwidth();
        let mut step = fit::saved::step(recording, timeline, &flops, flops_per_byte)?;
        step.candidates.retain(|candidate| !changing.contains(&candidate.path));
        Some(step)
    }
}

/// Causes of the peak, and the sizes that costs are modelled from.
fn seen(run: &Run) -> Look {
    let Some(anatomy) = run.anatomy() else { return Look::default() };
    let peak = &anatomy.allocated_peak;
    let share = |bytes: u64| bytes as f64 / peak.allocated.max(1) as f64;
    let causes = diagnose::diagnose(anatomy, false)
        .into_iter()
        .filter(|finding| LEAST_SHARE <= share(finding.bytes))
        .map(|finding| Cause {
            title: finding.title,
            bytes: finding.bytes,
            remedies: finding.remedies.into_iter().map(|it| (it.id, it.change)).collect(),
        })
        .collect();
    let is_part = |module: &&anatomy::ModuleBytes| {
        let depth = module.path.split('.').count();
        !module.path.is_empty() && depth == 1 && LARGE_PART <= share(module.total)
    };
    let mut parts: Vec<&anatomy::ModuleBytes> = peak.modules.iter().filter(is_part).collect();
    parts.sort_by_key(|module| std::cmp::Reverse(module.total));
    Look {
        causes,
        weights: peak.categories.of(Category::Weights),
        state: STATE.iter().map(|category| peak.categories.of(*category)).sum(),
        activations: peak.categories.of(Category::Activations),
        parts: parts.into_iter().take(PARTS).map(|module| module.path.clone()).collect(),
        ..Look::default()
    }
}

/// What was counted; of several processes the one with most modules.
fn counts(folder: &Path) -> Flops {
    let all = outcome::read_each::<Flops>(folder).into_iter().filter_map(|file| file.value);
    all.max_by_key(|counts| counts.flops.len()).unwrap_or_default()
}

/// A lever as the doorway wants it; `None` for those that act outside of the script.
fn request(lever: &Lever) -> Option<Value> {
    let id = lever.id();
    match lever {
        Lever::Plain(_) => Some(json!({"lever": id})),
        Lever::Allocator(settings) => Some(json!({"lever": id, "settings": settings})),
        Lever::Accumulate(parts) => Some(json!({"lever": id, "parts": parts, "passes": PASSES})),
        Lever::Checkpoint(modules) | Lever::Selective(modules) | Lever::Freeze(modules) => {
            Some(json!({"lever": id, "modules": modules}))
        }
        Lever::Shard(_) => Some(json!({"lever": id})),
        // Whether it does what its name says is seen inside.
        Lever::Own(own) => Some(json!({
            "lever": "own-setting", "name": own.name, "like": own.like,
            "parts": own.parts, "batch": own.batch,
        })),
        Lever::Knob { .. } => None,
    }
}

fn own(lever: &Lever) -> Option<&Own> {
    match lever {
        Lever::Own(own) => Some(own),
        _ => None,
    }
}

/// What levers said; of several processes the one in which most took hold.
fn facts(job: &Job) -> Vec<Fact> {
    let all = outcome::read_each::<Levers>(&job.folder).into_iter().filter_map(|file| file.value);
    let rows = all.map(|file| file.levers);
    let best = rows.max_by_key(|rows| rows.iter().filter(|row| row.applied).count());
    let fact = |row: Row| Fact {
        lever: row.lever,
        applied: row.applied,
        reason: row.reason,
        sites: row.sites,
        places: row.places.into_iter().map(|place| from_here(job.original(place))).collect(),
        change: row.change,
        meets_batch_norm: row.meets_batch_norm,
        means_of_means: row.means_of_means,
        batch: row.batch,
        edits: row.edits.into_iter().map(|it| edit(it, job)).collect(),
        in_the_way: row.in_the_way.into_iter().map(|it| from_here(job.original(it))).collect(),
        words: row.words,
        settings: row.settings.into_iter().map(|it| own_setting(it, job)).collect(),
    };
    best.into_iter().flatten().map(fact).collect()
}

fn own_setting(row: contract::files::levers::Setting, job: &Job) -> Own {
    Own {
        name: row.name,
        like: row.like,
        shown: row.shown,
        parts: row.parts,
        batch: row.batch,
        words: row.words,
        edits: row.edits.into_iter().map(|it| edit(it, job)).collect(),
    }
}

fn edit(row: contract::files::levers::Edit, job: &Job) -> Edit {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    Edit {
        file: job.original(row.file),
        begin: place(row.begin),
        end: place(row.end),
        text: row.text,
    }
}

/// Files with the edits of levers that are text, and then with those that others meant for such a copy.
fn changed(first: &[Edit], then: &[Edit]) -> Result<Vec<Changed>, Vec<String>> {
    let meets = |(file, at): (String, usize)| {
        vec![format!("{}: two levers would change the same text (byte {at})", from_here(file))]
    };
    let mut files: BTreeMap<String, Changed> = BTreeMap::new();
    for edits in [first, then] {
        for (file, edits) in by_file(edits).map_err(meets)? {
            let named = |what: String| vec![format!("{}{what}", from_here(file.clone()))];
            if !files.contains_key(&file) {
                let before = std::fs::read_to_string(&file);
                let before = before.map_err(|error| named(format!(": {error}")))?;
                let (name, after) = (file.clone(), before.clone());
                files.insert(file.clone(), Changed { file: file.clone(), name, before, after });
            }
            if let Some(changed) = files.get_mut(&file) {
                let after = edited(&changed.after, &edits);
                changed.after = after.ok_or_else(|| named(" has changed".to_owned()))?;
            }
        }
    }
    Ok(files.into_values().collect())
}

/// Says where the diff is applied, and how its files are called from there.
fn name(patch: &mut Patch) -> Result<()> {
    let here = std::env::current_dir()?.canonicalize()?;
    let root = copied::root(&here, patch.files.iter().map(|changed| Path::new(&changed.file)));
    for changed in &mut patch.files {
        let name = Path::new(&changed.file).strip_prefix(&root)?;
        changed.name = name.to_string_lossy().into_owned();
    }
    patch.folder = (root != here).then(|| root.display().to_string());
    Ok(())
}

/// A place as people name it.
fn from_here(place: String) -> String {
    crate::here::from_here(place)
}
