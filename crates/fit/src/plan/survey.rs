//! Every lever by itself, whatever fits already: what each would bring to this script.

use diagnose::remedies::Stage;

use super::stages::lowest;
use super::tries::Search;
use super::{Answer, Bench, Wish, order};
use crate::lever::{AMP_BF16, AMP_FP16, Lever, OWN, all, probed};
use crate::trial::verdict_for;

/// Tries each lever alone; those that change the training too, if the wish allows it.
pub fn survey<B: Bench>(bench: &mut B, wish: &Wish) -> Result<Answer, B::Error> {
    let baseline = bench.try_all(&[Vec::new()])?.swap_remove(0).measured;
    let mut search = Search::new(bench, wish, baseline.peaks);
    if baseline.outcome.fits() {
        let asked: Vec<Lever> = probed().filter_map(Lever::of).collect();
        search.look = search.bench.look(&[], &asked)?;
        search.note_facts(&search.look.facts.clone());
        let other_precision = if wish.precision == AMP_BF16 { AMP_FP16 } else { AMP_BF16 };
        let is_open = |row: &&diagnose::remedies::Row| {
            let is_training = row.lever.is_some_and(|lever| lever.stage == Stage::Training);
            search.takes_hold(row.id)
                && row.id != OWN
                && row.id != other_precision
                && (wish.allow_training || !is_training)
        };
        let own = all().filter(is_open).flat_map(|row| search.own(row.id));
        let single = own.chain(all().filter(is_open).filter_map(Lever::of));
        let single: Vec<Vec<Lever>> = single.map(|lever| vec![lever]).collect();
        search.add(&[], &single, &[])?;
        let step = search.look.step.clone();
        for keeps_products in [false, true] {
            if let Some((lever, cost)) = step.as_ref().and_then(|it| lowest(it, keeps_products)) {
                search.add(&[], &[vec![lever]], &[cost])?;
            }
        }
        if wish.allow_training {
            let parts = search.look.parts.clone();
            let frozen: Vec<Vec<Lever>> =
                parts.into_iter().map(|part| vec![Lever::Freeze(vec![part])]).collect();
            search.add(&[], &frozen, &[])?;
        }
    }
    let Search { mut plans, refused, look, .. } = search;
    plans.sort_by(order);
    let as_it_is = verdict_for(&wish.card, &baseline).unwrap_or(crate::Outcome::DoesNotFit);
    let chosen = plans.iter().position(|plan| plan.outcome.fits());
    let tightest = (0..plans.len()).min_by_key(|index| plans[*index].peaks.reserved);
    let (proposed, state) = (None, look.state);
    Ok(Answer {
        baseline,
        as_it_is,
        causes: look.causes,
        plans,
        chosen,
        proposed,
        tightest,
        state,
        not_applicable: refused,
    })
}
