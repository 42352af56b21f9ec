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
                device::count => fn cuDeviceGetCount(out: *mut c_int);
                device::get => fn cuDeviceGet(out: *mut c_int, ordinal: c_int);
                device::attribute => fn cuDeviceGetAttribute(out: *mut c_int, attribute: c_int, device: c_int);
                device::name => fn cuDeviceGetName(out: *mut c_char, length: c_int, device: c_int);
                device::total_memory => fn cuDeviceTotalMem_v2(out: *mut usize, device: c_int);
                device::uuid => fn cuDeviceGetUuid(out: *mut [u8; 16], device: c_int);
                device::uuid => fn cuDeviceGetUuid_v2(out: *mut [u8; 16], device: c_int);
                device::compute_capability => fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: c_int);
                device::can_access_peer => fn cuDeviceCanAccessPeer(out: *mut c_int, device: c_int, peer: c_int);
                device::pci_bus_id => fn cuDeviceGetPCIBusId(out: *mut c_char, length: c_int, device: c_int);
                context::primary_retain => fn cuDevicePrimaryCtxRetain(out: *mut Handle, device: c_int);
                context::primary_state => fn cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int);
                context::current => fn cuCtxGetCurrent(out: *mut Handle);
                context::set_current => fn cuCtxSetCurrent(context: Handle);
                context::set_current => fn cuCtxPushCurrent_v2(context: Handle);
                context::current => fn cuCtxPopCurrent_v2(out: *mut Handle);
                context::set_current => fn cuCtxPushCurrent(context: Handle);
                context::current => fn cuCtxPopCurrent(out: *mut Handle);
                context::create => fn cuCtxCreate_v2(out: *mut Handle, flags: c_uint, device: c_int);
                context::device => fn cuCtxGetDevice(out: *mut c_int);
                context::flags => fn cuCtxGetFlags(out: *mut c_uint);
                context::id => fn cuCtxGetId(context: Handle, out: *mut u64);
                context::api_version => fn cuCtxGetApiVersion(context: Handle, out: *mut c_uint);
                device::limit => fn cuCtxGetLimit(out: *mut usize, limit: c_int);
                stream::priority_range => fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
                memory::malloc => fn cuMemAlloc_v2(out: *mut Address, size: usize);
                memory::malloc_managed => fn cuMemAllocManaged(out: *mut Address, size: usize);
                memory::free => fn cuMemFree_v2(address: Address);
                memory::info => fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
                memory::address_range => fn cuMemGetAddressRange_v2(base: *mut Address, size: *mut usize, address: Address);
                memory::pointer_attribute => fn cuPointerGetAttribute(out: *mut c_void, attribute: c_int, address: Address);
                memory::pointer_attribute_list => fn cuPointerGetAttributes(count: c_uint, attributes: *const c_int, out: *const Address, address: Address);
                memory::copy => fn cuMemcpy(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyAsync(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyHtoD_v2(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyDtoH_v2(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyDtoD_v2(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyHtoDAsync_v2(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyDtoHAsync_v2(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyDtoDAsync_v2(to: Address, from: Address, size: usize);
                host::alloc => fn cuMemHostAlloc(out: *mut Address, size: usize);
                host::alloc => fn cuMemAllocHost_v2(out: *mut Address, size: usize);
                host::free => fn cuMemFreeHost(address: Address);
                host::register => fn cuMemHostRegister_v2(address: Address, size: usize);
                host::unregister => fn cuMemHostUnregister(address: Address);
                host::device_pointer => fn cuMemHostGetDevicePointer_v2(out: *mut Address, address: Address);
                pool::malloc => fn cuMemAllocAsync(out: *mut Address, size: usize, stream: Handle);
                pool::free => fn cuMemFreeAsync(address: Address, stream: Handle);
                pool::default_of => fn cuDeviceGetDefaultMemPool(out: *mut Handle, device: c_int);
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
                stream::create => fn cuStreamCreate(out: *mut Handle);
                stream::create_with_priority => fn cuStreamCreateWithPriority(out: *mut Handle, flags: c_uint, priority: c_int);
                stream::destroy => fn cuStreamDestroy_v2(stream: Handle);
                stream::wait_event => fn cuStreamWaitEvent(stream: Handle, event: Handle);
                stream::context => fn cuStreamGetCtx(stream: Handle, out: *mut Handle);
                graph::is_capturing => fn cuStreamIsCapturing(stream: Handle, out: *mut c_int);
                graph::capture_info_v2 => fn cuStreamGetCaptureInfo_v2(stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle, dependencies: *mut Address, count: *mut usize);
                event::create => fn cuEventCreate(out: *mut Handle);
                event::destroy => fn cuEventDestroy_v2(event: Handle);
                event::record => fn cuEventRecord(event: Handle, stream: Handle);
                event::query => fn cuEventQuery(event: Handle);
                event::wait => fn cuEventSynchronize(event: Handle);
                event::wait_stream => fn cuStreamSynchronize(stream: Handle);
                event::wait_device => fn cuCtxSynchronize();
                event::elapsed => fn cuEventElapsedTime(out: *mut f32, start: Handle, end: Handle);
                event::elapsed => fn cuEventElapsedTime_v2(out: *mut f32, start: Handle, end: Handle);
                module::library_load => fn cuModuleLoad(out: *mut Handle);
                module::library_load => fn cuModuleLoadData(out: *mut Handle);
                module::library_load => fn cuModuleLoadDataEx(out: *mut Handle);
                module::library_load => fn cuModuleLoadFatBinary(out: *mut Handle);
                module::library_load => fn cuLibraryLoadData(out: *mut Handle);
                module::library_load => fn cuLibraryLoadFromFile(out: *mut Handle);
                module::library_kernel => fn cuModuleGetFunction(out: *mut Handle, module: Handle);
                module::library_kernel => fn cuLibraryGetKernel(out: *mut Handle, library: Handle);
                module::library_kernel => fn cuLibraryGetModule(out: *mut Handle, library: Handle);
                module::library_kernel => fn cuKernelGetFunction(out: *mut Handle, kernel: Handle);
                module::library_kernel => fn cuFuncGetModule(out: *mut Handle, function: Handle);
                module::global => fn cuModuleGetGlobal_v2(out: *mut Address, size: *mut usize);
                module::loading_mode => fn cuModuleGetLoadingMode(out: *mut c_int);
                module::library_kernel_count => fn cuModuleGetFunctionCount(out: *mut c_uint, module: Handle);
                module::function_attribute => fn cuFuncGetAttribute(out: *mut c_int, attribute: c_int, function: Handle);
                module::function_attribute => fn cuKernelGetAttribute(out: *mut c_int, attribute: c_int, kernel: Handle);
                module::link_create => fn cuLinkCreate_v2(count: c_uint, options: *const c_int, values: *const Address, out: *mut Handle);
                module::link_create => fn cuLinkCreate(count: c_uint, options: *const c_int, values: *const Address, out: *mut Handle);
                module::link_complete => fn cuLinkComplete(state: Handle, out: *mut Address, size: *mut usize);
                launch::blocks_per_sm => fn cuOccupancyMaxActiveBlocksPerMultiprocessor(out: *mut c_int, function: Handle, block: c_int, shared: usize);
                launch::blocks_per_sm => fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out: *mut c_int, function: Handle, block: c_int, shared: usize);
                launch::block_size => fn cuOccupancyMaxPotentialBlockSize(grid: *mut c_int, block: *mut c_int);
                launch::clusters => fn cuOccupancyMaxActiveClusters(out: *mut c_int);
                launch::clusters => fn cuOccupancyMaxPotentialClusterSize(out: *mut c_int);
                launch::kernel => fn cuLaunchKernel();
                launch::kernel => fn cuLaunchKernelEx();
                launch::kernel => fn cuLaunchCooperativeKernel();
                error::driver_name => fn cuGetErrorName(code: c_int, out: *mut *const c_char);
                error::driver_text => fn cuGetErrorString(code: c_int, out: *mut *const c_char);
                driver::register_log => fn cuLogsRegisterCallback(callback: Address, data: Address, out: *mut Handle);
                driver::proc_address => fn cuGetProcAddress(name: *const c_char, out: *mut Address, version: c_int, flags: u64);
                driver::proc_address_v2 => fn cuGetProcAddress_v2(name: *const c_char, out: *mut Address, version: c_int, flags: u64, found: *mut c_int);
                // The same by their plain names: some callers look them up without the version.
                device::total_memory => fn cuDeviceTotalMem(out: *mut usize, device: c_int);
                context::create => fn cuCtxCreate(out: *mut Handle, flags: c_uint, device: c_int);
                memory::malloc => fn cuMemAlloc(out: *mut Address, size: usize);
                memory::free => fn cuMemFree(address: Address);
                memory::info => fn cuMemGetInfo(free: *mut usize, total: *mut usize);
                memory::address_range => fn cuMemGetAddressRange(base: *mut Address, size: *mut usize, address: Address);
                memory::copy => fn cuMemcpyHtoD(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyDtoH(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyDtoD(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyHtoDAsync(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyDtoHAsync(to: Address, from: Address, size: usize);
                memory::copy => fn cuMemcpyDtoDAsync(to: Address, from: Address, size: usize);
                host::alloc => fn cuMemAllocHost(out: *mut Address, size: usize);
                host::register => fn cuMemHostRegister(address: Address, size: usize);
                host::device_pointer => fn cuMemHostGetDevicePointer(out: *mut Address, address: Address);
                stream::destroy => fn cuStreamDestroy(stream: Handle);
                graph::capture_info_v2 => fn cuStreamGetCaptureInfo(stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle, dependencies: *mut Address, count: *mut usize);
                event::destroy => fn cuEventDestroy(event: Handle);
                module::global => fn cuModuleGetGlobal(out: *mut Address, size: *mut usize);
            }
            values {}
            silent {
                cuCtxSetLimit, cuCtxDestroy_v2, cuDevicePrimaryCtxRelease_v2,
                cuDevicePrimaryCtxSetFlags_v2, cuDevicePrimaryCtxReset_v2, cuMemSetAccess,
                cuMemsetD8_v2, cuMemsetD8Async, cuMemsetD16_v2, cuMemsetD16Async, cuMemsetD32_v2,
                cuMemsetD32Async, cuStreamQuery, cuStreamWriteValue32_v2,
                cuStreamWaitValue32_v2, cuFuncSetAttribute,
                cuFuncSetCacheConfig, cuFuncSetSharedMemConfig, cuModuleUnload, cuLibraryUnload,
                cuLinkAddData_v2, cuLinkAddData, cuLinkAddFile_v2, cuKernelSetAttribute, cuLinkDestroy, cuTensorMapEncodeTiled,
                cuTensorMapEncodeIm2col, cuTensorMapReplaceAddress, cuProfilerStart, cuProfilerStop,
                cuMemPrefetchAsync, cuMemAdvise, cuLogsUnregisterCallback,
                cuCtxDestroy, cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxReset, cuMemsetD8, cuMemsetD16, cuMemsetD32, cuStreamWriteValue32, cuStreamWaitValue32, cuLinkAddFile,
            }
            refused {
                cuMemExportToShareableHandle, cuMemImportFromShareableHandle,
                cuMemGetHandleForAddressRange, cuMulticastCreate, cuMulticastAddDevice,
                cuMulticastBindMem, cuMulticastUnbind, cuMulticastGetGranularity, cuGreenCtxCreate,
                cuGreenCtxDestroy, cuGreenCtxStreamCreate, cuCtxFromGreenCtx, cuDeviceGetDevResource,
                cuDevSmResourceSplitByCount, cuDevResourceGenerateDesc, cuIpcGetMemHandle, cuIpcOpenMemHandle_v2,
                cuIpcCloseMemHandle, cuMemPoolCreate, cuMemPoolDestroy,
            }
        }
    };
}
