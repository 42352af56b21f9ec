//! The CUDA runtime: `libcudart`.

/// Hands the runtime's rows to `$then!`.
#[macro_export]
macro_rules! cudart {
    ($then:ident) => {
        $then! { cudart;
            answered {
                memory::malloc => fn cudaMalloc(out: *mut Address, size: usize);
                memory::malloc_managed => fn cudaMallocManaged(out: *mut Address, size: usize);
                memory::free => fn cudaFree(address: Address);
                memory::info => fn cudaMemGetInfo(free: *mut usize, total: *mut usize);
                memory::pointer_attributes => fn cudaPointerGetAttributes(out: *mut PointerAttributes, address: Address);
                memory::copy => fn cudaMemcpy(to: Address, from: Address, size: usize);
                memory::copy => fn cudaMemcpyAsync(to: Address, from: Address, size: usize);
                memory::copy_2d => fn cudaMemcpy2DAsync(to: Address, to_pitch: usize, from: Address, from_pitch: usize, width: usize, height: usize);
                memory::copy_peer => fn cudaMemcpyPeerAsync(to: Address, to_device: c_int, from: Address, from_device: c_int, size: usize);
                memory::copy_2d => fn cudaMemcpy2D(to: Address, to_pitch: usize, from: Address, from_pitch: usize, width: usize, height: usize);
                memory::set => fn cudaMemset(address: Address, value: c_int, size: usize);
                memory::set => fn cudaMemsetAsync(address: Address, value: c_int, size: usize);
                pool::malloc => fn cudaMallocAsync(out: *mut Address, size: usize, stream: Handle);
                pool::malloc_from => fn cudaMallocFromPoolAsync(out: *mut Address, size: usize, pool: Handle);
                pool::free => fn cudaFreeAsync(address: Address, stream: Handle);
                pool::default_of => fn cudaDeviceGetDefaultMemPool(out: *mut Handle, device: c_int);
                pool::default_of => fn cudaDeviceGetMemPool(out: *mut Handle, device: c_int);
                pool::attribute => fn cudaMemPoolGetAttribute(pool: Handle, attribute: c_int, out: *mut u64);
                pool::set_attribute => fn cudaMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *mut u64);
                pool::trim => fn cudaMemPoolTrimTo(pool: Handle, keep: usize);
                pool::graph_attribute => fn cudaDeviceGetGraphMemAttribute(device: c_int, attribute: c_int, out: *mut u64);
                host::alloc => fn cudaHostAlloc(out: *mut Address, size: usize);
                host::alloc => fn cudaMallocHost(out: *mut Address, size: usize);
                host::free => fn cudaFreeHost(address: Address);
                host::register => fn cudaHostRegister(address: Address, size: usize);
                host::unregister => fn cudaHostUnregister(address: Address);
                host::device_pointer => fn cudaHostGetDevicePointer(out: *mut Address, address: Address);
                device::count => fn cudaGetDeviceCount(out: *mut c_int);
                device::current => fn cudaGetDevice(out: *mut c_int);
                device::set_current => fn cudaSetDevice(device: c_int);
                device::properties_13 => fn cudaGetDeviceProperties(out: *mut DeviceProp13, device: c_int);
                device::properties_12 => fn cudaGetDeviceProperties_v2(out: *mut DeviceProp12, device: c_int);
                device::attribute => fn cudaDeviceGetAttribute(out: *mut c_int, attribute: c_int, device: c_int);
                device::can_access_peer => fn cudaDeviceCanAccessPeer(out: *mut c_int, device: c_int, peer: c_int);
                device::pci_bus_id => fn cudaDeviceGetPCIBusId(out: *mut c_char, length: c_int, device: c_int);
                device::by_pci_bus_id => fn cudaDeviceGetByPCIBusId(out: *mut c_int, name: *const c_char);
                device::limit => fn cudaDeviceGetLimit(out: *mut usize, limit: c_int);
                device::driver_version => fn cudaDriverGetVersion(out: *mut c_int);
                device::runtime_version => fn cudaRuntimeGetVersion(out: *mut c_int);
                stream::priority_range => fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
                stream::create => fn cudaStreamCreate(out: *mut Handle);
                stream::create => fn cudaStreamCreateWithFlags(out: *mut Handle);
                stream::create_with_priority => fn cudaStreamCreateWithPriority(out: *mut Handle, flags: c_uint, priority: c_int);
                stream::destroy => fn cudaStreamDestroy(stream: Handle);
                stream::priority => fn cudaStreamGetPriority(stream: Handle, out: *mut c_int);
                stream::wait_event => fn cudaStreamWaitEvent(stream: Handle, event: Handle);
                stream::add_callback => fn cudaStreamAddCallback(stream: Handle, callback: StreamCallback, data: *mut c_void);
                stream::launch_host_function => fn cudaLaunchHostFunc(stream: Handle, function: HostFunction, data: *mut c_void);
                graph::is_capturing => fn cudaStreamIsCapturing(stream: Handle, out: *mut c_int);
                graph::capture_info => fn cudaStreamGetCaptureInfo(stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle, dependencies: *mut Address, edges: *mut Address, count: *mut usize);
                graph::capture_info_v2 => fn cudaStreamGetCaptureInfo_v2(stream: Handle, status: *mut c_int, id: *mut u64, graph: *mut Handle, dependencies: *mut Address, count: *mut usize);
                graph::begin_capture => fn cudaStreamBeginCapture(stream: Handle);
                graph::begin_capture_to_graph => fn cudaStreamBeginCaptureToGraph(stream: Handle, graph: Handle);
                graph::end_capture => fn cudaStreamEndCapture(stream: Handle, out: *mut Handle);
                graph::exchange_mode => fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int);
                graph::create => fn cudaGraphCreate(out: *mut Handle);
                graph::instantiate => fn cudaGraphInstantiate(out: *mut Handle, graph: Handle);
                graph::instantiate => fn cudaGraphInstantiateWithFlags(out: *mut Handle, graph: Handle);
                graph::nodes => fn cudaGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize);
                graph::destroy => fn cudaGraphDestroy(graph: Handle);
                graph::make_handle => fn cudaUserObjectCreate(out: *mut Handle);
                graph::make_handle => fn cudaGraphConditionalHandleCreate(out: *mut Handle);
                graph::make_handle => fn cudaGraphAddNode(out: *mut Handle);
                event::create => fn cudaEventCreate(out: *mut Handle);
                event::create => fn cudaEventCreateWithFlags(out: *mut Handle);
                event::destroy => fn cudaEventDestroy(event: Handle);
                event::record => fn cudaEventRecord(event: Handle, stream: Handle);
                event::record => fn cudaEventRecordWithFlags(event: Handle, stream: Handle);
                event::query => fn cudaEventQuery(event: Handle);
                event::wait => fn cudaEventSynchronize(event: Handle);
                event::wait_stream => fn cudaStreamSynchronize(stream: Handle);
                event::wait_device => fn cudaDeviceSynchronize();
                event::elapsed => fn cudaEventElapsedTime(out: *mut f32, start: Handle, end: Handle);
                module::function_attributes => fn cudaFuncGetAttributes(out: *mut FuncAttributes, function: Handle);
                module::symbol_address => fn cudaGetSymbolAddress(out: *mut Address, symbol: Address);
                module::symbol_size => fn cudaGetSymbolSize(out: *mut usize, symbol: Address);
                module::library_load => fn cudaLibraryLoadData(out: *mut Handle);
                module::library_load => fn cudaLibraryLoadFromFile(out: *mut Handle);
                module::library_kernel => fn cudaLibraryGetKernel(out: *mut Handle, library: Handle);
                module::library_kernel_count => fn cudaLibraryGetKernelCount(out: *mut c_uint, library: Handle);
                launch::blocks_per_sm => fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(out: *mut c_int, function: Handle, block: c_int, shared: usize);
                launch::blocks_per_sm => fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out: *mut c_int, function: Handle, block: c_int, shared: usize);
                launch::clusters => fn cudaOccupancyMaxActiveClusters(out: *mut c_int);
                launch::clusters => fn cudaOccupancyMaxPotentialClusterSize(out: *mut c_int);
                launch::kernel => fn cudaLaunchKernel();
                launch::kernel => fn cudaLaunchKernelExC();
                launch::kernel => fn cudaLaunchCooperativeKernel();
                launch::kernel => fn cudaGraphLaunch();
                launch::kernel => fn __cudaLaunchKernel();
                module::get_kernel => fn __cudaGetKernel(out: *mut Handle, function: Handle);
                driver::entry_point_by_version => fn cudaGetDriverEntryPointByVersion(name: *const c_char, out: *mut Address, version: c_uint, flags: u64, found: *mut c_int);
                driver::entry_point => fn cudaGetDriverEntryPoint(name: *const c_char, out: *mut Address, flags: u64, found: *mut c_int);
            }
            values {
                error::runtime_name => fn cudaGetErrorName(code: c_int) -> *const c_char;
                error::runtime_text => fn cudaGetErrorString(code: c_int) -> *const c_char;
                error::take_last => fn cudaGetLastError() -> c_int;
                error::peek_last => fn cudaPeekAtLastError() -> c_int;
                module::register_fat_binary => fn __cudaRegisterFatBinary(binary: Address) -> Handle;
                fat_binary::register_function => fn __cudaRegisterFunction(binary: Handle, function: Handle) -> c_int;
                launch::push_configuration => fn __cudaPushCallConfiguration() -> c_int;
                module::init => fn __cudaInitModule(binary: Handle) -> c_char;
            }
            silent {
                cudaDeviceReset, cudaDeviceSetLimit, cudaDeviceEnablePeerAccess,
                cudaDeviceSetGraphMemAttribute, cudaDeviceSetMemPool,
                cudaStreamQuery, cudaStreamUpdateCaptureDependencies,
                cudaFuncSetAttribute, cudaFuncSetCacheConfig,
                cudaFuncSetSharedMemConfig, cudaKernelSetAttributeForDevice, cudaLibraryUnload,
                cudaMemPoolSetAccess, cudaMemcpyToSymbol, cudaMemcpyToSymbolAsync,
                cudaMemPrefetchAsync, cudaMemAdvise, cudaGraphExecDestroy, cudaGraphRetainUserObject,
                cudaUserObjectRelease, cudaGraphDebugDotPrint, cudaGraphUpload, cudaProfilerStart,
                cudaProfilerStop, cudaSetDeviceFlags, cudaCtxResetPersistingL2Cache,
                cudaStreamSetAttribute, cudaStreamAttachMemAsync,
                __cudaRegisterFatBinaryEnd, __cudaRegisterVar,
                __cudaRegisterManagedVar, __cudaUnregisterFatBinary, __cudaPopCallConfiguration,
            }
            refused {
                cudaIpcGetMemHandle, cudaIpcOpenMemHandle, cudaIpcCloseMemHandle,
                cudaIpcGetEventHandle, cudaIpcOpenEventHandle, cudaLibraryGetGlobal,
                cudaLibraryGetManaged, cudaLibraryGetUnifiedFunction, cudaGraphNodeGetDependencies,
                cudaGraphExecUpdate, cudaMalloc3D, cudaMallocArray, cudaMallocPitch, cudaMemcpyFromSymbol,
                cudaCreateTextureObject, cudaDestroyTextureObject, cudaMemPoolCreate,
                cudaMemPoolDestroy, cudaMemPoolExportToShareableHandle,
            }
        }
    };
}
