//! NCCL: collectives that move nothing, so that one rank can run alone.

/// Hands the rows of `libnccl` to `$then!`.
#[macro_export]
macro_rules! nccl {
    ($then:ident) => {
        $then! { nccl;
            answered {
                nccl::all_gather => fn ncclAllGather(from: Address, to: Address, count: usize, dtype: c_int, communicator: Handle);
                nccl::all_reduce => fn ncclAllReduce(from: Address, to: Address, count: usize, dtype: c_int, operation: c_int, communicator: Handle);
                nccl::reduce => fn ncclReduce(from: Address, to: Address, count: usize, dtype: c_int, operation: c_int, root: c_int, communicator: Handle);
                nccl::broadcast => fn ncclBroadcast(from: Address, to: Address, count: usize, dtype: c_int, root: c_int, communicator: Handle);
                nccl::broadcast_in_place => fn ncclBcast(buffer: Address, count: usize, dtype: c_int, root: c_int, communicator: Handle);
                nccl::all_to_all => fn ncclAlltoAll(from: Address, to: Address, count: usize, dtype: c_int, communicator: Handle);
                nccl::gather => fn ncclGather(from: Address, to: Address, count: usize, dtype: c_int, root: c_int, communicator: Handle);
                nccl::scatter => fn ncclScatter(from: Address, to: Address, count: usize, dtype: c_int, root: c_int, communicator: Handle);
                nccl::send => fn ncclSend(buffer: Address, count: usize, dtype: c_int, peer: c_int, communicator: Handle);
                nccl::recv => fn ncclRecv(buffer: Address, count: usize, dtype: c_int, peer: c_int, communicator: Handle);
                nccl::group_start => fn ncclGroupStart();
                nccl::group_end => fn ncclGroupEnd();
                nccl::init_all => fn ncclCommInitAll(out: *mut Handle, count: c_int, devices: *const c_int);
                nccl::destroy => fn ncclCommDestroy(communicator: Handle);
                nccl::destroy => fn ncclCommAbort(communicator: Handle);
                nccl::reduce_scatter => fn ncclReduceScatter(from: Address, to: Address, count: usize, dtype: c_int, operation: c_int, communicator: Handle);
                nccl::version => fn ncclGetVersion(out: *mut c_int);
                nccl::unique_id => fn ncclGetUniqueId(out: *mut UniqueId);
                nccl::count => fn ncclCommCount(communicator: Handle, out: *mut c_int);
                nccl::rank => fn ncclCommUserRank(communicator: Handle, out: *mut c_int);
                nccl::device => fn ncclCommCuDevice(communicator: Handle, out: *mut c_int);
                nccl::async_error => fn ncclCommGetAsyncError(communicator: Handle, out: *mut c_int);
                nccl::split => fn ncclCommSplit(communicator: Handle, color: c_int, key: c_int, out: *mut Handle);
                memory::malloc => fn ncclMemAlloc(out: *mut Address, size: usize);
                memory::free => fn ncclMemFree(address: Address);
                nccl::make_pre_mul_sum => fn ncclRedOpCreatePreMulSum(out: *mut c_int, scalar: *mut c_void, dtype: c_int, residence: c_int, communicator: Handle);
                nccl::register => fn ncclCommRegister(communicator: Handle, buffer: Address, size: usize, out: *mut Handle);
                nccl::init_rank_config => fn ncclCommInitRankConfig(out: *mut Handle, size: c_int, id: UniqueId, rank: c_int);
                nccl::init_rank_scalable => fn ncclCommInitRankScalable(out: *mut Handle, size: c_int, rank: c_int);
                nccl::init_rank_config => fn ncclCommInitRank(out: *mut Handle, size: c_int, id: UniqueId, rank: c_int);
            }
            values {
                error::nccl_text => fn ncclGetErrorString(code: c_int) -> *const c_char;
                error::nccl_text => fn ncclGetLastError(communicator: c_int) -> *const c_char;
            }
            silent {
                ncclCommDeregister, ncclCommFinalize, ncclRedOpDestroy,
            }
            refused {
                ncclCommGetUniqueId, ncclCommGrow, ncclCommMemStats,
                ncclCommResume, ncclCommRevoke, ncclCommShrink, ncclCommSuspend,
                ncclCommWindowDeregister, ncclCommWindowRegister, ncclDevCommCreate,
                ncclDevCommDestroy, ncclGetLsaMultimemDevicePointer, ncclGetPeerDevicePointer,
                ncclGroupSimulateEnd, ncclPutSignal, ncclSignal, ncclWaitSignal,
                ncclWinGetUserPtr,
            }
        }
    };
}
