//! The status page: what a process on the phantom tells its launcher, readable even after a kill.
//!
//! The phantom maps one such page per process as a shared file in the run's folder; the launcher
//! reads it when the process is gone. Only integers of fixed size, native endianness: both sides
//! run on one machine. Names of refused functions follow as text in `notes`.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::work::{KINDS, WorkReading, WorkStatus};
use crate::{NoPage, check_page};

/// How many cards one process can have.
pub const MAX_DEVICES: usize = 16;

/// Bytes of text that `notes` holds.
pub const NOTES_BYTES: usize = 4096;

/// Bytes of text that `command` holds.
pub const COMMAND_BYTES: usize = 256;

/// First eight bytes of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FATHOM02");

/// One card as one process used it; all in bytes.
#[repr(C)]
#[derive(Debug, Default)]
pub struct DeviceStatus {
    /// One more than its number in the machine ([`crate::cards`]); 0 if the process does not see it.
    pub card: AtomicU64,
    /// Memory this process holds now, without its context.
    pub used: AtomicU64,
    /// The most it ever held.
    pub peak: AtomicU64,
    /// Its context, once it has one.
    pub context: AtomicU64,
    /// The context for which the card had no room.
    pub context_refused: AtomicU64,
    /// Requests the card refused for lack of memory.
    pub refusals: AtomicU64,
    /// Size of the last refused request.
    pub refused_bytes: AtomicU64,
    /// The most that NCCL's communicators were taken to hold, as the phantom models them; part of `used`.
    pub nccl: AtomicU64,
    /// What a communicator of NCCL was taken to need when the card had no room for it.
    pub nccl_refused: AtomicU64,
}

/// The page. All fields start as zero.
#[repr(C)]
#[derive(Debug)]
pub struct Status {
    /// [`MAGIC`] once the page is valid.
    pub magic: AtomicU64,
    /// Kernels, matrix products and graphs launched.
    pub launches: AtomicU64,
    /// Version of the real cuDNN that answered, 0 if none did.
    pub cudnn_version: AtomicU32,
    /// Large device buffers that were read back (as zeros).
    pub zero_reads: AtomicU64,
    /// Calls of functions that are not simulated.
    pub refused_calls: AtomicU64,
    /// The process that started this one.
    pub parent: AtomicU32,
    /// Bytes of `command` in use.
    pub command_length: AtomicU32,
    /// The words of its command line, with blanks between them, as far as there is room.
    pub command: [AtomicU8; COMMAND_BYTES],
    /// Per card.
    pub devices: [DeviceStatus; MAX_DEVICES],
    /// Work areas of cuDNN's calls, by the number of their kind.
    pub work: [WorkStatus; KINDS],
    /// Bytes of `notes` in use.
    pub notes_length: AtomicU32,
    /// Lines of text: names of refused functions.
    pub notes: [AtomicU8; NOTES_BYTES],
}

/// A page as the launcher reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub launches: u64,
    pub cudnn_version: u32,
    pub zero_reads: u64,
    pub refused_calls: u64,
    pub parent: u32,
    pub command: String,
    pub devices: Vec<DeviceReading>,
    /// Only kinds of which there were calls.
    pub work: Vec<WorkReading>,
    pub notes: String,
}

/// One card of a [`Reading`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceReading {
    /// The card's number in the machine; `None` if the process does not see it.
    pub card: Option<usize>,
    pub used: u64,
    pub peak: u64,
    pub context: u64,
    pub context_refused: u64,
    pub refusals: u64,
    pub refused_bytes: u64,
    pub nccl: u64,
    pub nccl_refused: u64,
}

impl Reading {
    /// Reads the bytes of a page.
    pub fn parse(bytes: &[u8]) -> Result<Reading, NoPage> {
        check_page(bytes, MAGIC, size_of::<Status>())?;
        Reading::fields(bytes).ok_or(NoPage::Short)
    }

    fn fields(bytes: &[u8]) -> Option<Reading> {
        use std::mem::{offset_of, size_of};
        let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let mut devices = Vec::new();
        for index in 0..MAX_DEVICES {
            let at = offset_of!(Status, devices) + index * size_of::<DeviceStatus>();
            devices.push(DeviceReading {
                card: long(at + offset_of!(DeviceStatus, card))?
                    .checked_sub(1)
                    .map(|card| card as usize),
                used: long(at + offset_of!(DeviceStatus, used))?,
                peak: long(at + offset_of!(DeviceStatus, peak))?,
                context: long(at + offset_of!(DeviceStatus, context))?,
                context_refused: long(at + offset_of!(DeviceStatus, context_refused))?,
                refusals: long(at + offset_of!(DeviceStatus, refusals))?,
                refused_bytes: long(at + offset_of!(DeviceStatus, refused_bytes))?,
                nccl: long(at + offset_of!(DeviceStatus, nccl))?,
                nccl_refused: long(at + offset_of!(DeviceStatus, nccl_refused))?,
            });
        }
        let mut work = Vec::new();
        for number in 0..KINDS {
            let at = offset_of!(Status, work) + number * size_of::<WorkStatus>();
            let numbers = [long(at)?, long(at + 8)?, long(at + 16)?, long(at + 24)?];
            work.extend(WorkReading::parse(number, numbers));
        }
        work.retain(|reading| 0 < reading.exact.calls + reading.modelled.calls);
        let text = |length: usize, at: usize, most: usize| {
            let length = (short(length)? as usize).min(most);
            Some(String::from_utf8_lossy(bytes.get(at..at + length)?).into_owned())
        };
        Some(Reading {
            launches: long(offset_of!(Status, launches))?,
            cudnn_version: short(offset_of!(Status, cudnn_version))?,
            zero_reads: long(offset_of!(Status, zero_reads))?,
            refused_calls: long(offset_of!(Status, refused_calls))?,
            parent: short(offset_of!(Status, parent))?,
            command: text(
                offset_of!(Status, command_length),
                offset_of!(Status, command),
                COMMAND_BYTES,
            )?,
            devices,
            work,
            notes: text(offset_of!(Status, notes_length), offset_of!(Status, notes), NOTES_BYTES)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_cannot_be_read_says_why() {
        let mut bytes = vec![0; size_of::<Status>()];
        assert_eq!(Reading::parse(&bytes), Err(NoPage::Unused));
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        assert_eq!(Reading::parse(&bytes).unwrap().devices.len(), MAX_DEVICES);
        assert_eq!(Reading::parse(&bytes[..bytes.len() - 1]), Err(NoPage::Short));
        bytes[..8].copy_from_slice(b"FATHOM99");
        assert_eq!(Reading::parse(&bytes), Err(NoPage::Foreign));
    }
}
