//! How an argument of each C type is drawn, and when it alone must make a call fail.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cuda_abi::checked::*;
use cuda_abi::handles::*;
use cuda_abi::types::*;

use crate::world::{TEXT, World};

pub trait Argument {
    fn any(world: &mut World) -> Self;
}

/// What a pointer leads to.
pub trait Pointee {
    /// The type of the handle that is written there, if it is one.
    const HANDLE: Option<&'static str> = None;
}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {$(impl Pointee for $type {})*};
}

plain!(
    c_int,
    c_uint,
    usize,
    u64,
    i64,
    f32,
    u8,
    c_char,
    c_void,
    [u8; 16],
    [u32; 8],
    [c_uint; 2],
    [u64; 2],
    Address,
    Handle,
    UniqueId,
    IpcHandle,
    *mut i64,
    Dim3,
    LaunchConfiguration,
    DriverLaunchConfiguration,
    DeviceProp12,
    DeviceProp13,
    FuncAttributes,
    PointerAttributes,
    MatmulHeuristic,
    VirtualProperties,
    NvmlMemory,
    NvmlMemory2,
    NvmlProcess,
    NvmlPci,
);

impl Pointee for *const c_char {
    const HANDLE: Option<&'static str> = Some(TEXT);
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Argument for $type {
            fn any(world: &mut World) -> $type {
                world.number() as $type
            }
        }
    )*};
}

numbers!(c_int, c_uint, usize, u64, i64, f64);

impl Argument for Address {
    fn any(world: &mut World) -> Address {
        Address(world.address())
    }
}

impl Argument for Handle {
    fn any(world: &mut World) -> Handle {
        Handle(world.address() as usize)
    }
}

/// Other types whose handles are good, too.
fn same(kind: &str) -> &'static [&'static str] {
    match kind {
        "BlasLt" => &["Blas"],
        _ => &[],
    }
}

/// Whether a value is good although it was never given out as a handle.
fn is_excused(kind: &str, value: u64, world: &World) -> bool {
    match kind {
        // The default stream.
        "Stream" => value <= 2,
        // Any address can be registered as a kernel's.
        "Kernel" => true,
        // Other functions give contexts, too.
        "Context" => world.was_seen(value),
        // These may lie in the caller's own memory.
        "MatmulDescriptor" | "MatrixLayout" | "MatmulPreference" | "TransformDescriptor" => {
            world.is_room(value)
        }
        _ => false,
    }
}

fn handle(kind: &'static str, bytes: usize, world: &mut World) -> u64 {
    let before = world.must_fail.take();
    let value = world.handle(kind, same(kind), bytes);
    if is_excused(kind, value, world) {
        world.must_fail = None;
    }
    world.must_fail = before.or(world.must_fail.take());
    value
}

macro_rules! handles {
    ($($name:ident,)*) => {$(
        impl Pointee for $name {
            const HANDLE: Option<&'static str> = Some(stringify!($name));
        }

        impl Argument for $name {
            fn any(world: &mut World) -> $name {
                $name(handle(stringify!($name), size_of::<$name>(), world) as _)
            }
        }
    )*};
}

macro_rules! endings {
    ($($name:ident,)*) => {$(
        impl Argument for Ended<$name> {
            fn any(world: &mut World) -> Ended<$name> {
                let ended = $name::any(world);
                world.ends(stringify!($name), ended.0 as u64);
                Ended(ended)
            }
        }
    )*};
}

cuda_abi::every_handle!(handles);
cuda_abi::every_handle!(endings);
handles!(Pool, Context, NvmlDevice, Plan,);

macro_rules! optionals {
    ($($name:ident,)*) => {$(
        impl Argument for Optional<$name> {
            fn any(world: &mut World) -> Optional<$name> {
                let before = world.must_fail.clone();
                let value = $name::any(world);
                if value.0 == 0 || world.dice.below(3) == 0 {
                    world.must_fail = before;
                    return Optional($name(0));
                }
                Optional(value)
            }
        }
    )*};
}

cuda_abi::every_handle!(optionals);
optionals!(Context,);

macro_rules! checked {
    ($($name:ident($value:ident) if $good:expr;)*) => {$(
        impl Argument for $name {
            fn any(world: &mut World) -> $name {
                let $value = world.number() as _;
                if !$good {
                    world.must_fail.get_or_insert_with(|| {
                        format!("{} is no {}", $value, stringify!($name))
                    });
                }
                $name($value)
            }
        }
    )*};
}

checked! {
    NonNull(value) if value != 0;
    Function(value) if value != 0;
    Ordinal(value) if (0..2).contains(&value);
    Direction(value) if (0..5).contains(&value);
    DataType(value) if (0..12).contains(&value);
    // Others can have been made.
    Operation(value) if 0 <= value;
}

impl Argument for Dim3 {
    fn any(world: &mut World) -> Dim3 {
        let mut size = || match world.dice.below(4) {
            0 => world.number() as c_uint,
            _ => 1 + world.dice.below(16) as c_uint,
        };
        Dim3 { x: size(), y: size(), z: size() }
    }
}

macro_rules! sizes {
    ($($name:ident: $most:expr;)*) => {$(
        impl Argument for $name {
            fn any(world: &mut World) -> $name {
                let size = Dim3::any(world);
                let product = [size.x, size.y, size.z].iter().map(|n| u128::from(*n)).product::<u128>();
                if !(1..=$most).contains(&product) {
                    world.must_fail.get_or_insert_with(|| format!("{size:?} is no {}", stringify!($name)));
                }
                $name(size)
            }
        }
    )*};
}

sizes! {
    Grid: (1 << 31) * 65535 * 65535;
    Block: 1024;
}

impl Argument for UniqueId {
    fn any(world: &mut World) -> UniqueId {
        UniqueId([world.number() as u8; 128])
    }
}

impl Argument for IpcHandle {
    fn any(world: &mut World) -> IpcHandle {
        IpcHandle([world.number() as u8; 64])
    }
}

fn pointer<T: Pointee>(world: &mut World) -> usize {
    match world.dice.below(5) {
        0 => world.nowhere(),
        _ => world.room(size_of::<T>(), T::HANDLE),
    }
}

impl<T: Pointee> Argument for *mut T {
    fn any(world: &mut World) -> *mut T {
        pointer::<T>(world) as *mut T
    }
}

impl<T: Pointee> Argument for *const T {
    fn any(world: &mut World) -> *const T {
        pointer::<T>(world) as *const T
    }
}

/// The driver would call whatever it is given: there are no bad ones but null.
impl Argument for HostFunction {
    fn any(world: &mut World) -> HostFunction {
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        (world.dice.below(4) != 0).then_some(nothing)
    }
}

impl Argument for StreamCallback {
    fn any(world: &mut World) -> StreamCallback {
        unsafe extern "C" fn nothing(_: Handle, _: c_int, _: *mut c_void) {}
        (world.dice.below(4) != 0).then_some(nothing)
    }
}
