//! What `fathom sweep` found, as text and as `fathom.sweep/1`.

mod growth;
mod json;
mod terminal;

use anatomy::bytes;
use fit::Outcome;
use fit::grid::Point;
use fit::largest::Largest;
use fit::scaling::{Fewest, Scaling};

use crate::Trials;

pub use json::json;
pub use terminal::terminal;

/// A knob and what was tried.
#[derive(Clone, Debug)]
pub struct Knob {
    /// The user's name for it.
    pub name: String,
    /// Its values, or one range such as `1..512`.
    pub values: Vec<String>,
}

/// A card of the sweep.
#[derive(Clone, Debug)]
pub struct SweptCard {
    /// Its name, with the memory that was asked for; the memory alone where no card was named.
    pub name: String,
    pub card: gpus::Card,
}

impl SweptCard {
    /// As its column is headed.
    pub fn new(card: &gpus::Card) -> SweptCard {
        let size = || bytes::text(card.memory_bytes).replace(".00", "");
        let name = match (card.is_nameless(), card.memory_known) {
            (true, _) => size(),
            (false, gpus::Source::Given) => format!("{} {}", card.name, size()),
            _ => card.name.to_owned(),
        };
        SweptCard { name, card: card.clone() }
    }
}

/// The largest value of the knob that was searched.
#[derive(Clone, Debug)]
pub struct Row {
    pub knob: String,
    /// The other knobs and their values.
    pub others: Vec<(String, String)>,
    pub largest: Largest,
}

/// The part of the rows that this job runs; others run theirs.
#[derive(Clone, Copy, Debug)]
pub struct Shard {
    /// From 1 on.
    pub number: u32,
    /// How many jobs there are.
    pub count: u32,
}

/// The whole answer.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Knobs, in the order of the values of points.
    pub knobs: Vec<Knob>,
    /// Cards, as points refer to them.
    pub cards: Vec<SweptCard>,
    /// Every combination on every card.
    pub points: Vec<Point>,
    /// The largest values.
    pub largest: Vec<Row>,
    /// The fewest cards, if worlds were varied.
    pub fewest: Vec<Fewest>,
    pub scaling: Vec<Scaling>,
    /// If several jobs share the rows, which of them this one is.
    pub shard: Option<Shard>,
    pub trials: Trials,
}

impl Sweep {
    /// How many rows the table has.
    fn rows(&self) -> usize {
        self.knobs.iter().map(|knob| knob.values.len()).product()
    }

    /// The job that runs a row, as `2/4`: rows go around, the last knob fastest.
    fn shard_of(&self, values: &[String]) -> Option<String> {
        let Shard { count, .. } = self.shard?;
        let row = self.knobs.iter().zip(values).try_fold(0, |row, (knob, value)| {
            let at = knob.values.iter().position(|it| it == value)?;
            Some(row * knob.values.len() + at)
        })?;
        Some(format!("{}/{count}", row % count as usize + 1))
    }

    /// Rows that are not complete, of jobs that share them, with whose they are.
    fn missing(&self) -> Vec<(&[String], String)> {
        let mut rows: Vec<(&[String], String)> = Vec::new();
        for point in self.points.iter().filter(|point| point.outcome == Outcome::NotRun) {
            let is_known = rows.iter().any(|row| row.0 == point.values.as_slice());
            rows.extend(
                self.shard_of(&point.values)
                    .filter(|_| !is_known)
                    .map(|shard| (point.values.as_slice(), shard)),
            );
        }
        rows
    }
}
