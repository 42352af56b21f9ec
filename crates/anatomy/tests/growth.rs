//! What piles up is found and named; what only seems to is not.

mod support;

use anatomy::Growth;
use recording::{Category, Phase};
use support::Script;

/// A run of some steps; `body` acts between the optimizer of a step and the forward pass of the next.
fn run(steps: u32, mut body: impl FnMut(&mut Script, u32)) -> Growth {
    let mut script = Script::new();
    let forward = script.owner("fc", "addmm", &[("train.py", 5)]);
    let optimizer = script.owner("", "zeros_like", &[("train.py", 7)]);
    script.phase(Phase::Construction, 1);
    let mut last = None;
    for step in 1..=steps {
        script.phase(Phase::Forward, step);
        // Batches differ in size, now up, now down.
        let output = script.alloc(4096 * u64::from(1 + step * step % 7), forward);
        script.name(output, Category::Activations, "saved");
        last.replace(output).into_iter().for_each(|old| script.free(old));
        script.phase(Phase::Optimizer, step);
        if step == 1 {
            let state = script.alloc(8192, optimizer);
            script.name(state, Category::Optimizer, "exp_avg of fc.weight");
        }
        script.phase(Phase::Forward, step + 1);
        body(&mut script, step);
    }
    script.dissect().1.growth
}

#[test]
fn nothing_grows_in_an_ordinary_run() {
    for steps in 1..6 {
        let growth = run(steps, |_, _| {});
        assert_eq!((growth.bytes_per_step, growth.sites.len()), (0, 0), "{steps} steps");
    }
}

#[test]
fn a_sum_of_losses_is_found_with_its_line() {
    let growth = run(3, |script, _| {
        let owner = script.owner("", "add", &[("train.py", 12)]);
        script.alloc(4, owner);
    });
    assert_eq!((growth.bytes_per_step, growth.steps), (512, 3));
    let [site] = &growth.sites[..] else { panic!("{growth:?}") };
    assert_eq!((site.origin.file.as_str(), site.origin.line), ("train.py", 12));
    assert_eq!((site.bytes, site.count, site.origin.operator.as_str()), (1024, 2, "add"));
}

#[test]
fn a_tensor_that_is_appended_to_is_found() {
    let mut history = None;
    let growth = run(5, |script, step| {
        let owner = script.owner("", "cat", &[("train.py", 13)]);
        let longer = script.alloc(2048 * u64::from(step), owner);
        history.replace(longer).into_iter().for_each(|old| script.free(old));
    });
    assert_eq!((growth.bytes_per_step, growth.sites[0].count), (2048, 1));
}

#[test]
fn a_full_window_and_a_batch_fetched_ahead_do_not_grow() {
    let mut window = std::collections::VecDeque::new();
    let growth = run(12, |script, _| {
        let owner = script.owner("", "to", &[("train.py", 14)]);
        window.push_back(script.alloc(512, owner));
        if 3 < window.len() {
            window.pop_front().into_iter().for_each(|old| script.free(old));
        }
    });
    assert_eq!(growth.bytes_per_step, 0);
}

#[test]
fn what_the_second_step_makes_once_does_not_grow() {
    let growth = run(4, |script, step| {
        let owner = script.owner("", "empty", &[("train.py", 15)]);
        if step == 2 {
            script.alloc(512, owner);
        }
    });
    assert_eq!(growth.bytes_per_step, 0);
}

#[test]
fn long_runs_are_sampled() {
    let growth = run(300, |script, _| {
        let owner = script.owner("", "add", &[("train.py", 12)]);
        script.alloc(600, owner);
    });
    assert_eq!((growth.bytes_per_step, growth.steps), (1024, 17));
}
