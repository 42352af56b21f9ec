//! Every function of every table, as something that can be called with arguments of its types.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cuda_abi::checked::*;
use cuda_abi::handles::*;
use cuda_abi::types::*;
use fathom_phantom as _;

use crate::arguments::Argument;
use crate::world::World;

pub struct Call {
    pub name: &'static str,
    /// Calls it; the status, where the function gives one.
    pub with: fn(&mut World) -> Option<c_int>,
}

/// What a function that gives no status returned: nothing that can be judged.
trait Returned {
    fn look(self);
}

impl Returned for *const c_char {
    fn look(self) {
        // SAFETY: texts of the phantom are terminated and live for ever.
        assert!(!unsafe { std::ffi::CStr::from_ptr(self) }.is_empty());
    }
}

macro_rules! not_looked_at {
    ($($type:ty),*) => {$(
        impl Returned for $type {
            fn look(self) {}
        }
    )*};
}

not_looked_at!((), c_int, c_char, usize, Handle);

macro_rules! call {
    ($name:ident ($($argument:ident: $type:ty),*)) => {
        Call { name: stringify!($name), with: |_world| {
            unsafe extern "C" {
                fn $name($($argument: $type),*) -> c_int;
            }
            $(let $argument = <$type as Argument>::any(_world);)*
            // SAFETY: bad arguments are what this is about.
            Some(unsafe { $name($($argument),*) })
        }}
    };
}

/// All of them.
#[allow(improper_ctypes, reason = "opaque to this side")]
pub fn all() -> Vec<Call> {
    let mut calls = Vec::new();
    macro_rules! collect {
        ($library:ident;
            answered { $($answer:path => fn $name:ident($($argument:ident: $type:ty),* $(; $($checked:ident: $checked_type:ty),*)?);)* }
            values { $($value:path => fn $vname:ident($($vargument:ident: $vtype:ty),*) -> $result:ty;)* }
            silent { $($arguments:tt { $($silent:ident,)* })* }
            refused { $($refused:ident,)* }
        ) => {{
            $(calls.push(Call { name: stringify!($name), with: |_world| {
                unsafe extern "C" {
                    fn $name($($argument: $type,)* $($($checked: $checked_type),*)?) -> c_int;
                }
                $(let $argument = <$type as Argument>::any(_world);)*
                $($(let $checked = <$checked_type as Argument>::any(_world);)*)?
                // SAFETY: bad arguments are what this is about.
                Some(unsafe { $name($($argument,)* $($($checked),*)?) })
            }});)*
            $(calls.push(Call { name: stringify!($vname), with: |_world| {
                unsafe extern "C" {
                    fn $vname($($vargument: $vtype),*) -> $result;
                }
                $(let $vargument = <$vtype as Argument>::any(_world);)*
                // SAFETY: as above.
                Returned::look(unsafe { $vname($($vargument),*) });
                None
            }});)*
            $($(calls.push(call! { $silent $arguments });)*)*
            $(calls.push(call! { $refused () });)*
        }};
    }
    cuda_abi::every_library!(collect);
    calls
}
