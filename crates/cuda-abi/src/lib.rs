//! The C functions of NVIDIA's libraries as tables, and the layouts of the structs they exchange.
//!
//! One file per library. Each defines one macro that hands its rows to another macro, so that the
//! same table makes the exported symbols (`phantom`), the coverage page (`rows`) and the tests.
//! A row is `who::answers => fn cName(arguments);`. Three kinds of rows exist:
//!
//! - `answered`: a function of the phantom gives a true answer;
//! - `silent`: work handed to the device (kernels, matrix products), which the phantom accepts and
//!   does not do: success, if the arguments that stand before the names are in order;
//! - `refused`: not simulated; says its name once and returns "not supported".
//!
//! The types say what is checked before the answer sees an argument: [`handles`] and [`checked`].
//! Arguments after a semicolon are checked and not handed on. Trailing arguments that nobody looks at
//! are left out of a row: the C calling convention lets a callee ignore them.

pub mod checked;
pub mod coverage;
pub mod handles;
pub mod types;

mod cublas;
mod cuda;
mod cudart;
mod cudnn;
mod cufft;
mod cufile;
mod cupti;
mod cusolver;
mod cusparse;
mod nccl;
mod nvml;
mod nvrtc;
mod nvshmem;

/// Calls `$then!` once for each library, with the library's name and its rows.
#[macro_export]
macro_rules! every_library {
    ($then:ident) => {
        $crate::cudart!($then);
        $crate::cuda!($then);
        $crate::cublas!($then);
        $crate::cudnn!($then);
        $crate::cusolver!($then);
        $crate::cusparse!($then);
        $crate::cufft!($then);
        $crate::nvrtc!($then);
        $crate::nccl!($then);
        $crate::nvml!($then);
        $crate::cupti!($then);
        $crate::cufile!($then);
        $crate::nvshmem!($then);
    };
}
