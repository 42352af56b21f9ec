//! What points of a sweep say along a knob: how the peak grows, and the smallest world that fits.

use fit::{Law, Verdict, grid, law};
use report::sweep::{Fewest, Scaling, Sweep};

use crate::vary::WORLD_SIZE;

/// The smallest world that fits each card, for each combination of the other knobs.
pub(crate) fn fewest(answer: &Sweep) -> Vec<Fewest> {
    let Some(at) = answer.knobs.iter().position(|knob| knob.name == WORLD_SIZE) else {
        return Vec::new();
    };
    let others_of = |point: &grid::Point| {
        let named = answer.knobs.iter().map(|knob| knob.name.clone()).zip(point.values.clone());
        let others = named.enumerate().filter(|(index, _)| *index != at);
        others.map(|(_, pair)| pair).collect::<Vec<_>>()
    };
    let ranks_of = |point: &grid::Point| point.values[at].parse::<u64>().ok();
    let mut rows: Vec<Fewest> = Vec::new();
    for point in answer.points.iter().filter(|point| point.verdict != Verdict::NotRun) {
        let others = others_of(point);
        let found = rows.iter().position(|row| row.card == point.card && row.others == others);
        let row = found.unwrap_or_else(|| {
            rows.push(Fewest { card: point.card, others, ranks: None, is_assumed: false });
            rows.len() - 1
        });
        let ranks = ranks_of(point).filter(|_| point.verdict.fits());
        if let Some(ranks) = ranks.filter(|ranks| rows[row].ranks.is_none_or(|best| *ranks < best))
        {
            rows[row].ranks = Some(ranks);
            rows[row].is_assumed = point.verdict == Verdict::FitsIf;
        }
    }
    // As long as a smaller world has not run, nobody knows.
    let is_open = |row: &Fewest| {
        let missing = answer.points.iter().filter(|point| point.verdict == Verdict::NotRun);
        let mut of_row =
            missing.filter(|point| point.card == row.card && others_of(point) == row.others);
        of_row.any(|point| row.ranks.is_none_or(|best| ranks_of(point).is_none_or(|it| it < best)))
    };
    rows.retain(|row| !is_open(row));
    rows.sort_by_key(|row| row.card);
    rows
}

/// Along each knob, the growth of the allocated peak in the runs that differ in this knob alone.
pub(crate) fn scaling(answer: &Sweep) -> Vec<Scaling> {
    let mut all = Vec::new();
    for (at, knob) in answer.knobs.iter().enumerate() {
        // On a card libraries may take less: runs without a limit are alike.
        let ran = answer.points.iter().filter(|point| {
            let failed = matches!(point.verdict, Verdict::Failed(_));
            point.card == 0 && point.unlimited.is_some() && !failed
        });
        let Some(first) = ran.clone().next() else { continue };
        let same = |point: &&grid::Point| {
            point
                .values
                .iter()
                .zip(&first.values)
                .enumerate()
                .all(|(index, (a, b))| index == at || a == b)
        };
        let mut line: Vec<(i64, u64)> = ran
            .filter(same)
            .filter_map(|point| Some((point.values[at].parse().ok()?, point.unlimited?.allocated)))
            .collect();
        line.sort_unstable();
        line.dedup_by_key(|point| point.0);
        let Some(exponent) = law::exponent(&line) else { continue };
        let exact = Law::through(&line).is_some_and(|law| law.worst == 0.0);
        let (cause, share) = (None, 1.0);
        all.push(Scaling { knob: knob.name.clone(), cause, share, exponent, exact });
    }
    all
}
