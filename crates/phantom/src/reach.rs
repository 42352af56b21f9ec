//! Which memory of this process can be read and written, so that a caller's wrong pointer becomes an
//! error code instead of a crash.
//!
//! The kernel is asked, page by page, and its last answers are kept: out-arguments lie on the stack,
//! and copies come from the same buffers. An address that was good and was unmapped since then may
//! still be taken for good.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

const PAGE_BITS: u32 = 12;
const PAGE: usize = 1 << PAGE_BITS;

/// Linux maps nothing below (`vm.mmap_min_addr`) and, for processes, nothing above.
const FIRST: usize = 64 << 10;
const END: usize = 1 << 47;

/// Ranges of more pages are asked for anew each time: that is cheap beside writing them.
const MOST_KEPT: usize = 256;

/// Longest text that is read.
const LONGEST_TEXT: usize = 1 << 20;

/// What one wants to do with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

/// Pages that were good, each at the place that its number gives: the number, and whether for writing.
static GOOD: [AtomicUsize; 512] = [const { AtomicUsize::new(0) }; 512];

fn entry(page: usize, how: Use) -> (&'static AtomicUsize, usize) {
    // Pages side by side have places side by side; far ones, such as both ends of a buffer, mostly differ.
    let place = (page ^ page >> 9 ^ page >> 17) % GOOD.len();
    (&GOOD[place], page << 1 | usize::from(how == Use::Write))
}

fn is_known(page: usize, how: Use) -> bool {
    let (kept, wanted) = entry(page, how);
    // What can be written can be read.
    kept.load(Relaxed) | usize::from(how == Use::Read) == wanted | usize::from(how == Use::Read)
}

/// Whether `size` bytes at `start` can be read.
pub(crate) fn is_readable(start: usize, size: usize) -> bool {
    can(start, size, Use::Read)
}

/// Whether `size` bytes at `start` can be written.
pub(crate) fn is_writable(start: usize, size: usize) -> bool {
    can(start, size, Use::Write)
}

/// Whether both ends of a range can be read: enough where nothing is read.
pub(crate) fn has_readable_ends(start: usize, size: usize) -> bool {
    let last = start.checked_add(size.saturating_sub(1));
    is_readable(start, 1) && last.is_some_and(|last| is_readable(last, 1))
}

fn can(start: usize, size: usize, how: Use) -> bool {
    if size == 0 {
        return true;
    }
    let Some(end) = start.checked_add(size).filter(|end| FIRST <= start && *end <= END) else {
        return false;
    };
    let pages = start >> PAGE_BITS..=(end - 1) >> PAGE_BITS;
    let count = pages.end() - pages.start() + 1;
    if count <= MOST_KEPT && pages.clone().all(|page| is_known(page, how)) {
        return true;
    }
    if !ask(*pages.start() << PAGE_BITS, count << PAGE_BITS, how) {
        return false;
    }
    if count <= MOST_KEPT {
        pages.for_each(|page| {
            let (kept, good) = entry(page, how);
            kept.store(good, Relaxed);
        });
    }
    true
}

/// Forgets what was good: memory of ours is about to be unmapped.
pub(crate) fn forget() {
    GOOD.iter().for_each(|kept| kept.store(0, Relaxed));
}

/// Asks the kernel about whole pages. Those of a long range must all be mapped before any is made
/// present: a wrong size costs no memory.
fn ask(start: usize, length: usize, how: Use) -> bool {
    let is_long = MOST_KEPT * PAGE < length;
    match has_populate() {
        true => (!is_long || is_mapped(start, length)) && populate(start, length, how),
        false => is_mapped(start, length),
    }
}

/// Makes pages present as an access would, and says whether it could. Nothing is changed.
fn populate(start: usize, length: usize, how: Use) -> bool {
    let advice = match how {
        Use::Read => libc::MADV_POPULATE_READ,
        Use::Write => libc::MADV_POPULATE_WRITE,
    };
    // SAFETY: the advice changes no content, and fails where there is no such memory.
    unsafe { libc::madvise(start as *mut libc::c_void, length, advice) == 0 }
}

/// Whether the kernel knows the advice: Linux 5.14 and newer.
fn has_populate() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let mine = 0_u8;
        populate(&raw const mine as usize & !(PAGE - 1), PAGE, Use::Write)
    })
}

/// Whether something is mapped at every page, with whatever rights.
fn is_mapped(start: usize, length: usize) -> bool {
    const AT_ONCE: usize = 1 << 12;
    let mut present = [0_u8; AT_ONCE];
    (start..start + length).step_by(AT_ONCE * PAGE).all(|from| {
        let piece = (start + length - from).min(AT_ONCE * PAGE);
        // SAFETY: one byte of `present` for each page; the memory itself is not touched.
        unsafe { libc::mincore(from as *mut libc::c_void, piece, present.as_mut_ptr()) == 0 }
    })
}

/// A terminated text, if there is one.
pub(crate) fn text<'a>(start: *const c_char) -> Option<&'a CStr> {
    let (start, mut length) = (start as usize, 0);
    while length < LONGEST_TEXT {
        let at = start.checked_add(length)?;
        let piece = PAGE - at % PAGE;
        if !is_readable(at, piece) {
            return None;
        }
        // SAFETY: the piece was found to be readable.
        let bytes = unsafe { std::slice::from_raw_parts(at as *const u8, piece) };
        if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            // SAFETY: all pieces up to here are readable, and the first zero is at the end.
            let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, length + end + 1) };
            return CStr::from_bytes_with_nul(bytes).ok();
        }
        length += piece;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pages with these rights, before a third that was unmapped.
    fn pages(rights: i32) -> usize {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, the last page of which goes at once.
        unsafe {
            let start = libc::mmap(std::ptr::null_mut(), 3 * PAGE, rights, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            libc::munmap(start.byte_add(2 * PAGE), PAGE);
            start as usize
        }
    }

    #[test]
    fn what_can_be_reached_is_told_from_what_cannot() {
        let both = pages(libc::PROT_READ | libc::PROT_WRITE);
        let (readable, closed) = (pages(libc::PROT_READ), pages(libc::PROT_NONE));
        for _ in 0..2 {
            assert!(is_writable(both, 2 * PAGE) && is_readable(both + 7, 8));
            assert!(!is_readable(both, 2 * PAGE + 1) && !is_writable(both + 2 * PAGE - 4, 8));
            assert!(!has_readable_ends(both, 2 * PAGE + 1) && has_readable_ends(both, PAGE));
            assert!(is_readable(readable, 8) && !(has_populate() && is_writable(readable, 8)));
            assert!(!(has_populate() && is_readable(closed, 1)));
            for nowhere in [0, 1, 8, FIRST - 1, END - 1, END, usize::MAX - 3] {
                assert!(!is_readable(nowhere, 4) && !is_writable(nowhere, 4), "{nowhere:#x}");
            }
        }
        assert!(!is_readable(both, usize::MAX) && is_readable(0, 0));
    }

    #[test]
    fn texts_end_where_they_end() {
        assert_eq!(text(c"a text".as_ptr()), Some(c"a text"));
        let start = pages(libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: inside the pages.
        unsafe { (start as *mut u8).write_bytes(b'x', 2 * PAGE) };
        assert_eq!(text(start as *const c_char), None, "no end before the last page's");
        // SAFETY: as above.
        unsafe { ((start + 2 * PAGE - 1) as *mut u8).write(0) };
        let whole = text(start as *const c_char).unwrap();
        assert_eq!(whole.count_bytes(), 2 * PAGE - 1);
        assert_eq!(text(std::ptr::null()), None);
    }
}
