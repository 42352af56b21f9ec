//! cuDNN: backend graphs go to the real library where there is one; the legacy calls are ours.

/// Hands the rows of `libcudnn` to `$then!`.
#[macro_export]
macro_rules! cudnn {
    ($then:ident) => {
        $then! { cudnn;
            answered {
                cudnn::create => fn cudnnCreate(out: *mut Handle);
                cudnn::stream => fn cudnnGetStream(handle: Handle, out: *mut Handle);
                cudnn::property => fn cudnnGetProperty(kind: c_int, out: *mut c_int);
                cudnn::backend::create => fn cudnnBackendCreateDescriptor(kind: c_int, out: *mut Handle);
                cudnn::backend::destroy => fn cudnnBackendDestroyDescriptor(descriptor: Handle);
                cudnn::backend::finalize => fn cudnnBackendFinalize(descriptor: Handle);
                cudnn::backend::execute => fn cudnnBackendExecute(handle: Handle, plan: Handle);
                cudnn::backend::set => fn cudnnBackendSetAttribute(descriptor: Handle, name: c_int, kind: c_int, count: i64, values: *const c_void);
                cudnn::backend::get => fn cudnnBackendGetAttribute(descriptor: Handle, name: c_int, kind: c_int, wanted: i64, count: *mut i64, values: *mut c_void);
                cudnn::descriptor::create => fn cudnnCreateTensorDescriptor(out: *mut Handle);
                cudnn::descriptor::create => fn cudnnCreateFilterDescriptor(out: *mut Handle);
                cudnn::descriptor::create => fn cudnnCreateConvolutionDescriptor(out: *mut Handle);
                cudnn::descriptor::create => fn cudnnCreatePoolingDescriptor(out: *mut Handle);
                cudnn::descriptor::create => fn cudnnCreateActivationDescriptor(out: *mut Handle);
                cudnn::descriptor::create => fn cudnnCreateDropoutDescriptor(out: *mut Handle);
                cudnn::descriptor::create => fn cudnnCreateSpatialTransformerDescriptor(out: *mut Handle);
                cudnn::descriptor::create => fn cudnnCreateCTCLossDescriptor(out: *mut Handle);
                cudnn::descriptor::create => fn cudnnCreateRNNDescriptor(out: *mut Handle);
                cudnn::descriptor::create => fn cudnnCreateRNNDataDescriptor(out: *mut Handle);
                cudnn::descriptor::destroy => fn cudnnDestroyTensorDescriptor(descriptor: Handle);
                cudnn::descriptor::destroy => fn cudnnDestroyFilterDescriptor(descriptor: Handle);
                cudnn::descriptor::destroy => fn cudnnDestroyConvolutionDescriptor(descriptor: Handle);
                cudnn::descriptor::destroy => fn cudnnDestroyActivationDescriptor(descriptor: Handle);
                cudnn::descriptor::destroy => fn cudnnDestroyDropoutDescriptor(descriptor: Handle);
                cudnn::descriptor::destroy => fn cudnnDestroySpatialTransformerDescriptor(descriptor: Handle);
                cudnn::descriptor::destroy => fn cudnnDestroyCTCLossDescriptor(descriptor: Handle);
                cudnn::descriptor::destroy => fn cudnnDestroyRNNDescriptor(descriptor: Handle);
                cudnn::descriptor::destroy => fn cudnnDestroyRNNDataDescriptor(descriptor: Handle);
                cudnn::descriptor::set_tensor => fn cudnnSetTensorNdDescriptor(descriptor: Handle, dtype: c_int, rank: c_int, dims: *const c_int, strides: *const c_int);
                cudnn::descriptor::get_tensor => fn cudnnGetTensorNdDescriptor(descriptor: Handle, wanted: c_int, dtype: *mut c_int, rank: *mut c_int, dims: *mut c_int, strides: *mut c_int);
                cudnn::descriptor::set_filter => fn cudnnSetFilterNdDescriptor(descriptor: Handle, dtype: c_int, format: c_int, rank: c_int, dims: *const c_int);
                cudnn::descriptor::get_filter => fn cudnnGetFilterNdDescriptor(descriptor: Handle, wanted: c_int, dtype: *mut c_int, format: *mut c_int, rank: *mut c_int, dims: *mut c_int);
                cudnn::legacy::dropout_states => fn cudnnDropoutGetStatesSize(handle: Handle, out: *mut usize);
                cudnn::legacy::norm_forward_work => fn cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(handle: Handle, mode: c_int, ops: c_int, x: Handle, z: Handle, y: Handle, scale: Handle, activation: Handle, out: *mut usize);
                cudnn::legacy::norm_backward_work => fn cudnnGetBatchNormalizationBackwardExWorkspaceSize(handle: Handle, mode: c_int, ops: c_int, x: Handle, y: Handle, dy: Handle, dz: Handle, dx: Handle, scale: Handle, activation: Handle, out: *mut usize);
                cudnn::legacy::norm_reserve => fn cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle: Handle, mode: c_int, ops: c_int, activation: Handle, x: Handle, out: *mut usize);
                cudnn::legacy::ctc_work => fn cudnnGetCTCLossWorkspaceSize(handle: Handle, probabilities: Handle, gradients: Handle, labels: Address, label_lengths: Address, input_lengths: Address, algorithm: c_int, ctc: Handle, out: *mut usize);
                cudnn::legacy::ctc_work_v8 => fn cudnnGetCTCLossWorkspaceSize_v8(handle: Handle, algorithm: c_int, ctc: Handle, probabilities: Handle, gradients: Handle, out: *mut usize);
                cudnn::rnn::set => fn cudnnSetRNNDescriptor_v8(descriptor: Handle, algorithm: c_int, cell: c_int, bias: c_int, direction: c_int, input_mode: c_int, dtype: c_int, math: c_int, math_type: c_int, input: c_int, hidden: c_int, projection: c_int, layers: c_int);
                cudnn::rnn::set_data => fn cudnnSetRNNDataDescriptor(descriptor: Handle, dtype: c_int, layout: c_int, steps: c_int, batch: c_int, vector: c_int);
                cudnn::rnn::weight_bytes => fn cudnnGetRNNWeightSpaceSize(handle: Handle, rnn: Handle, out: *mut usize);
                cudnn::rnn::temporary_bytes => fn cudnnGetRNNTempSpaceSizes(handle: Handle, rnn: Handle, mode: c_int, x: Handle, work: *mut usize, reserve: *mut usize);
                cudnn::rnn::weight => fn cudnnGetRNNWeightParams(handle: Handle, rnn: Handle, layer: c_int, size: usize, space: Address, gate: c_int, matrix: Handle, matrix_at: *mut Address, bias: Handle, bias_at: *mut Address);
            }
            values {
                cudnn::version => fn cudnnGetVersion() -> usize;
                cudnn::cudart_version => fn cudnnGetCudartVersion() -> usize;
                error::cudnn_text => fn cudnnGetErrorString(code: c_int) -> *const c_char;
                cudnn::last_error => fn cudnnGetLastErrorString(out: *mut c_char, size: usize) -> ();
            }
            silent {
                cudnnDestroy, cudnnSetStream,
                cudnnBatchNormalizationForwardTrainingEx, cudnnBatchNormalizationForwardInference,
                cudnnBatchNormalizationBackwardEx, cudnnSetActivationDescriptor,
                cudnnSetDropoutDescriptor, cudnnRestoreDropoutDescriptor, cudnnSetPooling2dDescriptor,
                cudnnPoolingForward, cudnnSetCTCLossDescriptorEx, cudnnSetCTCLossDescriptor_v9,
                cudnnCTCLoss, cudnnCTCLoss_v8, cudnnSetSpatialTransformerNdDescriptor,
                cudnnSpatialTfGridGeneratorForward, cudnnSpatialTfGridGeneratorBackward,
                cudnnSpatialTfSamplerForward, cudnnSpatialTfSamplerBackward, cudnnRNNForward,
                cudnnRNNBackwardData_v8, cudnnRNNBackwardWeights_v8, cudnnSetConvolutionGroupCount,
                cudnnSetConvolutionMathType, cudnnSetConvolutionNdDescriptor,
            }
            refused {
                cudnnConvolutionForward, cudnnConvolutionBackwardData,
                cudnnConvolutionBackwardFilter, cudnnConvolutionBiasActivationForward,
                cudnnFindConvolutionForwardAlgorithmEx, cudnnFindConvolutionBackwardDataAlgorithmEx,
                cudnnFindConvolutionBackwardFilterAlgorithmEx,
                cudnnGetConvolutionForwardAlgorithm_v7, cudnnGetConvolutionBackwardDataAlgorithm_v7,
                cudnnGetConvolutionBackwardFilterAlgorithm_v7,
                cudnnGetConvolutionForwardWorkspaceSize,
                cudnnGetConvolutionBackwardDataWorkspaceSize,
                cudnnGetConvolutionBackwardFilterWorkspaceSize,
            }
        }
    };
}
