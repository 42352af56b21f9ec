//! Plans of checkpoints against every other choice, on steps small enough to try them all.

use fit::checkpoint::{Absence, Candidate, Choice, Planner, Step};
use proptest::prelude::*;

/// Blocks in a row, each saving `saved` bytes in parts, on top of a constant.
fn chain(saved: &[u64], cost: &[f64]) -> Step {
    let count = saved.len();
    let mut alive = vec![100u64];
    for bytes in saved {
        alive.push(alive.last().unwrap() + bytes);
    }
    alive.push(alive.last().unwrap() + 5);
    for bytes in saved.iter().rev() {
        alive.push(alive.last().unwrap() - bytes);
    }
    let candidates = (0..count)
        .map(|index| Candidate {
            path: format!("blocks.{index}"),
            class: "Block".to_owned(),
            keeps_products: false,
            operations: cost[index] as u64,
            cost: cost[index],
            // The backward pass of block i begins after those of all later ones.
            absences: vec![Absence {
                from: index + 1,
                to: count + 2 + (count - 1 - index),
                bytes: saved[index] * 9 / 10,
            }],
        })
        .collect();
    Step { alive, candidates, forward_cost: cost.iter().sum() }
}

fn brute(planner: &Planner<'_>, count: usize, budget: u64) -> Option<Choice> {
    (0..1u32 << count)
        .map(|mask| {
            planner.simulate(&(0..count).filter(|index| mask >> index & 1 == 1).collect::<Vec<_>>())
        })
        .filter(|choice| choice.simulated <= budget)
        .min_by(|a, b| a.cost.total_cmp(&b.cost))
}

#[test]
fn equal_blocks_are_planned_exactly() {
    let step = chain(&[1000; 10], &[7.0; 10]);
    let planner = Planner::new(&step);
    for budget in (1000..11_000).step_by(250) {
        let best = brute(&planner, 10, budget);
        let found = planner.cheapest(budget);
        match best {
            Some(best) => assert_eq!(found.cost, best.cost, "budget {budget}"),
            None => assert!(budget < found.simulated),
        }
    }
}

#[test]
fn less_memory_never_means_a_higher_peak() {
    let step = chain(&[900, 100, 500, 700, 300, 800, 200], &[3.0, 1.0, 9.0, 2.0, 2.0, 5.0, 1.0]);
    let ladder = Planner::new(&step).ladder(8);
    assert!(2 < ladder.len(), "{ladder:?}");
    for pair in ladder.windows(2) {
        assert!(pair[1].simulated < pair[0].simulated && pair[0].cost < pair[1].cost, "{pair:?}");
    }
    assert_eq!(ladder[0].chosen, Vec::<usize>::new());
}

#[test]
fn a_module_and_its_parts_are_never_both_taken() {
    let mut step = chain(&[600, 600, 600], &[5.0; 3]);
    let mut part = step.candidates[0].clone();
    part.path = "blocks.0.attn".to_owned();
    part.class = "Attention".to_owned();
    part.cost = 1.0;
    part.absences[0].bytes /= 2;
    step.candidates.push(part);
    for choice in Planner::new(&step).ladder(8) {
        assert!(!(choice.chosen.contains(&0) && choice.chosen.contains(&3)), "{choice:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn unequal_blocks_come_near_the_best(
        saved in prop::collection::vec(1u64..1000, 13..15),
        costs in prop::collection::vec(1u32..50, 15),
        share in 0.2f64..1.0,
    ) {
        let cost: Vec<f64> = costs[..saved.len()].iter().map(|cost| f64::from(*cost)).collect();
        let step = chain(&saved, &cost);
        let planner = Planner::new(&step);
        let budget = (planner.simulate(&[]).simulated as f64 * share) as u64;
        let found = planner.cheapest(budget);
        if let Some(best) = brute(&planner, saved.len(), budget) {
            prop_assert!(found.simulated <= budget, "missed a plan of cost {}", best.cost);
            prop_assert!(found.cost <= 1.3 * best.cost + 1e-9, "{} against {}", found.cost, best.cost);
        }
    }
}

/// Each block also as what keeps its products: half as much goes, for a tenth of the cost. Where that is enough nothing is
/// computed again as a whole; below, both are mixed, and never for one block.
#[test]
fn blocks_that_keep_their_products_come_first() {
    let mut step = chain(&[1000; 10], &[10.0; 10]);
    let halves: Vec<Candidate> = step
        .candidates
        .iter()
        .map(|whole| {
            let half = |it: &Absence| Absence { bytes: it.bytes / 2, ..*it };
            let absences = whole.absences.iter().map(half).collect();
            Candidate { keeps_products: true, cost: 1.0, absences, ..whole.clone() }
        })
        .collect();
    step.candidates.extend(halves);
    let planner = Planner::new(&step);
    let all = planner.simulate(&[]).simulated;
    let mild = planner.cheapest(all - 3500);
    assert!(mild.chosen.iter().all(|&at| step.candidates[at].keeps_products), "{mild:?}");
    let hard = planner.cheapest(all - 6500);
    let paths: Vec<&str> =
        hard.chosen.iter().map(|&at| step.candidates[at].path.as_str()).collect();
    let different: std::collections::BTreeSet<&str> = paths.iter().copied().collect();
    assert_eq!(paths.len(), different.len(), "{hard:?}");
    assert!(hard.simulated <= all - 6500 && hard.cost < 80.0, "{hard:?}");
}
