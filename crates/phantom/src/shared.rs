//! Device memory that several processes see: a file without a name, mapped in place of the anonymous
//! memory that the cards otherwise are made of. It costs what is written to it, and goes with the last
//! process that has it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

use crate::error::Failure;

/// The system's page.
const PAGE: usize = 4096;

/// Pages that are looked at in one go.
const WINDOW: usize = 1 << 20;

/// A new file of `length` bytes.
pub(crate) fn make(length: u64) -> Result<File, Failure> {
    let make = || {
        // SAFETY: a terminated name.
        let fd = unsafe { libc::memfd_create(c"fathom".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(length).map(|()| file)
    };
    make().map_err(|_| Failure::OutOfMemory)
}

/// Copies what was written to `[start, start + length)` into the file, which takes its place.
pub(crate) fn put(file: &File, start: u64, length: u64) -> Result<(), Failure> {
    let mut is_resident = vec![0_u8; WINDOW / PAGE];
    for window in (start..start + length).step_by(WINDOW) {
        let size = WINDOW.min((start + length - window) as usize);
        // SAFETY: the range is part of the cards' mapping, and the vector has a byte for each page.
        let asked =
            unsafe { libc::mincore(window as *mut libc::c_void, size, is_resident.as_mut_ptr()) };
        if asked != 0 {
            return Err(Failure::Unknown);
        }
        let pages = is_resident.iter().take(size / PAGE).enumerate();
        for (page, _) in pages.filter(|(_, state)| **state & 1 != 0) {
            let address = window + (page * PAGE) as u64;
            // SAFETY: device memory is always mapped.
            let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, PAGE) };
            file.write_all_at(bytes, address - start).map_err(|_| Failure::OutOfMemory)?;
        }
    }
    map(file, start, length, 0)
}

/// The file takes the place of what is at `start`.
pub(crate) fn map(file: &File, start: u64, length: u64, offset: u64) -> Result<(), Failure> {
    replace(start, length, libc::MAP_SHARED, file.as_raw_fd(), offset)
}

/// Plain memory, empty, takes the place of a file.
pub(crate) fn unmap(start: u64, length: u64) -> Result<(), Failure> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    replace(start, length, flags, -1, 0)
}

fn replace(start: u64, length: u64, flags: i32, fd: i32, offset: u64) -> Result<(), Failure> {
    let (at, length) = (start as *mut libc::c_void, length as usize);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the range is part of the cards' mapping, which nothing but device memory lies in.
    unsafe {
        let found =
            libc::mmap(at, length, access, flags | libc::MAP_FIXED, fd, offset as libc::off_t);
        if found == libc::MAP_FAILED {
            return Err(Failure::OutOfMemory);
        }
        libc::madvise(at, length, libc::MADV_NOHUGEPAGE);
        libc::madvise(at, length, libc::MADV_DONTDUMP);
    }
    Ok(())
}
