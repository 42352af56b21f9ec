//! What a call costs: nanoseconds of the CUDA functions that PyTorch calls most.
//!
//! `cargo run --release -p phantom --example calls`

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::time::Instant;

use fathom_phantom as _;

#[repr(C)]
#[derive(Clone, Copy)]
struct Dim3([u32; 3]);

unsafe extern "C" {
    fn cudaMalloc(out: *mut u64, size: usize) -> c_int;
    fn cudaFree(address: u64) -> c_int;
    fn cudaMemcpyAsync(to: u64, from: u64, size: usize, kind: c_int, stream: usize) -> c_int;
    fn cudaMemsetAsync(to: u64, value: c_int, size: usize, stream: usize) -> c_int;
    fn cudaStreamCreate(out: *mut usize) -> c_int;
    fn cudaEventCreate(out: *mut usize) -> c_int;
    fn cudaEventDestroy(event: usize) -> c_int;
    fn cudaEventRecord(event: usize, stream: usize) -> c_int;
    fn cudaEventQuery(event: usize) -> c_int;
    fn cudaStreamWaitEvent(stream: usize, event: usize, flags: u32) -> c_int;
    fn cudaStreamIsCapturing(stream: usize, out: *mut c_int) -> c_int;
    fn cudaStreamSynchronize(stream: usize) -> c_int;
    fn cudaGetDevice(out: *mut c_int) -> c_int;
    fn cublasCreate_v2(out: *mut usize) -> c_int;
    fn cublasSgemm_v2(handle: usize) -> c_int;
    fn cudaHostAlloc(out: *mut u64, size: usize, flags: u32) -> c_int;
    fn cudaLaunchKernel(
        function: usize,
        grid: Dim3,
        block: Dim3,
        arguments: *mut c_void,
        shared: usize,
        stream: usize,
    ) -> c_int;
}

/// The best of some rounds: others share the machine.
fn measure(name: &str, mut call: impl FnMut() -> c_int) {
    const CALLS: u32 = 20_000;
    let round = |call: &mut dyn FnMut() -> c_int| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| assert_eq!(black_box(call()), 0, "{name}"));
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    let best = (0..15).map(|_| round(&mut call)).fold(f64::INFINITY, f64::min);
    println!("{name:28} {best:8.1} ns");
}

fn main() {
    let (mut card, mut pinned, mut stream, mut event, mut blas) = (0, 0, 0, 0, 0);
    let host = [1_u8; 4096];
    let from = host.as_ptr() as u64;
    // SAFETY: calls of CUDA with valid arguments.
    unsafe {
        assert_eq!(cudaMalloc(&mut card, 64 << 20), 0);
        assert_eq!(cudaHostAlloc(&mut pinned, 1 << 20, 0), 0);
        assert_eq!(cudaStreamCreate(&mut stream), 0);
        assert_eq!(cudaEventCreate(&mut event), 0);
        assert_eq!(cublasCreate_v2(&mut blas), 0);
        let (grid, block) = (Dim3([64, 1, 1]), Dim3([256, 1, 1]));
        measure("launch", || {
            cudaLaunchKernel(
                main as *const () as usize,
                grid,
                block,
                std::ptr::null_mut(),
                0,
                stream,
            )
        });
        measure("cublasSgemm", || cublasSgemm_v2(blas));
        measure("malloc + free", || {
            let mut out = 0;
            cudaMalloc(&mut out, 20 << 20) + cudaFree(out)
        });
        let mut value = 0;
        measure("get device", || cudaGetDevice(&mut value));
        measure("is capturing", || cudaStreamIsCapturing(stream, &mut value));
        measure("event record", || cudaEventRecord(event, stream));
        measure("event query", || cudaEventQuery(event));
        measure("stream wait event", || cudaStreamWaitEvent(stream, event, 0));
        measure("stream synchronize", || cudaStreamSynchronize(stream));
        measure("event create + destroy", || {
            let mut out = 0;
            cudaEventCreate(&mut out) + cudaEventDestroy(out)
        });
        measure("event create on the heap", || {
            let mut out = Box::new(0);
            cudaEventCreate(&mut *out) + cudaEventDestroy(*out)
        });
        measure("copy to card, 4 B", || cudaMemcpyAsync(card, from, 4, 1, stream));
        measure("copy to card, 4 KiB", || cudaMemcpyAsync(card, from, 4096, 1, stream));
        let large = vec![0_u8; 32 << 20];
        let many = large.as_ptr() as u64;
        measure("copy to card, 32 MiB", || cudaMemcpyAsync(card, many, 32 << 20, 1, stream));
        let mut out = [0_u8; 4096];
        let to = out.as_mut_ptr() as u64;
        measure("copy to host, 4 B", || cudaMemcpyAsync(to, card, 4, 2, stream));
        measure("copy to host, 4 KiB", || cudaMemcpyAsync(to, card, 4096, 2, stream));
        measure("copy to pinned, 4 B", || cudaMemcpyAsync(pinned, card, 4, 2, stream));
        measure("copy to pinned, 1 MiB", || cudaMemcpyAsync(pinned, card, 1 << 20, 2, stream));
        let mut large = vec![0_u8; 16 << 20];
        let to = large.as_mut_ptr() as u64;
        for _ in 0..3 {
            let start = Instant::now();
            assert_eq!(cudaMemcpyAsync(to, card, 16 << 20, 2, stream), 0);
            println!(
                "copy to host, 16 MiB          {:8.1} us",
                start.elapsed().as_nanos() as f64 / 1e3
            );
        }
        measure("copy on card, 4 B", || cudaMemcpyAsync(card + 4096, card, 4, 3, stream));
        measure("copy on card, 16 MiB", || {
            cudaMemcpyAsync(card + (16 << 20), card, 16 << 20, 3, stream)
        });
        measure("memset, 4 KiB", || cudaMemsetAsync(card, 0, 4096, stream));
    }
}
