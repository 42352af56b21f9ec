//! Reads a recording in text form from standard input, plays it again under its own settings, and
//! prints what differs, the final segments and the statistics. The one argument, if there is
//! one, is the memory fraction, which no recording holds. Exit code 1 if something differs.

use std::io::Read;
use std::process::ExitCode;

use allocator::{PoolStat, Settings, Stat, reproduce, validate};

fn main() -> ExitCode {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("standard input is text");
    let recording = match recording::text::recording(&text) {
        Ok(recording) => recording,
        Err(error) => return refuse(&error.to_string()),
    };
    let mut settings = match Settings::of(&recording.about) {
        Ok(settings) => settings,
        Err(error) => return refuse(&error.to_string()),
    };
    if let Some(fraction) = std::env::args().nth(1) {
        settings.memory_fraction = fraction.parse().ok();
    }
    let result = reproduce(&recording, &settings);
    let fault = validate::validate(&recording, &result.timeline).err();
    print_stats(&result.timeline.stats);
    match (&result.difference, &fault) {
        (None, None) => {
            println!("same {} events", recording.events.len());
            ExitCode::SUCCESS
        }
        (difference, fault) => {
            difference.iter().for_each(|difference| println!("difference {difference}"));
            fault.iter().for_each(|fault| println!("fault {fault}"));
            ExitCode::FAILURE
        }
    }
}

fn refuse(why: &str) -> ExitCode {
    println!("refused {why}");
    ExitCode::from(2)
}

/// One line per number, named as in `torch.cuda.memory_stats()`.
fn print_stats(stats: &allocator::Stats) {
    let pools: [(&str, &PoolStat); 9] = [
        ("allocation", &stats.allocation),
        ("allocated_bytes", &stats.allocated_bytes),
        ("active", &stats.active),
        ("active_bytes", &stats.active_bytes),
        ("requested_bytes", &stats.requested_bytes),
        ("segment", &stats.segment),
        ("reserved_bytes", &stats.reserved_bytes),
        ("inactive_split", &stats.inactive_split),
        ("inactive_split_bytes", &stats.inactive_split_bytes),
    ];
    for (name, stat) in pools {
        let parts = [("all", stat.all), ("small_pool", stat.small), ("large_pool", stat.large)];
        parts.iter().for_each(|(part, stat)| print_stat(&format!("{name}.{part}"), stat));
    }
    print_stat("oversize_allocations", &stats.oversize_allocations);
    print_stat("oversize_segments", &stats.oversize_segments);
    println!("stat num_ooms {}", stats.num_ooms);
    println!("stat num_device_alloc {}", stats.num_device_alloc);
    println!("stat num_device_free {}", stats.num_device_free);
}

fn print_stat(name: &str, stat: &Stat) {
    println!("stat {name}.current {}", stat.current);
    println!("stat {name}.peak {}", stat.peak);
    println!("stat {name}.allocated {}", stat.allocated);
    println!("stat {name}.freed {}", stat.freed);
}
