//! What a driver refuses, with the code that its library gives, beside what it accepts.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Once;

use cuda_abi::checked::Dim3;
use cuda_abi::types::VirtualProperties;
use fathom_phantom as _;

const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const INVALID_HANDLE: c_int = 400;

const MIB: usize = 1 << 20;

unsafe extern "C" {
    fn cudaMalloc(out: *mut usize, size: usize) -> c_int;
    fn cudaFree(address: usize) -> c_int;
    fn cudaMallocAsync(out: *mut usize, size: usize, stream: usize) -> c_int;
    fn cudaFreeAsync(address: usize, stream: usize) -> c_int;
    fn cudaHostAlloc(out: *mut usize, size: usize) -> c_int;
    fn cudaFreeHost(address: usize) -> c_int;
    fn cudaHostRegister(address: usize, size: usize) -> c_int;
    fn cudaHostUnregister(address: usize) -> c_int;
    fn cudaMemcpy(to: usize, from: usize, size: usize, kind: c_int) -> c_int;
    fn cudaMemcpy2D(
        to: usize,
        to_pitch: usize,
        from: usize,
        from_pitch: usize,
        width: usize,
        height: usize,
        kind: c_int,
    ) -> c_int;
    fn cudaMemset(address: usize, value: c_int, size: usize) -> c_int;
    fn cuMemsetD32_v2(address: usize, value: c_uint, count: usize) -> c_int;
    fn cuMemcpyHtoD_v2(to: usize, from: usize, size: usize) -> c_int;
    fn cudaStreamCreate(out: *mut usize) -> c_int;
    fn cudaStreamDestroy(stream: usize) -> c_int;
    fn cudaStreamSynchronize(stream: usize) -> c_int;
    fn cudaEventCreate(out: *mut usize) -> c_int;
    fn cudaEventDestroy(event: usize) -> c_int;
    fn cudaEventRecord(event: usize, stream: usize) -> c_int;
    fn cudaGraphInstantiate(out: *mut usize, graph: usize) -> c_int;
    fn cudaGetDevice(out: *mut c_int) -> c_int;
    fn cudaLaunchKernel(
        function: usize,
        grid: Dim3,
        block: Dim3,
        arguments: *mut c_void,
        shared: usize,
        stream: usize,
    ) -> c_int;
    fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: usize) -> c_int;
    fn __cudaPopCallConfiguration(
        grid: *mut Dim3,
        block: *mut Dim3,
        shared: *mut usize,
        stream: *mut usize,
    ) -> c_int;
    fn cuPointerGetAttributes(
        count: c_uint,
        attributes: *const c_int,
        out: *const *mut c_void,
        address: usize,
    ) -> c_int;
    fn cuCtxSetCurrent(context: usize) -> c_int;
    fn cuMemAddressReserve(out: *mut usize, size: usize, alignment: usize) -> c_int;
    fn cuMemAddressFree(address: usize, size: usize) -> c_int;
    fn cuMemCreate(out: *mut u64, size: usize, properties: *const VirtualProperties) -> c_int;
    fn cuMemRelease(handle: u64) -> c_int;
    fn cuMemMap(address: usize, size: usize, offset: usize, handle: u64) -> c_int;
    fn cuMemUnmap(address: usize, size: usize) -> c_int;
    fn cudaMemPoolTrimTo(pool: usize, keep: usize) -> c_int;
    fn cublasCreate_v2(out: *mut usize) -> c_int;
    fn cublasDestroy_v2(handle: usize) -> c_int;
    fn cublasSgemm_v2(handle: usize) -> c_int;
    fn cublasLtMatmulDescDestroy(handle: usize) -> c_int;
    fn cublasLtMatmulDescGetAttribute(
        descriptor: usize,
        attribute: c_int,
        out: *mut c_void,
        size: usize,
        written: *mut usize,
    ) -> c_int;
    fn cublasLtMatmulDescCreate(out: *mut usize) -> c_int;
    fn cublasLtMatmulDescInit_internal(place: *mut u64, size: usize) -> c_int;
    fn cudnnDestroyTensorDescriptor(descriptor: usize) -> c_int;
    fn cudnnSetTensorNdDescriptor(
        descriptor: usize,
        dtype: c_int,
        rank: c_int,
        dims: *const c_int,
        strides: *const c_int,
    ) -> c_int;
    fn cudnnCreateTensorDescriptor(out: *mut usize) -> c_int;
    fn cusparseDestroy(handle: usize) -> c_int;
    fn cusolverDnSgetrf(handle: usize) -> c_int;
    fn cufftDestroy(plan: c_int) -> c_int;
    fn ncclCommFinalize(communicator: usize) -> c_int;
    fn nvrtcCompileProgram(program: usize) -> c_int;
    fn nvmlDeviceGetPowerUsage(device: usize, out: *mut c_uint) -> c_int;
}

fn start() {
    static START: Once = Once::new();
    // SAFETY: before the first call, and no thread of these tests reads another variable.
    START.call_once(|| unsafe { std::env::set_var("FATHOM_GPU", "rtx3090") });
}

/// So much memory of the card.
fn allocate(size: usize) -> usize {
    start();
    let mut out = 0;
    // SAFETY: a valid call.
    assert_eq!(unsafe { cudaMalloc(&mut out, size) }, 0);
    out
}

/// An address at which nothing is.
fn nowhere() -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping that goes at once.
    unsafe {
        let page = libc::mmap(null_mut(), 4096, libc::PROT_READ, flags, -1, 0);
        libc::munmap(page, 4096);
        page as usize
    }
}

#[test]
fn copies_and_fills_stay_inside_one_allocation() {
    let (first, second) = (allocate(4 * MIB), allocate(4 * MIB));
    let host = vec![7_u8; 8 * MIB];
    let mut back = vec![7_u8; 8 * MIB];
    let (from, to) = (host.as_ptr() as usize, back.as_mut_ptr() as usize);
    // SAFETY: buffers as large as the calls say.
    unsafe {
        for size in [1, 4096, 4 * MIB] {
            assert_eq!(cudaMemcpy(first, from, size, 1), 0);
            assert_eq!(cudaMemcpy(to, first, size, 2), 0);
            assert_eq!(cudaMemcpy(second, first, size, 3), 0);
            assert_eq!(cudaMemset(first, 1, size), 0);
        }
        for size in [4 * MIB + 1, 8 * MIB, 1 << 40, usize::MAX] {
            assert_eq!(cudaMemcpy(first, from, size, 1), INVALID_VALUE);
            assert_eq!(cudaMemcpy(to, first, size, 2), INVALID_VALUE);
            assert_eq!(cudaMemcpy(second, first, size, 3), INVALID_VALUE);
            assert_eq!(cudaMemset(first, 1, size), INVALID_VALUE);
            assert_eq!(cuMemsetD32_v2(first, 1, size), INVALID_VALUE);
        }
        assert_eq!(cudaMemset(second + 4 * MIB - 1, 0, 1), 0);
        assert_eq!(cudaMemset(second + 4 * MIB - 1, 0, 2), INVALID_VALUE);
        assert_eq!(cudaMemcpy2D(first, 4096, from, 4096, 4096, 1024, 1), 0);
        assert_eq!(cudaMemcpy2D(first, 4096, from, 4096, 4096, 1025, 1), INVALID_VALUE);
        assert_eq!(cudaMemcpy2D(first, 0, from, 0, 0, usize::MAX, 1), 0);
        assert_eq!(cudaMemcpy2D(first, 10, from, 10, 11, 1, 1), 12, "wider than its rows");
        assert_eq!(cudaMemcpy(first, from, 8, 9), 21, "no direction");
        assert_eq!(cudaMemset(from, 0, 8), INVALID_VALUE, "memory of the host, not registered");
        assert_eq!(cuMemcpyHtoD_v2(to, from, 8), INVALID_VALUE, "not to a card");
        assert_eq!(cudaFree(second), 0);
        assert_eq!(cudaMemcpy(second, from, 8, 1), INVALID_VALUE, "freed");
    }
}

#[test]
fn memory_of_the_host_that_is_not_there_is_no_crash() {
    let (card, nowhere) = (allocate(4 * MIB), nowhere());
    let read_only = c"read only".as_ptr() as usize;
    // SAFETY: bad pointers are what this is about.
    unsafe {
        for address in [0, 8, nowhere, 1 << 47, usize::MAX - 7] {
            for size in [1, 4096, 4 * MIB] {
                assert_eq!(cudaMemcpy(card, address, size, 1), INVALID_VALUE, "{address:#x}");
                assert_eq!(cudaMemcpy(address, card, size, 2), INVALID_VALUE, "{address:#x}");
            }
            assert_eq!(cudaHostRegister(address, 4096), INVALID_VALUE);
            assert_eq!(cudaGetDevice(address as *mut c_int), INVALID_VALUE);
            assert_eq!(cudaMalloc(address as *mut usize, 8), INVALID_VALUE);
        }
        assert_eq!(cudaMemcpy(read_only, card, 4, 2), INVALID_VALUE);
    }
}

#[test]
fn counts_are_bounded() {
    let card = allocate(4096);
    let (attributes, mut value) = ([2; 64], 0_u32);
    let out = [(&raw mut value).cast::<c_void>(); 64];
    // SAFETY: arrays as long as the good calls say.
    unsafe {
        let get = |count| cuPointerGetAttributes(count, attributes.as_ptr(), out.as_ptr(), card);
        assert_eq!((get(3), value), (0, 2));
        assert_eq!([0, 64, 1 << 20, c_uint::MAX].map(get), [INVALID_VALUE; 4]);
        let mut descriptor = 0;
        assert_eq!(cublasLtMatmulDescCreate(&mut descriptor), 0);
        let mut room = [1_u8; 64];
        let read = |size, room: &mut [u8]| {
            let room = room.as_mut_ptr().cast();
            cublasLtMatmulDescGetAttribute(descriptor, 0, room, size, null_mut())
        };
        assert_eq!((read(8, &mut room), room[7], room[8]), (0, 0, 1));
        assert_eq!([1 << 20, usize::MAX].map(|size| read(size, &mut room)), [7; 2]);
        let mut tensor = 0;
        assert_eq!(cudnnCreateTensorDescriptor(&mut tensor), 0);
        let sizes = [1; 8];
        let set =
            |rank| cudnnSetTensorNdDescriptor(tensor, 0, rank, sizes.as_ptr(), sizes.as_ptr());
        assert_eq!([4, 8, -1, 9, c_int::MAX].map(set), [0, 0, 2000, 2000, 2000]);
    }
}

#[test]
fn sizes_that_no_memory_has_are_refused() {
    start();
    let (mut out, mut piece) = (0, 0);
    let card = VirtualProperties::default();
    // SAFETY: valid pointers.
    unsafe {
        for size in [usize::MAX, usize::MAX - 511, usize::MAX - 2 * MIB, 1 << 62] {
            assert_eq!(cudaMalloc(&mut out, size), OUT_OF_MEMORY);
            assert_eq!(cudaMallocAsync(&mut out, size, 0), OUT_OF_MEMORY);
            assert_eq!(cudaHostAlloc(&mut out, size), OUT_OF_MEMORY);
        }
        assert_eq!(cuMemAddressReserve(&mut out, usize::MAX, 0), INVALID_VALUE);
        assert_eq!(cuMemCreate(&mut piece, usize::MAX, &card), INVALID_VALUE);
        assert_eq!(cuMemCreate(&mut piece, 1 << 62, &card), OUT_OF_MEMORY);
    }
}

#[test]
fn foreign_handles_get_the_code_of_their_library() {
    start();
    let (mut stream, mut out, mut power) = (0, 0, 0);
    let own = Box::new([0_u64; 64]);
    // SAFETY: bad handles are what this is about.
    unsafe {
        assert_eq!(cudaStreamCreate(&mut stream), 0);
        for foreign in [3, 64, own.as_ptr() as usize, nowhere(), stream + 16, usize::MAX] {
            assert_eq!(cudaStreamSynchronize(foreign), INVALID_HANDLE, "{foreign:#x}");
            assert_eq!(cudaEventRecord(foreign, 0), INVALID_HANDLE);
            assert_eq!(cudaGraphInstantiate(&mut out, foreign), INVALID_HANDLE);
            assert_eq!(cuCtxSetCurrent(foreign), 201);
            assert_eq!(cudaMemPoolTrimTo(foreign, 0), INVALID_VALUE);
            assert_eq!(cublasSgemm_v2(foreign), 1);
            assert_eq!(cublasLtMatmulDescDestroy(foreign), 1);
            assert_eq!(cudnnDestroyTensorDescriptor(foreign), 2000);
            assert_eq!(cusparseDestroy(foreign), 1);
            assert_eq!(cusolverDnSgetrf(foreign), 1);
            assert_eq!(cufftDestroy(foreign as c_int), 1);
            assert_eq!(ncclCommFinalize(foreign), 4);
            assert_eq!(nvrtcCompileProgram(foreign), 4);
            assert_eq!(nvmlDeviceGetPowerUsage(foreign, &mut power), 2);
        }
        assert_eq!(cudaEventRecord(stream, stream), INVALID_HANDLE, "a stream is no event");
        assert_eq!([0, 1, 2, stream].map(|good| cudaStreamSynchronize(good)), [0; 4]);
    }
}

#[test]
fn descriptors_in_memory_of_the_caller_are_good() {
    start();
    let mut own = [0_u64; 32];
    let mut value = 0_u64;
    // SAFETY: valid pointers.
    unsafe {
        let place = own.as_mut_ptr();
        let read = |value: &mut u64| {
            let value = (&raw mut *value).cast();
            cublasLtMatmulDescGetAttribute(place as usize, 0, value, 8, null_mut())
        };
        assert_eq!(read(&mut value), 1);
        assert_eq!(cublasLtMatmulDescInit_internal(place, 256), 0);
        assert_eq!(read(&mut value), 0);
    }
}

#[test]
fn nothing_ends_twice() {
    let card = allocate(MIB);
    let (mut pooled, mut host, mut stream, mut event, mut blas) = (0, 0, 0, 0, 0);
    let mine = vec![0_u8; 8192];
    let mine = mine.as_ptr() as usize;
    // SAFETY: valid pointers.
    unsafe {
        assert_eq!([cudaFree(card), cudaFree(card)], [0, INVALID_VALUE]);
        assert_eq!(cudaMallocAsync(&mut pooled, MIB, 0), 0);
        assert_eq!(cudaFreeAsync(pooled + 512, 0), INVALID_VALUE, "not the start");
        assert_eq!([cudaFree(pooled), cudaFreeAsync(pooled, 0)], [0, INVALID_VALUE]);
        assert_eq!(cudaMallocAsync(&mut pooled, MIB, 0), 0, "the pool is whole");
        assert_eq!(cudaHostAlloc(&mut host, MIB), 0);
        assert_eq!([cudaFreeHost(host), cudaFreeHost(host)], [0, INVALID_VALUE]);
        assert_eq!([cudaHostRegister(mine, 8192), cudaHostRegister(mine + 64, 8)], [0, 712]);
        assert_eq!(cudaFreeHost(mine), INVALID_VALUE, "registered, not allocated");
        assert_eq!([cudaHostUnregister(mine), cudaHostUnregister(mine)], [0, 713]);
        assert_eq!(cudaStreamCreate(&mut stream), 0);
        assert_eq!([cudaStreamDestroy(stream), cudaStreamDestroy(stream)], [0, INVALID_HANDLE]);
        assert_eq!(cudaStreamSynchronize(stream), INVALID_HANDLE);
        assert_eq!(cudaEventCreate(&mut event), 0);
        assert_eq!([cudaEventDestroy(event), cudaEventDestroy(event)], [0, INVALID_HANDLE]);
        assert_eq!(cublasCreate_v2(&mut blas), 0);
        assert_eq!([cublasDestroy_v2(blas), cublasSgemm_v2(blas)], [0, 1]);
    }
}

#[test]
fn mapped_memory_is_what_was_mapped() {
    start();
    let card = VirtualProperties::default();
    let (mut address, mut pieces) = (0, [0_u64; 2]);
    let page = 2 * MIB;
    // SAFETY: valid pointers; wrong ranges are what this is about.
    unsafe {
        assert_eq!(cuMemAddressReserve(&mut address, 8 * page, 0), 0);
        assert_eq!(cudaMemset(address, 0, 8), INVALID_VALUE, "nothing is mapped");
        for (index, piece) in pieces.iter_mut().enumerate() {
            assert_eq!(cuMemCreate(piece, page, &card), 0);
            assert_eq!(cuMemMap(address + index * page, page, 0, *piece), 0);
        }
        assert_eq!(cudaMemset(address + page - 8, 1, 16), 0, "two pieces side by side");
        assert_eq!(cudaMemset(address + page, 1, page + 1), INVALID_VALUE);
        assert_eq!(cuMemMap(address, page, 0, pieces[0]), INVALID_VALUE, "taken");
        assert_eq!(cuMemMap(address + 8 * page, page, 0, pieces[0]), INVALID_VALUE, "not reserved");
        assert_eq!(cuMemMap(address + 4 * page, 2 * page, 0, pieces[0]), INVALID_VALUE, "too long");
        assert_eq!([cuMemRelease(pieces[0]), cuMemRelease(pieces[0])], [0, INVALID_VALUE]);
        for size in [page / 2, 3 * page, 1 << 46, usize::MAX] {
            assert_eq!(cuMemUnmap(address, size), INVALID_VALUE);
        }
        assert_eq!(cuMemAddressFree(address, 8 * page), INVALID_VALUE, "still mapped");
        assert_eq!(
            [cuMemUnmap(address, 2 * page), cuMemUnmap(address, 2 * page)],
            [0, INVALID_VALUE]
        );
        assert_eq!(cuMemAddressFree(address, page), INVALID_VALUE, "not all of it");
        assert_eq!([8, 8].map(|n| cuMemAddressFree(address, n * page)), [0, INVALID_VALUE]);
        assert_eq!(cuMemRelease(pieces[1]), 0);
    }
}

#[test]
fn launches_are_looked_at() {
    start();
    let kernel = launches_are_looked_at as *const () as usize;
    let launch = |function, grid, block, stream| {
        let [grid, block] = [grid, block].map(|[x, y, z]: [u32; 3]| Dim3 { x, y, z });
        // SAFETY: nothing runs.
        unsafe { cudaLaunchKernel(function, grid, block, null_mut(), 0, stream) }
    };
    let one = [1, 1, 1];
    assert_eq!(launch(kernel, [i32::MAX as u32, 65535, 65535], [32, 8, 4], 0), 0);
    assert_eq!(launch(kernel, [0, 1, 1], one, 0), 9);
    assert_eq!(launch(kernel, [1, 65536, 1], one, 0), 9);
    assert_eq!(launch(kernel, one, [1024, 2, 1], 0), 9);
    assert_eq!(launch(kernel, one, [1, 1, 65], 0), 9);
    assert_eq!(launch(0, one, one, 0), 98);
    assert_eq!(launch(kernel, one, one, 77), INVALID_HANDLE);
}

/// A kernel's stub takes what stands between the brackets.
#[test]
fn a_launch_has_the_sizes_that_were_written() {
    start();
    let sizes = |x, y, z| Dim3 { x, y, z };
    let (mut grid, mut block) = (Dim3::default(), Dim3::default());
    let (mut shared, mut stream) = (0, 0);
    // SAFETY: valid pointers.
    unsafe {
        assert_eq!(__cudaPushCallConfiguration(sizes(2, 3, 4), sizes(5, 6, 7), 8, 9), 0);
        let mut pop =
            || __cudaPopCallConfiguration(&mut grid, &mut block, &mut shared, &mut stream);
        assert_eq!([pop(), pop()], [0, 9]);
    }
    assert_eq!((grid, block, shared, stream), (sizes(2, 3, 4), sizes(5, 6, 7), 8, 9));
}
