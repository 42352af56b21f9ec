//! Every row of every table becomes an exported symbol.

#![allow(non_snake_case, reason = "C names")]
#![allow(clippy::too_many_arguments, reason = "C signatures")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use cuda_abi::checked::*;
use cuda_abi::handles::*;
use cuda_abi::types::*;

use crate::error::Library;
use crate::ffi::{Check, FromC, guard, word_of};
use crate::*;

macro_rules! library {
    (cudart) => {
        Library::Cudart
    };
    (cuda) => {
        Library::Driver
    };
    (cublas) => {
        Library::Cublas
    };
    (cudnn) => {
        Library::Cudnn
    };
    (cusolver) => {
        Library::Cusolver
    };
    (cusparse) => {
        Library::Cusparse
    };
    (cufft) => {
        Library::Cufft
    };
    (nvrtc) => {
        Library::Nvrtc
    };
    (nccl) => {
        Library::Nccl
    };
    (nvml) => {
        Library::Nvml
    };
    (cupti) => {
        Library::Cupti
    };
    ($other:ident) => {
        Library::Other
    };
}

/// A C function that also gets what a caller may have passed behind the arguments that its row names: rows name what is
/// checked, and unseen code may pass addresses in any place. Words that are no arguments are others of the caller's.
macro_rules! function {
    ($library:ident $name:ident ($($argument:ident: $type:ty),*) $work:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($argument: $type,)*
            a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize, h: usize,
            i: usize, j: usize, k: usize, l: usize, m: usize, n: usize, o: usize, p: usize,
        ) -> c_int {
            let named = [$(word_of(&$argument)),*];
            taint::called(library!($library), stringify!($name), &named, || {
                [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
            });
            guard(library!($library), stringify!($name), || $work)
        }
    };
}

/// Work that is not done, if the arguments are in order.
macro_rules! accepted {
    ($library:ident $name:ident ($($argument:ident: $type:ty),*)) => {
        function! { $library $name ($($argument: $type),*) {
            $(Check::check($argument)?;)*
            Ok(())
        } }
    };
}

macro_rules! export {
    ($library:ident;
        answered { $($answer:path => fn $name:ident($($argument:ident: $type:ty),* $(; $($checked:ident: $checked_type:ty),*)?);)* }
        values { $($value:path => fn $vname:ident($($vargument:ident: $vtype:ty),*) -> $result:ty;)* }
        silent { $($arguments:tt { $($silent:ident,)* })* }
        refused { $($refused:ident,)* }
    ) => {
        $(
            function! { $library $name ($($argument: $type),* $(, $($checked: $checked_type),*)?) {
                $($(Check::check($checked)?;)*)?
                // SAFETY: the caller keeps the C function's contract.
                $answer($(unsafe { FromC::from_c($argument) }?),*)
            } }
        )*
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $vname($($vargument: $vtype),*) -> $result {
                $value($($vargument),*)
            }
        )*
        $($(accepted! { $library $silent $arguments })*)*
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $refused() -> c_int {
                refuse::by_name(library!($library), stringify!($refused))
            }
        )*
    };
}

cuda_abi::every_library!(export);

macro_rules! entry_points {
    (cuda;
        answered { $($answer:path => fn $name:ident($($arguments:tt)*);)* }
        values {}
        silent { $($checked:tt { $($silent:ident,)* })* }
        refused { $($refused:ident,)* }
    ) => {
        /// The driver's functions by name, for callers that ask for their addresses.
        pub(crate) fn driver_entry_point(name: &str) -> Option<usize> {
            match name {
                $(stringify!($name) => Some($name as *const () as usize),)*
                $($(stringify!($silent) => Some($silent as *const () as usize),)*)*
                $(stringify!($refused) => Some($refused as *const () as usize),)*
                _ => None,
            }
        }
    };
}

cuda_abi::cuda!(entry_points);
