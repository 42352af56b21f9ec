//! cuDNN: backend graphs go to the real library where there is one; the legacy calls are ours.

/// Hands the rows of `libcudnn` to `$then!`.
#[macro_export]
macro_rules! cudnn {
    ($then:ident) => {
        $then! { cudnn;
            answered {
                capture::set_library_stream => fn cudnnSetStream(library: Cudnn, stream: Stream);
                handles::create => fn cudnnCreate(out: *mut Cudnn);
                cudnn::stream => fn cudnnGetStream(handle: Cudnn, out: *mut Handle);
                cudnn::property => fn cudnnGetProperty(kind: c_int, out: *mut c_int);
                cudnn::backend::create => fn cudnnBackendCreateDescriptor(kind: c_int, out: *mut BackendDescriptor);
                cudnn::backend::destroy => fn cudnnBackendDestroyDescriptor(descriptor: Ended<BackendDescriptor>);
                cudnn::backend::finalize => fn cudnnBackendFinalize(descriptor: BackendDescriptor);
                cudnn::backend::execute => fn cudnnBackendExecute(handle: Cudnn, plan: BackendDescriptor, pack: BackendDescriptor);
                cudnn::backend::set => fn cudnnBackendSetAttribute(descriptor: BackendDescriptor, name: c_int, kind: c_int, count: i64, values: *const c_void);
                cudnn::backend::get => fn cudnnBackendGetAttribute(descriptor: BackendDescriptor, name: c_int, kind: c_int, wanted: i64, count: *mut i64, values: *mut c_void);
                handles::create => fn cudnnCreateTensorDescriptor(out: *mut TensorDescriptor);
                handles::create => fn cudnnCreateFilterDescriptor(out: *mut FilterDescriptor);
                handles::create => fn cudnnCreateConvolutionDescriptor(out: *mut ConvolutionDescriptor);
                handles::create => fn cudnnCreatePoolingDescriptor(out: *mut PoolingDescriptor);
                handles::create => fn cudnnCreateActivationDescriptor(out: *mut ActivationDescriptor);
                handles::create => fn cudnnCreateDropoutDescriptor(out: *mut DropoutDescriptor);
                handles::create => fn cudnnCreateSpatialTransformerDescriptor(out: *mut TransformerDescriptor);
                handles::create => fn cudnnCreateCTCLossDescriptor(out: *mut CtcDescriptor);
                handles::create => fn cudnnCreateRNNDescriptor(out: *mut RnnDescriptor);
                handles::create => fn cudnnCreateRNNDataDescriptor(out: *mut RnnDataDescriptor);
                cudnn::descriptor::destroy => fn cudnnDestroyTensorDescriptor(descriptor: Ended<TensorDescriptor>);
                cudnn::descriptor::destroy => fn cudnnDestroyFilterDescriptor(descriptor: Ended<FilterDescriptor>);
                cudnn::descriptor::destroy => fn cudnnDestroyConvolutionDescriptor(descriptor: Ended<ConvolutionDescriptor>);
                cudnn::descriptor::destroy => fn cudnnDestroyActivationDescriptor(descriptor: Ended<ActivationDescriptor>);
                cudnn::descriptor::destroy => fn cudnnDestroyDropoutDescriptor(descriptor: Ended<DropoutDescriptor>);
                cudnn::descriptor::destroy => fn cudnnDestroySpatialTransformerDescriptor(descriptor: Ended<TransformerDescriptor>);
                cudnn::descriptor::destroy => fn cudnnDestroyCTCLossDescriptor(descriptor: Ended<CtcDescriptor>);
                cudnn::descriptor::destroy => fn cudnnDestroyRNNDescriptor(descriptor: Ended<RnnDescriptor>);
                cudnn::descriptor::destroy => fn cudnnDestroyRNNDataDescriptor(descriptor: Ended<RnnDataDescriptor>);
                cudnn::descriptor::set_tensor => fn cudnnSetTensorNdDescriptor(descriptor: TensorDescriptor, dtype: c_int, rank: c_int, dims: *const c_int, strides: *const c_int);
                cudnn::descriptor::get_tensor => fn cudnnGetTensorNdDescriptor(descriptor: TensorDescriptor, wanted: c_int, dtype: *mut c_int, rank: *mut c_int, dims: *mut c_int, strides: *mut c_int);
                cudnn::descriptor::set_filter => fn cudnnSetFilterNdDescriptor(descriptor: FilterDescriptor, dtype: c_int, format: c_int, rank: c_int, dims: *const c_int);
                cudnn::descriptor::get_filter => fn cudnnGetFilterNdDescriptor(descriptor: FilterDescriptor, wanted: c_int, dtype: *mut c_int, format: *mut c_int, rank: *mut c_int, dims: *mut c_int);
                cudnn::legacy::dropout_states => fn cudnnDropoutGetStatesSize(handle: Cudnn, out: *mut usize);
                cudnn::legacy::norm_forward_work => fn cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(handle: Cudnn, mode: c_int, ops: c_int, x: TensorDescriptor, z: Optional<TensorDescriptor>, y: TensorDescriptor, scale: TensorDescriptor, activation: Optional<ActivationDescriptor>, out: *mut usize);
                cudnn::legacy::norm_backward_work => fn cudnnGetBatchNormalizationBackwardExWorkspaceSize(handle: Cudnn, mode: c_int, ops: c_int, x: TensorDescriptor, y: Optional<TensorDescriptor>, dy: TensorDescriptor, dz: Optional<TensorDescriptor>, dx: TensorDescriptor, scale: TensorDescriptor, activation: Optional<ActivationDescriptor>, out: *mut usize);
                cudnn::legacy::norm_reserve => fn cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle: Cudnn, mode: c_int, ops: c_int, activation: Optional<ActivationDescriptor>, x: TensorDescriptor, out: *mut usize);
                cudnn::legacy::ctc_work => fn cudnnGetCTCLossWorkspaceSize(handle: Cudnn, probabilities: TensorDescriptor, gradients: Optional<TensorDescriptor>, labels: Address, label_lengths: Address, input_lengths: Address, algorithm: c_int, ctc: CtcDescriptor, out: *mut usize);
                cudnn::legacy::ctc_work_v8 => fn cudnnGetCTCLossWorkspaceSize_v8(handle: Cudnn, algorithm: c_int, ctc: CtcDescriptor, probabilities: TensorDescriptor, gradients: Optional<TensorDescriptor>, out: *mut usize);
                cudnn::calls::norm_forward => fn cudnnBatchNormalizationForwardTrainingEx(handle: Cudnn, mode: c_int, ops: c_int, alpha: Address, beta: Address, x: TensorDescriptor, x_at: Address, z: Optional<TensorDescriptor>, z_at: Address, y: TensorDescriptor, y_at: Address, scale: TensorDescriptor, scale_at: Address, bias_at: Address, factor: f64, mean: Address, variance: Address, epsilon: f64, saved_mean: Address, saved_variance: Address, activation: Optional<ActivationDescriptor>, workspace: Address);
                cudnn::calls::norm_backward => fn cudnnBatchNormalizationBackwardEx(handle: Cudnn, mode: c_int, ops: c_int, alpha: Address, beta: Address, alpha_of_weights: Address, beta_of_weights: Address, x: TensorDescriptor, x_at: Address, y: Optional<TensorDescriptor>, y_at: Address, dy: TensorDescriptor, dy_at: Address, dz: Optional<TensorDescriptor>, dz_at: Address, dx: TensorDescriptor, dx_at: Address, scale: TensorDescriptor, scale_at: Address, bias_at: Address, dscale_at: Address, dbias_at: Address, epsilon: f64, saved_mean: Address, saved_variance: Address, activation: Optional<ActivationDescriptor>, workspace: Address);
                cudnn::calls::rnn_forward => fn cudnnRNNForward(handle: Cudnn, rnn: RnnDescriptor, mode: c_int, lengths: Address, x: RnnDataDescriptor, x_at: Address, y: RnnDataDescriptor, y_at: Address, h: Optional<TensorDescriptor>, hx: Address, hy: Address, c: Optional<TensorDescriptor>, cx: Address, cy: Address, weight_bytes: usize, weights: Address, work_bytes: usize, workspace: Address);
                cudnn::calls::rnn_backward_data => fn cudnnRNNBackwardData_v8(handle: Cudnn, rnn: RnnDescriptor, lengths: Address, y: RnnDataDescriptor, y_at: Address, dy: Address, x: RnnDataDescriptor, dx: Address, h: Optional<TensorDescriptor>, hx: Address, dhy: Address, dhx: Address, c: Optional<TensorDescriptor>, cx: Address, dcy: Address, dcx: Address, weight_bytes: usize, weights: Address, work_bytes: usize, workspace: Address);
                cudnn::calls::rnn_backward_weights => fn cudnnRNNBackwardWeights_v8(handle: Cudnn, rnn: RnnDescriptor, add: c_int, lengths: Address, x: RnnDataDescriptor, x_at: Address, h: Optional<TensorDescriptor>, hx: Address, y: RnnDataDescriptor, y_at: Address, weight_bytes: usize, weights: Address, work_bytes: usize, workspace: Address);
                cudnn::rnn::set => fn cudnnSetRNNDescriptor_v8(descriptor: RnnDescriptor, algorithm: c_int, cell: c_int, bias: c_int, direction: c_int, input_mode: c_int, dtype: c_int, math: c_int, math_type: c_int, input: c_int, hidden: c_int, projection: c_int, layers: c_int);
                cudnn::rnn::set_data => fn cudnnSetRNNDataDescriptor(descriptor: RnnDataDescriptor, dtype: c_int, layout: c_int, steps: c_int, batch: c_int, vector: c_int);
                cudnn::rnn::weight_bytes => fn cudnnGetRNNWeightSpaceSize(handle: Cudnn, rnn: RnnDescriptor, out: *mut usize);
                cudnn::rnn::temporary_bytes => fn cudnnGetRNNTempSpaceSizes(handle: Cudnn, rnn: RnnDescriptor, mode: c_int, x: RnnDataDescriptor, work: *mut usize, reserve: *mut usize);
                cudnn::rnn::weight => fn cudnnGetRNNWeightParams(handle: Cudnn, rnn: RnnDescriptor, layer: c_int, size: usize, space: Address, gate: c_int, matrix: Optional<TensorDescriptor>, matrix_at: *mut Address, bias: Optional<TensorDescriptor>, bias_at: *mut Address);
            }
            values {
                cudnn::version => fn cudnnGetVersion() -> usize;
                cudnn::cudart_version => fn cudnnGetCudartVersion() -> usize;
                error::cudnn_text => fn cudnnGetErrorString(code: c_int) -> *const c_char;
                cudnn::last_error => fn cudnnGetLastErrorString(out: *mut c_char, size: usize) -> ();
            }
            silent {
                (handle: Ended<Cudnn>) {
                    cudnnDestroy,
                }
                (handle: Cudnn) {
                    cudnnBatchNormalizationForwardInference, cudnnCTCLoss, cudnnCTCLoss_v8,
                }
                (handle: Cudnn, pooling: PoolingDescriptor) {
                    cudnnPoolingForward,
                }
                (handle: Cudnn, transformer: TransformerDescriptor) {
                    cudnnSpatialTfGridGeneratorForward, cudnnSpatialTfGridGeneratorBackward,
                    cudnnSpatialTfSamplerForward, cudnnSpatialTfSamplerBackward,
                }
                (descriptor: ActivationDescriptor) {
                    cudnnSetActivationDescriptor,
                }
                (descriptor: DropoutDescriptor, handle: Cudnn) {
                    cudnnSetDropoutDescriptor, cudnnRestoreDropoutDescriptor,
                }
                (descriptor: PoolingDescriptor) {
                    cudnnSetPooling2dDescriptor,
                }
                (descriptor: CtcDescriptor) {
                    cudnnSetCTCLossDescriptorEx, cudnnSetCTCLossDescriptor_v9,
                }
                (descriptor: TransformerDescriptor) {
                    cudnnSetSpatialTransformerNdDescriptor,
                }
                (descriptor: ConvolutionDescriptor) {
                    cudnnSetConvolutionGroupCount, cudnnSetConvolutionMathType,
                    cudnnSetConvolutionNdDescriptor,
                }
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
