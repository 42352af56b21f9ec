//! NVML: what `pynvml`, `nvidia-smi`-like tools and `torch.cuda` ask about the card.

/// Hands the rows of `libnvidia-ml` to `$then!`.
#[macro_export]
macro_rules! nvml {
    ($then:ident) => {
        $then! { nvml;
            answered {
                nvml::init => fn nvmlInit_v2();
                nvml::init => fn nvmlInit();
                nvml::init => fn nvmlInitWithFlags();
                nvml::count => fn nvmlDeviceGetCount_v2(out: *mut c_uint);
                nvml::count => fn nvmlDeviceGetCount(out: *mut c_uint);
                nvml::by_index => fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, out: *mut NvmlDevice);
                nvml::by_index => fn nvmlDeviceGetHandleByIndex(index: c_uint, out: *mut NvmlDevice);
                nvml::by_uuid => fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, out: *mut NvmlDevice);
                nvml::by_pci => fn nvmlDeviceGetHandleByPciBusId_v2(id: *const c_char, out: *mut NvmlDevice);
                nvml::index => fn nvmlDeviceGetIndex(device: NvmlDevice, out: *mut c_uint);
                nvml::index => fn nvmlDeviceGetMinorNumber(device: NvmlDevice, out: *mut c_uint);
                nvml::name => fn nvmlDeviceGetName(device: NvmlDevice, out: *mut c_char, length: c_uint);
                nvml::uuid => fn nvmlDeviceGetUUID(device: NvmlDevice, out: *mut c_char, length: c_uint);
                nvml::memory => fn nvmlDeviceGetMemoryInfo(device: NvmlDevice, out: *mut NvmlMemory);
                nvml::memory_v2 => fn nvmlDeviceGetMemoryInfo_v2(device: NvmlDevice, out: *mut NvmlMemory2);
                nvml::utilization => fn nvmlDeviceGetUtilizationRates(device: NvmlDevice, out: *mut [c_uint; 2]);
                nvml::temperature => fn nvmlDeviceGetTemperature(device: NvmlDevice, sensor: c_int, out: *mut c_uint);
                nvml::power => fn nvmlDeviceGetPowerUsage(device: NvmlDevice, out: *mut c_uint);
                nvml::clock => fn nvmlDeviceGetClockInfo(device: NvmlDevice, kind: c_int, out: *mut c_uint);
                nvml::clock => fn nvmlDeviceGetMaxClockInfo(device: NvmlDevice, kind: c_int, out: *mut c_uint);
                nvml::compute_capability => fn nvmlDeviceGetCudaComputeCapability(device: NvmlDevice, major: *mut c_int, minor: *mut c_int);
                nvml::bus_width => fn nvmlDeviceGetMemoryBusWidth(device: NvmlDevice, out: *mut c_uint);
                nvml::processes_v1 => fn nvmlDeviceGetComputeRunningProcesses(device: NvmlDevice, count: *mut c_uint, out: *mut [u64; 2]);
                nvml::processes => fn nvmlDeviceGetComputeRunningProcesses_v3(device: NvmlDevice, count: *mut c_uint, out: *mut NvmlProcess);
                nvml::processes => fn nvmlDeviceGetComputeRunningProcesses_v2(device: NvmlDevice, count: *mut c_uint, out: *mut NvmlProcess);
                nvml::no_processes => fn nvmlDeviceGetGraphicsRunningProcesses_v3(device: NvmlDevice, count: *mut c_uint);
                nvml::pci => fn nvmlDeviceGetPciInfo_v3(device: NvmlDevice, out: *mut NvmlPci);
                nvml::not_on_this_card => fn nvmlDeviceGetNvLinkRemoteDeviceType();
                nvml::fabric => fn nvmlDeviceGetGpuFabricInfoV(device: NvmlDevice, out: *mut [u32; 8]);
                nvml::driver_version => fn nvmlSystemGetDriverVersion(out: *mut c_char, length: c_uint);
                nvml::driver_version => fn nvmlSystemGetNVMLVersion(out: *mut c_char, length: c_uint);
                device::driver_version => fn nvmlSystemGetCudaDriverVersion(out: *mut c_int);
                device::driver_version => fn nvmlSystemGetCudaDriverVersion_v2(out: *mut c_int);
            }
            values {
                error::nvml_text => fn nvmlErrorString(code: c_int) -> *const c_char;
            }
            silent {
                () {
                    nvmlShutdown,
                }
            }
            refused {
                nvmlDeviceGetFanSpeed, nvmlDeviceGetEnforcedPowerLimit,
                nvmlDeviceGetPowerManagementLimit, nvmlDeviceGetTotalEnergyConsumption,
                nvmlDeviceGetMigMode, nvmlDeviceGetEccMode, nvmlDeviceGetNvLinkState,
                nvmlDeviceGetNvLinkRemotePciInfo_v2, nvmlDeviceGetP2PStatus,
                nvmlDeviceGetTopologyCommonAncestor, nvmlDeviceGetCpuAffinity,
                nvmlDeviceGetPersistenceMode, nvmlDeviceGetComputeMode,
                nvmlDeviceGetPerformanceState, nvmlDeviceGetProcessUtilization,
                nvmlDeviceGetBAR1MemoryInfo, nvmlDeviceGetSerial, nvmlDeviceGetAttributes_v2,
                nvmlDeviceGetCurrPcieLinkGeneration, nvmlDeviceGetCurrPcieLinkWidth,
                nvmlDeviceGetPcieThroughput, nvmlDeviceGetSupportedMemoryClocks,
                nvmlDeviceGetCurrentClocksThrottleReasons, nvmlSystemGetProcessName,
            }
        }
    };
}
