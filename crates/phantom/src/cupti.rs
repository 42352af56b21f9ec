//! CUPTI: PyTorch's profiler starts it; there is no device activity to hand out.

use std::ffi::{c_char, c_int, c_uint};

use cuda_abi::types::{Address, Handle};

use crate::error::{Answer, Failure};

/// CUPTI's version number of CUDA 12 and later.
const VERSION: c_uint = 26;

pub(crate) fn version(out: &mut c_uint) -> Answer {
    *out = VERSION;
    Ok(())
}

pub(crate) fn next_record(_buffer: Address, _size: usize, record: &mut Address) -> Answer {
    *record = Address(0);
    Err(Failure::EndOfRecords)
}

pub(crate) fn dropped(_context: Handle, _stream: c_uint, out: &mut usize) -> Answer {
    *out = 0;
    Ok(())
}

pub(crate) fn device_id(_context: Handle, out: &mut c_uint) -> Answer {
    *out = 0;
    Ok(())
}

pub(crate) fn text(code: c_int, out: &mut *const c_char) -> Answer {
    *out = crate::error::nvml_text(code);
    Ok(())
}

pub(crate) fn callback_name(_domain: c_int, _id: c_uint, out: &mut *const c_char) -> Answer {
    *out = c"unknown".as_ptr();
    Ok(())
}
