//! Which recipes have to be carried out, in which order, for one value.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::recipe::{Input, Recipe, Source};
use super::value::{Bytes, Moment, Price, State, Value};
use crate::hash::{Map, Set};

/// Questions that have the same answer in every run that goes well.
const CONSTANTS: [&str; 3] = ["isnan", "isinf", "isfinite"];

/// What may stand for a value that takes too long, or cannot be had.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Nowhere,
    /// A single number with a fraction, such as a loss; and that numbers are finite.
    AtNumbers,
}

pub(crate) struct Plan {
    pub(crate) recipes: Vec<Arc<Recipe>>,
    pub(crate) seconds: f64,
    pub(crate) cut: Cut,
    /// How many recipes read each value, by its address.
    pub(crate) readers: Map<usize, u32>,
    /// What is there already, by the address of its value: it may be given up while the plan is carried out.
    pub(crate) there: Map<usize, Arc<Bytes>>,
    /// Something that it needs stands for what later steps would have.
    pub(crate) is_modelled: bool,
    /// A number stands for something that it needs.
    pub(crate) has_stand_ins: bool,
}

/// How much there is to carry out for a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// So few recipes that they may stay.
    Short,
    /// More of them, that take no time.
    Cheap,
    /// Too much, or something that is needed is not known.
    Beyond,
}

impl Reach {
    /// It is not looked further than needed: behind every statistic of a batch norm lie all layers before.
    pub(crate) fn of(target: &Arc<Value>, short: usize, seconds: f64) -> Reach {
        let (mut seen, mut open, mut taken): (Set<usize>, _, _) =
            (Set::default(), vec![target.clone()], 0.0);
        while let Some(value) = open.pop() {
            match value.state() {
                State::Unknown | State::Number => return Reach::Beyond,
                State::Undefined | State::Data(_) => {}
                State::Made(recipe) if seen.insert(Arc::as_ptr(&recipe) as usize) => {
                    taken += recipe.seconds();
                    open.extend(recipe.needs().cloned());
                }
                State::Made(_) => {}
            }
            if short < seen.len() && seconds < taken {
                return Reach::Beyond;
            }
        }
        if seen.len() <= short { Reach::Short } else { Reach::Cheap }
    }
}

impl Plan {
    /// `None` if something that is needed is not known. Where it is found to take more than so many seconds, because of
    /// something that was found to take more before, the plan is not complete, and has the seconds of that alone.
    pub(crate) fn within(seconds: f64, now: Moment, target: &Arc<Value>, cut: Cut) -> Option<Plan> {
        let too_dear = |value: &Value| value.price(cut, now).filter(|price| seconds < *price);
        let plan = Plan::new(target, cut, too_dear)?;
        if seconds < plan.seconds {
            target.set_price(cut, Price { seconds: plan.seconds, found: now });
        }
        Some(plan)
    }

    fn new(
        target: &Arc<Value>,
        cut: Cut,
        too_dear: impl Fn(&Value) -> Option<f64>,
    ) -> Option<Plan> {
        let mut plan = Plan {
            recipes: Vec::new(),
            seconds: 0.0,
            cut,
            readers: Map::default(),
            there: Map::default(),
            is_modelled: false,
            has_stand_ins: false,
        };
        let mut seen: Set<usize> = Set::default();
        let mut open: Vec<(Arc<Recipe>, usize)> = Vec::new();
        if let Some(seconds) = too_dear(target) {
            return Some(Plan { seconds, ..plan });
        }
        if !plan.enter(target, &mut seen, &mut open) {
            return None;
        }
        while let Some((recipe, next)) = open.last_mut() {
            let Some(input) = recipe.inputs.get(*next).filter(|_| !plan.is_constant(recipe)) else {
                let (recipe, _) = open.pop()?;
                plan.seconds += recipe.seconds();
                plan.recipes.push(recipe);
                continue;
            };
            *next += 1;
            if plan.is_stand_in(input) {
                plan.has_stand_ins = true;
                continue;
            }
            if let Source::Card(value) = &input.source {
                let value = value.clone();
                *plan.readers.entry(Arc::as_ptr(&value) as usize).or_default() += 1;
                if let Some(seconds) = too_dear(&value) {
                    return Some(Plan { seconds, ..plan });
                }
                if !plan.enter(&value, &mut seen, &mut open) {
                    return None;
                }
            }
        }
        Some(plan)
    }

    /// Goes on to what a value is made of; whether that can be known.
    fn enter(
        &mut self,
        value: &Arc<Value>,
        seen: &mut Set<usize>,
        open: &mut Vec<(Arc<Recipe>, usize)>,
    ) -> bool {
        self.is_modelled |= value.is_modelled.load(Relaxed);
        match value.state() {
            State::Unknown | State::Number => return false,
            State::Undefined => {}
            State::Data(bytes) => drop(self.there.insert(Arc::as_ptr(value) as usize, bytes)),
            State::Made(recipe) if seen.insert(Arc::as_ptr(&recipe) as usize) => {
                open.push((recipe, 0));
            }
            State::Made(_) => {}
        }
        true
    }

    /// Whether a number stands for what an input holds.
    pub(crate) fn is_stand_in(&self, input: &Input) -> bool {
        let Source::Card(value) = &input.source else { return false };
        self.cut == Cut::AtNumbers
            && input.geometry.size.is_empty()
            && input.geometry.is_fraction
            && !value.is_data()
    }

    /// Whether the answer of a recipe is taken for granted.
    pub(crate) fn is_constant(&self, recipe: &Recipe) -> bool {
        self.cut == Cut::AtNumbers && CONSTANTS.contains(&&*recipe.name)
    }
}
