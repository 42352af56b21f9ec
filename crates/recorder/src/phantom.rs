//! What only the phantom knows: work areas that libraries were given, events that the host has waited for, and
//! whether there are streams.
//!
//! A real card's libraries do not say; then the symbols are not there.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use contract::work::Work;
use notes::{WorkArea, WorkAreas};

/// Rows that are fetched at once.
const ROWS: usize = 4096;

type Fill<Row> = unsafe extern "C" fn(*mut Row, u64) -> u64;

/// As in `crates/phantom/src/workspaces.rs`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Workspace {
    part: u64,
    address: u64,
    work: u64,
}

/// Parts in which an event was recorded, and in which it was done at the latest.
type Wait = [u64; 2];

pub(crate) struct Phantom {
    part: &'static AtomicU64,
    streams: &'static AtomicU64,
    workspaces: Fill<Workspace>,
    waits: Fill<Wait>,
}

impl Phantom {
    /// The phantom of this process, if it has one.
    pub(crate) fn find() -> Option<Phantom> {
        let symbol = |name: &CStr| {
            // SAFETY: a look into the symbols of this process.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        let part = symbol(c"fathom_part")?.cast_const().cast::<AtomicU64>();
        let streams = symbol(c"fathom_streams")?.cast_const().cast::<AtomicU64>();
        let (workspaces, waits) = (symbol(c"fathom_workspaces")?, symbol(c"fathom_waits")?);
        // SAFETY: these are the phantom's own, of these forms, and it is never unloaded.
        unsafe {
            Some(Phantom {
                part: &*part,
                streams: &*streams,
                workspaces: std::mem::transmute::<*mut libc::c_void, Fill<Workspace>>(workspaces),
                waits: std::mem::transmute::<*mut libc::c_void, Fill<Wait>>(waits),
            })
        }
    }

    /// Whether there is more than the one stream that every card has.
    pub(crate) fn has_streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn begin(&self, serial: u64) {
        self.part.store(serial, Ordering::Relaxed);
    }

    /// What lies at (serial number, address), of what was handed to libraries since the last call.
    pub(crate) fn workspaces(&self) -> WorkAreas {
        let mut areas = WorkAreas::default();
        for row in taken(self.workspaces) {
            let work = Work::ALL.get(row.work as usize).copied().unwrap_or_default();
            let area = WorkArea { name: work.name(), is_soft: work.is_soft() };
            areas.add(row.part, row.address, area);
        }
        areas
    }

    pub(crate) fn waits(&self) -> Vec<(u64, u64)> {
        taken(self.waits).into_iter().map(|[recorded, done]| (recorded, done)).collect()
    }
}

/// All rows since the last call.
fn taken<Row: Copy + Default>(fill: Fill<Row>) -> Vec<Row> {
    let mut all = Vec::new();
    let mut rows = vec![Row::default(); ROWS];
    loop {
        // SAFETY: the phantom writes at most that many rows.
        let count = unsafe { fill(rows.as_mut_ptr(), ROWS as u64) } as usize;
        all.extend_from_slice(&rows[..count.min(ROWS)]);
        if count < ROWS {
            return all;
        }
    }
}
