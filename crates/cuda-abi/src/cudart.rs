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
                pointer::attributes => fn cudaPointerGetAttributes(out: *mut PointerAttributes, address: Address);
                copies::and_wait => fn cudaMemcpy(to: Address, from: Address, size: usize; kind: Direction);
                copies::on_stream => fn cudaMemcpyAsync(to: Address, from: Address, size: usize, kind: Direction, stream: Stream);
                copies::of_rows => fn cudaMemcpy2DAsync(to: Address, to_pitch: usize, from: Address, from_pitch: usize, width: usize, height: usize, kind: Direction, stream: Stream);
                copies::to_peer => fn cudaMemcpyPeerAsync(to: Address, to_device: c_int, from: Address, from_device: c_int, size: usize, stream: Stream);
                memory::copy_2d => fn cudaMemcpy2D(to: Address, to_pitch: usize, from: Address, from_pitch: usize, width: usize, height: usize; kind: Direction);
                memory::set => fn cudaMemset(address: Address, value: c_int, size: usize);
                copies::fill => fn cudaMemsetAsync(address: Address, value: c_int, size: usize, stream: Stream);
                pool::malloc => fn cudaMallocAsync(out: *mut Address, size: usize; stream: Stream);
                pool::malloc_from => fn cudaMallocFromPoolAsync(out: *mut Address, size: usize, pool: Pool; stream: Stream);
                pool::free => fn cudaFreeAsync(address: Address; stream: Stream);
                pool::default_of => fn cudaDeviceGetDefaultMemPool(out: *mut Pool, device: c_int);
                pool::default_of => fn cudaDeviceGetMemPool(out: *mut Pool, device: c_int);
                pool::attribute => fn cudaMemPoolGetAttribute(pool: Pool, attribute: c_int, out: *mut u64);
                pool::set_attribute => fn cudaMemPoolSetAttribute(pool: Pool, attribute: c_int, value: *mut u64);
                pool::trim => fn cudaMemPoolTrimTo(pool: Pool, keep: usize);
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
                stream::create => fn cudaStreamCreate(out: *mut Stream);
                stream::create => fn cudaStreamCreateWithFlags(out: *mut Stream);
                stream::create_with_priority => fn cudaStreamCreateWithPriority(out: *mut Stream, flags: c_uint, priority: c_int);
                stream::destroy => fn cudaStreamDestroy(stream: Ended<Stream>);
                stream::priority => fn cudaStreamGetPriority(stream: Stream, out: *mut c_int);
                stream::wait_event => fn cudaStreamWaitEvent(stream: Stream, event: Event, flags: c_uint);
                stream::add_callback => fn cudaStreamAddCallback(stream: Stream, callback: StreamCallback, data: *mut c_void);
                stream::launch_host_function => fn cudaLaunchHostFunc(stream: Stream, function: HostFunction, data: *mut c_void);
                capture::is_capturing => fn cudaStreamIsCapturing(stream: Stream, out: *mut c_int);
                capture::info => fn cudaStreamGetCaptureInfo(stream: Stream, status: *mut c_int, id: *mut u64, graph: *mut Graph, dependencies: *mut Address, edges: *mut Address, count: *mut usize);
                capture::info => fn cudaStreamGetCaptureInfo_v3(stream: Stream, status: *mut c_int, id: *mut u64, graph: *mut Graph, dependencies: *mut Address, edges: *mut Address, count: *mut usize);
                capture::info_v2 => fn cudaStreamGetCaptureInfo_v2(stream: Stream, status: *mut c_int, id: *mut u64, graph: *mut Graph, dependencies: *mut Address, count: *mut usize);
                capture::begin => fn cudaStreamBeginCapture(stream: Stream, mode: c_int);
                capture::begin_to_graph => fn cudaStreamBeginCaptureToGraph(stream: Stream, graph: Graph, dependencies: Address, edges: Address, count: usize, mode: c_int);
                capture::end => fn cudaStreamEndCapture(stream: Stream, out: *mut Graph);
                capture::update_dependencies => fn cudaStreamUpdateCaptureDependencies(stream: Stream, nodes: *mut GraphNode, third: usize, fourth: usize, fifth: usize);
                capture::update_dependencies_v2 => fn cudaStreamUpdateCaptureDependencies_v2(stream: Stream, nodes: *mut GraphNode, edges: usize, count: usize, flags: usize);
                capture::exchange_mode => fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int);
                graph::create => fn cudaGraphCreate(out: *mut Graph);
                graph::instantiate => fn cudaGraphInstantiate(out: *mut GraphExec, graph: Graph);
                graph::instantiate => fn cudaGraphInstantiateWithFlags(out: *mut GraphExec, graph: Graph);
                graph::nodes => fn cudaGraphGetNodes(graph: Graph, nodes: *mut GraphNode, count: *mut usize);
                graph::dependencies => fn cudaGraphNodeGetDependencies(node: GraphNode, out: *mut GraphNode, third: *mut usize, fourth: *mut usize);
                graph::destroy_executable => fn cudaGraphExecDestroy(graph: Ended<GraphExec>);
                graph::destroy => fn cudaGraphDestroy(graph: Ended<Graph>);
                handles::create => fn cudaUserObjectCreate(out: *mut UserObject);
                handles::create => fn cudaGraphConditionalHandleCreate(out: *mut GraphNode; graph: Graph);
                graph::add_node => fn cudaGraphAddNode(out: *mut GraphNode, graph: Graph, before: *mut GraphNode, third: usize, fourth: usize, fifth: usize);
                graph::add_node_v2 => fn cudaGraphAddNode_v2(out: *mut GraphNode, graph: Graph, before: *mut GraphNode, edges: usize, count: usize, parameters: usize);
                event::create => fn cudaEventCreate(out: *mut Event);
                event::create => fn cudaEventCreateWithFlags(out: *mut Event);
                event::destroy => fn cudaEventDestroy(event: Ended<Event>);
                event::record => fn cudaEventRecord(event: Event, stream: Stream);
                event::record_with_flags => fn cudaEventRecordWithFlags(event: Event, stream: Stream, flags: c_uint);
                event::query => fn cudaEventQuery(event: Event);
                event::wait => fn cudaEventSynchronize(event: Event);
                event::wait_stream => fn cudaStreamSynchronize(stream: Stream);
                event::query_stream => fn cudaStreamQuery(stream: Stream);
                event::wait_device => fn cudaDeviceSynchronize();
                event::elapsed => fn cudaEventElapsedTime(out: *mut f32, start: Event, end: Event);
                ipc::get_memory => fn cudaIpcGetMemHandle(out: *mut IpcHandle, address: Address);
                ipc::open_memory => fn cudaIpcOpenMemHandle(out: *mut Address, handle: IpcHandle, flags: c_uint);
                ipc::close_memory => fn cudaIpcCloseMemHandle(address: Address);
                ipc::get_event => fn cudaIpcGetEventHandle(out: *mut IpcHandle, event: Event);
                ipc::open_event => fn cudaIpcOpenEventHandle(out: *mut Event, handle: IpcHandle);
                module::function_attributes => fn cudaFuncGetAttributes(out: *mut FuncAttributes, function: Function);
                module::symbol_address => fn cudaGetSymbolAddress(out: *mut Address, symbol: Address);
                module::symbol_size => fn cudaGetSymbolSize(out: *mut usize, symbol: Address);
                module::copy_to_symbol => fn cudaMemcpyToSymbol(symbol: Address, from: Address, size: usize, offset: usize; kind: Direction);
                module::copy_to_symbol => fn cudaMemcpyToSymbolAsync(symbol: Address, from: Address, size: usize, offset: usize; kind: Direction, stream: Stream);
                memory::whole_range => fn cudaMemPrefetchAsync(address: Address, size: usize);
                memory::whole_range => fn cudaMemAdvise(address: Address, size: usize);
                handles::create => fn cudaLibraryLoadData(out: *mut Module; image: NonNull);
                handles::create => fn cudaLibraryLoadFromFile(out: *mut Module; image: NonNull);
                handles::create => fn cudaLibraryGetKernel(out: *mut Kernel; library: Module);
                module::library_kernel_count => fn cudaLibraryGetKernelCount(out: *mut c_uint, library: Module);
                launch::blocks_per_sm => fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(out: *mut c_int, function: Function, block: c_int, shared: usize);
                launch::blocks_per_sm => fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out: *mut c_int, function: Function, block: c_int, shared: usize);
                launch::clusters => fn cudaOccupancyMaxActiveClusters(out: *mut c_int);
                launch::clusters => fn cudaOccupancyMaxPotentialClusterSize(out: *mut c_int);
                busy::launch => fn cudaLaunchKernel(function: Function, grid: Grid, block: Block, arguments: *const *mut i64, shared: usize, stream: Stream);
                configuration::launch_with => fn cudaLaunchKernelExC(configuration: *const LaunchConfiguration, function: Function, arguments: *const *mut i64);
                configuration::launch_together => fn cudaLaunchCooperativeKernel(function: Function, grid: Grid, block: Block, arguments: *const *mut i64, shared: usize, stream: Stream);
                graph::launch => fn cudaGraphLaunch(graph: GraphExec, stream: Stream);
                busy::launch => fn __cudaLaunchKernel(function: Function, grid: Grid, block: Block, arguments: *const *mut i64, shared: usize, stream: Stream);
                configuration::push => fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: Handle);
                configuration::pop => fn __cudaPopCallConfiguration(grid: *mut Dim3, block: *mut Dim3, shared: *mut usize, stream: *mut Handle);
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
                fat_binary::register_function => fn __cudaRegisterFunction(binary: Handle, function: Handle, device: Address, name: *const c_char) -> c_int;
                module::register_variable => fn __cudaRegisterVar(binary: Handle, symbol: Address, on_card: Address, name: Address, external: c_int, size: usize) -> c_int;
                module::init => fn __cudaInitModule(binary: Handle) -> c_char;
            }
            silent {
                () {
                    cudaDeviceReset, cudaDeviceSetLimit, cudaProfilerStart, cudaProfilerStop, cudaSetDeviceFlags,
                    cudaCtxResetPersistingL2Cache, __cudaRegisterFatBinaryEnd,
                    __cudaRegisterManagedVar, __cudaUnregisterFatBinary,
                }
                (pool: Pool) {
                    cudaMemPoolSetAccess,
                }
                (stream: Stream) {
                    cudaStreamSetAttribute,
                    cudaStreamAttachMemAsync,
                }
                (graph: GraphExec, stream: Stream) {
                    cudaGraphUpload,
                }
                (graph: Graph, object: UserObject) {
                    cudaGraphRetainUserObject,
                }
                (object: UserObject) {
                    cudaUserObjectRelease,
                }
                (graph: Graph) {
                    cudaGraphDebugDotPrint,
                }
                (library: Ended<Module>) {
                    cudaLibraryUnload,
                }
                (device: Ordinal) {
                    cudaDeviceEnablePeerAccess, cudaDeviceSetGraphMemAttribute,
                    cudaDeviceSetMemPool,
                }
                (function: Function) {
                    cudaFuncSetAttribute, cudaFuncSetCacheConfig, cudaFuncSetSharedMemConfig,
                }
                (kernel: Kernel) {
                    cudaKernelSetAttributeForDevice,
                }
            }
            refused {
                cudaLibraryGetGlobal, cudaLibraryGetManaged, cudaLibraryGetUnifiedFunction,
                cudaGraphExecUpdate, cudaMalloc3D, cudaMallocArray, cudaMallocPitch, cudaMemcpyFromSymbol,
                cudaCreateTextureObject, cudaDestroyTextureObject, cudaMemPoolCreate,
                cudaMemPoolDestroy, cudaMemPoolExportToShareableHandle,
            }
        }
    };
}
