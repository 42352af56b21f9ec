//! NVRTC: every program compiles to one byte, since no kernel runs.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::Mutex;

use cuda_abi::handles::Kind;
use cuda_abi::types::Handle;

use crate::config;
use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::handles;
use crate::state::{lock, phantom};

pub(crate) fn version(major: &mut c_int, minor: &mut c_int) -> Answer {
    let version = config::get().cuda_version;
    (*major, *minor) = (version / 1000, version % 1000 / 10);
    Ok(())
}

/// The caller's variable is null afterwards.
pub(crate) fn destroy(program: &mut Handle) -> Answer {
    handles::end(Kind::Program, std::mem::take(program))
}

pub(crate) fn code_size(_program: Handle, out: &mut usize) -> Answer {
    *out = 1;
    Ok(())
}

pub(crate) fn code(_program: Handle, out: Raw<u8>) -> Answer {
    if out.is_null() {
        return Err(Failure::InvalidValue);
    }
    out.write(&[0])
}

/// Names are not mangled here; the strings live as long as the process.
pub(crate) fn lowered_name(_program: Handle, name: &CStr, out: &mut *const c_char) -> Answer {
    static NAMES: Mutex<BTreeSet<CString>> = Mutex::new(BTreeSet::new());
    let mut names = lock(&NAMES);
    names.insert(name.to_owned());
    *out = names.get(name).map_or(std::ptr::null(), |kept| kept.as_ptr());
    Ok(())
}

pub(crate) fn arch_count(out: &mut c_int) -> Answer {
    *out = 1;
    Ok(())
}

pub(crate) fn archs(out: &mut c_int) -> Answer {
    let (major, minor) = phantom()?.card.compute_capability;
    *out = (10 * major + minor) as c_int;
    Ok(())
}
