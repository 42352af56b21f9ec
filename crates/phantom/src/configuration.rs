//! How a kernel is launched: the sizes of its grid and its blocks, and its stream.
//!
//! `<<<grid, block, shared, stream>>>`: compiled code pushes this before it calls the stub of a kernel,
//! and the stub pops it again.

use std::cell::RefCell;
use std::ffi::c_uint;

use cuda_abi::checked::{Dim3, DriverLaunchConfiguration, LaunchConfiguration};
use cuda_abi::handles::Kind;
use cuda_abi::types::Handle;
use gpus::Architecture;

use crate::error::{Answer, Failure};
use crate::ffi::Raw;
use crate::{capture, handles, launch, taint};

/// A grid that a card can launch.
pub(crate) fn grid(grid: Dim3) -> Result<Dim3, Failure> {
    within(grid, Architecture::GRID_SIZE)
}

/// A block that a card can hold.
pub(crate) fn block(block: Dim3) -> Result<Dim3, Failure> {
    let Dim3 { x, y, z } = within(block, Architecture::BLOCK_SIZE)?;
    match x * y * z <= Architecture::THREADS_PER_BLOCK {
        true => Ok(block),
        false => Err(Failure::InvalidConfiguration),
    }
}

fn within(size: Dim3, [x, y, z]: [u32; 3]) -> Result<Dim3, Failure> {
    let is_good =
        (1..=x).contains(&size.x) && (1..=y).contains(&size.y) && (1..=z).contains(&size.z);
    if is_good { Ok(size) } else { Err(Failure::InvalidConfiguration) }
}

/// A kernel with a good configuration goes to a stream.
fn launch_on(stream: Handle) -> Answer {
    capture::add_work(stream)?;
    launch::kernel()
}

fn launch_of(sizes: (Dim3, Dim3), stream: Handle) -> Answer {
    grid(sizes.0)?;
    block(sizes.1)?;
    handles::check(Kind::Stream, stream)?;
    launch_on(stream)
}

/// The configuration as a struct, for kernels with attributes.
pub(crate) fn launch_with(
    configuration: &LaunchConfiguration,
    _function: Handle,
    arguments: Raw<Raw<i64>>,
) -> Answer {
    launch_of((configuration.grid, configuration.block), configuration.stream)?;
    taint::launched(arguments);
    Ok(())
}

pub(crate) fn launch_by_driver_with(
    configuration: &DriverLaunchConfiguration,
    _function: Handle,
    arguments: Raw<Raw<i64>>,
    extra: Raw<Raw<i64>>,
) -> Answer {
    launch_of((configuration.grid, configuration.block), configuration.stream)?;
    taint::launched_by_driver(arguments, extra);
    Ok(())
}

/// A kernel whose blocks wait for each other.
pub(crate) fn launch_together(
    _function: Handle,
    _grid: Dim3,
    _block: Dim3,
    arguments: Raw<Raw<i64>>,
    _shared: usize,
    stream: Handle,
) -> Answer {
    launch_on(stream)?;
    taint::launched(arguments);
    Ok(())
}

/// The driver has the sizes one by one, and calls wrong ones a wrong value.
#[allow(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) fn launch_by_driver(
    _function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    _shared: c_uint,
    stream: Handle,
    arguments: Raw<Raw<i64>>,
    extra: Raw<Raw<i64>>,
) -> Answer {
    taint::launched_by_driver(arguments, extra);
    let sizes = (
        grid(Dim3 { x: grid_x, y: grid_y, z: grid_z }),
        block(Dim3 { x: block_x, y: block_y, z: block_z }),
    );
    match sizes {
        (Ok(_), Ok(_)) => launch_on(stream),
        _ => Err(Failure::InvalidValue),
    }
}

/// Blocks that wait for each other: there is no `extra`.
#[allow(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) fn launch_together_by_driver(
    function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: Handle,
    arguments: Raw<Raw<i64>>,
) -> Answer {
    let none = Raw(std::ptr::null_mut());
    launch_by_driver(
        function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments,
        none,
    )
}

/// What stands between `<<<` and `>>>`, until the kernel's stub takes it.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Handle,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// More than this wait only if nobody takes them.
const MOST_WAITING: usize = 1024;

pub(crate) fn push(grid: Dim3, block: Dim3, shared: usize, stream: Handle) -> Answer {
    CONFIGURATIONS.with_borrow_mut(|waiting| {
        if MOST_WAITING <= waiting.len() {
            return Err(Failure::OutOfMemory);
        }
        waiting.push(Configuration { grid, block, shared, stream });
        Ok(())
    })
}

pub(crate) fn pop(
    grid: &mut Dim3,
    block: &mut Dim3,
    shared: &mut usize,
    stream: &mut Handle,
) -> Answer {
    let last = CONFIGURATIONS.with_borrow_mut(Vec::pop).ok_or(Failure::InvalidConfiguration)?;
    (*grid, *block, *shared, *stream) = (last.grid, last.block, last.shared, last.stream);
    Ok(())
}
