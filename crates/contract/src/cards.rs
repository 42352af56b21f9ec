//! The cards of a run: one page that all its processes share, readable after the last of them is gone.
//!
//! A card is one memory, whoever uses it. Each process has a row with what it holds of each card; sums
//! are made of the rows, so a process that was killed takes nothing along. Cards are counted as the
//! machine has them, not as one process sees them (`CUDA_VISIBLE_DEVICES`). A page of zeros is valid.

use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::status::MAX_DEVICES;
use crate::{NoPage, check_page};

/// Name of the file in the run's folder.
pub const FILE: &str = "phantom.cards";

/// First eight bytes of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FATHOMC1");

/// How many processes can use cards at the same time.
pub const MAX_PROCESSES: usize = 256;

/// What a process holds of one card, in bytes.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Held {
    /// Its context, once it has one.
    pub context: AtomicU64,
    /// All else.
    pub used: AtomicU64,
}

/// One process.
#[repr(C)]
#[derive(Debug)]
pub struct Row {
    /// 0 if the row is free.
    pub pid: AtomicU32,
    /// Keeps what follows aligned.
    pub reserved: AtomicU32,
    /// When it started, in the system's ticks: a number that is used again is another process.
    pub started: AtomicU64,
    /// By card.
    pub held: [Held; MAX_DEVICES],
}

/// A process's share of a card's peak.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Share {
    /// 0 behind the last share.
    pub pid: AtomicU64,
    /// Its context.
    pub context: AtomicU64,
    /// All else that it held.
    pub used: AtomicU64,
}

/// The most that was held of one card at once.
#[repr(C)]
#[derive(Debug)]
pub struct Peak {
    /// The sum over all processes, contexts included.
    pub bytes: AtomicU64,
    /// Who held how much then.
    pub shares: [Share; MAX_PROCESSES],
}

/// The page.
#[repr(C)]
#[derive(Debug)]
pub struct Cards {
    /// [`MAGIC`] once somebody has used the page.
    pub magic: AtomicU64,
    /// The process that is changing it, 0 if none is.
    pub changing: AtomicU32,
    /// Keeps what follows aligned.
    pub reserved: AtomicU32,
    /// By process.
    pub rows: [Row; MAX_PROCESSES],
    /// By card.
    pub peaks: [Peak; MAX_DEVICES],
}

/// A card's peak as the launcher reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeakReading {
    /// The sum over all processes, contexts included.
    pub bytes: u64,
    /// Who held how much then.
    pub shares: Vec<ShareReading>,
}

/// A share as the launcher reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareReading {
    pub pid: u32,
    pub context: u64,
    pub used: u64,
}

/// What a process holds of one card, as a management tool reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderReading {
    pub pid: u32,
    /// When it started, in the system's ticks.
    pub started: u64,
    /// Its context and all else.
    pub bytes: u64,
}

impl HolderReading {
    /// Who holds memory of a card, by the bytes of a page; whether they still run is not said there.
    pub fn parse(bytes: &[u8], card: usize) -> Result<Vec<HolderReading>, NoPage> {
        use std::mem::{offset_of, size_of};
        check_page(bytes, MAGIC, size_of::<Cards>())?;
        let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let holder = |row: usize| {
            let at = offset_of!(Cards, rows) + row * size_of::<Row>();
            let held = at + offset_of!(Row, held) + card * size_of::<Held>();
            Some(HolderReading {
                pid: short(at + offset_of!(Row, pid))?,
                started: long(at + offset_of!(Row, started))?,
                bytes: long(held + offset_of!(Held, context))?
                    + long(held + offset_of!(Held, used))?,
            })
        };
        let all = (0..MAX_PROCESSES).filter_map(holder);
        Ok(all.filter(|holder| holder.pid != 0 && holder.bytes != 0).collect())
    }
}

impl PeakReading {
    /// The peaks of all cards in the bytes of a page.
    pub fn parse(bytes: &[u8]) -> Result<Vec<PeakReading>, NoPage> {
        check_page(bytes, MAGIC, size_of::<Cards>())?;
        PeakReading::fields(bytes).ok_or(NoPage::Short)
    }

    fn fields(bytes: &[u8]) -> Option<Vec<PeakReading>> {
        use std::mem::{offset_of, size_of};
        let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let share = |at: usize| {
            Some(ShareReading {
                pid: long(at + offset_of!(Share, pid))? as u32,
                context: long(at + offset_of!(Share, context))?,
                used: long(at + offset_of!(Share, used))?,
            })
        };
        let peak = |card: usize| {
            let at = offset_of!(Cards, peaks) + card * size_of::<Peak>();
            let first = at + offset_of!(Peak, shares);
            let shares = (0..MAX_PROCESSES).map_while(|i| share(first + i * size_of::<Share>()));
            let shares: Vec<ShareReading> = shares.take_while(|share| share.pid != 0).collect();
            let bytes = long(at + offset_of!(Peak, bytes))?;
            Some(PeakReading { bytes, shares })
        };
        (0..MAX_DEVICES).map(peak).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_it_was_written() {
        use std::mem::{offset_of, size_of};
        let mut bytes = vec![0; size_of::<Cards>()];
        assert_eq!(PeakReading::parse(&bytes), Err(NoPage::Unused));
        let mut put =
            |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        put(0, MAGIC);
        let at = offset_of!(Cards, peaks) + 2 * size_of::<Peak>();
        let shares = at + offset_of!(Peak, shares);
        for (place, value) in [(at, 60), (shares, 7), (shares + 8, 10), (shares + 16, 50)] {
            put(place, value);
        }
        let peaks = PeakReading::parse(&bytes).unwrap();
        let shares = vec![ShareReading { pid: 7, context: 10, used: 50 }];
        assert_eq!((peaks.len(), &peaks[2]), (MAX_DEVICES, &PeakReading { bytes: 60, shares }));
        assert_eq!(peaks[0], PeakReading::default());
        assert_eq!(PeakReading::parse(&bytes[..100]), Err(NoPage::Short));
        let row = offset_of!(Cards, rows) + 3 * size_of::<Row>();
        let held = row + offset_of!(Row, held) + 2 * size_of::<Held>();
        for (place, value) in [(row, 9_u64), (row + 8, 44), (held, 10), (held + 8, 20)] {
            bytes[place..place + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let holder = HolderReading { pid: 9, started: 44, bytes: 30 };
        assert_eq!(HolderReading::parse(&bytes, 2), Ok(vec![holder]));
        assert_eq!(HolderReading::parse(&bytes, 1), Ok(Vec::new()));
    }
}
