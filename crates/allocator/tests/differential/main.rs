//! Differential: random programs give the same in our allocator and in PyTorch's own, which runs on
//! the phantom: the address of every block, segments and their order, the final blocks, statistics.
//!
//! Needs the command and Pythons with torch (`make build`), hence ignored by a plain `cargo test`:
//!
//! ```text
//! make test-differential
//! PROPTEST_CASES=1000 PROPTEST_RNG_SEED=7 make test-differential     more, and others
//! ```
//! A program that differs is shrunk and printed as text. Put into `programs/`, that text is compared
//! from then on.

mod check;
mod compare;
mod generate;
mod program;
mod server;
mod simulate;

use std::path::{Path, PathBuf};

use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestCaseError, TestRunner};

use check::{Tally, check};
use program::Program;
use server::Server;

/// Programs per kind of settings, unless `PROPTEST_CASES` says otherwise.
const PROGRAMS: u32 = 40;

/// Where this test's files are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential")
}

fn config() -> Config {
    let set = |name: &str| std::env::var_os(name).is_some();
    let mut config = Config::default();
    if !set("PROPTEST_CASES") {
        config.cases = PROGRAMS;
    }
    if !set("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(0);
    }
    (config.max_shrink_iters, config.max_shrink_time) = (10_000, 60_000);
    let file = folder().join("failures.txt").display().to_string();
    let file: &'static str = Box::leak(file.into_boxed_str());
    config.failure_persistence = Some(Box::new(FileFailurePersistence::Direct(file)));
    config
}

fn compare(version: &str, python: &str) {
    let Some(server) = Server::start(version, python) else { return };
    let server = std::cell::RefCell::new(server);
    let torch = server.borrow().torch.clone();
    let only = std::env::var("FATHOM_CASE").unwrap_or_default();
    for (name, program) in kept() {
        let same = check(&mut server.borrow_mut(), &program, &mut Tally::default());
        same.unwrap_or_else(|why| panic!("torch {torch}, {name}: {why}\n{program}"));
    }
    for case in generate::CASES {
        if !case.exists_in(&torch) || !case.name.contains(&only) {
            continue;
        }
        let tally = std::cell::RefCell::new(Tally::default());
        let outcome = TestRunner::new(config()).run(&generate::programs(case), |program| {
            let same = check(&mut server.borrow_mut(), &program, &mut tally.borrow_mut());
            same.map_err(TestCaseError::fail)
        });
        if let Err(error) = outcome {
            panic!("torch {torch}, {}: {error}", case.name);
        }
        eprintln!("torch {torch}, {}: {}", case.name, tally.into_inner());
    }
}

/// Programs of `programs/`, with their names.
fn kept() -> Vec<(String, Program)> {
    let entries = std::fs::read_dir(folder().join("programs")).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("text");
        (path.display().to_string(), text.parse().expect("a program"))
    };
    paths.into_iter().map(read).collect()
}

#[test]
#[ignore = "needs the command and a Python with torch 2.15: `make test-differential`"]
fn torch_2_15() {
    compare("2.15", ".venv/bin/python");
}

#[test]
#[ignore = "needs the command and a Python with torch 2.13: `make test-differential`"]
fn torch_2_13() {
    compare("2.13", ".venvs/2.13.0/bin/python");
}

#[test]
#[ignore = "needs the command and a Python with torch 2.6: `make test-differential`"]
fn torch_2_6() {
    compare("2.6", ".venvs/2.6.0/bin/python");
}

#[test]
fn a_program_is_read_as_it_is_written() {
    for (name, program) in kept() {
        assert_eq!(program.to_string().parse::<Program>(), Ok(program), "{name}");
    }
    assert!("allocate 5".parse::<Program>().is_err());
}
