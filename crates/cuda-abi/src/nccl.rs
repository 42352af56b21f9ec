//! NCCL: collectives that move nothing, so that one rank can run alone.

/// Hands the rows of `libnccl` to `$then!`.
#[macro_export]
macro_rules! nccl {
    ($then:ident) => {
        $then! { nccl;
            answered {
                nccl::all_gather => fn ncclAllGather(from: Address, to: Address, count: usize, dtype: DataType, communicator: Communicator);
                nccl::all_reduce => fn ncclAllReduce(from: Address, to: Address, count: usize, dtype: DataType, operation: Operation, communicator: Communicator);
                nccl::reduce => fn ncclReduce(from: Address, to: Address, count: usize, dtype: DataType, operation: Operation, root: c_int, communicator: Communicator);
                nccl::broadcast => fn ncclBroadcast(from: Address, to: Address, count: usize, dtype: DataType, root: c_int, communicator: Communicator);
                nccl::broadcast_in_place => fn ncclBcast(buffer: Address, count: usize, dtype: DataType, root: c_int, communicator: Communicator);
                nccl::all_to_all => fn ncclAlltoAll(from: Address, to: Address, count: usize, dtype: DataType, communicator: Communicator);
                nccl::gather => fn ncclGather(from: Address, to: Address, count: usize, dtype: DataType, root: c_int, communicator: Communicator);
                nccl::scatter => fn ncclScatter(from: Address, to: Address, count: usize, dtype: DataType, root: c_int, communicator: Communicator);
                nccl::send => fn ncclSend(buffer: Address, count: usize, dtype: DataType, peer: c_int, communicator: Communicator);
                nccl::recv => fn ncclRecv(buffer: Address, count: usize, dtype: DataType, peer: c_int, communicator: Communicator);
                nccl::group_start => fn ncclGroupStart();
                nccl::group_end => fn ncclGroupEnd();
                nccl::init_all => fn ncclCommInitAll(out: *mut Communicator, count: c_int, devices: *const c_int);
                nccl::destroy => fn ncclCommDestroy(communicator: Optional<Communicator>);
                nccl::destroy => fn ncclCommAbort(communicator: Optional<Communicator>);
                nccl::reduce_scatter => fn ncclReduceScatter(from: Address, to: Address, count: usize, dtype: DataType, operation: Operation, communicator: Communicator);
                nccl::version => fn ncclGetVersion(out: *mut c_int);
                nccl::unique_id => fn ncclGetUniqueId(out: *mut UniqueId);
                nccl::count => fn ncclCommCount(communicator: Communicator, out: *mut c_int);
                nccl::rank => fn ncclCommUserRank(communicator: Communicator, out: *mut c_int);
                nccl::device => fn ncclCommCuDevice(communicator: Communicator, out: *mut c_int);
                nccl::async_error => fn ncclCommGetAsyncError(communicator: Communicator, out: *mut c_int);
                nccl::split => fn ncclCommSplit(communicator: Communicator, color: c_int, key: c_int, out: *mut Communicator);
                memory::malloc => fn ncclMemAlloc(out: *mut Address, size: usize);
                memory::free => fn ncclMemFree(address: Address);
                nccl::make_pre_mul_sum => fn ncclRedOpCreatePreMulSum(out: *mut c_int, scalar: *mut c_void, dtype: DataType, residence: c_int, communicator: Communicator);
                nccl::register => fn ncclCommRegister(communicator: Communicator, buffer: Address, size: usize, out: *mut Registration);
                nccl::init_rank_config => fn ncclCommInitRankConfig(out: *mut Communicator, size: c_int, id: UniqueId, rank: c_int);
                nccl::init_rank_scalable => fn ncclCommInitRankScalable(out: *mut Communicator, size: c_int, rank: c_int);
                nccl::init_rank_config => fn ncclCommInitRank(out: *mut Communicator, size: c_int, id: UniqueId, rank: c_int);
            }
            values {
                error::nccl_text => fn ncclGetErrorString(code: c_int) -> *const c_char;
                error::nccl_text => fn ncclGetLastError(communicator: c_int) -> *const c_char;
            }
            silent {
                (communicator: Communicator, registration: Ended<Registration>) {
                    ncclCommDeregister,
                }
                (communicator: Communicator) {
                    ncclCommFinalize,
                }
                (operation: Operation, communicator: Communicator) {
                    ncclRedOpDestroy,
                }
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
