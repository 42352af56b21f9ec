//! Thousands of random calls of every function with arguments that a driver refuses: they end in
//! error codes. A child process makes them, so that a crash is seen and not shared.

mod arguments;
mod calls;
mod world;

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use world::World;

/// Names the seed to a child.
const SEED: &str = "FATHOM_TEST_SEED";

const CALLS: usize = 10_000;

/// A child that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the child may take of the host's memory, also as pinned memory that it asks for.
const MOST_TAKEN: u64 = 256 << 20;

#[test]
fn bad_arguments_end_in_error_codes() {
    run(1);
}

#[test]
#[ignore = "takes a minute: `make fuzz-calls`"]
fn bad_arguments_end_in_error_codes_with_many_seeds() {
    (2..102).for_each(run);
}

/// Makes the calls of one seed in a child and looks at how it ended.
fn run(seed: u64) {
    let myself = std::env::current_exe().unwrap();
    let mut child = Command::new(myself)
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(SEED, seed.to_string())
        .env("FATHOM_GPU", "rtx3090")
        .env("FATHOM_DEVICES", "2")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        stderr.read_to_end(&mut text).map(|_| text).unwrap_or_default()
    });
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if PATIENCE < start.elapsed() => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let text = reader.join().unwrap();
    let text = String::from_utf8_lossy(&text);
    let last: Vec<&str> = text.lines().rev().take(12).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    match status {
        None => panic!("seed {seed} hangs:\n{}", last.join("\n")),
        Some(status) if !status.success() => {
            panic!("seed {seed} ends with {status}:\n{}", last.join("\n"))
        }
        Some(_) => {}
    }
    let panics = text.lines().find(|line| line.contains("failed inside the phantom"));
    assert_eq!(panics, None, "seed {seed}");
}

/// Not a test: what [`run`] starts.
#[test]
#[ignore = "started by the tests"]
fn child() {
    let Some(seed) = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()) else { return };
    let calls = calls::all();
    let mut world = World::new(seed);
    limit_memory();
    let mut log = std::io::stderr().lock();
    let (mut succeeded, mut failed) = (0, 0);
    for number in 0..CALLS {
        let call = &calls[world.dice.below(calls.len())];
        world.prepare();
        writeln!(log, "{number} {}", call.name).unwrap();
        match (call.with)(&mut world) {
            Some(0) => {
                succeeded += 1;
                assert_eq!(world.must_fail, None, "call {number}, `{}`, succeeded", call.name);
                world.remember();
            }
            Some(_) => failed += 1,
            None => {}
        }
    }
    writeln!(log, "{succeeded} calls succeeded, {failed} failed").unwrap();
    assert!(CALLS / 10 < succeeded && CALLS / 10 < failed, "neither good nor bad alone says much");
}

/// From here on the process gets so much memory and no more: whoever wants more gets an error from the
/// system, and ends the process if it does not expect one.
fn limit_memory() {
    unsafe extern "C" {
        fn cuInit() -> i32;
    }
    // SAFETY: the phantom's addresses are reserved now, since they count too.
    assert_eq!(unsafe { cuInit() }, 0);
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    let taken = line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10;
    let limit = libc::rlimit { rlim_cur: taken + MOST_TAKEN, rlim_max: taken + MOST_TAKEN };
    // SAFETY: a valid limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) }, 0);
}
