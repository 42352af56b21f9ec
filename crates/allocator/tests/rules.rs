//! One case for each rule, written as a program and its outcome.
//!
//! A program is lines `name = size [stream]` and `free name`, and `empty`; an outcome is lines
//! `name offset/size`, offsets counted from the first segment, and the segments made on the way.

use std::collections::HashMap;
use std::fmt::Write;

use allocator::{Outcome, Settings, Timeline, replay, validate};
use recording::{Event, OwnerId, Recording};

const MIB: u64 = 1 << 20;

/// The recording of a program: names are addresses of its own.
fn recording(program: &str) -> (Recording, Vec<String>) {
    let mut recording = Recording::default();
    let mut names = Vec::new();
    let mut known: HashMap<String, (u64, u64)> = HashMap::new();
    let events = &mut recording.events;
    for line in program.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, "=", size] | [name, "=", size, _] => {
                let address = 0x1000 * (known.len() as u64 + 1);
                let size = size.parse().unwrap();
                let stream = words.get(3).map_or(0, |stream| stream.parse().unwrap());
                known.insert(name.to_owned(), (address, size));
                let (owner, pool) = (OwnerId(0), (0, 0));
                events.push(Event::Alloc { address, size, stream, owner, pool });
                names.push(name.to_owned());
            }
            ["free", name] | ["give", name] => {
                let (address, size) = known[name];
                events.push(Event::FreeRequested { address, size });
                names.push(String::new());
                if words[0] == "free" {
                    events.push(Event::FreeCompleted { address, size });
                    names.push(String::new());
                }
            }
            ["done", name] => {
                let (address, size) = known[name];
                events.push(Event::FreeCompleted { address, size });
                names.push(String::new());
            }
            // What a recorded call of `empty_cache` leaves.
            ["empty"] => {
                events.push(Event::SegmentFree { address: 0, size: 0, stream: 0, pool: (0, 0) });
                names.push(String::new());
            }
            _ => panic!("`{line}` is no line of a program"),
        }
    }
    (recording, names)
}

fn play(program: &str, settings: &Settings) -> (Timeline, String) {
    let (recording, names) = recording(program);
    let timeline = replay(&recording, settings);
    validate::validate(&recording, &timeline).unwrap();
    let base = timeline.segments.first().map_or(0, |segment| match segment.event {
        Event::SegmentAlloc { address, .. } | Event::SegmentMap { address, .. } => address,
        _ => 0,
    });
    let mut text = String::new();
    for (moment, name) in timeline.moments.iter().zip(&names).filter(|(_, name)| !name.is_empty()) {
        let sign = if moment.address < base { "-" } else { "" };
        let distance = moment.address.abs_diff(base);
        writeln!(text, "{name} {sign}{distance:#x}/{}", moment.block).unwrap();
    }
    (timeline, text)
}

/// Checks blocks, then allocated and reserved bytes at the end.
fn check(settings: &Settings, program: &str, blocks: &str, allocated: u64, reserved: u64) {
    let (timeline, text) = play(program, settings);
    let expected: Vec<&str> =
        blocks.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    assert_eq!(timeline.outcome, Outcome::Completed);
    let last = timeline.moments.last().unwrap();
    assert_eq!((last.allocated, last.reserved), (allocated, reserved));
}

fn versions() -> impl Iterator<Item = Settings> {
    ["2.1.0", "2.6.0", "2.12.0", "2.15.0"]
        .map(|version| Settings::for_torch(version).unwrap())
        .into_iter()
}

#[test]
fn small_requests_share_segments_of_two_mib() {
    for settings in versions() {
        check(
            &settings,
            "a = 1\nb = 512\nc = 513\nd = 1048576\nfree b\ne = 100\nfree a\nfree e\ng = 1024\nh = 1047552",
            "a 0x0/512\nb 0x200/512\nc 0x400/1024\nd 0x800/1048576\ne 0x200/512\ng 0x0/1024\nh 0x200000/1047552",
            2_098_176,
            4_194_304,
        );
    }
}

#[test]
fn large_requests_share_segments_of_twenty_mib_and_keep_tails_up_to_one() {
    for settings in versions() {
        check(
            &settings,
            "a = 1048577\nb = 8519680\nc = 10485248\nfree a\nd = 1572864\nfree b\ne = 9961472",
            "a 0x0/1049088\nb 0x100200/8519680\nc 0x920200/11402752\nd -0x2000000/1572864\ne -0x1e80000/9961472",
            22_937_088,
            41_943_040,
        );
    }
}

#[test]
fn from_ten_mib_on_a_segment_is_for_one_request() {
    check(
        &Settings::default(),
        "a = 10485760\nb = 10485761\nc = 33554432\nfree c\nd = 32505856\ne = 33000000",
        "a 0x0/10485760\nb 0xa00000/10486272\nc -0x2000000/33554432\nd -0x2000000/33554432\ne -0x4000000/33554432",
        88_080_896,
        90_177_536,
    );
}

#[test]
fn streams_do_not_share() {
    check(
        &Settings::default(),
        "a = 4096\nfree a\nb = 4096 7\nc = 4096",
        "a 0x0/4096\nb 0x200000/4096\nc 0x0/4096",
        8192,
        4 * MIB,
    );
}

#[test]
fn a_block_in_use_by_a_stream_is_neither_joined_nor_handed_out() {
    let (timeline, text) =
        play("a = 512\nb = 512\ngive a\nc = 512\ndone a\nd = 512", &Settings::default());
    assert_eq!(text, "a 0x0/512\nb 0x200/512\nc 0x400/512\nd 0x0/512\n");
    let waiting = timeline.moments[2];
    assert_eq!((waiting.allocated, waiting.active), (512, 1024));
}

#[test]
fn expandable_segments_grow_by_pages() {
    let settings = Settings::default().with_conf("expandable_segments:True").unwrap();
    let program = format!(
        "b = {}\nc = {}\nd = {}\ne = {}\nfree d\ng = 1048577\nh = {}\nfree c\ni = {}",
        3 * MIB,
        30 * MIB,
        4 * MIB,
        2 * MIB,
        700 * MIB,
        10 * MIB
    );
    let (timeline, text) = play(&program, &settings);
    let addresses: Vec<&str> = text.lines().map(|line| line.split('/').next().unwrap()).collect();
    assert_eq!(
        addresses,
        [
            "b 0x0",
            "c 0x300000",
            "d 0x2100000",
            "e 0x2500000",
            "g 0x2100000",
            "h 0x2700000",
            "i 0x300000"
        ]
    );
    assert_eq!(timeline.stats.reserved_bytes.all.current, 778_043_392 - 2 * MIB);
    assert_eq!(timeline.stats.segment.all.current, 0);
}

#[test]
fn a_hole_is_preferred_to_a_growing_tail() {
    let settings = Settings::default().with_conf("expandable_segments:True").unwrap();
    let program =
        format!("a = {}\nb = {}\nfree a\nc = 1049088\nd = {}", 16 * MIB, 2 * MIB, 19 * MIB);
    let (timeline, text) = play(&program, &settings);
    assert_eq!(text.lines().nth(2), Some("c 0x0/1049088"));
    assert_eq!(text.lines().nth(3), Some("d 0x1200000/19922944"));
    assert_eq!(timeline.stats.reserved_bytes.all.current, 41_943_040);
}

#[test]
fn emptying_the_cache_gives_back_whole_segments_and_pages() {
    let program = format!("a = {}\nb = 5\nc = {}\nfree a\nempty\nfree b\nempty", 30 * MIB, 3 * MIB);
    let (timeline, _) = play(&program, &Settings::default());
    assert_eq!(timeline.stats.reserved_bytes.all.current, 20 * MIB);
    let settings = Settings::default().with_conf("expandable_segments:True").unwrap();
    let (timeline, _) = play(&program, &settings);
    let texts: Vec<String> = timeline.segments.iter().map(|at| at.event.to_string()).collect();
    assert!(texts.iter().any(|text| text.starts_with("segment_unmap")), "{texts:?}");
    // 33 MiB of pages were two; only the first is wholly free.
    assert_eq!(timeline.stats.reserved_bytes.all.current, 20 * MIB);
}

#[test]
fn equal_free_blocks_are_taken_in_the_order_of_the_version() {
    // Two free blocks of one size: the lower belongs to the younger object in 2.12.
    let program = "a = 1048576\nb = 512\nc = 1048576\nfree c\nfree a\nd = 1048576";
    let place = |version: &str| {
        let (_, text) = play(program, &Settings::for_torch(version).unwrap());
        text.lines().last().unwrap().to_owned()
    };
    assert_eq!(place("2.11.0"), "d 0x0/1048576");
    assert_eq!(place("2.12.0"), "d 0x0/1048576");
    assert_eq!(place("2.13.0"), "d 0x0/1048576");
}

#[test]
fn oversize_blocks_are_not_split_nor_given_to_small_requests() {
    let settings = Settings::default().with_conf("max_split_size_mb:32").unwrap();
    let program = format!("a = {}\nfree a\nb = {}\nc = {}", 60 * MIB, 5 * MIB, 45 * MIB);
    check(
        &settings,
        &program,
        "a 0x0/62914560\nb -0x2000000/5242880\nc 0x0/62914560",
        68_157_440,
        80 * MIB,
    );
    let far = format!("a = {}\nfree a\nc = {}", 60 * MIB, 40 * MIB);
    check(&settings, &far, "a 0x0/62914560\nc -0x4000000/41943040", 40 * MIB, 100 * MIB);
}

#[test]
fn garbage_is_collected_above_the_threshold() {
    let conf = "garbage_collection_threshold:0.5,per_process_memory_fraction:0.5";
    let mut settings = Settings::default().with_conf(conf).unwrap();
    settings.memory = Some(200 * MIB);
    let program = format!("a = {}\nb = {}\nfree a\nfree b\nc = {}", 30 * MIB, 40 * MIB, 50 * MIB);
    let (timeline, _) = play(&program, &settings);
    let reserved = timeline.stats.reserved_bytes.all;
    assert_eq!((reserved.peak, reserved.current), (70 * MIB, 50 * MIB));
    assert_eq!(timeline.stats.num_alloc_retries, 0);
}

#[test]
fn a_full_card_is_an_outcome_with_pytorchs_text() {
    let settings = Settings { memory: Some(100 * MIB), context: 30 * MIB, ..Settings::default() };
    let program =
        format!("a = {}\nb = {}\nfree a\nc = {}\nd = {}", 30 * MIB, 3 * MIB, 45 * MIB, 40 * MIB);
    let (timeline, _) = play(&program, &settings);
    let Outcome::OutOfMemory { at, error } = &timeline.outcome else { panic!("it fits") };
    assert_eq!((*at, timeline.stats.num_alloc_retries), (5, 2));
    assert_eq!(
        error.text,
        "CUDA out of memory. Tried to allocate 40.00 MiB. GPU 0 has a total capacity of 100.00 MiB of \
         which 4.00 MiB is free. Including non-PyTorch memory, this process has 96.00 MiB memory in \
         use. Of the allocated memory 49.00 MiB is allocated by PyTorch, and 17.00 MiB is reserved by \
         PyTorch but unallocated. If reserved but unallocated memory is large try setting \
         PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation \
         for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html\
         #optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    );
}
