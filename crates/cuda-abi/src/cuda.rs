//! The driver: `libcuda`.

/// Hands the driver's rows to `$then!`.
#[macro_export]
macro_rules! cuda {
    ($then:ident) => {
        $then! { cuda;
            answered {
                device::init => fn cuInit();
                device::driver_version => fn cuDriverGetVersion(out: *mut c_int);
                driver::export_table => fn cuGetExportTable(out: *mut Address);
                device::count_once_initialised => fn cuDeviceGetCount(out: *mut c_int);
                device::get => fn cuDeviceGet(out: *mut c_int, ordinal: c_int);
                device::attribute => fn cuDeviceGetAttribute(out: *mut c_int, attribute: c_int, device: c_int);
                device::name => fn cuDeviceGetName(out: *mut c_char, length: c_int, device: c_int);
                device::total_memory => fn cuDeviceTotalMem_v2(out: *mut usize, device: c_int);
                device::uuid => fn cuDeviceGetUuid(out: *mut [u8; 16], device: c_int);
                device::uuid => fn cuDeviceGetUuid_v2(out: *mut [u8; 16], device: c_int);
                device::compute_capability => fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: c_int);
                device::can_access_peer => fn cuDeviceCanAccessPeer(out: *mut c_int, device: c_int, peer: c_int);
                device::pci_bus_id => fn cuDeviceGetPCIBusId(out: *mut c_char, length: c_int, device: c_int);
                context::primary_retain => fn cuDevicePrimaryCtxRetain(out: *mut Context, device: c_int);
                context::primary_state => fn cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int);
                context::current => fn cuCtxGetCurrent(out: *mut Context);
                context::set_current => fn cuCtxSetCurrent(context: Optional<Context>);
                context::set_current => fn cuCtxPushCurrent_v2(context: Optional<Context>);
                context::current => fn cuCtxPopCurrent_v2(out: *mut Context);
                context::set_current => fn cuCtxPushCurrent(context: Optional<Context>);
                context::current => fn cuCtxPopCurrent(out: *mut Context);
                context::create => fn cuCtxCreate_v2(out: *mut Context, flags: c_uint, device: c_int);
                context::device => fn cuCtxGetDevice(out: *mut c_int);
                context::flags => fn cuCtxGetFlags(out: *mut c_uint);
                context::id => fn cuCtxGetId(context: Optional<Context>, out: *mut u64);
                context::api_version => fn cuCtxGetApiVersion(context: Optional<Context>, out: *mut c_uint);
                device::limit => fn cuCtxGetLimit(out: *mut usize, limit: c_int);
                stream::priority_range => fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
                memory::malloc_some => fn cuMemAlloc_v2(out: *mut Address, size: usize);
                memory::malloc_some => fn cuMemAllocManaged(out: *mut Address, size: usize);
                memory::free => fn cuMemFree_v2(address: Address);
                memory::info => fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
                pointer::address_range => fn cuMemGetAddressRange_v2(base: *mut Address, size: *mut usize, address: Address);
                pointer::attribute => fn cuPointerGetAttribute(out: *mut c_void, attribute: c_int, address: Address);
                pointer::attribute_list => fn cuPointerGetAttributes(count: c_uint, attributes: *const c_int, out: *const Address, address: Address);
                copies::and_wait => fn cuMemcpy(to: Address, from: Address, size: usize);
                copies::on_stream_of_driver => fn cuMemcpyAsync(to: Address, from: Address, size: usize, stream: Stream);
                copies::to_card_and_wait => fn cuMemcpyHtoD_v2(to: Address, from: Address, size: usize);
                copies::to_host_and_wait => fn cuMemcpyDtoH_v2(to: Address, from: Address, size: usize);
                memory::copy_on_card => fn cuMemcpyDtoD_v2(to: Address, from: Address, size: usize);
                copies::to_card => fn cuMemcpyHtoDAsync_v2(to: Address, from: Address, size: usize, stream: Stream);
                copies::to_host => fn cuMemcpyDtoHAsync_v2(to: Address, from: Address, size: usize, stream: Stream);
                copies::on_card => fn cuMemcpyDtoDAsync_v2(to: Address, from: Address, size: usize, stream: Stream);
                host::alloc => fn cuMemHostAlloc(out: *mut Address, size: usize);
                host::alloc => fn cuMemAllocHost_v2(out: *mut Address, size: usize);
                host::free => fn cuMemFreeHost(address: Address);
                host::register => fn cuMemHostRegister_v2(address: Address, size: usize);
                host::unregister => fn cuMemHostUnregister(address: Address);
                host::device_pointer => fn cuMemHostGetDevicePointer_v2(out: *mut Address, address: Address);
                pool::malloc => fn cuMemAllocAsync(out: *mut Address, size: usize; stream: Stream);
                pool::free => fn cuMemFreeAsync(address: Address; stream: Stream);
                pool::default_of => fn cuDeviceGetDefaultMemPool(out: *mut Pool, device: c_int);
                memory::set_8 => fn cuMemsetD8_v2(address: Address, value: c_uint, count: usize);
                copies::fill_8 => fn cuMemsetD8Async(address: Address, value: c_uint, count: usize, stream: Stream);
                memory::set_16 => fn cuMemsetD16_v2(address: Address, value: c_uint, count: usize);
                copies::fill_16 => fn cuMemsetD16Async(address: Address, value: c_uint, count: usize, stream: Stream);
                memory::set_32 => fn cuMemsetD32_v2(address: Address, value: c_uint, count: usize);
                copies::fill_32 => fn cuMemsetD32Async(address: Address, value: c_uint, count: usize, stream: Stream);
                memory::set_8 => fn cuMemsetD8(address: Address, value: c_uint, count: usize);
                memory::set_16 => fn cuMemsetD16(address: Address, value: c_uint, count: usize);
                memory::set_32 => fn cuMemsetD32(address: Address, value: c_uint, count: usize);
                memory::word => fn cuStreamWriteValue32_v2(stream: Stream, address: Address);
                memory::word => fn cuStreamWaitValue32_v2(stream: Stream, address: Address);
                memory::word => fn cuStreamWriteValue32(stream: Stream, address: Address);
                memory::word => fn cuStreamWaitValue32(stream: Stream, address: Address);
                virtual_memory::set_access => fn cuMemSetAccess(address: Address, size: usize);
                memory::whole_range => fn cuMemPrefetchAsync(address: Address, size: usize);
                memory::whole_range => fn cuMemAdvise(address: Address, size: usize);
                virtual_memory::reserve => fn cuMemAddressReserve(out: *mut Address, size: usize, alignment: usize);
                virtual_memory::unreserve => fn cuMemAddressFree(address: Address, size: usize);
                virtual_memory::create => fn cuMemCreate(out: *mut u64, size: usize, properties: *const VirtualProperties);
                virtual_memory::release => fn cuMemRelease(handle: u64);
                virtual_memory::map => fn cuMemMap(address: Address, size: usize, offset: usize, handle: u64);
                virtual_memory::unmap => fn cuMemUnmap(address: Address, size: usize);
                virtual_memory::granularity => fn cuMemGetAllocationGranularity(out: *mut usize);
                virtual_memory::retain => fn cuMemRetainAllocationHandle(out: *mut u64, address: Address);
                virtual_memory::properties => fn cuMemGetAllocationPropertiesFromHandle(out: *mut VirtualProperties, handle: u64);
                virtual_memory::access => fn cuMemGetAccess(out: *mut u64);
                stream::create => fn cuStreamCreate(out: *mut Stream);
                stream::create_with_priority => fn cuStreamCreateWithPriority(out: *mut Stream, flags: c_uint, priority: c_int);
                stream::destroy => fn cuStreamDestroy_v2(stream: Ended<Stream>);
                stream::wait_event => fn cuStreamWaitEvent(stream: Stream, event: Event, flags: c_uint);
                stream::context => fn cuStreamGetCtx(stream: Stream, out: *mut Context);
                capture::is_capturing => fn cuStreamIsCapturing(stream: Stream, out: *mut c_int);
                capture::info_v2 => fn cuStreamGetCaptureInfo_v2(stream: Stream, status: *mut c_int, id: *mut u64, graph: *mut Graph, dependencies: *mut Address, count: *mut usize);
                ipc::get_memory => fn cuIpcGetMemHandle(out: *mut IpcHandle, address: Address);
                ipc::open_memory => fn cuIpcOpenMemHandle_v2(out: *mut Address, handle: IpcHandle, flags: c_uint);
                ipc::close_memory => fn cuIpcCloseMemHandle(address: Address);
                ipc::get_event => fn cuIpcGetEventHandle(out: *mut IpcHandle, event: Event);
                ipc::open_event => fn cuIpcOpenEventHandle(out: *mut Event, handle: IpcHandle);
                virtual_memory::export => fn cuMemExportToShareableHandle(out: *mut c_int, handle: u64, kind: c_int);
                virtual_memory::import => fn cuMemImportFromShareableHandle(out: *mut u64, file: usize, kind: c_int);
                event::create => fn cuEventCreate(out: *mut Event);
                event::destroy => fn cuEventDestroy_v2(event: Ended<Event>);
                event::record => fn cuEventRecord(event: Event, stream: Stream);
                event::query => fn cuEventQuery(event: Event);
                event::wait => fn cuEventSynchronize(event: Event);
                event::wait_stream => fn cuStreamSynchronize(stream: Stream);
                event::query_stream => fn cuStreamQuery(stream: Stream);
                event::wait_device => fn cuCtxSynchronize();
                event::elapsed => fn cuEventElapsedTime(out: *mut f32, start: Event, end: Event);
                event::elapsed => fn cuEventElapsedTime_v2(out: *mut f32, start: Event, end: Event);
                handles::create => fn cuModuleLoad(out: *mut Module; image: NonNull);
                handles::create => fn cuModuleLoadData(out: *mut Module; image: NonNull);
                handles::create => fn cuModuleLoadDataEx(out: *mut Module; image: NonNull);
                handles::create => fn cuModuleLoadFatBinary(out: *mut Module; image: NonNull);
                handles::create => fn cuLibraryLoadData(out: *mut Module; image: NonNull);
                handles::create => fn cuLibraryLoadFromFile(out: *mut Module; image: NonNull);
                handles::create => fn cuModuleGetFunction(out: *mut Kernel; library: Module);
                handles::create => fn cuLibraryGetKernel(out: *mut Kernel; library: Module);
                handles::create => fn cuLibraryGetModule(out: *mut Module; library: Module);
                handles::create => fn cuKernelGetFunction(out: *mut Kernel; kernel: Kernel);
                handles::create => fn cuFuncGetModule(out: *mut Module; function: Kernel);
                module::global => fn cuModuleGetGlobal_v2(out: *mut Address, size: *mut usize; module: Module);
                module::loading_mode => fn cuModuleGetLoadingMode(out: *mut c_int);
                module::library_kernel_count => fn cuModuleGetFunctionCount(out: *mut c_uint, module: Module);
                module::function_attribute => fn cuFuncGetAttribute(out: *mut c_int, attribute: c_int, function: Kernel);
                module::function_attribute => fn cuKernelGetAttribute(out: *mut c_int, attribute: c_int, kernel: Kernel);
                module::link_create => fn cuLinkCreate_v2(count: c_uint, options: *const c_int, values: *const Address, out: *mut LinkState);
                module::link_create => fn cuLinkCreate(count: c_uint, options: *const c_int, values: *const Address, out: *mut LinkState);
                module::link_complete => fn cuLinkComplete(state: LinkState, out: *mut Address, size: *mut usize);
                launch::blocks_per_sm => fn cuOccupancyMaxActiveBlocksPerMultiprocessor(out: *mut c_int, function: Kernel, block: c_int, shared: usize);
                launch::blocks_per_sm => fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out: *mut c_int, function: Kernel, block: c_int, shared: usize);
                launch::block_size => fn cuOccupancyMaxPotentialBlockSize(grid: *mut c_int, block: *mut c_int);
                launch::clusters => fn cuOccupancyMaxActiveClusters(out: *mut c_int);
                launch::clusters => fn cuOccupancyMaxPotentialClusterSize(out: *mut c_int);
                configuration::launch_by_driver => fn cuLaunchKernel(function: Kernel, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Stream, arguments: *const *mut i64, extra: *const *mut i64);
                configuration::launch_by_driver_with => fn cuLaunchKernelEx(configuration: *const DriverLaunchConfiguration, function: Kernel, arguments: *const *mut i64, extra: *const *mut i64);
                configuration::launch_together_by_driver => fn cuLaunchCooperativeKernel(function: Kernel, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Stream, arguments: *const *mut i64);
                error::driver_name => fn cuGetErrorName(code: c_int, out: *mut *const c_char);
                error::driver_text => fn cuGetErrorString(code: c_int, out: *mut *const c_char);
                driver::register_log => fn cuLogsRegisterCallback(callback: Address, data: Address, out: *mut LogCallback);
                driver::proc_address => fn cuGetProcAddress(name: *const c_char, out: *mut Address, version: c_int, flags: u64);
                driver::proc_address_v2 => fn cuGetProcAddress_v2(name: *const c_char, out: *mut Address, version: c_int, flags: u64, found: *mut c_int);
                // The same by their plain names: some callers look them up without the version.
                device::total_memory => fn cuDeviceTotalMem(out: *mut usize, device: c_int);
                context::create => fn cuCtxCreate(out: *mut Context, flags: c_uint, device: c_int);
                memory::malloc_some => fn cuMemAlloc(out: *mut Address, size: usize);
                memory::free => fn cuMemFree(address: Address);
                memory::info => fn cuMemGetInfo(free: *mut usize, total: *mut usize);
                pointer::address_range => fn cuMemGetAddressRange(base: *mut Address, size: *mut usize, address: Address);
                copies::to_card_and_wait => fn cuMemcpyHtoD(to: Address, from: Address, size: usize);
                copies::to_host_and_wait => fn cuMemcpyDtoH(to: Address, from: Address, size: usize);
                memory::copy_on_card => fn cuMemcpyDtoD(to: Address, from: Address, size: usize);
                copies::to_card => fn cuMemcpyHtoDAsync(to: Address, from: Address, size: usize, stream: Stream);
                copies::to_host => fn cuMemcpyDtoHAsync(to: Address, from: Address, size: usize, stream: Stream);
                copies::on_card => fn cuMemcpyDtoDAsync(to: Address, from: Address, size: usize, stream: Stream);
                host::alloc => fn cuMemAllocHost(out: *mut Address, size: usize);
                host::register => fn cuMemHostRegister(address: Address, size: usize);
                host::device_pointer => fn cuMemHostGetDevicePointer(out: *mut Address, address: Address);
                stream::destroy => fn cuStreamDestroy(stream: Ended<Stream>);
                capture::info_v2 => fn cuStreamGetCaptureInfo(stream: Stream, status: *mut c_int, id: *mut u64, graph: *mut Graph, dependencies: *mut Address, count: *mut usize);
                event::destroy => fn cuEventDestroy(event: Ended<Event>);
                module::global => fn cuModuleGetGlobal(out: *mut Address, size: *mut usize; module: Module);
            }
            values {}
            silent {
                () {
                    cuCtxSetLimit, cuKernelSetAttribute, cuTensorMapEncodeTiled,
                    cuTensorMapEncodeIm2col, cuTensorMapReplaceAddress, cuProfilerStart,
                    cuProfilerStop,
                }
                (context: Context) {
                    cuCtxDestroy_v2, cuCtxDestroy,
                }
                (device: Ordinal) {
                    cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxSetFlags_v2,
                    cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxRelease,
                    cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxReset,
                }
                (kernel: Kernel) {
                    cuFuncSetAttribute, cuFuncSetCacheConfig, cuFuncSetSharedMemConfig,
                }
                (library: Ended<Module>) {
                    cuModuleUnload, cuLibraryUnload,
                }
                (state: LinkState) {
                    cuLinkAddData_v2, cuLinkAddData, cuLinkAddFile_v2, cuLinkAddFile,
                }
                (state: Ended<LinkState>) {
                    cuLinkDestroy,
                }
                (callback: Ended<LogCallback>) {
                    cuLogsUnregisterCallback,
                }
            }
            refused {
                cuMemGetHandleForAddressRange, cuMulticastCreate, cuMulticastAddDevice,
                cuMulticastBindMem, cuMulticastUnbind, cuMulticastGetGranularity, cuGreenCtxCreate,
                cuGreenCtxDestroy, cuGreenCtxStreamCreate, cuCtxFromGreenCtx, cuDeviceGetDevResource,
                cuDevSmResourceSplitByCount, cuDevResourceGenerateDesc, cuMemPoolCreate, cuMemPoolDestroy,
            }
        }
    };
}
