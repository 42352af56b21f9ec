//! The cards in question, and settings with which the run fits each.

use anyhow::Result;
use fit::grid;
use fit::largest::Search;
use fit::plan::{Wish, search};
use fit::trial::Target;
use fit::{Knob, Label};
use gpus::Card;
use report::document::{Configuration, Document, Setting};
use report::sweep::SweptCard;

use super::change;
use super::knobs::Found;
use super::lab::Lab;
use crate::cli::ReportArguments;
use crate::commands::fit::{precision, usual_headroom};
use crate::commands::sweep::questions;
use crate::progress::Progress;
use crate::runner::OnPhantom;
use crate::session;
use crate::settings::{Settings, Typed};

/// Beyond so many times a setting's own value the largest is not looked for.
const BEYOND: i64 = 4;

/// Settings that are searched for the largest value that fits.
const SEARCHED: usize = 2;

/// What fits each card; for one card only what would fit if it does not.
pub(super) fn add(
    document: &mut Document,
    arguments: &ReportArguments,
    cards: &[Card],
    lab: &mut Lab,
    found: &[Found],
) -> Result<()> {
    if cards.is_empty() {
        return Ok(());
    }
    let targets = questions(cards);
    let knobs = searched(document, found);
    let mut as_it_is = OnCards::new(arguments, Vec::new(), cards)?;
    let own = as_it_is.matrix(&[], &targets)?;
    as_it_is.count_in(lab);
    let mut rows: Vec<Configuration> = own
        .iter()
        .zip(cards)
        .map(|(point, card)| Configuration {
            card: shown(card),
            memory_bytes: card.memory_bytes,
            as_it_is: report::outcome_name(&point.outcome),
            device_bytes: point
                .unlimited
                .filter(|_| !point.outcome.fits())
                .unwrap_or(point.peaks)
                .device,
            settings: Vec::new(),
        })
        .collect();
    for found in &knobs {
        let mut on_cards = OnCards::new(arguments, vec![found.knob.clone()], cards)?;
        for (at, target) in targets.iter().enumerate() {
            if session::ending().is_none() {
                rows[at].settings.extend(on_cards.largest(lab, found, (at, target))?);
            }
        }
        on_cards.count_in(lab);
    }
    for found in found.iter().filter(|found| !found.wanted.is_empty()) {
        let values = vec![found.wanted.clone()];
        let mut on_cards = OnCards::new(arguments, vec![found.knob.clone()], cards)?;
        let points = on_cards.matrix(&values, &targets)?;
        on_cards.count_in(lab);
        for point in
            points.iter().filter(|point| point.outcome.fits() && point.values[0] != found.current)
        {
            rows[point.card].settings.push(setting(lab, found, &point.values[0], &point.peaks));
        }
    }
    for (at, card) in cards.iter().enumerate() {
        if rows[at].as_it_is == "does_not_fit" && session::ending().is_none() {
            rows[at].settings.extend(plan(lab, card, &targets[at])?);
        }
    }
    document.configurations = rows;
    Ok(())
}

fn shown(card: &Card) -> String {
    let name = SweptCard::new(card).name;
    if card.is_nameless() { format!("A GPU of {name}") } else { card.shown_title().to_owned() }
}

/// Numbers that move the peak, the strongest first: those that the user did not give values for.
fn searched(document: &Document, found: &[Found]) -> Vec<Found> {
    let scaling = document.scaling.iter().flat_map(|scaling| &scaling.knobs);
    let of = |knob: &report::document::Knob| {
        let grows = knob.growth.first().is_some_and(|row| row.from_bytes < row.to_bytes);
        found.iter().find(|it| {
            it.knob.name == knob.name && it.wanted.is_empty() && it.number().is_some() && grows
        })
    };
    scaling.filter_map(of).take(SEARCHED).cloned().collect()
}

/// A setting's value with its diff.
fn setting(lab: &Lab, found: &Found, value: &str, peaks: &anatomy::Peaks) -> Setting {
    Setting {
        what: format!("{} {value}", found.knob.name),
        // A file or a word that the user names may change anything, or nothing.
        results: match value.parse::<i64>() {
            Ok(_) => Label::ChangesTraining.name().to_owned(),
            Err(_) => change::YOURS.to_owned(),
        },
        allocated_bytes: peaks.allocated,
        device_bytes: peaks.device,
        edit: change::of_settings(lab, &[(found.knob.name.as_str(), value)]),
    }
}

/// What makes it fit without another setting.
fn plan(lab: &mut Lab, card: &Card, target: &Target) -> Result<Option<Setting>> {
    let wish = Wish {
        card: target.clone(),
        allow_training: false,
        knobs: Vec::new(),
        headroom: usual_headroom(card),
        precision: precision(card),
        ..lab.wish.clone()
    };
    let before = std::mem::replace(&mut lab.fitting.card, card.clone());
    let answer = search(&mut lab.fitting, &wish);
    lab.fitting.card = before;
    let answer = answer?;
    Ok(answer.chosen.map(|at| {
        let plan = &answer.plans[at];
        let change = change::of(lab, plan, &answer.baseline.peaks);
        Setting {
            what: format!("settings as they are, with {}", change.what),
            results: change.results,
            allocated_bytes: plan.peaks.allocated,
            device_bytes: plan.peaks.device,
            edit: Some(change.edit),
        }
    }))
}

/// Trials of one setting on several cards.
struct OnCards {
    runner: OnPhantom,
}

impl OnCards {
    fn new(arguments: &ReportArguments, knobs: Vec<Knob>, cards: &[Card]) -> Result<OnCards> {
        let trial = &arguments.trial;
        let settings = Settings::resolve(&Typed::from(trial))?.for_trials();
        let progress = Progress::new(trial.quiet);
        let runner = OnPhantom::new(
            &trial.command,
            knobs,
            cards.to_vec(),
            settings,
            !trial.fresh,
            progress,
        )?;
        Ok(OnCards { runner })
    }

    /// The document says how many trials it is made of.
    fn count_in(self, lab: &mut Lab) {
        lab.fitting.runner.counts.join(&self.runner.counts);
    }

    /// Every value on every card; without values the command as it is.
    fn matrix(&mut self, values: &[Vec<String>], targets: &[Target]) -> Result<Vec<grid::Point>> {
        let mut points = grid::matrix(&mut self.runner, values, targets)?;
        points.sort_by_key(|point| point.card);
        Ok(points)
    }

    /// The largest value that fits a card, if it is another than the command has.
    fn largest(
        &mut self,
        lab: &Lab,
        found: &Found,
        (at, target): (usize, &Target),
    ) -> Result<Option<Setting>> {
        let Some(number) = found.number() else { return Ok(None) };
        let values = |value: i64| vec![value.to_string()];
        let mut search = Search::new(&mut self.runner, (1, number.saturating_mul(BEYOND)), &values);
        let largest = search.largest(at, target)?;
        let Some(value) = largest.value.filter(|value| *value != number) else { return Ok(None) };
        let mut row = setting(lab, found, &value.to_string(), &largest.peaks);
        let end = if largest.at_end_of_range { "and maybe more" } else { "the largest that fits" };
        row.what += &format!(", {end}");
        Ok(Some(row))
    }
}
