//! The status page: what a process on the phantom tells its launcher, readable even after a kill.
//!
//! The phantom maps one such page per process as a shared file in the run's folder; the launcher
//! reads it when the process is gone. Only integers of fixed size, native endianness: both sides
//! run on one machine. Names of refused functions follow as text in `notes`.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// How many cards one process can have.
pub const MAX_DEVICES: usize = 16;

/// Bytes of text that `notes` holds.
pub const NOTES_BYTES: usize = 4096;

/// First eight bytes of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FATHOM01");

/// Where convolution workspaces came from, the weakest answer given so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Workspaces {
    /// No convolution asked for one.
    None = 0,
    /// All answers came from the real cuDNN for this card.
    Exact = 1,
    /// Some answers came from the phantom's model.
    Modelled = 2,
}

/// One card as one process used it; all in bytes.
#[repr(C)]
#[derive(Debug, Default)]
pub struct DeviceStatus {
    /// Memory this process holds now, without its context.
    pub used: AtomicU64,
    /// The most it ever held.
    pub peak: AtomicU64,
    /// Its context, once it has one.
    pub context: AtomicU64,
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
    /// A [`Workspaces`] value.
    pub workspaces: AtomicU32,
    /// Version of the real cuDNN that answered, 0 if none did.
    pub cudnn_version: AtomicU32,
    /// Large device buffers that were read back (as zeros).
    pub zero_reads: AtomicU64,
    /// Calls of functions that are not simulated.
    pub refused_calls: AtomicU64,
    /// Per card.
    pub devices: [DeviceStatus; MAX_DEVICES],
    /// Bytes of `notes` in use.
    pub notes_length: AtomicU32,
    /// Lines of text: names of refused functions.
    pub notes: [std::sync::atomic::AtomicU8; NOTES_BYTES],
}

/// A page as the launcher reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of Status, as plain numbers")]
pub struct Reading {
    pub launches: u64,
    pub workspaces: u32,
    pub cudnn_version: u32,
    pub zero_reads: u64,
    pub refused_calls: u64,
    pub devices: Vec<DeviceReading>,
    pub notes: String,
}

/// One card of a [`Reading`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of DeviceStatus, as plain numbers")]
pub struct DeviceReading {
    pub used: u64,
    pub peak: u64,
    pub context: u64,
    pub refusals: u64,
    pub refused_bytes: u64,
    pub nccl: u64,
    pub nccl_refused: u64,
}

impl Reading {
    /// Reads the bytes of a page; `None` if they are not one.
    pub fn parse(bytes: &[u8]) -> Option<Reading> {
        use std::mem::{offset_of, size_of};
        let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if long(offset_of!(Status, magic))? != MAGIC {
            return None;
        }
        let mut devices = Vec::new();
        for index in 0..MAX_DEVICES {
            let at = offset_of!(Status, devices) + index * size_of::<DeviceStatus>();
            devices.push(DeviceReading {
                used: long(at + offset_of!(DeviceStatus, used))?,
                peak: long(at + offset_of!(DeviceStatus, peak))?,
                context: long(at + offset_of!(DeviceStatus, context))?,
                refusals: long(at + offset_of!(DeviceStatus, refusals))?,
                refused_bytes: long(at + offset_of!(DeviceStatus, refused_bytes))?,
                nccl: long(at + offset_of!(DeviceStatus, nccl))?,
                nccl_refused: long(at + offset_of!(DeviceStatus, nccl_refused))?,
            });
        }
        let length = (short(offset_of!(Status, notes_length))? as usize).min(NOTES_BYTES);
        let at = offset_of!(Status, notes);
        Some(Reading {
            launches: long(offset_of!(Status, launches))?,
            workspaces: short(offset_of!(Status, workspaces))?,
            cudnn_version: short(offset_of!(Status, cudnn_version))?,
            zero_reads: long(offset_of!(Status, zero_reads))?,
            refused_calls: long(offset_of!(Status, refused_calls))?,
            devices,
            notes: String::from_utf8_lossy(bytes.get(at..at + length)?).into_owned(),
        })
    }
}
