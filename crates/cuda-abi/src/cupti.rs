//! CUPTI: PyTorch's profiler asks for it; the phantom has no device activity to report.

/// Hands the rows of `libcupti` to `$then!`.
#[macro_export]
macro_rules! cupti {
    ($then:ident) => {
        $then! { cupti;
            answered {
                cupti::version => fn cuptiGetVersion(out: *mut c_uint);
                handles::create => fn cuptiSubscribe(out: *mut Subscriber);
                cupti::next_record => fn cuptiActivityGetNextRecord(buffer: Address, size: usize, record: *mut Address);
                cupti::dropped => fn cuptiActivityGetNumDroppedRecords(context: Handle, stream: c_uint, out: *mut usize);
                cupti::device_id => fn cuptiGetDeviceId(context: Handle, out: *mut c_uint);
                cupti::text => fn cuptiGetResultString(code: c_int, out: *mut *const c_char);
                cupti::callback_name => fn cuptiGetCallbackName(domain: c_int, id: c_uint, out: *mut *const c_char);
            }
            values {}
            silent {
                () {
                    cuptiActivityDisable, cuptiActivityEnable,
                    cuptiActivityEnableCudaEventDeviceTimestamps, cuptiActivityEnableDriverApi,
                    cuptiActivityEnableRuntimeApi, cuptiActivityFlushAll,
                    cuptiActivityPopExternalCorrelationId,
                    cuptiActivityPushExternalCorrelationId, cuptiActivityRegisterCallbacks,
                    cuptiActivityRegisterTimestampCallback, cuptiActivitySetAttribute,
                    cuptiEnableCallback, cuptiEnableDomain, cuptiFinalize,
                }
                (subscriber: Ended<Subscriber>) {
                    cuptiUnsubscribe,
                }
            }
            refused {
                cuptiEventGetAttribute, cuptiEventGetIdFromName, cuptiEventGroupGetAttribute,
                cuptiEventGroupReadEvent, cuptiEventGroupSetAttribute,
                cuptiEventGroupSetDisable, cuptiEventGroupSetEnable, cuptiEventGroupSetsCreate,
                cuptiEventGroupSetsDestroy, cuptiMetricEnumEvents, cuptiMetricGetAttribute,
                cuptiMetricGetIdFromName, cuptiMetricGetNumEvents, cuptiMetricGetValue,
                cuptiSetEventCollectionMode,
            }
        }
    };
}
