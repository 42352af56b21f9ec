//! Bytes as a program that makes sense: what is freed was allocated, once.

use allocator::{MIB, Settings};
use recording::{Event, OwnerId, Recording};

/// Settings that programs run under; the first byte chooses.
const SETTINGS: &[(&str, &str)] = &[
    ("2.15", ""),
    ("2.15", "expandable_segments:True"),
    ("2.13", "max_split_size_mb:32"),
    ("2.13", "garbage_collection_threshold:0.5"),
    ("2.12", ""),
    ("2.12", "roundup_power2_divisions:4,expandable_segments:True"),
    ("2.6", "garbage_collection_threshold:0.5,max_split_size_mb:24"),
    ("2.5", "roundup_power2_divisions:[1:8,4:2,64:4,>:1]"),
];

/// The program of some bytes: settings, memory of the card, then four bytes per operation.
pub(crate) fn of(bytes: &[u8]) -> (Recording, Settings) {
    let (head, body) = bytes.split_at(bytes.len().min(2));
    let at = |index: usize| u64::from(head.get(index).copied().unwrap_or(0));
    let (version, conf) = SETTINGS[at(0) as usize % SETTINGS.len()];
    let settings = Settings::for_torch(version).and_then(|settings| settings.with_conf(conf));
    let mut settings = settings.expect("settings that exist");
    settings.memory = (at(1) != 0).then_some(at(1) * 16 * MIB);
    settings.memory_fraction = Some(0.75);
    (Recording { events: events(body), ..Recording::default() }, settings)
}

fn events(body: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut live: Vec<(u64, u64)> = Vec::new();
    let mut waiting = Vec::new();
    for (index, code) in body.chunks_exact(4).take(1000).enumerate() {
        let [kind, place, low, high] = [code[0], code[1], code[2], code[3]];
        match kind % 8 {
            0..4 => {
                // From some bytes to some hundreds of MiB, each order of magnitude as likely.
                let size = (u64::from(low) + 1) << (high % 22);
                let (address, stream) = (512 * (index as u64 + 1), u64::from(place % 3));
                let pool = (0, u32::from(place / 64 % 2));
                events.push(Event::Alloc { address, size, stream, owner: OwnerId(0), pool });
                live.push((address, size));
            }
            4..7 if !live.is_empty() => {
                let (address, size) = live.swap_remove(usize::from(place) % live.len());
                events.push(Event::FreeRequested { address, size });
                if kind % 8 == 6 {
                    waiting.push(Event::FreeCompleted { address, size });
                } else {
                    events.push(Event::FreeCompleted { address, size });
                }
            }
            7 if low < 128 => events.append(&mut waiting),
            // What `empty_cache` leaves in a trace.
            7 => events.push(Event::SegmentFree { address: 0, size: 0, stream: 0, pool: (0, 0) }),
            _ => {}
        }
    }
    events
}
