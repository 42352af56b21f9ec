//! Which modules to checkpoint: the least recomputation that brings the simulated peak under a budget.
//!
//! ```text
//! forward ──▶ block 0   block 1   block 2 │ loss │ block 2   block 1   block 0 ◀── backward
//!             └──── absent if block 0 is checkpointed ─────────────────┘
//!                       └── absent if block 1 is ──────────┘
//! ```
//! A block's activations are absent from its own forward pass until its own backward pass, where they
//! come back at once. So absences of blocks in a row lie inside of each other: of equal blocks the first
//! ones are always the best to take, and how many of each kind is all there is to choose. Such choices
//! are searched exhaustively; what is left is greedy, repaired, and improved by exchanges.
//!
//! A module may be there twice: once as a whole, and once as what keeps the results of its products, which takes less
//! away and costs next to nothing. At most one of the two is chosen.

/// Bytes that are not there for a while; times are events of the step, `from` included, `to` not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    pub from: usize,
    pub to: usize,
    pub bytes: u64,
}

/// A module that could be checkpointed.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub path: String,
    pub class: String,
    /// Results of its matrix products, convolutions and attention are kept.
    pub keeps_products: bool,
    /// Counted floating-point operations of its forward pass.
    pub operations: u64,
    /// What it costs to compute again, in the same unit as [`Step::forward_cost`].
    pub cost: f64,
    /// What would not be there.
    pub absences: Vec<Absence>,
}

/// One step of the training.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Allocated bytes after each event.
    pub alive: Vec<u64>,
    /// Modules, in the order of the model.
    pub candidates: Vec<Candidate>,
    /// The whole forward pass.
    pub forward_cost: f64,
}

/// Some of the candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// By index, ascending.
    pub chosen: Vec<usize>,
    /// The peak of the step, simulated.
    pub simulated: u64,
    pub cost: f64,
}

/// Combinations of equal blocks that are searched exhaustively, at most.
const COMBINATIONS: usize = 20_000;

/// Of so many candidates every choice is tried.
const FEW: usize = 12;

/// Budgets between nothing and the lowest peak for which the greedy search is made.
const STEPS: u64 = 16;

/// The greedy search is repeated without each of this many of its costliest choices.
const BANS: usize = 6;

/// Exchanges for a cheaper choice, at most.
const EXCHANGES: usize = 6;

/// Equal blocks differ by less than this share of their bytes.
const ALIKE: f64 = 0.02;

/// A step prepared for many simulations.
pub struct Planner<'a> {
    step: &'a Step,
    /// Greatest number of bytes in each stretch between two changes of any absence.
    stretches: Vec<u64>,
    /// Absences of each candidate, in stretches.
    absent: Vec<Vec<Absence>>,
}

impl<'a> Planner<'a> {
    /// Prepares a step.
    pub fn new(step: &'a Step) -> Planner<'a> {
        let all = step.candidates.iter().flat_map(|candidate| &candidate.absences);
        let mut cuts: Vec<usize> = all.flat_map(|absence| [absence.from, absence.to]).collect();
        cuts.push(0);
        cuts.retain(|cut| *cut < step.alive.len());
        cuts.sort_unstable();
        cuts.dedup();
        let ends = cuts.iter().skip(1).copied().chain([step.alive.len()]);
        let most =
            |(from, to): (&usize, usize)| step.alive[*from..to].iter().copied().max().unwrap_or(0);
        let stretches = cuts.iter().zip(ends).map(most).collect();
        let place = |time: usize| cuts.partition_point(|cut| *cut < time);
        let moved = |absence: &Absence| Absence {
            from: place(absence.from),
            to: place(absence.to),
            bytes: absence.bytes,
        };
        let absent = step
            .candidates
            .iter()
            .map(|candidate| candidate.absences.iter().map(moved).collect())
            .collect();
        Planner { step, stretches, absent }
    }

    /// The bytes of each stretch with these checkpointed.
    fn curve(&self, chosen: &[usize]) -> Vec<i64> {
        let mut change = vec![0i64; self.stretches.len() + 1];
        for absence in chosen.iter().flat_map(|&index| &self.absent[index]) {
            change[absence.from] -= absence.bytes as i64;
            change[absence.to.min(self.stretches.len())] += absence.bytes as i64;
        }
        let mut sum = 0;
        let step = |(bytes, change): (&u64, &i64)| {
            sum += change;
            *bytes as i64 + sum
        };
        self.stretches.iter().zip(&change).map(step).collect()
    }

    /// The peak with these checkpointed, and what they cost.
    pub fn simulate(&self, chosen: &[usize]) -> Choice {
        let simulated = self.curve(chosen).into_iter().max().unwrap_or(0).max(0) as u64;
        let cost = chosen.iter().map(|&index| self.step.candidates[index].cost).sum();
        let mut chosen = chosen.to_vec();
        chosen.sort_unstable();
        Choice { chosen, simulated, cost }
    }

    /// Choices from nothing to the lowest peak, each cheaper than all with a lower peak; at most `count`.
    pub fn ladder(&self, count: usize) -> Vec<Choice> {
        let mut found = self.exhaustive();
        let nothing = self.simulate(&[]);
        let lowest = self.towards(0);
        let span = nothing.simulated.saturating_sub(lowest.simulated);
        for rung in (1..=STEPS).filter(|_| 0 < span) {
            found.push(self.towards(nothing.simulated - span * rung / STEPS));
        }
        found.extend([nothing, lowest]);
        let front = front(found);
        spread(front, count)
    }

    /// The cheapest choice within a budget that the search finds; the lowest peak if none is.
    pub fn cheapest(&self, budget: u64) -> Choice {
        let mut all = self.exhaustive();
        all.push(self.towards(budget));
        let within = all.iter().filter(|choice| choice.simulated <= budget);
        let best = within.min_by(|a, b| a.cost.total_cmp(&b.cost)).cloned();
        best.unwrap_or_else(|| {
            all.into_iter()
                .min_by_key(|choice| choice.simulated)
                .unwrap_or_else(|| self.simulate(&[]))
        })
    }

    /// Every choice if candidates are few; else every number of first blocks of every kind of equal blocks, if
    /// these are not too many.
    fn exhaustive(&self) -> Vec<Choice> {
        let count = self.absent.len();
        if count <= FEW {
            let chosen = |mask: u32| {
                (0..count).filter(|index| mask >> index & 1 == 1).collect::<Vec<usize>>()
            };
            let is_free = |chosen: &Vec<usize>| {
                chosen.iter().all(|&a| chosen.iter().all(|&b| a == b || !self.conflict(a, b)))
            };
            let all = (0..1u32 << count).map(chosen).filter(is_free);
            return all.map(|chosen| self.simulate(&chosen)).collect();
        }
        let mut found = Vec::new();
        for groups in self.levels() {
            let count: usize = groups.iter().map(|group| group.len() + 1).product();
            if COMBINATIONS < count {
                continue;
            }
            for number in 0..count {
                let (mut rest, mut chosen) = (number, Vec::new());
                for group in &groups {
                    chosen.extend(&group[..rest % (group.len() + 1)]);
                    rest /= group.len() + 1;
                }
                found.push(self.simulate(&chosen));
            }
        }
        found
    }

    /// Kinds of equal blocks that do not contain each other: one set for each depth of the tree.
    fn levels(&self) -> Vec<Vec<Vec<usize>>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (index, candidate) in self.step.candidates.iter().enumerate() {
            let is_alike = |group: &&mut Vec<usize>| {
                let other = &self.step.candidates[group[0]];
                let (a, b) = (bytes(other) as f64, bytes(candidate) as f64);
                let is_same = (&other.class, other.keeps_products)
                    == (&candidate.class, candidate.keeps_products);
                is_same && (a - b).abs() <= ALIKE * a.max(b)
            };
            match groups.iter_mut().find(is_alike) {
                Some(group) => group.push(index),
                None => groups.push(vec![index]),
            }
        }
        groups.retain(|group| 1 < group.len());
        let mut levels: Vec<Vec<Vec<usize>>> = Vec::new();
        for group in groups {
            let fits = |level: &&mut Vec<Vec<usize>>| {
                level.iter().flatten().all(|&a| group.iter().all(|&b| !self.conflict(a, b)))
            };
            match levels.iter_mut().find(fits) {
                Some(level) => level.push(group),
                None => levels.push(vec![group]),
            }
        }
        levels
    }

    /// Whether one is part of the other.
    fn conflict(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.step.candidates[a].path, &self.step.candidates[b].path);
        let inside = |inner: &String, outer: &String| {
            inner
                .strip_prefix(outer.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        inside(a, b) || inside(b, a)
    }

    /// Greedy towards a budget, without what is not needed, with cheaper exchanges; then once more without
    /// each of the chosen, if that is cheaper.
    fn towards(&self, budget: u64) -> Choice {
        let mut best = self.greedy(budget, None);
        let mut costly = best.chosen.clone();
        costly.sort_by(|&a, &b| {
            self.step.candidates[b].cost.total_cmp(&self.step.candidates[a].cost)
        });
        for banned in costly.into_iter().take(BANS) {
            let other = self.greedy(budget, Some(banned));
            let is_lower = other.simulated <= budget.max(best.simulated);
            if is_lower && other.cost < best.cost {
                best = other;
            }
        }
        best
    }

    fn greedy(&self, budget: u64, banned: Option<usize>) -> Choice {
        let mut chosen: Vec<usize> = Vec::new();
        while let Some(next) = self.best_next(&chosen, budget as i64, banned) {
            // A module makes way for one that contains it.
            chosen.retain(|&other| !self.conflict(other, next));
            chosen.push(next);
        }
        let reached = self.simulate(&chosen).simulated.max(budget);
        self.drop_needless(&mut chosen, reached);
        self.exchange(&mut chosen, reached);
        self.simulate(&chosen)
    }

    /// The candidate that takes most of what is above the budget for its cost; `None` if nothing is left to take.
    fn best_next(&self, chosen: &[usize], budget: i64, banned: Option<usize>) -> Option<usize> {
        let over = |curve: &[i64]| -> (i64, f64) {
            let peak = curve.iter().copied().max().unwrap_or(0);
            let above = curve.iter().map(|bytes| (bytes - budget).max(0) as f64).sum::<f64>();
            (peak, above)
        };
        let (peak, before) = over(&self.curve(chosen));
        if peak <= budget {
            return None;
        }
        let mut best: Option<(f64, usize)> = None;
        let is_open = |index: &usize| !chosen.contains(index) && Some(*index) != banned;
        for index in (0..self.absent.len()).filter(is_open) {
            let mut with: Vec<usize> =
                chosen.iter().copied().filter(|&other| !self.conflict(other, index)).collect();
            // What contains it already takes all that it could.
            if chosen.iter().any(|&other| self.contains(other, index)) {
                continue;
            }
            with.push(index);
            let (new_peak, after) = over(&self.curve(&with));
            if peak < new_peak || before <= after {
                continue;
            }
            let worth = (before - after) / self.step.candidates[index].cost.max(1.0);
            if best.is_none_or(|(other, _)| other < worth) {
                best = Some((worth, index));
            }
        }
        best.map(|(_, index)| index)
    }

    fn contains(&self, outer: usize, inner: usize) -> bool {
        let (outer, inner) = (&self.step.candidates[outer].path, &self.step.candidates[inner].path);
        inner.strip_prefix(outer.as_str()).is_some_and(|rest| rest.starts_with('.'))
    }

    fn drop_needless(&self, chosen: &mut Vec<usize>, budget: u64) {
        chosen.sort_by(|&a, &b| {
            self.step.candidates[b].cost.total_cmp(&self.step.candidates[a].cost)
        });
        let mut at = 0;
        while at < chosen.len() {
            let without: Vec<usize> =
                chosen.iter().copied().filter(|&index| index != chosen[at]).collect();
            match self.simulate(&without).simulated <= budget {
                true => *chosen = without,
                false => at += 1,
            }
        }
    }

    /// One more in the place of all that it makes needless, as long as that is cheaper.
    fn exchange(&self, chosen: &mut Vec<usize>, budget: u64) {
        let cost = |chosen: &[usize]| {
            chosen.iter().map(|&index| self.step.candidates[index].cost).sum::<f64>()
        };
        for _ in 0..EXCHANGES {
            let before = chosen.len();
            let old = cost(chosen);
            for other in (0..self.absent.len()).filter(|other| !chosen.contains(other)) {
                let free = chosen.iter().copied().filter(|&index| !self.conflict(index, other));
                let mut with: Vec<usize> = free.chain([other]).collect();
                if budget < self.simulate(&with).simulated {
                    continue;
                }
                self.drop_needless(&mut with, budget);
                if cost(&with) < cost(chosen) {
                    *chosen = with;
                    break;
                }
            }
            if cost(chosen) == old && chosen.len() == before {
                break;
            }
        }
    }
}

fn bytes(candidate: &Candidate) -> u64 {
    candidate.absences.iter().map(|absence| absence.bytes).sum()
}

/// Those that no other beats in both peak and cost, the highest peak first.
fn front(mut all: Vec<Choice>) -> Vec<Choice> {
    all.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(a.simulated.cmp(&b.simulated)));
    let mut front: Vec<Choice> = Vec::new();
    for choice in all {
        if front.last().is_none_or(|last| choice.simulated < last.simulated) {
            front.push(choice);
        }
    }
    front
}

/// So many of them, spread evenly over their peaks; the ends always.
fn spread(front: Vec<Choice>, count: usize) -> Vec<Choice> {
    if front.len() <= count || count < 2 {
        return front;
    }
    let (high, low) = (front[0].simulated, front[front.len() - 1].simulated);
    let mut kept: Vec<Choice> = Vec::new();
    for rung in 0..count as u64 {
        let target = high - (high - low) * rung / (count as u64 - 1);
        let near = front.iter().filter(|choice| choice.simulated <= target);
        let near = near.min_by(|a, b| a.cost.total_cmp(&b.cost));
        if let Some(choice) = near.filter(|choice| !kept.contains(choice)) {
            kept.push(choice.clone());
        }
    }
    kept
}
