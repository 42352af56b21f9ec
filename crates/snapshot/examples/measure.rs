//! Reads snapshots and says how long it took: `measure FILE…`
//!
//! Peak memory includes the file itself, which is read whole.

use std::time::Instant;

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => return println!("{path}: {error}"),
        };
        let (start, cpu_start) = (Instant::now(), cpu_seconds());
        let result = snapshot::read(&bytes);
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu_start);
        match result {
            Ok(snapshot) => println!(
                "{path}\n  {} bytes, {} events, {} segments, {} stacks, {} frames, {} strings, {:?}\n  \
                 {seconds:.4} s, {cpu:.4} s of CPU, peak {} KiB",
                bytes.len(),
                snapshot.event_count(),
                snapshot.segments.len(),
                snapshot.tables.stack_count(),
                snapshot.tables.frames.len(),
                snapshot.tables.strings.len(),
                snapshot.form,
                peak_kib(),
            ),
            Err(error) => println!("{path}: {error}\n\nhint: {}", error.hint()),
        }
    }
}

/// Largest resident size of this process, KiB; 0 where the system does not say.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Time this process has run, seconds; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split_whitespace().next().and_then(|field| field.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}
